"""An f32 model where only its 4-bit checkpoint can be had, to measure quantizers on.

The weights of a Q4_1 file lie on a grid that Q4_1 finds again without any error, so they cannot be the reference as they
are. Two ways off the grid, both written as a GGUF file in F32 with the source's metadata:

`rescaled` gives every input column of every layer matrix a factor of its own and takes it back where the column comes
from: in the norm before it, or in the rows of the matrix before it (v for o, up for down). The function stays that
of the source, up to rounding, so its perplexity is the real model's; but 32 columns of a group share no grid any more.

`dithered` adds to every weight noise that is even over its cell, which is how far the unknown original may have been: once
more the error that the source already has, so the perplexity rises.
"""

from pathlib import Path

import gguf
import numpy as np

from .errors import bad_input

REFERENCES = ("rescaled", "dithered")

FACTOR_RANGE = 1.0
"""Factors are even in log2 over plus and minus half of this."""

Type = gguf.GGMLQuantizationType
Tensors = dict[str, np.ndarray]


def write_reference(source: Path, how: str, out: Path, seed: int = 0) -> None:
    """Writes the f32 model made from the Q4_1, Q4_0 or Q8_0 file `source` to `out`."""
    reader = gguf.GGUFReader(source)
    rng = np.random.Generator(np.random.PCG64(seed))
    tensors = {t.name: _floats(t) for t in reader.tensors}
    architecture = reader.fields["general.architecture"].contents()
    if how == "dithered":
        for tensor in reader.tensors:
            if tensor.tensor_type != Type.F32:
                tensors[tensor.name] += _noise(tensor, rng)
    else:
        _rescale(tensors, reader.fields[f"{architecture}.attention.head_count"].contents(), rng)
    writer = gguf.GGUFWriter(out, architecture)
    skipped = ("general.architecture", "general.file_type", "general.quantization_version")
    for key, field in reader.fields.items():
        if key in skipped or key.startswith("GGUF."):
            continue
        sub_type = field.types[-1] if field.types[0] == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(key, field.contents(), field.types[0], sub_type)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    for name, values in tensors.items():
        writer.add_tensor(name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _floats(tensor: gguf.ReaderTensor) -> np.ndarray:
    return gguf.dequantize(tensor.data, tensor.tensor_type).astype(np.float32).reshape(tuple(tensor.shape[::-1])).copy()


def _noise(tensor: gguf.ReaderTensor, rng: np.random.Generator) -> np.ndarray:
    size = {Type.Q4_0: 18, Type.Q4_1: 20, Type.Q8_0: 34}.get(tensor.tensor_type)
    if size is None:
        raise bad_input(f"cannot tell the cells of this type: {tensor.tensor_type.name}", "give a file in Q4_0, Q4_1 or Q8_0")
    blocks = np.ascontiguousarray(tensor.data).view(np.uint8).reshape(-1, size)
    steps = np.ascontiguousarray(blocks[:, :2]).view("<f2").astype(np.float32)
    noise = (rng.random((len(blocks), 32), np.float32) - np.float32(0.5)) * steps
    return noise.reshape(tuple(tensor.shape[::-1]))


def _rescale(tensors: Tensors, heads: int, rng: np.random.Generator) -> None:
    for layer in range(sum(name.endswith("attn_norm.weight") for name in tensors)):
        prefix = f"blk.{layer}."
        part = {name.split(".")[2]: values for name, values in tensors.items() if name.startswith(prefix)}
        _rescale_layer(part, heads, rng)


def _rescale_layer(part: Tensors, heads: int, rng: np.random.Generator) -> None:
    def factors(count: int) -> np.ndarray:
        return np.exp2((rng.random(count, np.float32) - np.float32(0.5)) * np.float32(FACTOR_RANGE))

    for norm, readers in (("attn_norm", ("attn_q", "attn_k", "attn_v")), ("ffn_norm", ("ffn_gate", "ffn_up"))):
        by = factors(len(part[norm]))
        part[norm] /= by
        for reader in readers:
            part[reader] *= by
    by = factors(len(part["ffn_up"]))
    part["ffn_up"] /= by[:, None]
    part["ffn_down"] *= by
    kv_rows, q_rows = len(part["attn_v"]), len(part["attn_q"])
    by = factors(kv_rows)
    part["attn_v"] /= by[:, None]
    part["attn_output"] *= by.reshape(-1, q_rows // heads).repeat(q_rows // kv_rows, axis=0).reshape(-1)
