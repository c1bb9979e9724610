"""Error compensation and calibration: the factors, what they gain, and refusals."""

from pathlib import Path

import numpy as np
import pytest
from checkpoints import write_gguf

from mote_export.__main__ import main
from mote_export.bundle import Kinds, write_bundle
from mote_export.compensate import curvature, quantize_compensated
from mote_export.errors import ExportError
from mote_export.gguf_source import open_gguf
from mote_export.hf_source import open_folder
from mote_export.quantize import quantize
from mote_export.reference import Exact, Model, Source
from mote_export.unpack import WeightsReader

TEXT = (Path(__file__).parent / "corpus.txt").read_text(encoding="utf-8")


def correlated(cols: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((4 * cols, cols)) @ (rng.standard_normal((cols, cols)) / np.sqrt(cols) + np.eye(cols))
    return (x.T @ x / len(x)).astype(np.float32)


def test_factors_multiply_to_the_moments() -> None:
    moments = correlated(96)
    found = curvature(moments, damping=0.0)
    upper = found.upper.astype(np.float64) + np.eye(96)
    np.testing.assert_allclose(upper @ np.diag(found.diagonal) @ upper.T, moments, atol=1e-4)
    assert not np.tril(found.upper).any()


@pytest.mark.parametrize("kind", ["q4", "q4m", "q8"])
def test_compensation_keeps_outputs_nearer(kind: str) -> None:
    moments = correlated(128)
    weights = np.random.default_rng(1).standard_normal((24, 128)).astype(np.float32)

    def loss(found: np.ndarray) -> float:
        error = found - weights
        return float(np.einsum("ij,jk,ik->", error, moments, error))

    compensated = quantize_compensated(weights, kind, curvature(moments))
    assert loss(compensated.dequantize()) < 0.7 * loss(quantize(weights, kind).dequantize())
    assert compensated.values.dtype == (np.int8 if kind == "q8" else np.uint8)


def test_without_correlation_nothing_is_compensated() -> None:
    weights = np.random.default_rng(2).standard_normal((8, 64)).astype(np.float32)
    found = quantize_compensated(weights, "q4m", curvature(np.eye(64, dtype=np.float32), damping=0.0))
    np.testing.assert_array_equal(found.dequantize(), quantize(weights, "q4m").dequantize())


def test_inputs_that_are_always_zero_do_no_harm() -> None:
    weights = np.random.default_rng(3).standard_normal((8, 64)).astype(np.float32)
    for moments in (np.zeros((64, 64), np.float32), np.diag(np.repeat([0.0, 1.0], 32)).astype(np.float32)):
        assert np.abs(quantize_compensated(weights, "q4", curvature(moments)).dequantize() - weights).max() < 0.5


def test_a_calibrated_bundle_is_nearer_to_its_source(folder: Path, tmp_path: Path) -> None:
    checkpoint = open_folder(folder)
    ids = checkpoint.tokenizer.encode(TEXT).ids[:400]
    errors = {}
    for name, text in (("plain", None), ("calibrated", TEXT)):
        manifest = write_bundle(checkpoint, tmp_path / name, Kinds("q4"), "chat", replace=False, calibration_text=text)
        model = Model(tmp_path / name, Exact(WeightsReader(tmp_path / name / "weights.bin")), round_kv=False)
        exact = Model(tmp_path / name, Source(checkpoint), round_kv=False)
        errors[name] = np.square(model.forward(ids, every=True) - exact.forward(ids, every=True)).mean()
    assert manifest["source"].endswith("; calibrated")
    assert errors["calibrated"] < 0.8 * errors["plain"]


def test_the_text_is_checked(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    with pytest.raises(ExportError, match="needs at least 512 tokens: [23]"):
        write_bundle(open_folder(folder), tmp_path / "out", Kinds(), "chat", replace=False, calibration_text="abc")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    assert main([str(folder), "--out", str(tmp_path / "out"), "--calibrate", str(tmp_path / "binary")]) == 2
    assert main([str(folder), "--out", str(tmp_path / "out"), "--calibrate", str(tmp_path / "none")]) == 2
    assert capsys.readouterr().err.count("error: cannot read the calibration text: ") == 2
    assert not (tmp_path / "out").exists()


def test_nothing_to_calibrate_is_said(folder: Path, tmp_path: Path) -> None:
    write_gguf(folder, tmp_path / "all.gguf", "Q4_0")
    with pytest.raises(ExportError, match="nothing to calibrate"):
        write_bundle(open_gguf(tmp_path / "all.gguf"), tmp_path / "out", Kinds(), "chat", replace=False, calibration_text=TEXT)
