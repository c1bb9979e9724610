"""Tiny random checkpoints in Hugging Face form, the same bytes for the same seed: tests need no network.

They have every shape that is easily got wrong: grouped queries, a head dimension apart from hidden/heads, a vocabulary
that ends in a short panel, tied and untied embeddings, with and without norms of heads.
"""

import argparse
import json
import sys
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from .hf_source import PARTS

VOCAB = 500
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)

TEXT = """Task: What time is it in Tokyo? Program: t = time.now(zone="Asia/Tokyo")
answer(t)
Task: How much disk space is free on /? Program: d = system.disk(path="/")
print(d["free"]) answer(f"{d['free']} bytes are free")
for file in fs.list(path="./agent"):
    if file.size > 1024: print(file.name, file.size)
The quick brown fox jumps over the lazy dog; the dog sleeps, and the fox is free to list the files of the folder.
Temperature and memory of this machine are measured every minute; results are written to a small database, from which
another process reads, counts and reports them. Nothing is lost when somebody pulls the plug.
"""
"""What the tokenizer's merges are made from."""

SHAPES = {
    "llama": dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=16,
                  intermediate_size=128, rope_theta=10000.0, rms_norm_eps=1e-5, tie_word_embeddings=False),
    "qwen3": dict(hidden_size=96, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=1, head_dim=32,
                  intermediate_size=160, rope_theta=1000000.0, rms_norm_eps=1e-6, tie_word_embeddings=True),
}  # fmt: skip


def write_checkpoint(family: str, out: Path, seed: int = 0) -> None:
    """Writes config.json, model.safetensors, tokenizer.json and tokenizer_config.json to `out`."""
    shape = SHAPES[family]
    out.mkdir(parents=True, exist_ok=True)
    config = shape | {"model_type": family, "vocab_size": VOCAB, "max_position_embeddings": 512, "hidden_act": "silu"}
    config |= {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0, "attention_bias": False, "torch_dtype": "float32"}
    (out / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    texts = {"bos_token": SPECIAL[1], "eos_token": SPECIAL[2], "pad_token": SPECIAL[0], "chat_template": TEMPLATE}
    (out / "tokenizer_config.json").write_text(json.dumps(texts, indent=2) + "\n", encoding="utf-8")
    (out / "README.md").write_text("---\nlicense: apache-2.0\n---\nRandom weights, for tests.\n", encoding="utf-8")
    (out / "tokenizer.json").write_text(_tokenizer().to_str(), encoding="utf-8")
    save_file(_weights(family, shape, np.random.Generator(np.random.PCG64(seed))), out / "model.safetensors")


def _weights(family: str, shape: dict, rng: np.random.Generator) -> dict[str, np.ndarray]:
    hidden, ffn, head_dim = shape["hidden_size"], shape["intermediate_size"], shape["head_dim"]
    q_rows, kv_rows = (shape[key] * head_dim for key in ("num_attention_heads", "num_key_value_heads"))
    layer = {
        "q": (q_rows, hidden), "k": (kv_rows, hidden), "v": (kv_rows, hidden), "o": (hidden, q_rows),
        "gate": (ffn, hidden), "up": (ffn, hidden), "down": (hidden, ffn), "attn_norm": (hidden,), "ffn_norm": (hidden,),
    }  # fmt: skip
    if family == "qwen3":
        layer |= {"q_norm": (head_dim,), "k_norm": (head_dim,)}
    sizes = {"model.embed_tokens": (VOCAB, hidden), "model.norm": (hidden,)}
    if not shape["tie_word_embeddings"]:
        sizes["lm_head"] = (VOCAB, hidden)
    for index in range(shape["num_hidden_layers"]):
        sizes |= {f"model.layers.{index}.{PARTS[name]}": size for name, size in layer.items()}
    weights = {}
    for name, size in sizes.items():
        drawn = rng.integers(-(1 << 20), 1 << 20, size=size).astype(np.float32) / np.float32(1 << 20)
        scale = np.float32(0.1) if name == "model.embed_tokens" else np.float32(2.0 / np.sqrt(size[-1]))
        weights[f"{name}.weight"] = drawn * scale if len(size) == 2 else 1 + drawn * np.float32(0.25)
    return weights


def _tokenizer() -> Tokenizer:
    """Byte-level BPE whose merges are the commonest pairs of TEXT; ties go to the pair that sorts first."""
    split = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)]
    )
    words = [list(word) for word, _ in split.pre_tokenize_str(TEXT)]
    tokens = [*SPECIAL, *sorted(pre_tokenizers.ByteLevel.alphabet())]
    merges: list[tuple[str, str]] = []
    while len(tokens) < VOCAB - 1:
        counts: dict[tuple[str, str], int] = {}
        for word in words:
            for pair in zip(word, word[1:]):
                counts[pair] = counts.get(pair, 0) + 1
        pair = min(counts, key=lambda pair: (-counts[pair], pair))
        merges.append(pair)
        tokens.append("".join(pair))
        words = [_merge(word, pair) for word in words]
    tokenizer = Tokenizer(models.BPE(vocab={token: i for i, token in enumerate(tokens)}, merges=merges))
    tokenizer.pre_tokenizer = split
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, normalized=False, special=True) for token in SPECIAL])
    return tokenizer


def _merge(word: list[str], pair: tuple[str, str]) -> list[str]:
    merged: list[str] = []
    for part in word:
        if merged and (merged[-1], part) == pair:
            merged[-1] += part
        else:
            merged.append(part)
    return merged


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line and returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m mote_export.synthetic", description="Write a tiny random checkpoint.")
    parser.add_argument("--family", choices=tuple(SHAPES), required=True)
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    write_checkpoint(options.family, options.out, options.seed)
    print(options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
