"""What tests need beside the exporter: a GGUF writer for tiny checkpoints, and a plain forward pass on stored weights."""

import json
from pathlib import Path

import gguf
import numpy as np
from safetensors.numpy import load_file

GGUF_NAMES = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
}


def read(folder: Path) -> tuple[dict, dict[str, np.ndarray]]:
    """Configuration and f32 weights of a Hugging Face folder."""
    return json.loads((folder / "config.json").read_text()), load_file(folder / "model.safetensors")


def gguf_name(name: str) -> str:
    """`model.layers.0.mlp.up_proj.weight` -> `blk.0.ffn_up.weight`."""
    parts = name.removesuffix(".weight").split(".", 3)
    if parts[:2] == ["model", "layers"]:
        return f"blk.{parts[2]}.{GGUF_NAMES[parts[3]]}.weight"
    return GGUF_NAMES[name.removesuffix(".weight")] + ".weight"


def to_pairs(weight: np.ndarray, heads: int) -> np.ndarray:
    """Rows of a half-rotation projection reordered for neighbouring pairs, as llama.cpp's converter does."""
    rows, cols = weight.shape
    return weight.reshape(heads, 2, rows // heads // 2, cols).swapaxes(1, 2).reshape(rows, cols)


def write_gguf(
    folder: Path, path: Path, kind: str, extra: dict[str, object] | None = None, kinds: dict[str, str] | None = None
) -> None:
    """The checkpoint in `folder` as a GGUF file: matrices of type `kind`, or as `kinds` says by name; `extra` metadata."""
    config, weights = read(folder)
    family = config["model_type"]
    writer = gguf.GGUFWriter(path, family)
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_key_length(config["head_dim"])
    writer.add_value_length(config["head_dim"])
    writer.add_rope_freq_base(config["rope_theta"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    for key, value in (extra or {}).items():
        {int: writer.add_uint32, float: writer.add_float32, str: writer.add_string}[type(value)](f"{family}.{key}", value)
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    special = {token["content"] for token in tokenizer["added_tokens"]}
    tokens = sorted(tokenizer["model"]["vocab"], key=tokenizer["model"]["vocab"].get)
    tokens += [f"[PAD{i}]" for i in range(len(tokens), config["vocab_size"])]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(tokens)
    writer.add_token_types([3 if token in special else 5 if token.startswith("[PAD") else 1 for token in tokens])
    writer.add_token_merges([" ".join(merge) for merge in tokenizer["model"]["merges"]])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    for name, weight in weights.items():
        if family == "llama" and name.endswith(("q_proj.weight", "k_proj.weight")):
            weight = to_pairs(weight, config["num_attention_heads" if "q_proj" in name else "num_key_value_heads"])
        if weight.ndim == 1:
            writer.add_tensor(gguf_name(name), weight)
            continue
        part = gguf_name(name).split(".")[-2]
        stored = gguf.GGMLQuantizationType[(kinds or {}).get(part, kind)]
        writer.add_tensor(gguf_name(name), gguf.quantize(weight, stored), raw_dtype=stored)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def forward(config: dict, weight: dict[str, np.ndarray], ids: list[int], pairs: bool = False) -> np.ndarray:
    """Logits [S, vocab] in f64, position by position; `pairs` rotates neighbours in place of halves."""
    heads, kv_heads, dim = config["num_attention_heads"], config["num_key_value_heads"], config["head_dim"]

    def norm(x: np.ndarray, name: str) -> np.ndarray:
        return x / np.sqrt((x**2).mean(-1, keepdims=True) + config["rms_norm_eps"]) * weight[name + ".weight"]

    def rotate(x: np.ndarray, position: int) -> np.ndarray:
        out = np.empty_like(x)
        for i in range(dim // 2):
            a, b = (2 * i, 2 * i + 1) if pairs else (i, i + dim // 2)
            turn = np.exp(1j * position * config["rope_theta"] ** (-2 * i / dim)) * (x[:, a] + 1j * x[:, b])
            out[:, a], out[:, b] = turn.real, turn.imag
        return out

    seen: dict[int, list[tuple[np.ndarray, np.ndarray]]] = {layer: [] for layer in range(config["num_hidden_layers"])}
    logits = []
    for position, token in enumerate(ids):
        x = weight["model.embed_tokens.weight"][token].astype(np.float64)
        for layer in range(config["num_hidden_layers"]):
            at = f"model.layers.{layer}."
            h = norm(x, at + "input_layernorm")
            q, k, v = ((weight[f"{at}self_attn.{n}_proj.weight"] @ h).reshape(-1, dim) for n in "qkv")
            if config["model_type"] == "qwen3":
                q, k = norm(q, at + "self_attn.q_norm"), norm(k, at + "self_attn.k_norm")
            q, k = rotate(q, position), rotate(k, position)
            seen[layer].append((k, v))
            attended = []
            for head in range(heads):
                group = head * kv_heads // heads
                scores = np.array([q[head] @ k[group] for k, _ in seen[layer]]) / np.sqrt(dim)
                shares = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()
                attended.append(sum(share * v[group] for share, (_, v) in zip(shares, seen[layer])))
            x = x + weight[at + "self_attn.o_proj.weight"] @ np.concatenate(attended)
            h = norm(x, at + "post_attention_layernorm")
            gate = weight[at + "mlp.gate_proj.weight"] @ h
            x = x + weight[at + "mlp.down_proj.weight"] @ (gate / (1 + np.exp(-gate)) * (weight[at + "mlp.up_proj.weight"] @ h))
        head_weight = weight["model.embed_tokens.weight" if config["tie_word_embeddings"] else "lm_head.weight"]
        logits.append(head_weight @ norm(x, "model.norm"))
    return np.array(logits)
