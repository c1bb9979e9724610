"""GGUF files as checkpoints.

Q4_0, Q4_1 and Q8_0 are kept bit by bit, Q4_K but for the rounding of its scales to f16; every other type is
dequantized when read, and those finer than four bits ask for eight.
"""

import math
import struct
from pathlib import Path

import gguf
import numpy as np

from .architecture import GROUP, Architecture
from .checkpoint import Checkpoint, Special, bundle_name, check_names, check_shape, shapes
from .errors import bad_input, unsupported
from .matrix import Matrix, half_rotation_order
from .quantize import Block
from .tokenizer import from_file, from_gguf

FIELDS = {
    "attn_norm": "attn_norm",
    "q": "attn_q",
    "k": "attn_k",
    "v": "attn_v",
    "o": "attn_output",
    "ffn_norm": "ffn_norm",
    "gate": "ffn_gate",
    "up": "ffn_up",
    "down": "ffn_down",
    "q_norm": "attn_q_norm",
    "k_norm": "attn_k_norm",
}
GLOBALS = {"embed": "token_embd", "output": "output", "final_norm": "output_norm"}

Type = gguf.GGMLQuantizationType

NATIVE = {Type.Q4_0: "q4", Type.Q4_1: "q4m", Type.Q4_K: "q4m", Type.Q8_0: "q8"}

FINER = (Type.Q5_0, Type.Q5_1, Type.Q5_K, Type.Q6_K)
"""Types whose maker gave them more than four bits on purpose; q8 holds them almost without loss."""

REFUSED_KEYS = (
    "expert_count",
    "expert_used_count",
    "attention.sliding_window",
    "rope.scaling.type",
    "rope.scaling.factor",
    "attention.logit_softcapping",
    "final_logit_softcapping",
    "logit_scale",
    "residual_scale",
    "embedding_scale",
    "attention.scale",
)
"""Metadata that changes the forward pass in a way the graph doesn't have; zero, one or `none` mean that it is off."""


class Metadata:
    """The key-value part of a GGUF file, with messages that name the key."""

    def __init__(self, reader: gguf.GGUFReader):
        self.fields = reader.fields

    def get(self, key: str, default: object = None) -> object:
        """The value of `key`, or `default` if the file has none."""
        found = self.fields.get(key)
        if found is None:
            return default
        try:
            return found.contents()
        except (IndexError, ValueError, UnicodeDecodeError) as cause:
            raise bad_input(f"metadata cannot be read: {key} ({cause})", "the file is damaged; fetch it again") from cause

    def need(self, key: str) -> object:
        """The value of `key`."""
        found = self.get(key)
        if found is None:
            raise bad_input(f"metadata is missing: {key}", "the file is not a complete language model; fetch another")
        return found

    def number(self, key: str, default: float) -> float:
        """A number."""
        found = self.get(key, default)
        if isinstance(found, bool) or not isinstance(found, int | float):
            raise bad_input(f"metadata is not a number: {key}", "the file is damaged; fetch it again")
        return float(found)

    def token(self, key: str) -> int | None:
        """A token's id, if the file names one."""
        found = self.get(key)
        if found is not None and type(found) is not int:
            raise bad_input(f"metadata is not a token's id: {key}", "the file is damaged; fetch it again")
        return found

    def count(self, key: str, default: int | None = None) -> int:
        """A single whole number; some files state one a layer, which a bundle cannot hold."""
        found = self.need(key) if default is None else self.get(key, default)
        if isinstance(found, list) and len(set(found)) == 1:
            found = found[0]
        if type(found) is not int:
            raise unsupported(f"metadata is not one whole number: {key} = {found}", "layers must all have one shape")
        return found


