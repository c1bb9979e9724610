"""Quantized blocks: from f32 by a small search, from one kind to another without loss, and packed into panels.

A block holds whole rows, unpacked: one integer a weight, f16 scales (and minimums for q4m) a group. Everything here is
elementwise or summed in f64, so the same input gives the same bytes on every machine.
"""

from dataclasses import dataclass

import numpy as np

from .architecture import GROUP
from .errors import bad_input, unsupported

PANEL = 8
"""Rows interleaved in one panel."""

SHRINKS = np.linspace(1.0, 0.7, 7)
"""Fractions of a group's range tried as the range of its scale."""

F16_MAX = 65504.0


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


def quantize(weights: np.ndarray, kind: str) -> Block:
    """The block of `kind` nearest to f32 `weights` [rows, cols] among the ranges tried."""
    if not np.isfinite(weights).all():
        raise bad_input("a weight is not a finite number", "the checkpoint is damaged; fetch it again")
    if np.abs(weights).max(initial=0.0) > F16_MAX:
        raise unsupported(f"a weight is beyond the range of f16 scales: {np.abs(weights).max()}", "choose another checkpoint")
    x = weights.astype(np.float32).reshape(len(weights), -1, GROUP)
    if kind == "q8":
        return _quantize_q8(x)
    fit = _fit_q4 if kind == "q4" else _fit_q4m
    best: tuple[np.ndarray, ...] | None = None
    for shrink in SHRINKS:
        error, *found = fit(x, np.float32(shrink))
        if best is None:
            best = (error, *found)
            continue
        better = error < best[0]
        for kept, new in zip(best, (error, *found)):
            kept[better] = new[better]
    _, values, scales, *mins = best
    return Block(kind, values, scales, *mins)


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


def _inverse(scales: np.ndarray) -> np.ndarray:
    return np.divide(1.0, scales, out=np.zeros_like(scales), where=scales != 0)


def _quantize_q8(x: np.ndarray) -> Block:
    scales = (np.abs(x).max(axis=2) / 127).astype(np.float16)
    values = np.rint(x * _inverse(scales.astype(np.float32))[..., None]).clip(-127, 127)
    return Block("q8", values.astype(np.int8), scales)


def _fit_q4(x: np.ndarray, shrink: np.float32) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    peak = np.take_along_axis(x, np.abs(x).argmax(axis=2)[..., None], axis=2)[..., 0]
    scales = peak * (shrink / np.float32(-8))
    for _ in range(2):
        values = (np.rint(x * _inverse(scales)[..., None]) + 8).clip(0, 15) - 8
        norm = np.square(values).sum(axis=2, dtype=np.float64)
        cross = (values * x).sum(axis=2, dtype=np.float64)
        fitted = np.divide(cross, norm, out=np.zeros_like(cross), where=norm != 0)
        scales = fitted.astype(np.float16).astype(np.float32)
    values = (np.rint(x * _inverse(scales)[..., None]) + 8).clip(0, 15)
    error = np.square((values - 8) * scales[..., None] - x).sum(axis=2, dtype=np.float64)
    return error, values.astype(np.uint8), scales.astype(np.float16)


def _fit_q4m(x: np.ndarray, shrink: np.float32) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    low, high = x.min(axis=2), x.max(axis=2)
    scales = (high - low) * (shrink / np.float32(15))
    mins = low + (high - low) * ((1 - shrink) / 2)
    for _ in range(2):
        values = _nibbles(x, scales, mins)
        sum_v = values.sum(axis=2, dtype=np.float64)
        sum_x = x.sum(axis=2, dtype=np.float64)
        spread = GROUP * np.square(values).sum(axis=2, dtype=np.float64) - sum_v * sum_v
        cross = GROUP * (values * x).sum(axis=2, dtype=np.float64) - sum_v * sum_x
        slope = np.divide(cross, spread, out=np.zeros_like(cross), where=spread != 0)
        scales = slope.astype(np.float16).astype(np.float32)
        mins = ((sum_x - scales * sum_v) / GROUP).astype(np.float16).astype(np.float32)
    values = _nibbles(x, scales, mins)
    error = np.square(values * scales[..., None] + mins[..., None] - x).sum(axis=2, dtype=np.float64)
    return error, values.astype(np.uint8), scales.astype(np.float16), mins.astype(np.float16)


def _nibbles(x: np.ndarray, scales: np.ndarray, mins: np.ndarray) -> np.ndarray:
    return np.rint((x - mins[..., None]) * _inverse(scales)[..., None]).clip(0, 15)
