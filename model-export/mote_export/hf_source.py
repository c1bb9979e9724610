"""Hugging Face folders (config.json, *.safetensors, tokenizer.json) as checkpoints; the weights stay on disk."""

import json
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open

from .architecture import Architecture
from .checkpoint import Checkpoint, Special, bundle_name, check_names, check_shape, shapes
from .errors import bad_input, unsupported
from .matrix import Matrix
from .tokenizer import from_file

PARTS = {
    "attn_norm": "input_layernorm",
    "q": "self_attn.q_proj",
    "k": "self_attn.k_proj",
    "v": "self_attn.v_proj",
    "o": "self_attn.o_proj",
    "q_norm": "self_attn.q_norm",
    "k_norm": "self_attn.k_norm",
    "ffn_norm": "post_attention_layernorm",
    "gate": "mlp.gate_proj",
    "up": "mlp.up_proj",
    "down": "mlp.down_proj",
}
GLOBALS = {"embed": "model.embed_tokens", "output": "lm_head", "final_norm": "model.norm"}

REQUIRED = {
    "hidden_act": "silu",
    "attention_bias": False,
    "mlp_bias": False,
    "use_sliding_window": False,
    "partial_rotary_factor": 1.0,
    "num_experts": 0,
    "num_local_experts": 0,
    "quantization_config": None,
    "pretraining_tp": 1,
}
"""Fields that change the forward pass, with the one value that the graph implements; a missing field or null has it."""

MAX_JSON_BYTES = 16 << 20
FLOATS = ("F32", "F16", "BF16")


def open_folder(folder: Path, tokenizer_file: Path | None = None) -> Checkpoint:
    """Reads the configuration and the headers of the weight files in `folder`."""
    config = _read_json(folder / "config.json")
    arch = _architecture(config)
    located = _locate(folder)
    if arch.tied_embeddings:
        located.pop("lm_head.weight", None)

    expected = shapes(arch)
    by_name = {name: tensor_name(name) for name in expected}
    check_names({name for name, stored in by_name.items() if stored in located}, set(expected), tensor_name)
    unplaced = sorted(name for name in set(located) - set(by_name.values()) if not name.endswith("rotary_emb.inv_freq"))
    if unplaced:
        raise unsupported(
            f"the graph has no place for this tensor: {unplaced[0]}",
            "biases, adapters and extra heads are not part of the supported families; choose another model",
        )
    opened = {path: _open(path) for path in sorted(set(located.values()))}

    def tensor(name: str) -> object:
        stored = by_name[name]
        found = opened[located[stored]].get_slice(stored)
        check_shape(stored, tuple(found.get_shape()), expected[name])
        if found.get_dtype() not in FLOATS:
            raise unsupported(
                f"weight {stored} has an unsupported type: {found.get_dtype()}", f"supported: {', '.join(FLOATS)}"
            )
        return found

    for name in expected:
        tensor(name)

    def matrix(name: str) -> Matrix:
        found = tensor(name)
        rows, cols = expected[name]
        return Matrix(
            rows, cols, found.get_dtype(), None, lambda wanted: found[int(wanted[0]) : int(wanted[-1]) + 1].astype(np.float32)
        )

    tokenizer = from_file(tokenizer_file or folder / "tokenizer.json")
    texts = _optional_json(folder / "tokenizer_config.json")
    generation = _optional_json(folder / "generation_config.json")
    special = _special(config, generation, texts, tokenizer)
    template_file = folder / "chat_template.jinja"
    template = template_file.read_text(encoding="utf-8") if template_file.exists() else texts.get("chat_template")
    starts_with_bos = special.bos is not None and tokenizer.encode("x").ids[:1] == [special.bos]
    context_length = config.get("max_position_embeddings")
    if type(context_length) is not int or context_length < 1:
        raise bad_input(f"config.json needs max_position_embeddings: {context_length}", "fetch the folder again")
    return Checkpoint(
        name=bundle_name(folder.resolve().name),
        source=folder.resolve().name,
        license=_license(folder),
        architecture=arch,
        context_length=context_length,
        tokenizer=tokenizer,
        special=special,
        add_bos=bool(texts.get("add_bos_token", starts_with_bos)),
        chat_template=template if isinstance(template, str) else None,
        matrix=matrix,
        vector=lambda name: tensor(name)[:].astype(np.float32),
    )