def open_gguf(path: Path, tokenizer_file: Path | None = None) -> Checkpoint:
    """Reads the header of `path`; the weights stay on disk, mapped."""
    try:
        reader = gguf.GGUFReader(path)
    except (ValueError, IndexError, KeyError, OverflowError, MemoryError, UnicodeDecodeError, struct.error) as cause:
        raise bad_input(
            f"not a readable GGUF file: {path} ({cause})", "it is cut short or damaged; fetch it again and compare its hash"
        ) from cause
    meta = Metadata(reader)
    tensors = {tensor.name: tensor for tensor in reader.tensors}
    arch = _architecture(meta, tensors)
    tokenizer = from_gguf(meta) if tokenizer_file is None else from_file(tokenizer_file)

    expected = shapes(arch)
    by_name = {name: tensor_name(name) for name in expected}
    check_names({name for name, stored in by_name.items() if stored in tensors}, set(expected), tensor_name)
    unplaced = sorted(set(tensors) - set(by_name.values()))
    if unplaced:
        raise unsupported(
            f"the graph has no place for this tensor: {unplaced[0]}",
            "biases, rope factors and adapters are not part of the supported families; choose another model",
        )
    for name, shape in expected.items():
        check_shape(by_name[name], tuple(int(n) for n in reversed(tensors[by_name[name]].shape)), shape)

    def matrix(name: str) -> Matrix:
        found = _matrix(tensors[by_name[name]])
        part = name.rpartition(".")[2]
        if arch.family == "llama" and part in ("q", "k"):
            return found.permuted(half_rotation_order(arch.heads if part == "q" else arch.kv_heads, arch.head_dim))
        return found

    def vector(name: str) -> np.ndarray:
        tensor = tensors[by_name[name]]
        return gguf.dequantize(tensor.data, tensor.tensor_type).astype(np.float32).reshape(-1)

    template = meta.get("tokenizer.chat_template")
    bos = meta.token("tokenizer.ggml.bos_token_id")
    default_bos = bos is not None and meta.get("tokenizer.ggml.pre") == "llama-bpe"
    return Checkpoint(
        name=bundle_name(path.stem),
        source=path.name,
        license=str(meta.get("general.license", "unknown")),
        architecture=arch,
        context_length=meta.count(f"{arch.family}.context_length"),
        tokenizer=tokenizer,
        special=Special(
            bos=bos,
            eos=meta.token("tokenizer.ggml.eos_token_id"),
            pad=meta.token("tokenizer.ggml.padding_token_id"),
            ends=tuple(t for t in (meta.token("tokenizer.ggml.eot_token_id"),) if t is not None),
        ),
        add_bos=bool(meta.get("tokenizer.ggml.add_bos_token", default_bos)),
        chat_template=template if isinstance(template, str) else None,
        matrix=matrix,
        vector=vector,
    )


