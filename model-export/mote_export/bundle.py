"""Writing a bundle: weights tensor by tensor, then the graph, tokenizer and manifest, all or nothing."""

import hashlib
import json
import os
import shutil
import struct
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from .architecture import GROUP, Architecture
from .calibrate import Calibration
from .checkpoint import Checkpoint
from .errors import ExportError, bad_input, unsupported
from .graph import build
from .matrix import Matrix, blocks, common_kind, packed_bytes
from .progress import Progress
from .quantize import Block, pack

FORMAT_VERSION = 1
PAGE = 4096
MAGIC = b"MOTEWTS\0"
HASH_CHUNK_BYTES = 1 << 22


@dataclass(frozen=True)
class Kinds:
    """What matrices without a native kind become, those of the layers, and embedding and output; None leaves it to them."""

    layers: str | None = None
    embedding: str | None = None


class WeightsFile:
    """weights.bin while it is written; `finish` puts the index behind the tensors and the header in front."""

    def __init__(self, file: BinaryIO):
        self.file = file
        self.index: list[dict[str, object]] = []
        file.write(bytes(PAGE))

    def vector(self, name: str, values: np.ndarray) -> None:
        """Appends an f32 vector."""
        offset = self._align()
        self.file.write(values.astype("<f4").tobytes())
        self._entry(name, "f32", 1, len(values), 0, offset)

    def matrix(self, name: str, parts: list[Matrix], kind: str, found: Iterator[Block], progress: Progress) -> None:
        """Appends the parts below one another as one packed matrix, whose blocks are `found`."""
        offset = self._align()
        rows, cols = sum(part.rows for part in parts), parts[0].cols
        try:
            for block in found:
                self.file.write(pack(block))
                progress.advance(block.values.size, name)
        except ExportError as cause:
            raise ExportError(cause.kind, f"weight {name}: {cause.message}", cause.hint) from cause
        self._entry(name, kind, rows, cols, GROUP, offset)
        if self.index[-1]["bytes"] != packed_bytes(kind, rows, cols):
            raise bad_input(f"weight {name} ended early", "the checkpoint is cut short; fetch it again")

    def finish(self) -> None:
        """Writes the index and the header."""
        index_offset = self.file.tell()
        index = json.dumps(self.index, separators=(",", ":")).encode()
        self.file.write(index)
        total = self.file.tell()
        self.file.seek(0)
        self.file.write(MAGIC + struct.pack("<IIQQQ", FORMAT_VERSION, len(self.index), index_offset, len(index), total))

    def _align(self) -> int:
        self.file.write(bytes(-self.file.tell() % PAGE))
        return self.file.tell()

    def _entry(self, name: str, kind: str, rows: int, cols: int, group: int, offset: int) -> None:
        entry = {"name": name, "kind": kind, "rows": rows, "cols": cols, "group": group}
        self.index.append(entry | {"offset": offset, "bytes": self.file.tell() - offset})


def check_output(out: Path, replace: bool) -> None:
    """Refuses to write over a folder, unless it holds a bundle that may be replaced or nothing at all."""
    if not out.exists():
        return
    if not replace:
        raise ExportError("output", f"already exists: {out}", "choose another --out, or pass --replace")
    if not out.is_dir() or (any(out.iterdir()) and not (out / "manifest.json").exists()):
        raise ExportError("output", f"not a bundle, so it is not replaced: {out}", "choose another --out")


def write_bundle(
    checkpoint: Checkpoint, out: Path, kinds: Kinds, prompt_style: str, replace: bool, calibration_text: str | None = None
) -> dict[str, object]:
    """Writes the bundle to `out` and returns its manifest; `out` appears whole or not at all.

    `kinds` says what matrices become that must be requantized; with a `calibration_text` they are fitted to what the
    model multiplies them by when it reads that text.
    """
    check_output(out, replace)
    temporary: Path | None = None
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{out.name}.", dir=out.parent))
        manifest = _write_files(checkpoint, temporary, kinds, prompt_style, calibration_text)
        temporary.chmod(0o755)
        if out.exists():
            old = temporary.with_name(temporary.name + ".old")
            out.rename(old)
            temporary.rename(out)
            shutil.rmtree(old)
        else:
            temporary.rename(out)
        temporary = None
    except OSError as cause:
        raise ExportError(
            "output",
            f"the bundle cannot be written: {out} ({cause.strerror or cause})",
            "free some space or choose another --out",
        ) from cause
    finally:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)
    return manifest


