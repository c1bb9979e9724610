"""Quantized blocks: from f32 by a search, from one kind to another without loss, and packed into panels.

A block holds whole rows, unpacked: one integer a weight, f16 scales (and minimums for q4m) a group. The same input gives
the same bytes on every machine.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from .architecture import GROUP
from .errors import bad_input, unsupported
from .search import F16_MAX, fit, nearest

PANEL = 8
"""Rows interleaved in one panel."""

TILE_GROUPS = 2048
"""Groups searched at one time; their arrays stay in the cache of a core."""


@dataclass(frozen=True)
class Block:
    """Rows of one matrix: `values` [rows, groups, 32] (u8 nibbles or i8), `scales` and `mins` f16 [rows, groups]."""

    kind: str
    values: np.ndarray
    scales: np.ndarray
    mins: np.ndarray | None = None

    def dequantize(self) -> np.ndarray:
        """The f32 matrix [rows, cols] that this block stands for."""
        scales = self.scales.astype(np.float32)[..., None]
        values = self.values.astype(np.float32)
        if self.kind == "q4":
            values = (values - 8) * scales
        elif self.kind == "q4m":
            values = values * scales + self.mins.astype(np.float32)[..., None]
        else:
            values = values * scales
        return values.reshape(len(values), -1)


def quantize(weights: np.ndarray, kind: str, importance: np.ndarray | None = None) -> Block:
    """The block of `kind` nearest to f32 `weights` [rows, cols]; `importance` [cols] weighs the squared errors."""
    check(weights)
    rows, cols = weights.shape
    groups = cols // GROUP
    x = weights.astype(np.float32, copy=False).reshape(rows, groups, GROUP)
    weight = None if importance is None else importance.astype(np.float32).reshape(groups, GROUP).T
    step = max(1, TILE_GROUPS // groups)
    tiles = [x[first : first + step] for first in range(0, rows, step)]
    with ThreadPoolExecutor(min(os.cpu_count() or 1, len(tiles) or 1)) as threads:
        found = list(threads.map(lambda tile: _quantize_tile(tile, kind, weight), tiles))
    values, scales, mins = zip(*found) if found else ([x.astype(np.uint8)], [x[..., 0].astype(np.float16)], [None])
    return Block(kind, np.concatenate(values), np.concatenate(scales), None if mins[0] is None else np.concatenate(mins))


def check(weights: np.ndarray) -> None:
    """Refuses weights that no block can hold."""
    if not np.isfinite(weights).all():
        raise bad_input("a weight is not a finite number", "the checkpoint is damaged; fetch it again")
    if np.abs(weights).max(initial=0.0) > F16_MAX:
        raise unsupported(f"a weight is beyond the range of f16 scales: {np.abs(weights).max()}", "choose another checkpoint")


def stored(kind: str, values: np.ndarray) -> np.ndarray:
    """Integers as `search.nearest` gives them, as a block keeps them."""
    return values.astype(np.int8) if kind == "q8" else (values + 8 if kind == "q4" else values).astype(np.uint8)


def convert(block: Block, kind: str) -> Block:
    """`block` as another kind; without loss from q4 to q4m or q8, by requantizing otherwise."""
    if block.kind == kind:
        return block
    if block.kind == "q4" and kind == "q8":
        return Block("q8", block.values.astype(np.int8) - np.int8(8), block.scales)
    if block.kind == "q4" and kind == "q4m":
        mins = block.scales.astype(np.float32) * -8
        if np.abs(mins).max(initial=0.0) <= F16_MAX:
            return Block("q4m", block.values, block.scales, mins.astype(np.float16))
    return quantize(block.dequantize(), kind)


def pack(block: Block) -> bytes:
    """The panels of `block`, in the order of docs/bundle.md; a short last panel is filled with zero rows."""
    values, scales, mins = block.values, block.scales, block.mins
    rows, groups, _ = values.shape
    n_panels = -(-rows // PANEL)
    short = n_panels * PANEL - rows
    if short:
        values = np.concatenate([values, np.zeros((short, groups, GROUP), values.dtype)])
        scales = np.concatenate([scales, np.zeros((short, groups), scales.dtype)])
        mins = None if mins is None else np.concatenate([mins, np.zeros((short, groups), mins.dtype)])

    if block.kind == "q8":
        body = values.reshape(n_panels, PANEL, groups, GROUP // 4, 4).transpose(0, 2, 3, 1, 4).view(np.uint8)
    else:
        halves = values.reshape(n_panels, PANEL, groups, GROUP // 8, 2, 4).transpose(0, 2, 3, 1, 4, 5)
        body = halves[..., 0, :] | (halves[..., 1, :] << 4)
    parts = [_per_panel(scales, n_panels)]
    if mins is not None:
        parts.append(_per_panel(mins, n_panels))
    parts.append(body.reshape(n_panels, groups, -1))
    return np.concatenate(parts, axis=2).tobytes()


def _per_panel(scales: np.ndarray, n_panels: int) -> np.ndarray:
    by_group = scales.reshape(n_panels, PANEL, -1).transpose(0, 2, 1)
    return np.ascontiguousarray(by_group.astype("<f2")).view(np.uint8)


def _quantize_tile(
    tile: np.ndarray, kind: str, weight: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    rows, groups, _ = tile.shape
    x = np.ascontiguousarray(tile.reshape(rows * groups, GROUP).T)
    by_group = np.ones((1, 1), np.float32) if weight is None else np.tile(weight, rows)
    scales, mins = fit(kind, x, by_group)
    values = stored(kind, nearest(kind, x, scales, mins))
    halves = [None if part is None else part.astype(np.float16).reshape(rows, groups) for part in (scales, mins)]
    return np.ascontiguousarray(values.T).reshape(rows, groups, GROUP), *halves
