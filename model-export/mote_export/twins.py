"""Twins of a random checkpoint in the forms that others read: GGUF in Q4_0 and in llama.cpp's Q4_K_M mix, safetensors in BF16.

Everything is written a few million weights at a time. The Q4_0 and BF16 files hold the weights of the q4 bundle; the blocks
of the Q4_K_M mix are drawn by themselves, with the same spread, and every one is a valid block.
"""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

import gguf
import numpy as np

from .checkpoint import Checkpoint, shapes
from .errors import ExportError
from .gguf_source import tensor_name as gguf_name
from .hf_source import tensor_name as hf_name
from .matrix import CHUNK_WEIGHTS
from .progress import Progress
from .qwen_tokenizer import ADDED_TOKENS, CHAT_TEMPLATE, SPECIAL_TOKENS, merges
from .random_checkpoint import weight_std

Type = gguf.GGMLQuantizationType
Source = Callable[[np.ndarray], np.ndarray]
"""Rows wanted, in order, to their bytes as stored."""

FORMS = ("q4_0", "q4_k_m", "bf16")
NORMAL, CONTROL, USER_DEFINED, UNUSED = 1, 3, 4, 5
"""Values of `tokenizer.ggml.token_type`."""

SHARD_BYTES = 5_000_000_000
"""Size at which published checkpoints begin another safetensors file."""


def write_twin(checkpoint: Checkpoint, form: str, folder: Path, seed: int = 0) -> Path:
    """Writes one form of `checkpoint` into `folder`, under a temporary name first; returns where it lies."""
    out = folder / (f"{form}.gguf" if form != "bf16" else form)
    temporary = folder / f".{out.name}.partial"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if form == "bf16":
            _write_safetensors(checkpoint, temporary)
        else:
            _write_gguf(checkpoint, form, temporary, seed)
        temporary.rename(out)
    except OSError as cause:
        raise ExportError(
            "output", f"the twin cannot be written: {out} ({cause.strerror or cause})", "free some space or choose another --twins"
        ) from cause
    return out


def k_m_type(weight: str, layers: int) -> Type:
    """What llama.cpp's Q4_K_M mix stores a weight as: more bits for the embedding, and for v and down in half of the layers."""
    layer, _, part = weight.rpartition(".")
    if not layer:
        return Type.Q6_K
    number, eighth = int(layer[1:]), layers // 8
    more = number < eighth or number >= 7 * layers // 8 or (number - eighth) % 3 == 2
    return Type.Q6_K if more and part in ("v", "down") else Type.Q4_K


def _write_gguf(checkpoint: Checkpoint, form: str, path: Path, seed: int) -> None:
    arch = checkpoint.architecture
    sizes = shapes(arch)
    types = {name: _gguf_type(form, name, size, arch.layers) for name, size in sizes.items()}
    writer = gguf.GGUFWriter(path, arch.family)
    _metadata(writer, checkpoint, form)
    for name, size in sizes.items():
        n_bytes = int(np.prod(gguf.quant_shape_to_byte_shape(size, types[name]))) if types[name] != Type.F32 else 4 * size[0]
        writer.add_tensor_info(gguf_name(name), size, np.dtype(np.float32), n_bytes, raw_dtype=types[name])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    writer.close()
    progress = Progress(f"writing {form}", sum(int(np.prod(size)) for size in sizes.values()))
    with open(path, "ab") as file:
        for number, (name, size) in enumerate(sizes.items()):
            file.write(bytes(-file.tell() % gguf.GGUF_DEFAULT_ALIGNMENT))
            if types[name] == Type.F32:
                file.write(checkpoint.vector(name).astype("<f4").tobytes())
                continue
            if types[name] == Type.Q4_0:
                matrix = checkpoint.matrix(name)
                source: Source = lambda rows, matrix=matrix: q4_0_bytes(matrix.block(rows, "q4"))  # noqa: E731
            else:
                source = _random_superblocks(types[name], size[1], weight_std(arch, name), (seed, number))
            _write_rows(file, source, size, progress, name)
        file.write(bytes(-file.tell() % gguf.GGUF_DEFAULT_ALIGNMENT))
        file.flush()
        os.fsync(file.fileno())
    progress.finish()


