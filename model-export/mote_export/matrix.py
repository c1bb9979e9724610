"""Matrices that stay on disk: rows are read, as blocks of one kind, only when the writer asks for them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from .architecture import GROUP
from .quantize import PANEL, Block, convert, quantize

CHUNK_WEIGHTS = 1 << 22
"""Weights unpacked at one time; about 150 MB at the peak of a search."""

Quantizer = Callable[[np.ndarray, str], Block]
"""From f32 [rows, cols] to a block of a kind."""


@dataclass(frozen=True)
class Matrix:
    """A two-dimensional weight of a checkpoint.

    `native` is the kind that holds it without loss, or None if it must be requantized; `stored` names its type in the
    checkpoint. `read(rows)` gives those rows as a block of kind `native`, or as f32 [rows, cols] if that is None.
    `wanted` is the kind that a requantized matrix should have where nobody says otherwise.
    """

    rows: int
    cols: int
    stored: str
    native: str | None
    read: Callable[[np.ndarray], Block | np.ndarray]
    wanted: str | None = None

    def permuted(self, order: np.ndarray) -> "Matrix":
        """The same matrix with row `i` taken from row `order[i]`."""
        return replace(self, read=lambda rows: self.read(order[rows]))

    def block(self, rows: np.ndarray, kind: str, quantizer: Quantizer = quantize) -> Block:
        """`rows` as a block of `kind`; `quantizer` makes it from f32."""
        found = self.read(rows)
        return convert(found, kind) if isinstance(found, Block) else quantizer(found, kind)

    def f32(self, rows: np.ndarray) -> np.ndarray:
        """`rows` as f32 [rows, cols]."""
        found = self.read(rows)
        return found.dequantize() if isinstance(found, Block) else found.astype(np.float32)


def half_rotation_order(heads: int, head_dim: int) -> np.ndarray:
    """Where the rows of a half-rotation projection lie in one that rotates neighbouring pairs."""
    pairs = np.arange(head_dim).reshape(head_dim // 2, 2).T.reshape(-1)
    return (np.arange(heads)[:, None] * head_dim + pairs).reshape(-1)


def common_kind(parts: list[Matrix], chosen: str | None, default: str) -> str:
    """The smallest kind that holds every part; those without a native kind take `chosen`, or what they want, or `default`."""
    kinds = {part.native or chosen or part.wanted or default for part in parts}
    if len(kinds) == 1:
        return kinds.pop()
    return "q8" if "q8" in kinds else "q4m"


def blocks(parts: list[Matrix], kind: str, quantizer: Quantizer = quantize) -> Iterator[Block]:
    """The parts below one another as blocks of whole panels, in order."""
    cols = parts[0].cols
    step = max(PANEL, CHUNK_WEIGHTS // cols // PANEL * PANEL)
    starts = np.cumsum([0] + [part.rows for part in parts])
    for first in range(0, int(starts[-1]), step):
        last = min(first + step, int(starts[-1]))
        found = [
            part.block(np.arange(max(first, start), min(last, start + part.rows)) - start, kind, quantizer)
            for part, start in zip(parts, starts)
            if start < last and start + part.rows > first
        ]
        yield found[0] if len(found) == 1 else _stack(kind, found)


def _stack(kind: str, found: list[Block]) -> Block:
    mins = None if found[0].mins is None else np.concatenate([block.mins for block in found])
    return Block(
        kind, np.concatenate([block.values for block in found]), np.concatenate([block.scales for block in found]), mins
    )


def packed_bytes(kind: str, rows: int, cols: int) -> int:
    """Bytes of a packed matrix."""
    group_bytes = {"q4": 16 + GROUP * 4, "q4m": 32 + GROUP * 4, "q8": 16 + GROUP * 8}[kind]
    return -(-rows // PANEL) * (cols // GROUP) * group_bytes
