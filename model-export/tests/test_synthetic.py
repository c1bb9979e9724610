"""Random models of a published shape, their twins in other forms, and what the importer makes of those."""

import json
from pathlib import Path

import gguf
import numpy as np
import pytest

from mote_export.__main__ import main
from mote_export.errors import ExportError
from mote_export.gguf_source import open_gguf
from mote_export.hf_source import open_folder
from mote_export.qwen_tokenizer import ADDED_TOKENS, SPECIAL_TOKENS, merges, qwen_tokenizer
from mote_export.random_checkpoint import SHAPES, random_checkpoint
from mote_export.reference import Exact, Model, Source
from mote_export.twins import FORMS, k_m_type
from mote_export.unpack import WeightsReader

TEXT = "The quick brown fox jumps over 123 dogs.\n\n    def f(x):  # ÄÖ 中文 🙂\n"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("synthetic")
    arguments = ["--synthetic", "qwen3-tiny", "--out", str(out / "bundle"), "--twins", str(out), "--twin-forms", *FORMS]
    assert main(arguments) == 0
    return out


@pytest.fixture(scope="module")
def k_m_bundle(made: Path) -> Path:
    assert main([str(made / "q4_k_m.gguf"), "--out", str(made / "from-q4_k_m")]) == 0
    return made / "from-q4_k_m"


def test_named_shapes_are_the_published_ones() -> None:
    arch = SHAPES["qwen3-4b"].architecture
    sizes = (arch.hidden, arch.layers, arch.heads, arch.kv_heads, arch.head_dim, arch.ffn, arch.vocab)
    assert sizes == (2560, 36, 32, 8, 128, 9728, 151936)
    assert (arch.rope_theta, arch.norm_eps, arch.tied_embeddings, arch.qk_norm) == (1e6, 1e-6, True, True)


def test_the_q4_0_twin_imports_as_the_same_bytes(made: Path) -> None:
    assert main([str(made / "q4_0.gguf"), "--out", str(made / "from-q4_0")]) == 0
    assert (made / "from-q4_0" / "weights.bin").read_bytes() == (made / "bundle" / "weights.bin").read_bytes()
    ours, theirs = (json.loads((made / name / "manifest.json").read_text()) for name in ("bundle", "from-q4_0"))
    for field in ("architecture", "quantization", "context_length", "chat_template", "license"):
        assert ours[field] == theirs[field], field
    assert (ours["special_tokens"]["eos"], ours["special_tokens"]["stop"]) == (4002, [4002, 4000])


def test_rows_do_not_depend_on_what_is_asked_for_with_them() -> None:
    matrix = random_checkpoint("qwen3-tiny").matrix("l1.gate")
    whole = matrix.f32(np.arange(matrix.rows))
    for rows in (np.arange(60, 70), np.array([0]), np.arange(128, 192)):
        np.testing.assert_array_equal(matrix.f32(rows), whole[rows])


def test_gguf_metadata_has_the_form_of_the_family(made: Path) -> None:
    fields = gguf.GGUFReader(made / "q4_k_m.gguf").fields
    found = {key: fields[f"tokenizer.ggml.{key}"].contents() for key in ("model", "pre", "eos_token_id", "add_bos_token")}
    assert found == {"model": "gpt2", "pre": "qwen2", "eos_token_id": 4002, "add_bos_token": False}
    types = fields["tokenizer.ggml.token_type"].contents()
    assert len(types) == 4096
    assert types[3999:4001] == [1, 3]
    assert types[4000 + len(SPECIAL_TOKENS) + len(ADDED_TOKENS) - 1 :][:2] == [4, 5]


def test_the_k_m_mix_gives_more_bits_where_llama_cpp_does() -> None:
    finer = [layer for layer in range(36) if k_m_type(f"l{layer}.down", 36).name == "Q6_K"]
    assert finer == [0, 1, 2, 3, 6, 9, 12, 15, 18, 21, 24, 27, 30, 31, 32, 33, 34, 35]
    assert [k_m_type(name, 36).name for name in ("embed", "l0.v", "l0.q", "l0.o", "l4.v")] == ["Q6_K", "Q6_K", "Q4_K", "Q4_K", "Q4_K"]


def test_q4_k_m_is_imported_as_nearly_the_same_weights(made: Path, k_m_bundle: Path) -> None:
    reader = WeightsReader(k_m_bundle / "weights.bin")
    kinds = {name: entry["kind"] for name, entry in reader.index.items() if entry["kind"] != "f32"}
    assert (kinds["embed"], kinds["l0.qkv"], kinds["l1.qkv"], kinds["l0.down"], kinds["l1.down"]) == ("q8", "q8", "q4m", "q8", "q4m")
    stored = {t.name: gguf.dequantize(t.data, t.tensor_type) for t in gguf.GGUFReader(made / "q4_k_m.gguf").tensors}
    for name, tensor in (("l1.down", "blk.1.ffn_down"), ("l0.down", "blk.0.ffn_down"), ("embed", "token_embd")):
        expected = stored[f"{tensor}.weight"]
        error = np.linalg.norm(reader.matrix(name).dequantize() - expected) / np.linalg.norm(expected)
        assert error < (0.001 if reader.index[name]["kind"] == "q4m" else 0.012), (name, error)


def test_forward_passes_of_file_and_bundle_agree(made: Path, k_m_bundle: Path) -> None:
    model = Model(k_m_bundle, Exact(WeightsReader(k_m_bundle / "weights.bin")), round_kv=False)
    ids = model.tokenizer.encode(TEXT).ids
    found = model.forward(ids, every=True)
    source = Source(open_gguf(made / "q4_k_m.gguf"))
    expected = Model(k_m_bundle, source, round_kv=False).forward(ids, every=True)
    assert 0.1 < expected.std() < 10
    assert (found - expected).std() < 0.03 * expected.std()


def test_safetensors_twin_is_the_same_model(made: Path) -> None:
    checkpoint, ours = open_folder(made / "bf16"), random_checkpoint("qwen3-tiny")
    assert checkpoint.architecture == ours.architecture
    assert checkpoint.tokenizer.encode(TEXT).ids == ours.tokenizer.encode(TEXT).ids
    rows = np.arange(40, 90)
    np.testing.assert_allclose(checkpoint.matrix("l0.q").f32(rows), ours.matrix("l0.q").f32(rows), rtol=2**-8)


def test_tokenizer_has_the_published_ids_and_returns_the_text() -> None:
    tokenizer = qwen_tokenizer()
    assert tokenizer.get_vocab_size() == 151669
    assert len(merges()) == 151387
    assert [tokenizer.token_to_id(t) for t in ("<|endoftext|>", "<|im_end|>", "<think>", "</think>")] == [151643, 151645, 151667, 151668]
    ids = tokenizer.encode(TEXT).ids
    assert tokenizer.decode(ids) == TEXT
    assert len(ids) < len(TEXT.encode()) * 0.75


def test_wrong_use_is_explained(made: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    for arguments in ([], ["x.gguf", "--synthetic", "qwen3-tiny"], ["x.gguf", "--twins", str(tmp_path)]):
        with pytest.raises(SystemExit):
            main([*arguments, "--out", str(tmp_path / "out")])
    assert "give either a checkpoint or --synthetic" in capsys.readouterr().err
    with pytest.raises(ExportError, match="no such shape: qwen9"):
        random_checkpoint("qwen9")
