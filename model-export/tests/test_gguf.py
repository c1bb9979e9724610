"""GGUF files: exact weights, the rope permutation, and refusals."""

from pathlib import Path
from types import SimpleNamespace

import gguf
import numpy as np
import pytest
from checkpoints import forward, gguf_name, read, write_gguf

from mote_export.bundle import Kinds, write_bundle
from mote_export.errors import ExportError
from mote_export.gguf_source import _block, _k_block, _matrix, open_gguf
from mote_export.matrix import common_kind
from mote_export.reference import Exact, Model
from mote_export.unpack import WeightsReader

KINDS = {"Q4_0": "q4", "Q4_1": "q4m", "Q8_0": "q8", "F16": "q4m"}
IDS = [5, 77, 300, 41, 9, 120, 499, 3]


@pytest.fixture
def bundle(gguf_file: Path, tmp_path: Path) -> Path:
    out = tmp_path / "bundle"
    write_bundle(open_gguf(gguf_file), out, Kinds(), "chat", replace=False)
    return out


def stored_weights(path: Path) -> dict[str, np.ndarray]:
    tensors = gguf.GGUFReader(path).tensors
    return {t.name: gguf.dequantize(t.data, t.tensor_type).astype(np.float32) for t in tensors}


def test_weights_are_those_of_the_file(gguf_file: Path, bundle: Path) -> None:
    """All but q and k, whose rows move; the forward pass below holds those."""
    kind = gguf_file.suffixes[-2][1:]
    reader = WeightsReader(bundle / "weights.bin")
    stored = stored_weights(gguf_file)
    assert reader.index["l0.down"]["kind"] == KINDS[kind]
    assert reader.index["embed"]["kind"] == ("q8" if kind == "F16" else KINDS[kind])
    for layer in range(2):
        at = f"blk.{layer}."
        pairs = {
            f"l{layer}.o": stored[at + "attn_output.weight"],
            f"l{layer}.down": stored[at + "ffn_down.weight"],
            f"l{layer}.gate_up": np.concatenate([stored[at + "ffn_gate.weight"], stored[at + "ffn_up.weight"]]),
        }
        for name, expected in pairs.items():
            found = reader.matrix(name).dequantize()
            if kind == "F16":
                assert np.abs(found - expected).mean() < 0.03 * np.abs(expected).max()
            else:
                np.testing.assert_array_equal(found, expected)
    if kind != "F16":
        np.testing.assert_array_equal(reader.matrix("embed").dequantize(), stored["token_embd.weight"])


def test_forward_equals_the_file_rotated_as_stored(gguf_file: Path, folder: Path, bundle: Path) -> None:
    """llama's q and k rotate neighbouring pairs in the file and halves in the bundle, with the same result."""
    if "F16" in gguf_file.name:
        pytest.skip("not kept bit by bit")
    config, weights = read(folder)
    stored = stored_weights(gguf_file)
    expected = forward(config, {name: stored[gguf_name(name)] for name in weights}, IDS, pairs=config["model_type"] == "llama")
    model = Model(bundle, Exact(WeightsReader(bundle / "weights.bin")), round_kv=False)
    np.testing.assert_allclose(model.forward(IDS, every=True), expected, atol=2e-4)


