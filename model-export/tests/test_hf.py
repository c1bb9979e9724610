"""Hugging Face folders: the same forward pass as the checkpoint's, sharded and half-precision files, and refusals."""

import json
import shutil
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from checkpoints import forward, read
from safetensors.numpy import save_file

from mote_export.bundle import Kinds, write_bundle
from mote_export.errors import ExportError
from mote_export.hf_source import open_folder
from mote_export.reference import Model, Source

IDS = [5, 77, 300, 41, 9, 120, 499, 3]


@pytest.fixture
def copy(folder: Path, tmp_path: Path) -> Path:
    """A folder that a test may change."""
    return Path(shutil.copytree(folder, tmp_path / folder.name))


def change(folder: Path, file: str = "config.json", **values: object) -> None:
    config = json.loads((folder / file).read_text())
    (folder / file).write_text(json.dumps(config | values))


def test_graph_and_weights_give_the_checkpoints_logits(folder: Path, tmp_path: Path) -> None:
    write_bundle(open_folder(folder), tmp_path / "bundle", Kinds(), "chat", replace=False)
    model = Model(tmp_path / "bundle", Source(open_folder(folder)), round_kv=False)
    config, weights = read(folder)
    expected = forward(config, weights, IDS)
    np.testing.assert_allclose(model.forward(IDS, every=True), expected, atol=2e-4)
    model.reset()
    stepwise = [model.forward(IDS[:3])[0]] + [model.forward([token])[0] for token in IDS[3:]]
    np.testing.assert_allclose(stepwise, expected[2:], atol=2e-4)


def test_shards_and_bfloat16(copy: Path, folder: Path) -> None:
    _, weights = read(copy)
    (copy / "model.safetensors").unlink()
    names = sorted(weights)
    weight_map = {}
    for number, part in enumerate((names[::2], names[1::2])):
        file = f"model-{number}.safetensors"
        save_file({name: weights[name].astype(ml_dtypes.bfloat16) for name in part}, copy / file)
        weight_map |= dict.fromkeys(part, file)
    (copy / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    rows = np.arange(3, 9)
    found, expected = (open_folder(path).matrix("l1.down").f32(rows) for path in (copy, folder))
    np.testing.assert_array_equal(found, expected.astype(ml_dtypes.bfloat16).astype(np.float32))

    (copy / "model-1.safetensors").unlink()
    with pytest.raises(ExportError, match="a weight file is missing"):
        open_folder(copy)


def test_manifest_facts(folder: Path) -> None:
    checkpoint = open_folder(folder)
    assert (checkpoint.special.bos, checkpoint.special.eos, checkpoint.special.pad) == (1, 2, 0)
    assert checkpoint.special.stops(checkpoint.tokenizer) == [2, 0]
    assert checkpoint.license == "apache-2.0"
    assert checkpoint.chat_template.startswith("{% for message")
    assert not checkpoint.add_bos


def test_generation_config_adds_stops(copy: Path) -> None:
    (copy / "generation_config.json").write_text(json.dumps({"eos_token_id": [2, 7]}))
    checkpoint = open_folder(copy)
    assert checkpoint.special.stops(checkpoint.tokenizer) == [2, 7, 0]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"model_type": "mistral"}, "model_type = mistral"),
        ({"model_type": "qwen3_moe"}, "model_type = qwen3_moe"),
        ({"rope_scaling": {"rope_type": "llama3", "factor": 8.0}}, "rope_scaling.rope_type = llama3"),
        ({"rope_scaling": {"type": "linear", "factor": 2.0}}, "rope_scaling.rope_type = linear"),
        ({"rope_parameters": {"rope_type": "yarn", "rope_theta": 1e4}}, "rope_parameters.rope_type = yarn"),
        ({"use_sliding_window": True}, "use_sliding_window = True"),
        ({"layer_types": ["full_attention", "sliding_attention"]}, "layer_types = sliding_attention"),
        ({"num_experts": 128}, "num_experts = 128"),
        ({"attention_bias": True}, "attention_bias = True"),
        ({"hidden_act": "gelu"}, "hidden_act = gelu"),
        ({"partial_rotary_factor": 0.5}, "partial_rotary_factor = 0.5"),
        ({"quantization_config": {"bits": 4}}, "quantization_config"),
        ({"hidden_size": "wide"}, "hidden_size = wide"),
        ({"hidden_size": 2**40}, "hidden is outside"),
        ({"num_hidden_layers": 9}, "lacks 63 weights|lacks 66 weights|lacks 77 weights"),
        ({"vocab_size": 501}, "another shape"),
        ({"num_key_value_heads": 3}, "no multiple of kv_heads"),
        ({"rms_norm_eps": -1}, "norm_eps or rope_theta"),
        ({"max_position_embeddings": None}, "max_position_embeddings"),
    ],
)
def test_what_a_bundle_cannot_hold_is_refused(copy: Path, values: dict, message: str) -> None:
    change(copy, **values)
    with pytest.raises(ExportError, match=message) as refusal:
        open_folder(copy)
    assert refusal.value.hint


def test_unplaced_tensor_is_refused(copy: Path) -> None:
    _, weights = read(copy)
    weights["model.layers.0.self_attn.q_proj.bias"] = np.zeros(4, np.float32)
    save_file(weights, copy / "model.safetensors")
    with pytest.raises(ExportError, match="no place for this tensor: .*q_proj.bias"):
        open_folder(copy)


def test_nan_is_refused_by_the_writer_and_leaves_nothing(copy: Path, tmp_path: Path) -> None:
    _, weights = read(copy)
    weights["model.layers.0.mlp.up_proj.weight"][3, 3] = np.nan
    save_file(weights, copy / "model.safetensors")
    with pytest.raises(ExportError, match="weight l0.gate_up: a weight is not a finite number"):
        write_bundle(open_folder(copy), tmp_path / "bundle", Kinds(), "chat", replace=False)
    assert [path.name for path in tmp_path.iterdir()] == [copy.name]


@pytest.mark.parametrize("file", ["config.json", "model.safetensors", "tokenizer.json"])
def test_missing_or_broken_files(copy: Path, file: str) -> None:
    whole = (copy / file).read_bytes()
    (copy / file).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ExportError, match=file):
        open_folder(copy)
    (copy / file).unlink()
    with pytest.raises(ExportError, match=r"missing file|no \*.safetensors|not a readable tokenizer"):
        open_folder(copy)