def _gguf_type(form: str, name: str, size: tuple[int, ...], layers: int) -> Type:
    if len(size) == 1:
        return Type.F32
    return Type.Q4_0 if form == "q4_0" else k_m_type(name, layers)


def _metadata(writer: gguf.GGUFWriter, checkpoint: Checkpoint, form: str) -> None:
    arch = checkpoint.architecture
    writer.add_name(checkpoint.name)
    writer.add_license(checkpoint.license)
    writer.add_context_length(checkpoint.context_length)
    writer.add_embedding_length(arch.hidden)
    writer.add_block_count(arch.layers)
    writer.add_feed_forward_length(arch.ffn)
    writer.add_head_count(arch.heads)
    writer.add_head_count_kv(arch.kv_heads)
    writer.add_key_length(arch.head_dim)
    writer.add_value_length(arch.head_dim)
    writer.add_rope_freq_base(arch.rope_theta)
    writer.add_layer_norm_rms_eps(arch.norm_eps)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_Q4_0 if form == "q4_0" else gguf.LlamaFileType.MOSTLY_Q4_K_M)
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)

    known = checkpoint.tokenizer.get_vocab(with_added_tokens=True)
    tokens = sorted(known, key=known.__getitem__)
    tokens += [f"[PAD{number}]" for number in range(len(tokens), arch.vocab)]
    n_base = checkpoint.special.pad
    types = [NORMAL] * n_base + [CONTROL] * len(SPECIAL_TOKENS) + [USER_DEFINED] * len(ADDED_TOKENS)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(tokens)
    writer.add_token_types(types + [UNUSED] * (arch.vocab - len(types)))
    writer.add_token_merges([" ".join(pair) for pair in merges(n_base)])
    writer.add_bos_token_id(n_base)
    writer.add_eos_token_id(checkpoint.special.eos)
    writer.add_pad_token_id(n_base)
    writer.add_add_bos_token(False)
    writer.add_chat_template(CHAT_TEMPLATE)


def q4_0_bytes(block: object) -> np.ndarray:
    """A q4 block as GGUF stores it: an f16 scale, then columns 0..16 in the low and 16..32 in the high halves of 16 bytes."""
    values, scales = block.values, block.scales
    body = values[..., :16] | (values[..., 16:] << 4)
    header = np.ascontiguousarray(scales.astype("<f2"))[..., None].view(np.uint8)
    return np.concatenate([header, body], axis=2).reshape(len(values), -1)


def _random_superblocks(stored: Type, cols: int, spread: float, seed: tuple[int, int]) -> Source:
    block, size = gguf.GGML_QUANT_SIZES[stored]
    n_blocks = cols // block
    d_at, std = (0, 258.0) if stored == Type.Q4_K else (208, 1366.0)

    def source(rows: np.ndarray) -> np.ndarray:
        rng = np.random.Generator(np.random.SFC64((*seed, int(rows[0]))))
        data = np.frombuffer(rng.bytes(len(rows) * n_blocks * size), np.uint8).reshape(-1, n_blocks, size).copy()
        d = rng.integers(192, 320, data.shape[:2]).astype(np.float32) * np.float32(spread / std / 256)
        header = np.stack([d, d * np.float32(7.5)], axis=2) if stored == Type.Q4_K else d[..., None]
        data[..., d_at : d_at + 2 * header.shape[2]] = np.ascontiguousarray(header.astype("<f2")).view(np.uint8)
        return data.reshape(len(rows), -1)

    return source


def _write_rows(file: BinaryIO, source: Source, size: tuple[int, ...], progress: Progress, name: str) -> None:
    for rows in _row_chunks(*size):
        file.write(source(rows).tobytes())
        progress.advance(len(rows) * size[1], name)


