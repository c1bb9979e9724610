"""The committed tiny bundles are what this exporter writes, and what the reference expects of them still holds."""

import json
from pathlib import Path

import pytest
from make_fixtures import FIXTURES, RECIPES, make

FILES = ("manifest.json", "model.onnx", "tokenizer.json", "weights.bin")


@pytest.mark.parametrize("name", RECIPES)
def test_fixture_is_current(name: str, tmp_path: Path) -> None:
    make(name, tmp_path / name, n_jitters=1)
    for file in FILES:
        assert (tmp_path / name / file).read_bytes() == (FIXTURES / name / file).read_bytes(), (
            f"{name}/{file} differs: run python tests/make_fixtures.py, and look at what changed"
        )
    found, kept = (json.loads((path / name / "expected.json").read_text()) for path in (tmp_path, FIXTURES))
    assert 0 < kept["bound"] < 0.3
    assert found["bound"] < 1.5 * kept["bound"]
    for now, then in zip(found["prompts"], kept["prompts"], strict=True):
        assert now["ids"] == then["ids"]
        assert sum(margin > kept["bound"] for margin in then["margins"]) > 32
        for token, expected, margin in zip(now["tokens"], then["tokens"], then["margins"], strict=True):
            if token != expected:
                assert margin <= kept["bound"]
                break
