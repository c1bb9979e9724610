r"""Tokenizers in the form of the `tokenizers` library: rebuilt from GGUF metadata, or taken from a tokenizer.json.

GGUF names the split in front of byte-level BPE (`tokenizer.ggml.pre`) without stating it. What each name stands for
follows the tokenizer.json of the models that introduced it and llama.cpp's table of them (`llama-vocab.cpp`).
"""

from pathlib import Path
from typing import Protocol

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

from .errors import bad_input, unsupported

CONTROL, USER_DEFINED = 3, 4
"""Values of `tokenizer.ggml.token_type` for tokens that are matched in the text before any split."""

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
QWEN2 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
DEFAULT = (r"[\p{P}\$\+<=>\^~\|]+", GPT2, r"\p{N}+", r"[0-9][0-9][0-9]")


class Metadata(Protocol):
    """Key-value pairs of a GGUF file."""

    def get(self, key: str, default: object = None) -> object: ...

    def need(self, key: str) -> object: ...


def _splits(*patterns: str) -> pre_tokenizers.PreTokenizer:
    splits = [pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in patterns]
    return pre_tokenizers.Sequence([*splits, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def _digits() -> pre_tokenizers.PreTokenizer:
    digits = pre_tokenizers.Digits(individual_digits=True)
    return pre_tokenizers.Sequence([digits, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)])


PRE_TOKENIZERS = {
    "smollm": _digits,
    "starcoder": _digits,
    "refact": _digits,
    "gpt-2": lambda: pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
    "qwen2": lambda: _splits(QWEN2),
    "llama-bpe": lambda: _splits(LLAMA3),
    "default": lambda: _splits(*DEFAULT),
}

OWN_FILE = "pass the model's own file: --tokenizer tokenizer.json"


def from_gguf(meta: Metadata) -> Tokenizer:
    """The tokenizer that the metadata describes; only byte-level BPE with a known split."""
    model = meta.need("tokenizer.ggml.model")
    if model != "gpt2":
        raise unsupported(f"tokenizer of an unsupported kind: tokenizer.ggml.model = {model}", OWN_FILE)
    pre = meta.get("tokenizer.ggml.pre", "default")
    if pre not in PRE_TOKENIZERS:
        raise unsupported(f"unknown split: tokenizer.ggml.pre = {pre}", f"known: {', '.join(PRE_TOKENIZERS)}; {OWN_FILE}")
    tokens, merges, types = (meta.need(f"tokenizer.ggml.{key}") for key in ("tokens", "merges", "token_type"))
    if not all(isinstance(found, list) for found in (tokens, merges, types)):
        raise bad_input("tokens, merges and token_type are not lists", "the file is damaged; fetch it again")
    if len(types) != len(tokens):
        raise bad_input(f"token_type and tokens differ in length: {len(types)}, {len(tokens)}", "fetch the file again")
    vocab = {token: token_id for token_id, token in enumerate(tokens)}
    if len(vocab) != len(tokens):
        raise bad_input(f"the vocabulary repeats tokens: {len(tokens) - len(vocab)}", OWN_FILE)
    pairs = [tuple(merge.split(" ")) for merge in merges]
    broken = [merge for merge, pair in zip(merges, pairs) if len(pair) != 2]
    if broken:
        raise bad_input(f"a merge is not a pair of tokens: {broken[0]!r}", OWN_FILE)
    try:
        bpe = models.BPE(vocab=vocab, merges=pairs, fuse_unk=False, ignore_merges=pre == "llama-bpe")
    except Exception as cause:
        raise bad_input(f"the merges don't fit the vocabulary: {cause}", OWN_FILE) from cause

    tokenizer = Tokenizer(bpe)
    if pre == "qwen2":
        tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = PRE_TOKENIZERS[pre]()
    tokenizer.decoder = decoders.ByteLevel()
    special = [token for token, kind in zip(tokens, types) if kind == CONTROL]
    added = [token for token, kind in zip(tokens, types) if kind == USER_DEFINED]
    tokenizer.add_special_tokens([AddedToken(token, normalized=False, special=True) for token in special])
    tokenizer.add_tokens([AddedToken(token, normalized=False) for token in added])
    if tokenizer.get_vocab_size() != len(tokens):
        raise bad_input(
            f"the tokenizer grew beyond the vocabulary: {tokenizer.get_vocab_size()}, expected {len(tokens)}", OWN_FILE
        )
    return tokenizer


def from_file(path: Path) -> Tokenizer:
    """The tokenizer of a tokenizer.json, without truncation or padding."""
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as cause:
        raise bad_input(f"not a readable tokenizer: {path} ({cause})", "the folder needs the model's tokenizer.json") from cause
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer
