"""The f32 models that quantizers are measured on, and the measure."""

from pathlib import Path

import gguf
import numpy as np
import pytest
from checkpoints import read, write_gguf

from mote_export.bundle import Kinds, write_bundle
from mote_export.errors import ExportError
from mote_export.float_reference import write_reference
from mote_export.gguf_source import open_gguf
from mote_export.quality import Evaluator, bundle_candidate, checkpoint_candidate, llama_quantize, plain_candidate

IDS = list(range(3, 490, 3)) * 4


@pytest.fixture
def source(folder: Path, tmp_path: Path) -> Path:
    write_gguf(folder, tmp_path / "source.gguf", "Q4_1")
    return tmp_path / "source.gguf"


def evaluator(path: Path, tmp_path: Path) -> Evaluator:
    write_bundle(open_gguf(path), tmp_path / "graph", Kinds(), "chat", replace=True)
    return Evaluator(tmp_path / "graph", checkpoint_candidate("f32", path).weights, IDS, tmp_path)


def test_a_rescaled_model_computes_the_same_off_the_grid(source: Path, tmp_path: Path) -> None:
    write_reference(source, "rescaled", tmp_path / "f32.gguf")
    write_bundle(open_gguf(source), tmp_path / "shipped", Kinds(), "chat", replace=False)
    shipped = checkpoint_candidate("as shipped", source).weights
    score = evaluator(tmp_path / "f32.gguf", tmp_path).score(shipped, tmp_path / "shipped")
    assert score.kl < 1e-6
    assert score.same_best > 0.99
    weights = {t.name: t.data for t in gguf.GGUFReader(tmp_path / "f32.gguf").tensors}
    moved = gguf.quants.Q4_1.quantize(weights["blk.0.ffn_down.weight"])
    assert np.abs(gguf.quants.Q4_1.dequantize(moved) - weights["blk.0.ffn_down.weight"]).max() > 1e-3


def test_a_dithered_model_stays_within_the_cells(source: Path, tmp_path: Path) -> None:
    write_reference(source, "dithered", tmp_path / "f32.gguf")
    stored = {t.name: t for t in gguf.GGUFReader(source).tensors}
    for tensor in gguf.GGUFReader(tmp_path / "f32.gguf").tensors:
        before = stored[tensor.name]
        if before.tensor_type == gguf.GGMLQuantizationType.F32:
            np.testing.assert_array_equal(tensor.data, before.data)
            continue
        steps = before.data.reshape(-1, 20)[:, :2].copy().view("<f2").astype(np.float32)
        moved = (tensor.data - gguf.dequantize(before.data, before.tensor_type)).reshape(len(steps), 32) / steps
        assert np.abs(moved).max() <= 0.501
        assert 0.27 < moved.std() < 0.31


def test_scores_put_candidates_in_their_order(folder: Path, source: Path, tmp_path: Path) -> None:
    write_gguf(folder, tmp_path / "f16.gguf", "F16")
    measure = evaluator(tmp_path / "f16.gguf", tmp_path)
    reference = checkpoint_candidate("f32", tmp_path / "f16.gguf")
    kl = {}
    for kind in ("q8", "q4m"):
        write_bundle(open_gguf(tmp_path / "f16.gguf"), tmp_path / kind, Kinds(kind), "chat", replace=False)
        candidate = bundle_candidate(kind, tmp_path / kind)
        kl[kind] = measure.score(candidate.weights).kl
    plain = plain_candidate("plain", reference, "q4m", candidate.layer_bytes)
    kl |= {"self": measure.score(reference.weights).kl, "plain": measure.score(plain.weights).kl}
    assert abs(kl["self"]) < 1e-9
    assert kl["self"] < kl["q8"] < kl["q4m"] < kl["plain"]
    config, _ = read(folder)
    per_layer = sum(t.n_bytes for t in gguf.GGUFReader(source).tensors if t.name.startswith("blk.0.") and len(t.shape) > 1)
    assert checkpoint_candidate("q4_1", source).layer_bytes == config["num_hidden_layers"] * per_layer


def test_a_missing_quantizer_is_named(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="cannot run llama.cpp's quantizer: .*none"):
        llama_quantize(tmp_path / "none", tmp_path / "a", "Q4_0", tmp_path / "b")
