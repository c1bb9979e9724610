"""Shared fixtures: tiny checkpoints in both forms. `--real` adds the tests that need the default model in the cache."""

from pathlib import Path

import pytest
from checkpoints import write_gguf

from mote_export.fetch import NAMED, default_cache
from mote_export.synthetic import SHAPES, write_checkpoint


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--real", action="store_true", help="also test with the default model, which must be in the cache")


@pytest.fixture(scope="session")
def real_gguf(request: pytest.FixtureRequest) -> Path:
    """The default model's file."""
    if not request.config.getoption("--real"):
        pytest.skip("needs --real")
    path = default_cache() / Path(NAMED["smollm2-135m-instruct"].member).name
    assert path.exists(), f"not in the cache: {path}; export smollm2-135m-instruct first"
    return path


@pytest.fixture(scope="session", params=tuple(SHAPES))
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny Hugging Face folder of each family; treat it as read-only."""
    path = tmp_path_factory.mktemp("hf") / f"tiny-{request.param}"
    write_checkpoint(request.param, path)
    return path


@pytest.fixture(scope="session", params=("Q4_0", "Q4_1", "Q8_0", "F16"))
def gguf_file(request: pytest.FixtureRequest, folder: Path) -> Path:
    """The same checkpoint as a GGUF file, its matrices in each type."""
    path = folder.parent / f"{folder.name}.{request.param}.gguf"
    if not path.exists():
        write_gguf(folder, path, request.param)
    return path
