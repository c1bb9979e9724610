"""Random checkpoints of a published shape, made block by block: for measuring speed and memory without the real weights.

A weight's blocks depend on the seed, its place and the tile of rows alone, so that any rows can be asked for in any
order, nothing is ever held in f32, and the bundle and its GGUF twin have the same integers. Scales are drawn so that
activations keep the size that they have in a trained model: every matmul gives about unit variance, and
the residual grows by about one over all layers. The model says nothing sensible.
"""

from dataclasses import dataclass

import numpy as np

from .architecture import GROUP, Architecture
from .checkpoint import Checkpoint, Special, shapes
from .errors import bad_input
from .matrix import Matrix
from .qwen_tokenizer import CHAT_TEMPLATE, N_BASE, SPECIAL_TOKENS, qwen_tokenizer
from .quantize import Block

TILE_ROWS = 64
"""Rows that one seed makes at once."""

NIBBLE_STD = np.sqrt((16**2 - 1) / 12)
"""Standard deviation of an integer drawn evenly from sixteen."""


@dataclass(frozen=True)
class Shape:
    """A published model's shape."""

    architecture: Architecture
    context_length: int = 40960
    n_base: int = N_BASE


def _qwen3(hidden: int, layers: int, heads: int, ffn: int, kv_heads: int = 8, vocab: int = 151936) -> Architecture:
    return Architecture(
        family="qwen3", hidden=hidden, layers=layers, heads=heads, kv_heads=kv_heads, head_dim=128, ffn=ffn, vocab=vocab,
        rope_theta=1e6, norm_eps=1e-6, tied_embeddings=True, qk_norm=True,
    )  # fmt: skip


SHAPES = {
    "qwen3-4b": Shape(_qwen3(2560, 36, 32, 9728)),
    "qwen3-1.7b": Shape(_qwen3(2048, 28, 16, 6144)),
    "qwen3-0.6b": Shape(_qwen3(1024, 28, 16, 3072)),
    "qwen3-tiny": Shape(_qwen3(256, 8, 4, 512, kv_heads=2, vocab=4096), n_base=4000),
}
"""Shapes of the Qwen3 family by name; `qwen3-tiny` is none of theirs, and small enough for a test."""


def random_checkpoint(name: str, layers: str = "q4", embedding: str = "q4", seed: int = 0) -> Checkpoint:
    """The named shape with random blocks: kind `layers` in the layers, `embedding` in the tied embedding."""
    if name not in SHAPES:
        raise bad_input(f"no such shape: {name}", f"known: {', '.join(SHAPES)}")
    shape = SHAPES[name]
    arch = shape.architecture
    sizes = shapes(arch)
    numbers = {weight: number for number, weight in enumerate(sizes)}

    def matrix(weight: str) -> Matrix:
        rows, cols = sizes[weight]
        kind = layers if "." in weight else embedding
        spread = weight_std(arch, weight)

        def read(wanted: np.ndarray) -> Block:
            tiles = [
                _tile(kind, cols, spread, (seed, numbers[weight], tile))
                for tile in range(wanted[0] // TILE_ROWS, wanted[-1] // TILE_ROWS + 1)
            ]
            first = wanted[0] // TILE_ROWS * TILE_ROWS
            joined = [np.concatenate(parts)[wanted - first] for parts in zip(*tiles)]
            return Block(kind, *joined)

        return Matrix(rows, cols, kind, kind, read)

    def vector(weight: str) -> np.ndarray:
        return np.ones(sizes[weight], np.float32)

    end = shape.n_base + SPECIAL_TOKENS.index("<|im_end|>")
    return Checkpoint(
        name=f"{name}-random",
        source=f"random weights of the shape {name}, seed {seed}",
        license="apache-2.0",
        architecture=arch,
        context_length=shape.context_length,
        tokenizer=qwen_tokenizer(shape.n_base),
        special=Special(bos=None, eos=end, pad=shape.n_base, ends=(shape.n_base,)),
        add_bos=False,
        chat_template=CHAT_TEMPLATE,
        matrix=matrix,
        vector=vector,
    )


def weight_std(arch: Architecture, weight: str) -> float:
    """The standard deviation of a weight's elements."""
    part = weight.rpartition(".")[2]
    if part == "embed":
        return 0.02
    cols = shapes(arch)[weight][1]
    residual = 1 / np.sqrt(2 * arch.layers) if part in ("o", "down") else 1.0
    return float(residual / np.sqrt(cols))


def _tile(kind: str, cols: int, spread: float, seed: tuple[int, ...]) -> tuple[np.ndarray, ...]:
    rng = np.random.Generator(np.random.SFC64(seed))
    groups = cols // GROUP
    jitter = rng.integers(192, 320, (TILE_ROWS, groups)).astype(np.float32) / 256
    if kind == "q8":
        values = np.frombuffer(rng.bytes(TILE_ROWS * cols), np.int8).reshape(TILE_ROWS, groups, GROUP)
        scales = jitter * np.float32(spread / 74)
        return np.maximum(values, np.int8(-127)), scales.astype(np.float16)
    packed = np.frombuffer(rng.bytes(TILE_ROWS * cols // 2), np.uint8).reshape(TILE_ROWS, groups, GROUP // 2)
    values = np.concatenate([packed & 15, packed >> 4], axis=2)
    scales = jitter * np.float32(spread / NIBBLE_STD)
    if kind == "q4m":
        return values, scales.astype(np.float16), (scales * np.float32(-7.5)).astype(np.float16)
    signs = rng.integers(0, 2, scales.shape).astype(np.float32) * 2 - 1
    return values, (scales * signs).astype(np.float16)
