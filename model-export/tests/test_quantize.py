"""Quantizing, converting and packing, against the document's formulas read byte by byte."""

import numpy as np
import pytest

from mote_export.errors import ExportError
from mote_export.matrix import packed_bytes
from mote_export.quantize import Block, convert, pack, quantize

STEPS = {"q4": 1 / 8, "q4m": 2 / 15, "q8": 1 / 127}


def value_at(data: bytes, kind: str, cols: int, row: int, col: int) -> float:
    """One weight out of packed bytes, by docs/bundle.md."""
    group_bytes = {"q4": 144, "q4m": 160, "q8": 272}[kind]
    start = (row // 8 * (cols // 32) + col // 32) * group_bytes
    r, c = row % 8, col % 32
    scales = np.frombuffer(data, "<f2", 16 if kind == "q4m" else 8, start).astype(np.float64)
    body = start + (32 if kind == "q4m" else 16)
    if kind == "q8":
        return np.int8(np.uint8(data[body + 32 * (c // 4) + 4 * r + c % 4])) * scales[r]
    byte = data[body + 32 * (c // 8) + 4 * r + c % 4]
    n = byte >> 4 if c % 8 >= 4 else byte & 15
    return (n - 8) * scales[r] if kind == "q4" else n * scales[r] + scales[8 + r]


@pytest.mark.parametrize("kind", STEPS)
@pytest.mark.parametrize(("rows", "cols"), [(1, 32), (7, 64), (8, 32), (9, 96), (20, 160)])
def test_packed_bytes_read_back(kind: str, rows: int, cols: int) -> None:
    weights = np.random.default_rng(rows).standard_normal((rows, cols)).astype(np.float32)
    block = quantize(weights, kind)
    data = pack(block)
    assert len(data) == packed_bytes(kind, rows, cols)
    read = np.array([[value_at(data, kind, cols, r, c) for c in range(cols)] for r in range(rows)])
    np.testing.assert_allclose(read, block.dequantize(), rtol=1e-6, atol=1e-7)
    for row in range(rows, -(-rows // 8) * 8):
        assert all(value_at(data, kind, cols, row, col) == 0 for col in range(cols))


@pytest.mark.parametrize("kind", STEPS)
def test_error_stays_within_the_step(kind: str) -> None:
    weights = np.random.default_rng(0).uniform(-1, 1, (16, 256)).astype(np.float32)
    error = np.abs(quantize(weights, kind).dequantize() - weights)
    assert error.max() < 1.5 * STEPS[kind]
    assert error.mean() < 0.3 * STEPS[kind]


def test_search_is_no_worse_than_the_plain_range() -> None:
    x = np.random.default_rng(1).standard_normal((64, 1024)).astype(np.float32)
    groups = x.reshape(64, -1, 32)
    low, step = groups.min(2, keepdims=True), np.ptp(groups, axis=2, keepdims=True) / 15
    plain = np.rint((groups - low) / step) * step + low
    found = quantize(x, "q4m").dequantize().reshape(groups.shape)
    assert np.square(found - groups).mean() < 0.95 * np.square(plain - groups).mean()


@pytest.mark.parametrize("kind", STEPS)
def test_edge_groups(kind: str) -> None:
    zero = np.zeros((1, 32), np.float32)
    assert (quantize(zero, kind).dequantize() == 0).all()
    one_hot = zero.copy()
    one_hot[0, 5] = -3.0
    np.testing.assert_allclose(quantize(one_hot, kind).dequantize(), one_hot, atol=2e-3)
    tiny = np.full((1, 32), 1e-9, np.float32)
    assert np.abs(quantize(tiny, kind).dequantize()).max() < 1e-6
    constant = quantize(np.full((1, 32), 0.7, np.float32), kind).dequantize()
    np.testing.assert_allclose(constant, 0.7, rtol=1e-2)


@pytest.mark.parametrize("kind", ["q4m", "q8"])
def test_q4_converts_without_loss(kind: str) -> None:
    block = quantize(np.random.default_rng(2).standard_normal((8, 64)).astype(np.float32), "q4")
    np.testing.assert_array_equal(convert(block, kind).dequantize(), block.dequantize())


def test_q4_with_a_scale_too_large_for_a_minimum_is_requantized() -> None:
    block = Block("q4", np.full((1, 1, 32), 9, np.uint8), np.full((1, 1), 10000, np.float16))
    np.testing.assert_allclose(convert(block, "q4m").dequantize(), 10000, rtol=1e-3)


@pytest.mark.parametrize(
    ("value", "message"), [(np.nan, "not a finite number"), (np.inf, "not a finite"), (1e6, "beyond the range")]
)
def test_hostile_weights_are_refused(value: float, message: str) -> None:
    weights = np.zeros((1, 32), np.float32)
    weights[0, 3] = value
    with pytest.raises(ExportError, match=message):
        quantize(weights, "q4m")


@pytest.mark.parametrize(("kind", "excess"), [("q4", 1.01), ("q4m", 1.02)])
def test_search_is_near_the_best_of_many_ranges(kind: str, excess: float) -> None:
    """Against the least error over a dense grid of scales (and minimums), group by group."""
    x = np.random.default_rng(4).standard_normal((1, 32 * 24)).astype(np.float32)
    groups = x.reshape(24, 32).astype(np.float64)
    least = np.full(24, np.inf)
    span = np.ptp(groups, axis=1) if kind == "q4m" else np.abs(groups).max(axis=1)
    for step in np.linspace(0.7, 1.1, 60) / (15 if kind == "q4m" else 8):
        offsets = np.linspace(-0.05, 0.3, 60) if kind == "q4m" else [0.0]
        for sign in (1,) if kind == "q4m" else (1, -1):
            for offset in offsets:
                scale = (sign * step * span)[:, None]
                low = groups.min(axis=1)[:, None] + offset * span[:, None] if kind == "q4m" else -8 * scale
                values = np.rint((groups - low) / scale).clip(0, 15) * scale + low
                least = np.minimum(least, np.square(values - groups).sum(axis=1))
    found = np.square(quantize(x, kind).dequantize().reshape(24, 32) - groups).sum()
    assert found < excess * least.sum()


@pytest.mark.parametrize("kind", ["q4", "q4m"])
def test_importance_moves_the_error_to_where_it_costs_less(kind: str) -> None:
    rng = np.random.default_rng(5)
    x, importance = rng.standard_normal((32, 128)).astype(np.float32), rng.uniform(0.01, 10, 128).astype(np.float32)
    even, weighed = (
        float((np.square(quantize(x, kind, weight).dequantize() - x) * importance).sum()) for weight in (None, importance)
    )
    assert weighed < 0.96 * even


@pytest.mark.parametrize("kind", STEPS)
def test_rows_are_quantized_by_themselves(kind: str) -> None:
    """However many are given at once, so that chunks and threads change nothing."""
    x = np.random.default_rng(6).standard_normal((300, 512)).astype(np.float32)
    whole = quantize(x, kind)
    part = quantize(x[130:147], kind)
    np.testing.assert_array_equal(whole.values[130:147], part.values)
    np.testing.assert_array_equal(whole.scales[130:147], part.scales)