def _architecture(config: dict[str, object]) -> Architecture:
    family = config.get("model_type")
    if family not in ("llama", "qwen3"):
        raise unsupported(f"unknown architecture: model_type = {family}", "supported: llama, qwen3 (dense, not MoE)")
    for key, required in REQUIRED.items():
        value = config.get(key)
        if value is not None and value != required:
            raise unsupported(f"the graph doesn't implement this field: {key} = {value}", "choose a checkpoint without it")
    layer_types = config.get("layer_types") or []
    other_layers = (
        [kind for kind in layer_types if kind != "full_attention"] if isinstance(layer_types, list) else [layer_types]
    )
    if other_layers:
        raise unsupported(
            f"the graph doesn't implement this field: layer_types = {other_layers[0]}",
            "every layer must be full_attention",
        )

    def count(key: str, default: object = None) -> int:
        value = config.get(key) if config.get(key) is not None else default
        if type(value) is not int:
            raise bad_input(f"config.json needs a whole number: {key} = {value}", "fetch the folder again")
        return value

    hidden, heads = count("hidden_size"), count("num_attention_heads")
    return Architecture(
        family=str(family),
        hidden=hidden,
        layers=count("num_hidden_layers"),
        heads=heads,
        kv_heads=count("num_key_value_heads", heads),
        head_dim=count("head_dim", hidden // max(heads, 1)),
        ffn=count("intermediate_size"),
        vocab=count("vocab_size"),
        rope_theta=_rope_theta(config),
        norm_eps=_number(config, "rms_norm_eps", 1e-6),
        tied_embeddings=bool(config.get("tie_word_embeddings", False)),
        qk_norm=family == "qwen3",
    )


def _rope_theta(config: dict[str, object]) -> float:
    for key in ("rope_scaling", "rope_parameters"):
        rope = config.get(key) or {}
        kind = rope.get("rope_type", rope.get("type", "default")) if isinstance(rope, dict) else rope
        if kind != "default":
            raise unsupported(
                f"the graph doesn't implement this field: {key}.rope_type = {kind}",
                "choose a checkpoint with plain rope, or one whose context needs no scaling",
            )
    parameters = config.get("rope_parameters") or {}
    return _number(parameters if "rope_theta" in parameters else config, "rope_theta", 10000.0)


def _number(config: dict[str, object], key: str, default: float) -> float:
    value = config.get(key)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise bad_input(f"config.json needs a number: {key} = {value}", "fetch the folder again")
    return float(value)


def _special(config: dict, generation: dict, texts: dict, tokenizer: object) -> Special:
    def ids(name: str) -> list[int]:
        stated = texts.get(f"{name}_token")
        text = stated.get("content") if isinstance(stated, dict) else stated
        named = tokenizer.token_to_id(text) if isinstance(text, str) else None
        found: list[object] = [] if named is None else [named]
        for source in (generation, config):
            value = source.get(f"{name}_token_id")
            found += value if isinstance(value, list) else [value]
        return list(dict.fromkeys(token for token in found if type(token) is int and token >= 0))

    bos, eos, pad = ids("bos"), ids("eos"), ids("pad")
    return Special(next(iter(bos), None), next(iter(eos), None), next(iter(pad), None), tuple(eos))


def _locate(folder: Path) -> dict[str, Path]:
    index = folder / "model.safetensors.index.json"
    if index.exists():
        weight_map = _read_json(index).get("weight_map")
        if not isinstance(weight_map, dict):
            raise bad_input(f"the index has no weight_map: {index}", "fetch the folder again")
        for file in set(weight_map.values()):
            if Path(str(file)).name != file:
                raise bad_input(f"the index names a file outside the folder: {file}", "fetch the folder again")
            if not (folder / file).exists():
                raise bad_input(f"a weight file is missing: {folder / file}", "fetch the whole folder again")
        return {name: folder / file for name, file in weight_map.items()}
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise bad_input(f"no *.safetensors in the folder: {folder}", "pickled .bin weights are not read; fetch safetensors")
    return {name: path for path in files for name in _open(path).keys()}


def _open(path: Path) -> safe_open:
    try:
        return safe_open(path, framework="numpy")
    except (SafetensorError, OSError, ValueError) as cause:
        raise bad_input(
            f"not a readable safetensors file: {path} ({cause})", "it is cut short or damaged; fetch it again"
        ) from cause


def _read_json(path: Path) -> dict[str, object]:
    try:
        if path.stat().st_size > MAX_JSON_BYTES:
            raise bad_input(f"larger than {MAX_JSON_BYTES} bytes: {path}", "this is no Hugging Face configuration")
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as cause:
        raise bad_input(
            f"missing file: {path}", "give a GGUF file, or a folder with config.json, *.safetensors and tokenizer.json"
        ) from cause
    except (ValueError, RecursionError) as cause:
        raise bad_input(f"not readable as JSON: {path} ({cause})", "fetch the folder again") from cause
    if not isinstance(found, dict):
        raise bad_input(f"not a JSON object: {path}", "fetch the folder again")
    return found


def _optional_json(path: Path) -> dict[str, object]:
    return _read_json(path) if path.exists() else {}


def _license(folder: Path) -> str:
    readme = folder / "README.md"
    if readme.exists():
        for line in readme.read_text(encoding="utf-8", errors="replace")[:4096].splitlines():
            key, _, value = line.partition(":")
            if key == "license" and value.strip():
                return value.strip()
    return "unknown"


def tensor_name(name: str) -> str:
    """The name that a weight has in this form of checkpoint."""
    layer, _, part = name.rpartition(".")
    stored = f"model.layers.{layer[1:]}.{PARTS[part]}" if layer else GLOBALS[part]
    return f"{stored}.weight"