@pytest.mark.parametrize("kind", ["Q5_K", "Q6_K", "Q5_1", "Q3_K", "BF16"])
def test_other_types_are_dequantized_row_by_row(kind: str) -> None:
    stored_as = gguf.GGMLQuantizationType[kind]
    block, size = gguf.GGML_QUANT_SIZES[stored_as]
    data = np.random.default_rng(0).integers(0, 60, (6, 512 // block * size), np.uint8)
    tensor = SimpleNamespace(name="t", shape=np.array([512, 6]), tensor_type=stored_as, data=data)
    matrix = _matrix(tensor)
    wanted = np.array([4, 1])
    assert (matrix.native, matrix.stored) == (None, kind)
    np.testing.assert_array_equal(matrix.f32(wanted), gguf.dequantize(data, stored_as)[wanted])


def test_mixed_types_are_fused_without_loss(folder: Path, tmp_path: Path) -> None:
    source = tmp_path / "mixed.gguf"
    kinds = {"attn_v": "Q8_0", "ffn_up": "Q4_1", "token_embd": "Q8_0"}
    write_gguf(folder, source, "Q4_0", kinds=kinds)
    out = tmp_path / "bundle"
    write_bundle(open_gguf(source), out, Kinds(), "chat", replace=False)
    reader = WeightsReader(out / "weights.bin")
    stored = stored_weights(source)
    assert reader.index["l0.qkv"]["kind"] == "q8"
    assert reader.index["l0.gate_up"]["kind"] == "q4m"
    expected = np.concatenate([stored["blk.0.ffn_gate.weight"], stored["blk.0.ffn_up.weight"]])
    np.testing.assert_array_equal(reader.matrix("l0.gate_up").dequantize(), expected)
    v = stored["blk.0.attn_v.weight"]
    np.testing.assert_array_equal(reader.matrix("l0.qkv").dequantize()[-len(v) :], v)


@pytest.mark.parametrize(
    ("extra", "field"),
    [
        ({"rope.scaling.type": "yarn"}, "rope.scaling.type = yarn"),
        ({"rope.scaling.factor": 4.0}, "rope.scaling.factor = 4.0"),
        ({"expert_count": 8}, "expert_count = 8"),
        ({"attention.sliding_window": 4096}, "attention.sliding_window = 4096"),
        ({"rope.dimension_count": 8}, "rope.dimension_count differs"),
    ],
)
def test_what_the_graph_lacks_is_refused(folder: Path, tmp_path: Path, extra: dict, field: str) -> None:
    write_gguf(folder, tmp_path / "odd.gguf", "Q8_0", extra)
    with pytest.raises(ExportError, match=field) as refusal:
        open_gguf(tmp_path / "odd.gguf")
    assert refusal.value.kind == "unsupported"
    assert refusal.value.hint


def test_harmless_fields_are_accepted(folder: Path, tmp_path: Path) -> None:
    write_gguf(
        folder, tmp_path / "plain.gguf", "Q8_0", {"rope.scaling.type": "none", "rope.scaling.factor": 1.0, "expert_count": 0}
    )
    open_gguf(tmp_path / "plain.gguf")


def test_cut_short_anywhere_is_refused(gguf_file: Path, tmp_path: Path) -> None:
    whole = gguf_file.read_bytes()
    for part in (0, 3, 24, 100, 2000, len(whole) // 2, len(whole) - 1):
        (tmp_path / "cut.gguf").write_bytes(whole[:part])
        with pytest.raises(ExportError) as refusal:
            write_bundle(open_gguf(tmp_path / "cut.gguf"), tmp_path / "out", Kinds(), "chat", replace=False)
        assert refusal.value.kind == "input", refusal.value
        assert sorted(path.name for path in tmp_path.iterdir()) == ["cut.gguf"]


def test_damaged_bytes_never_raise_anything_else(gguf_file: Path, tmp_path: Path) -> None:
    whole = bytearray(gguf_file.read_bytes())
    rng = np.random.default_rng(0)
    for _ in range(30):
        damaged = whole.copy()
        for at in rng.integers(0, 12000, 4):
            damaged[at] = rng.integers(256)
        (tmp_path / "bad.gguf").write_bytes(damaged)
        try:
            open_gguf(tmp_path / "bad.gguf")
        except ExportError as refusal:
            assert refusal.hint


def superblocks(rows: int, n_blocks: int, seed: int = 0) -> np.ndarray:
    """Random Q4_K blocks with factors of ordinary size."""
    rng = np.random.default_rng(seed)
    data = rng.integers(0, 256, (rows, n_blocks, 144), np.uint8)
    factors = rng.uniform(1e-5, 1e-3, (rows, n_blocks, 2)).astype("<f2")
    data[..., :4] = factors.view(np.uint8)
    return data.reshape(rows, -1)


def test_q4_k_differs_by_the_rounding_of_its_scales_only() -> None:
    data = superblocks(9, 3)
    block = _k_block(data)
    stored = gguf.dequantize(data, gguf.GGMLQuantizationType.Q4_K).reshape(9, 24, 32)
    found = block.dequantize().reshape(stored.shape)
    scales, mins = (part.astype(np.float64)[..., None] for part in (block.scales, block.mins))
    f16_ulp, subnormal = 2.0**-11, 2.0**-25
    bound = (block.values * np.abs(scales) + np.abs(mins)) * (f16_ulp + 1e-6) + 16 * subnormal
    assert block.kind == "q4m"
    assert (np.abs(found - stored) <= bound).all()
    assert np.linalg.norm(found - stored) < 4e-4 * np.linalg.norm(stored)


def test_finer_types_ask_for_eight_bits_and_four_on_demand() -> None:
    kinds = {}
    for kind in ("Q5_0", "Q5_1", "Q5_K", "Q6_K", "Q4_K", "F16", "BF16"):
        block, size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[kind]]
        data = np.zeros((8, 256 // block * size), np.uint8)
        tensor = SimpleNamespace(name="t", shape=np.array([256, 8]), tensor_type=gguf.GGMLQuantizationType[kind], data=data)
        matrix = _matrix(tensor)
        kinds[kind] = (common_kind([matrix], None, "q4m"), common_kind([matrix], "q4", "q4m"))
    finer = ("q8", "q4")
    assert kinds == {
        "Q5_0": finer, "Q5_1": finer, "Q5_K": finer, "Q6_K": finer,
        "Q4_K": ("q4m", "q4m"), "F16": ("q4m", "q4"), "BF16": ("q4m", "q4"),
    }  # fmt: skip


@pytest.mark.parametrize("at", [0, 2])
def test_q4_k_factor_that_is_no_number_is_refused(at: int) -> None:
    data = superblocks(1, 1)
    data[0, at : at + 2] = np.array([np.inf], "<f2").view(np.uint8)
    with pytest.raises(ExportError, match="not a finite number"):
        _k_block(data)


def test_q8_of_minus_128_is_refused() -> None:
    block = np.zeros((1, 34), np.uint8)
    block[0, 2] = 0x80
    with pytest.raises(ExportError, match="-128"):
        _block("q8", block)


def test_scale_that_is_no_number_is_refused() -> None:
    block = np.zeros((1, 18), np.uint8)
    block[0, :2] = np.array([np.nan], "<f2").view(np.uint8)
    with pytest.raises(ExportError, match="not a finite number"):
        _block("q4", block)
