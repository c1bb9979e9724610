"""Calibration: a text goes through the model while its layers are quantized, one after another.

Each layer's matrices are fitted to the inputs that the layers before it, already quantized, give them (compensate.py). Only
the hidden states of the text, one layer's activations and the second moments of one matmul are held; weights are read
once, some rows at a time.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from .checkpoint import Checkpoint
from .compensate import curvature, quantize_compensated
from .errors import bad_input, unsupported
from .matrix import Matrix, blocks
from .quantize import Block
from .reference import attend, rms_norm, rope

SEQUENCE_TOKENS = 512
"""Tokens that attend to each other."""

MIN_TOKENS, MAX_TOKENS = 512, 8192
"""Fewer say too little about a thousand columns; more are cut off, as time and memory grow with them."""

MAX_TEXT_BYTES = 1 << 20


class Calibration:
    """The hidden states of a text on their way through `checkpoint`."""

    def __init__(self, checkpoint: Checkpoint, plan: list[tuple[str, list[Matrix], str]], text: str):
        if all(part.native == kind for name, parts, kind in plan if "." in name for part in parts):
            raise unsupported(
                "nothing to calibrate: every layer is kept as it is stored", "leave --calibrate out, or take an unquantized checkpoint"
            )
        ids = np.array(checkpoint.tokenizer.encode(text, add_special_tokens=False).ids[:MAX_TOKENS], np.int64)
        if len(ids) < MIN_TOKENS:
            raise bad_input(f"the calibration text needs at least {MIN_TOKENS} tokens: {len(ids)}", "a few pages of what it will read")
        self.checkpoint = checkpoint
        self.ends = [*range(SEQUENCE_TOKENS, len(ids), SEQUENCE_TOKENS), len(ids)]
        wanted, places = np.unique(ids, return_inverse=True)
        embed = checkpoint.matrix("embed")
        self.x = np.concatenate([embed.f32(wanted[i : i + 1]) for i in range(len(wanted))])[places]
        self.within: np.ndarray | None = None

    def blocks(self, name: str, parts: list[Matrix], kind: str) -> Iterator[Block]:
        """The blocks of one matrix of the plan; the hidden states go on through it when they are exhausted."""
        layer, _, part = name.rpartition(".")
        if not layer:
            yield from blocks(parts, kind)
            return
        inputs = self._inputs(layer, part)
        moments = inputs.T @ inputs
        moments /= np.float32(len(inputs))
        factors = curvature(moments)
        del moments
        outputs = np.empty((len(inputs), sum(p.rows for p in parts)), np.float32)
        first = 0
        for block in blocks(parts, kind, lambda weights, kind: quantize_compensated(weights, kind, factors)):
            outputs[:, first : first + len(block.values)] = inputs @ block.dequantize().T
            first += len(block.values)
            yield block
        self._advance(layer, part, outputs)

    def _inputs(self, layer: str, part: str) -> np.ndarray:
        if part in ("o", "down"):
            return self.within
        norm = self.checkpoint.vector(f"{layer}.{'attn_norm' if part == 'qkv' else 'ffn_norm'}")
        return rms_norm(self.x, norm, self.checkpoint.architecture.norm_eps)

    def _advance(self, layer: str, part: str, outputs: np.ndarray) -> None:
        if part in ("o", "down"):
            self.x += outputs
            self.within = None
        elif part == "qkv":
            self.within = self._attention(layer, outputs)
        else:
            gate, up = np.split(outputs, 2, axis=1)
            with np.errstate(over="ignore"):
                self.within = gate / (1 + np.exp(-gate)) * up

    def _attention(self, layer: str, qkv: np.ndarray) -> np.ndarray:
        arch = self.checkpoint.architecture
        q, k, v = np.split(
            qkv.reshape(len(qkv), -1, arch.head_dim), [arch.heads, arch.heads + arch.kv_heads], axis=1
        )
        if arch.qk_norm:
            q = rms_norm(q, self.checkpoint.vector(f"{layer}.q_norm"), arch.norm_eps)
            k = rms_norm(k, self.checkpoint.vector(f"{layer}.k_norm"), arch.norm_eps)
        found = []
        start = 0
        for end in self.ends:
            positions = np.arange(end - start)
            turned = [rope(part[start:end], positions, arch.rope_theta) for part in (q, k)]
            found.append(attend(*turned, v[start:end], positions))
            start = end
        return np.concatenate(found).reshape(len(qkv), -1)


def read_text(path: Path) -> str:
    """A calibration text."""
    try:
        if path.stat().st_size > MAX_TEXT_BYTES:
            raise bad_input(f"the calibration text is larger than {MAX_TEXT_BYTES} bytes: {path}", "a few pages are enough")
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as cause:
        raise bad_input(f"cannot read the calibration text: {path} ({cause})", "give a file of plain text in UTF-8") from cause