def _architecture(meta: Metadata, tensors: dict[str, gguf.ReaderTensor]) -> Architecture:
    family = str(meta.need("general.architecture"))
    if family not in ("llama", "qwen3"):
        raise unsupported(f"unknown architecture: general.architecture = {family}", "supported: llama, qwen3 (dense, not MoE)")
    for key in REFUSED_KEYS:
        value = meta.get(f"{family}.{key}")
        off = value is None or value in (0, "none") or (value == 1 and key.endswith(("scale", "factor")))
        if not off:
            raise unsupported(
                f"the graph doesn't implement this field: {family}.{key} = {value}", "choose a checkpoint without it"
            )
    hidden = meta.count(f"{family}.embedding_length")
    heads = meta.count(f"{family}.attention.head_count")
    head_dim = meta.count(f"{family}.attention.key_length", hidden // max(heads, 1))
    for key in ("attention.value_length", "rope.dimension_count"):
        if meta.count(f"{family}.{key}", head_dim) != head_dim:
            raise unsupported(
                f"{family}.{key} differs from the head's dimension of {head_dim}: {meta.get(f'{family}.{key}')}",
                "partial rope and unequal heads are not implemented; choose another model",
            )
    embed = tensors.get("token_embd.weight")
    if embed is None:
        raise bad_input("the checkpoint lacks a weight: token_embd.weight", "it is cut short; fetch it again")
    return Architecture(
        family=family,
        hidden=hidden,
        layers=meta.count(f"{family}.block_count"),
        heads=heads,
        kv_heads=meta.count(f"{family}.attention.head_count_kv", heads),
        head_dim=head_dim,
        ffn=meta.count(f"{family}.feed_forward_length"),
        vocab=int(embed.shape[-1]),
        rope_theta=meta.number(f"{family}.rope.freq_base", 10000.0),
        norm_eps=_shortest(meta.number(f"{family}.attention.layer_norm_rms_epsilon", 0.0)),
        tied_embeddings="output.weight" not in tensors,
        qk_norm=family == "qwen3",
    )


def _shortest(value: float) -> float:
    """The shortest decimal that is the same f32: GGUF stores 1e-5 as 9.999999747378752e-06."""
    return float(str(np.float32(value))) if math.isfinite(value) else value


def tensor_name(name: str) -> str:
    """The name that a weight has in this form of checkpoint."""
    layer, _, part = name.rpartition(".")
    stored = f"blk.{layer[1:]}.{FIELDS[part]}" if layer else GLOBALS[part]
    return f"{stored}.weight"


def _matrix(tensor: gguf.ReaderTensor) -> Matrix:
    cols, rows = (int(n) for n in tensor.shape)
    kind = tensor.tensor_type
    native = NATIVE.get(kind)
    to_block = _k_block if kind == Type.Q4_K else lambda stored: _block(native, stored)
    data = tensor.data.reshape(rows, -1)

    def read(wanted: np.ndarray) -> Block | np.ndarray:
        stored = np.ascontiguousarray(data[wanted])
        if native is not None:
            return to_block(stored)
        try:
            with np.errstate(invalid="ignore", over="ignore"):
                return gguf.dequantize(stored, kind).astype(np.float32).reshape(len(wanted), cols)
        except NotImplementedError as cause:
            raise unsupported(
                f"tensor {tensor.name} has a type that cannot be read: {kind.name}",
                "choose a file in Q4_0, Q4_1, Q4_K_M, Q8_0, F16 or BF16",
            ) from cause

    return Matrix(rows, cols, kind.name, native, read, "q8" if kind in FINER else None)


def _block(kind: str, stored: np.ndarray) -> Block:
    """GGUF's own blocks of 32: f16 scale, f16 minimum (Q4_1), then i8, or nibbles with columns 16.. in the high half."""
    header = 4 if kind == "q4m" else 2
    body = GROUP if kind == "q8" else GROUP // 2
    rows = stored.view(np.uint8).reshape(len(stored), -1, header + body)
    scales = np.ascontiguousarray(rows[..., :header]).view("<f2")
    if not np.isfinite(scales).all():
        raise bad_input("a scale is not a finite number", "the file is damaged; fetch it again")
    packed = rows[..., header:]
    if kind == "q8":
        values = packed.view(np.int8)
        if (values == -128).any():
            raise unsupported(
                "a Q8_0 weight is -128, which a bundle's q8 cannot hold",
                "quantize the checkpoint again with llama.cpp, which writes -127..=127",
            )
    else:
        values = np.concatenate([packed & 15, packed >> 4], axis=2)
    mins = scales[..., 1] if kind == "q4m" else None
    return Block(kind, values, scales[..., 0], mins)


def _k_block(stored: np.ndarray) -> Block:
    """GGUF's Q4_K: 256 weights share f16 factors of eight 6-bit scales and eight 6-bit minimums, each for 32 weights."""
    blocks = stored.view(np.uint8).reshape(len(stored), -1, 144)
    factors = np.ascontiguousarray(blocks[..., :4]).view("<f2").astype(np.float32)
    packed = blocks[..., 4:16].reshape(*blocks.shape[:2], 3, 4)
    low, high, rest = packed[..., 0, :], packed[..., 1, :], packed[..., 2, :]
    scales = np.concatenate([low & 63, (rest & 15) | (low >> 6 << 4)], axis=2)
    mins = np.concatenate([high & 63, (rest >> 4) | (high >> 6 << 4)], axis=2)
    with np.errstate(over="ignore", invalid="ignore"):
        halves = [
            (sign * factors[..., part, None] * integers).astype(np.float16).reshape(len(stored), -1)
            for part, sign, integers in ((0, np.float32(1), scales), (1, np.float32(-1), mins))
        ]
    if not all(np.isfinite(half).all() for half in halves):
        raise bad_input("a scale is not a finite number, or beyond the range of f16", "the file is damaged; fetch it again")
    nibbles = blocks[..., 16:].reshape(*blocks.shape[:2], 4, 1, GROUP)
    values = np.concatenate([nibbles & 15, nibbles >> 4], axis=3)
    return Block("q4m", values.reshape(len(stored), -1, GROUP), *halves)
