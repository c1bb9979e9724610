"""The written folder: hashes, layout, graph, replacement, and what happens when a disk is full."""

import hashlib
import json
import struct
from pathlib import Path

import onnx
import pytest

import mote_export.bundle as bundle_module
from mote_export.__main__ import main
from mote_export.bundle import Kinds, write_bundle
from mote_export.errors import ExportError
from mote_export.hf_source import open_folder


@pytest.fixture
def bundle(folder: Path, tmp_path: Path) -> Path:
    write_bundle(open_folder(folder), tmp_path / "bundle", Kinds(), "chat", replace=False)
    return tmp_path / "bundle"


def test_manifest_hashes_and_sizes(bundle: Path) -> None:
    manifest = json.loads((bundle / "manifest.json").read_text())
    assert sorted(path.name for path in bundle.iterdir()) == ["manifest.json", "model.onnx", "tokenizer.json", "weights.bin"]
    for name, entry in manifest["files"].items():
        data = (bundle / name).read_bytes()
        assert entry == {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    assert (manifest["format"], manifest["format_version"]) == ("mote-bundle", 1)
    assert manifest["source"].endswith("requantized: F32 to q4m, F32 to q8")
    assert manifest["quantization"] == "q4m32"


def test_weights_layout(bundle: Path) -> None:
    data = (bundle / "weights.bin").read_bytes()
    version, count, index_at, index_bytes, total = struct.unpack("<IIQQQ", data[8:40])
    index = json.loads(data[index_at : index_at + index_bytes])
    assert data[:8] == b"MOTEWTS\0" and not any(data[40:4096])
    assert (version, count, total, index_at + index_bytes) == (1, len(index), len(data), len(data))
    end = 4096
    for entry in index:
        assert entry["offset"] % 4096 == 0 and entry["offset"] >= end
        end = entry["offset"] + entry["bytes"]
    assert end <= index_at


def test_graph_names_what_the_index_holds(bundle: Path) -> None:
    model = onnx.load(bundle / "model.onnx")
    assert {(opset.domain, opset.version) for opset in model.opset_import} == {("", 23), ("mote", 1)}
    assert [value.name for value in model.graph.input] == ["ids", "rows"]
    assert [value.name for value in model.graph.output] == ["logits"]
    data = (bundle / "weights.bin").read_bytes()
    index_at, index_bytes = struct.unpack("<QQ", data[16:32])
    held = {entry["name"] for entry in json.loads(data[index_at : index_at + index_bytes])}
    named = set()
    for node in model.graph.node:
        assert node.domain == ("mote" if node.op_type in ("Embed", "QMatMul", "KvAttention", "SwiGlu") else "")
        named |= {a.s.decode() for a in node.attribute if a.name in ("weight", "q_norm", "k_norm")}
    assert named == held
    onnx.checker.check_graph(model.graph, _context(model))


def _context(model: onnx.ModelProto) -> onnx.checker.C.CheckerContext:
    context = onnx.checker.C.CheckerContext()
    context.ir_version = model.ir_version
    context.opset_imports = {opset.domain: opset.version for opset in model.opset_import}
    return context


def test_same_input_gives_the_same_bytes(folder: Path, bundle: Path, tmp_path: Path) -> None:
    write_bundle(open_folder(folder), tmp_path / "again", Kinds(), "chat", replace=False)
    for path in bundle.iterdir():
        assert path.read_bytes() == (tmp_path / "again" / path.name).read_bytes()


def test_existing_folder_is_kept_unless_told(folder: Path, bundle: Path) -> None:
    with pytest.raises(ExportError, match="already exists"):
        write_bundle(open_folder(folder), bundle, Kinds(), "chat", replace=False)
    write_bundle(open_folder(folder), bundle, Kinds("q8"), "chat", replace=True)
    assert json.loads((bundle / "manifest.json").read_text())["quantization"] == "q832"
    assert [path.name for path in bundle.parent.iterdir()] == ["bundle"]


def test_replace_takes_no_folder_that_is_no_bundle(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "dear.txt").write_text("mother")
    with pytest.raises(ExportError, match="not a bundle"):
        write_bundle(open_folder(folder), tmp_path / "letters", Kinds(), "chat", replace=True)
    assert (tmp_path / "letters" / "dear.txt").exists()


def test_full_disk_leaves_nothing(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> bytes:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(bundle_module, "pack", full)
    with pytest.raises(ExportError, match="cannot be written: .*No space left on device") as refusal:
        write_bundle(open_folder(folder), tmp_path / "bundle", Kinds(), "chat", replace=False)
    assert refusal.value.kind == "output"
    assert not list(tmp_path.iterdir())


def test_command_line(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    out = tmp_path / "made"
    assert main([str(folder), "--out", str(out), "--name", "mine", "--prompt-style", "completion"]) == 0
    manifest = json.loads((out / "manifest.json").read_text())
    assert (manifest["name"], manifest["prompt_style"]) == ("mine", "completion")
    assert main([str(folder), "--out", str(out)]) == 5
    assert (
        capsys.readouterr().err
        == f"reading {folder}\nerror: already exists: {out}\nhint: choose another --out, or pass --replace\n"
    )
    assert main([str(tmp_path / "nothing"), "--out", str(tmp_path / "x")]) == 2
    assert f"error: no such file or folder: {tmp_path / 'nothing'}\nhint: give a .gguf file" in capsys.readouterr().err
