"""Quantizing with error compensation: what rounding one column does to the output is taken back by the columns after it.

For inputs with second moments H = mean(x x^T), rounding `W` to `V` costs tr((W - V) H (W - V)^T). With
H = U D U^T, U unit upper triangular, that is the sum over columns k of D_k |(W - V) U|_k^2, so column k is rounded
from W_k plus what its errors before it left over: LDLQ of QuIP (arXiv 2307.13304), equal to GPTQ (arXiv 2210.17323) in the order of
the columns. Scales are searched when their group is reached, on the columns as compensated then, weighed by D.
"""

from dataclasses import dataclass

import numpy as np

from .architecture import GROUP
from .quantize import Block, check, stored
from .search import fit, nearest

DAMPING = 0.01
"""Part of the mean second moment that is added to every column's: a short text must not be trusted too far."""


@dataclass(frozen=True)
class Curvature:
    """U (strictly upper triangle; f32 [cols, cols]) and D of a matmul's inputs."""

    upper: np.ndarray
    diagonal: np.ndarray


def curvature(moments: np.ndarray, damping: float = DAMPING) -> Curvature:
    """Factors the second moments [cols, cols] of a matmul's inputs."""
    flipped = moments[::-1, ::-1].copy()
    ridge = max(damping * float(np.diagonal(flipped).mean(dtype=np.float64)), np.finfo(np.float32).tiny)
    flipped[np.diag_indices_from(flipped)] += np.float32(ridge)
    root = np.ascontiguousarray(np.linalg.cholesky(flipped)[::-1, ::-1])
    scale = np.diagonal(root).copy()
    root /= scale
    np.fill_diagonal(root, 0)
    return Curvature(root, np.square(scale))


def quantize_compensated(weights: np.ndarray, kind: str, inputs: Curvature) -> Block:
    """The block of `kind` for f32 `weights` [rows, cols] that keeps the outputs for such inputs nearest."""
    check(weights)
    rows, cols = weights.shape
    x = np.ascontiguousarray(weights.T, dtype=np.float32)
    errors = np.zeros_like(x)
    groups = cols // GROUP
    values = np.empty((rows, groups, GROUP), np.int8 if kind == "q8" else np.uint8)
    scales = np.empty((rows, groups), np.float16)
    mins = np.empty((rows, groups), np.float16) if kind == "q4m" else None
    for group in range(groups):
        start, end = group * GROUP, (group + 1) * GROUP
        target = x[start:end] + inputs.upper[:start, start:end].T @ errors[:start]
        scale, least = fit(kind, target, inputs.diagonal[start:end, None])
        offset = np.float32(0) if least is None else least
        for column in range(GROUP):
            at = start + column
            wanted = target[column] + inputs.upper[start:at, at] @ errors[start:at]
            found = nearest(kind, wanted, scale, least)
            errors[at] = x[at] - (found * scale + offset)
            values[:, group, column] = stored(kind, found)
        scales[:, group] = scale
        if mins is not None:
            mins[:, group] = least
    return Block(kind, values, scales, mins)