def _row_chunks(rows: int, cols: int) -> Iterator[np.ndarray]:
    step = max(1, CHUNK_WEIGHTS // cols)
    for first in range(0, rows, step):
        yield np.arange(first, min(first + step, rows))


def _write_safetensors(checkpoint: Checkpoint, folder: Path) -> None:
    arch = checkpoint.architecture
    folder.mkdir()
    sizes = shapes(arch)
    n_base = checkpoint.special.pad
    config = {
        "architectures": ["Qwen3ForCausalLM"], "model_type": arch.family, "hidden_size": arch.hidden,
        "num_hidden_layers": arch.layers, "num_attention_heads": arch.heads, "num_key_value_heads": arch.kv_heads,
        "head_dim": arch.head_dim, "intermediate_size": arch.ffn, "vocab_size": arch.vocab, "rope_theta": int(arch.rope_theta),
        "rms_norm_eps": arch.norm_eps, "tie_word_embeddings": True, "max_position_embeddings": checkpoint.context_length,
        "hidden_act": "silu", "attention_bias": False, "attention_dropout": 0.0, "rope_scaling": None, "sliding_window": None,
        "use_sliding_window": False, "max_window_layers": arch.layers, "torch_dtype": "bfloat16", "use_cache": True,
        "bos_token_id": n_base, "eos_token_id": checkpoint.special.eos, "initializer_range": 0.02,
    }  # fmt: skip
    texts = {"bos_token": None, "eos_token": "<|im_end|>", "pad_token": "<|endoftext|>", "add_bos_token": False}
    texts |= {"chat_template": CHAT_TEMPLATE, "tokenizer_class": "Qwen2Tokenizer"}
    generation = {"bos_token_id": n_base, "eos_token_id": [checkpoint.special.eos, n_base], "pad_token_id": n_base}
    for file, value in (("config", config), ("tokenizer_config", texts), ("generation_config", generation)):
        (folder / f"{file}.json").write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
    (folder / "tokenizer.json").write_text(checkpoint.tokenizer.to_str(), encoding="utf-8")
    (folder / "README.md").write_text(f"---\nlicense: {checkpoint.license}\n---\nRandom weights.\n", encoding="utf-8")

    shards: list[list[str]] = [[]]
    filled = 0
    for name, size in sizes.items():
        n_bytes = 2 * int(np.prod(size))
        if filled + n_bytes > SHARD_BYTES:
            shards.append([])
            filled = 0
        shards[-1].append(name)
        filled += n_bytes
    progress = Progress("writing bf16", sum(int(np.prod(size)) for size in sizes.values()))
    weight_map = {}
    for number, names in enumerate(shards, 1):
        file_name = f"model-{number:05}-of-{len(shards):05}.safetensors"
        _write_shard(checkpoint, names, folder / file_name, progress)
        weight_map |= {hf_name(name): file_name for name in names}
    total = {"metadata": {"total_size": 2 * sum(int(np.prod(size)) for size in sizes.values())}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(total, indent=2) + "\n", encoding="utf-8")
    progress.finish()


def _write_shard(checkpoint: Checkpoint, names: list[str], path: Path, progress: Progress) -> None:
    sizes = shapes(checkpoint.architecture)
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    at = 0
    for name in names:
        end = at + 2 * int(np.prod(sizes[name]))
        header[hf_name(name)] = {"dtype": "BF16", "shape": list(sizes[name]), "data_offsets": [at, end]}
        at = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name in names:
            if len(sizes[name]) == 1:
                file.write(_bf16(checkpoint.vector(name)).tobytes())
                continue
            matrix = checkpoint.matrix(name)
            _write_rows(file, lambda rows, matrix=matrix: _bf16(matrix.f32(rows)), sizes[name], progress, name)
        file.flush()
        os.fsync(file.fileno())


def _bf16(values: np.ndarray) -> np.ndarray:
    """The upper halves of f32, rounded to nearest, ties to even."""
    bits = values.astype("<f4").view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype("<u2")