def _write_files(
    checkpoint: Checkpoint, folder: Path, kinds: Kinds, prompt_style: str, calibration_text: str | None
) -> dict[str, object]:
    arch = checkpoint.architecture
    if checkpoint.tokenizer.get_vocab_size() > arch.vocab:
        raise unsupported(
            f"the tokenizer has more tokens than the embedding: {checkpoint.tokenizer.get_vocab_size()}, {arch.vocab}",
            "tokenizer and weights don't belong together",
        )
    special = checkpoint.special
    outside = [
        token for token in (special.bos, special.eos, special.pad, *special.ends) if token is not None and not 0 <= token < arch.vocab
    ]
    if outside:
        raise bad_input(
            f"a special token is outside the vocabulary: {outside[0]}", "tokenizer and weights don't belong together"
        )
    plan = _plan(checkpoint, kinds)
    calibration = None if calibration_text is None else Calibration(checkpoint, plan, calibration_text)
    progress = Progress("packing", sum(part.rows * part.cols for _, parts, _ in plan for part in parts))
    with open(folder / "weights.bin", "wb") as file:
        weights = WeightsFile(file)
        for name, parts, kind in plan:
            found = blocks(parts, kind) if calibration is None else calibration.blocks(name, parts, kind)
            weights.matrix(name, parts, kind, found, progress)
        if arch.qk_norm:
            for layer in range(arch.layers):
                for name in (f"l{layer}.q_norm", f"l{layer}.k_norm"):
                    weights.vector(name, checkpoint.vector(name))
        weights.finish()
        file.flush()
        os.fsync(file.fileno())
    progress.finish()

    norms = {name: checkpoint.vector(name) for name in _norm_names(arch)}
    (folder / "model.onnx").write_bytes(build(arch, norms).SerializeToString(deterministic=True))
    (folder / "tokenizer.json").write_text(checkpoint.tokenizer.to_str(pretty=False), encoding="utf-8")
    manifest = _manifest(checkpoint, folder, plan, prompt_style, calibration_text is not None)
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return manifest


def _plan(checkpoint: Checkpoint, kinds: Kinds) -> list[tuple[str, list[Matrix], str]]:
    arch = checkpoint.architecture
    fused = {"qkv": ("q", "k", "v"), "o": ("o",), "gate_up": ("gate", "up"), "down": ("down",)}
    parts_of = {"embed": ["embed"]}
    for layer in range(arch.layers):
        parts_of |= {f"l{layer}.{name}": [f"l{layer}.{part}" for part in parts] for name, parts in fused.items()}
    if not arch.tied_embeddings:
        parts_of["output"] = ["output"]
    plan = []
    for name, part_names in parts_of.items():
        parts = [checkpoint.matrix(part) for part in part_names]
        plan.append((name, parts, _kind(name, parts, kinds)))
    return plan


def _kind(name: str, parts: list[Matrix], kinds: Kinds) -> str:
    return common_kind(parts, kinds.layers, "q4m") if "." in name else common_kind(parts, kinds.embedding, "q8")


def _norm_names(arch: Architecture) -> list[str]:
    return [f"l{layer}.{name}" for layer in range(arch.layers) for name in ("attn_norm", "ffn_norm")] + ["final_norm"]


def _manifest(
    checkpoint: Checkpoint, folder: Path, plan: list[tuple[str, list[Matrix], str]], prompt_style: str, calibrated: bool
) -> dict[str, object]:
    layer_kinds = Counter(kind for name, _, kind in plan if "." in name)
    requantized = sorted({f"{part.stored} to {kind}" for _, parts, kind in plan for part in parts if part.native != kind})
    special = checkpoint.special
    return {
        "format": "mote-bundle",
        "format_version": FORMAT_VERSION,
        "name": checkpoint.name,
        "license": checkpoint.license,
        "source": checkpoint.source + (f"; requantized: {', '.join(requantized)}" if requantized else "")
        + ("; calibrated" if calibrated else ""),
        "architecture": asdict(checkpoint.architecture),
        "context_length": checkpoint.context_length,
        "quantization": f"{layer_kinds.most_common(1)[0][0]}{GROUP}",
        "files": {name: _file_entry(folder / name) for name in ("model.onnx", "weights.bin", "tokenizer.json")},
        "special_tokens": {
            "bos": special.bos,
            "eos": special.eos,
            "pad": special.pad,
            "stop": special.stops(checkpoint.tokenizer),
        },
        "add_bos": checkpoint.add_bos,
        "chat_template": checkpoint.chat_template,
        "prompt_style": prompt_style,
    }


def _file_entry(path: Path) -> dict[str, object]:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while chunk := file.read(HASH_CHUNK_BYTES):
            digest.update(chunk)
    return {"bytes": path.stat().st_size, "sha256": digest.hexdigest()}
