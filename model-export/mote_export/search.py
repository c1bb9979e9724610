"""The search for a group's scale and minimum: the least weighted squared error, after f16 has rounded both.

Everything works on columns first, [32, groups], so that a sum over a group is an elementwise sum of 32 rows: the same
bytes on every machine, and fast. A grid of ranges is tried, the best is refined, then least squares and rounding to
integers alternate.
"""

import numpy as np

F16_MAX = 65504.0

Q4_LEVELS = np.concatenate([-np.arange(5.5, 9.1, 0.25), np.arange(5.5, 8.6, 0.25)]).astype(np.float32)
"""Where the largest weight of a group is put, in steps: beyond the range it is clipped, and the others are finer."""

Q4M_CUTS = [(low, high) for low in np.arange(-0.02, 0.2, 0.04) for high in np.arange(-0.02, 0.2, 0.04) if low + high < 0.26]
"""Parts of a group's range that are cut off below and above."""

Q4M_REFINED = [(low, high) for low in (-0.02, 0.0, 0.02) for high in (-0.02, 0.0, 0.02) if low or high]
"""Further cuts around the best of those."""

ROUNDS = 2
"""Alternations of least squares and rounding; a third changes the error by less than a thousandth."""


def fit(kind: str, x: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Scales and minimums (None but for q4m), f32 values of f16, of `x` [32, groups] with `weight` [32, groups or 1]."""
    if kind == "q8":
        return _f16(np.abs(x).max(axis=0) / np.float32(127)), None
    return (_fit_q4(x, weight), None) if kind == "q4" else _fit_q4m(x, weight)


def nearest(kind: str, x: np.ndarray, scales: np.ndarray, mins: np.ndarray | None) -> np.ndarray:
    """The integers, as f32, whose values are nearest to `x` [.., groups]; those of q4 from -8 to 7."""
    low, high = {"q4": (-8, 7), "q4m": (0, 15), "q8": (-127, 127)}[kind]
    found = (x if mins is None else x - mins) * _inverse(scales)
    np.rint(found, out=found)
    return np.clip(found, low, high, out=found)


def _fit_q4(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    low, high = x.min(axis=0), x.max(axis=0)
    peak = np.where(high > -low, high, low)
    weighted = weight * x
    best = np.full_like(peak, -1)
    scales = np.zeros_like(peak)

    def least_squares(at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        values = nearest("q4", x, at, None)
        cross = _sum(weighted * values)
        values *= values
        values *= weight
        found = _ratio(cross, _sum(values))
        return found, found * cross

    for level in Q4_LEVELS:
        found, gain = least_squares(peak / level)
        better = gain > best
        best[better], scales[better] = gain[better], found[better]
    for _ in range(ROUNDS):
        scales, _ = least_squares(scales)
    return _f16(scales)


def _fit_q4m(x: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    low, span = x.min(axis=0), np.ptp(x, axis=0)
    total = _sum(np.broadcast_to(weight, x.shape))
    total_x = _sum(weight * x)
    mean = _ratio(total_x, total)

    def least_squares(scales: np.ndarray, mins: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        values = nearest("q4m", x, scales, mins)
        weighted = weight * values
        total_v = _sum(weighted)
        spread = _sum(weighted * values) - total_v * _ratio(total_v, total)
        weighted *= x
        cross = _sum(weighted) - total_v * mean
        slope = np.maximum(_ratio(cross, spread), 0)
        return slope, mean - slope * _ratio(total_v, total), slope * cross

    def cut(below: np.ndarray, above: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return least_squares(span * ((1 - below - above) / np.float32(15)), low + span * below)

    best = np.full_like(low, -1)
    kept = [np.zeros_like(low) for _ in range(4)]

    def keep(below: np.ndarray, above: np.ndarray) -> None:
        slope, mins, gain = cut(below, above)
        better = gain > best
        best[better] = gain[better]
        for value, new in zip(kept, (slope, mins, below, above)):
            value[better] = new[better]

    for below, above in Q4M_CUTS:
        keep(np.full_like(low, below), np.full_like(low, above))
    below, above = kept[2].copy(), kept[3].copy()
    for down, up in Q4M_REFINED:
        keep(below + np.float32(down), above + np.float32(up))
    scales, mins = kept[:2]
    for _ in range(ROUNDS):
        scales, mins, _ = least_squares(scales, mins)
    scales = _f16(scales)
    values = weight * nearest("q4m", x, scales, _f16(mins))
    return scales, _f16(mean - scales * _ratio(_sum(values), total))


def _sum(values: np.ndarray) -> np.ndarray:
    return np.add.reduce(values, axis=0)


def _ratio(dividend: np.ndarray, divisor: np.ndarray) -> np.ndarray:
    return np.divide(dividend, divisor, out=np.zeros_like(dividend), where=divisor > 0)


def _inverse(scales: np.ndarray) -> np.ndarray:
    return np.divide(np.float32(1), scales, out=np.zeros_like(scales), where=scales != 0)


def _f16(values: np.ndarray) -> np.ndarray:
    return values.clip(-F16_MAX, F16_MAX).astype(np.float16).astype(np.float32)
