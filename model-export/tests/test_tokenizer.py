"""Tokenizers rebuilt from GGUF metadata, against byte-level BPE written out in plain Python."""

from functools import cache
from pathlib import Path
from unicodedata import category

import gguf
import pytest
import regex

from mote_export.errors import ExportError
from mote_export.gguf_source import Metadata, open_gguf
from mote_export.tokenizer import PRE_TOKENIZERS, from_gguf

CORPUS = (Path(__file__).parent / "corpus.txt").read_text(encoding="utf-8")

GPT2 = r"'(?:s|t|re|ve|m|ll|d)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LATER = r"'(?i:s|t|re|ve|m|ll|d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,%d}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"


def gpt2_bytes() -> dict[int, str]:
    """The printable stand-in for each byte, as GPT-2's vocabulary spells it."""
    kept = [*range(33, 127), *range(161, 173), *range(174, 256)]
    moved = [byte for byte in range(256) if byte not in kept]
    return {byte: chr(byte) for byte in kept} | {byte: chr(256 + i) for i, byte in enumerate(moved)}


class PlainBpe:
    """The same ids the slow way: special tokens, then the split, then the lowest-ranked merge again and again."""

    def __init__(self, meta: dict[str, object]):
        self.pre = meta["tokenizer.ggml.pre"]
        tokens = meta["tokenizer.ggml.tokens"]
        self.ids = {token: i for i, token in enumerate(tokens)}
        self.ranks = {tuple(merge.split(" ")): i for i, merge in enumerate(meta["tokenizer.ggml.merges"])}
        special = [token for token, kind in zip(tokens, meta["tokenizer.ggml.token_type"]) if kind == 3]
        self.special = regex.compile("(" + "|".join(map(regex.escape, sorted(special, key=len, reverse=True))) + ")")
        self.bytes = gpt2_bytes()
        self.word = cache(self._word)

    def encode(self, text: str) -> list[int]:
        found: list[int] = []
        for part in self.special.split(text):
            if self.special.fullmatch(part):
                found.append(self.ids[part])
            else:
                found += [token for word in self.split(part) for token in self.word(word)]
        return found

    def split(self, text: str) -> list[str]:
        if self.pre != "smollm":
            return [
                m.group() for m in regex.finditer({"gpt-2": GPT2, "qwen2": LATER % 1, "llama-bpe": LATER % 3}[self.pre], text)
            ]
        pieces = [""]
        for char in text:
            pieces[-1:] = [pieces[-1], char, ""] if category(char)[0] == "N" else [pieces[-1] + char]
        return [m.group() for piece in pieces for m in regex.finditer(GPT2, piece)]

    def _word(self, word: str) -> list[int]:
        parts = [self.bytes[byte] for byte in word.encode()]
        if self.pre == "llama-bpe" and "".join(parts) in self.ids:
            return [self.ids["".join(parts)]]
        while True:
            pairs = [(self.ranks.get(pair, len(self.ranks)), i) for i, pair in enumerate(zip(parts, parts[1:]))]
            rank, i = min(pairs, default=(len(self.ranks), 0))
            if rank == len(self.ranks):
                return [self.ids[part] for part in parts]
            parts[i : i + 2] = [parts[i] + parts[i + 1]]


class Fields(dict):
    """Metadata in memory."""

    def need(self, key: str) -> object:
        return self[key]


def fields(path: Path) -> Fields:
    meta = Metadata(gguf.GGUFReader(path))
    return Fields(
        {f"tokenizer.ggml.{k}": meta.need(f"tokenizer.ggml.{k}") for k in ("model", "pre", "tokens", "merges", "token_type")}
    )


def texts() -> list[str]:
    """The corpus whole, and line by line with every kind of end."""
    lines = CORPUS.split("\n")
    return [CORPUS, *lines, *(f"  {line} \r\n\t" for line in lines), *(line[::-1] for line in lines)]


@pytest.mark.parametrize("pre", ["smollm", "gpt-2", "qwen2", "llama-bpe"])
def test_tiny_tokenizer_equals_plain_bpe(gguf_file: Path, pre: str) -> None:
    meta = fields(gguf_file) | {"tokenizer.ggml.pre": pre}
    tokenizer, plain = from_gguf(Fields(meta)), PlainBpe(meta)
    for text in texts():
        normal = tokenizer.normalizer.normalize_str(text) if tokenizer.normalizer else text
        assert tokenizer.encode(text, add_special_tokens=False).ids == plain.encode(normal), text
        assert tokenizer.decode(tokenizer.encode(text).ids, skip_special_tokens=False) == normal


def test_real_tokenizer_equals_plain_bpe(real_gguf: Path) -> None:
    meta = fields(real_gguf)
    tokenizer, plain = from_gguf(meta), PlainBpe(meta)
    for text in texts():
        assert tokenizer.encode(text, add_special_tokens=False).ids == plain.encode(text), text


def test_real_tokenizer_knows_its_words(real_gguf: Path) -> None:
    tokenizer = open_gguf(real_gguf).tokenizer
    assert tokenizer.encode("<|im_start|>user\nHello world 2024<|im_end|>").tokens == (
        ["<|im_start|>", "user", "Ċ", "Hello", "Ġworld", "Ġ", "2", "0", "2", "4", "<|im_end|>"]
    )


def test_default_splits_as_llama_cpp_does() -> None:
    found = PRE_TOKENIZERS["default"]().pre_tokenize_str("a+=b 12345 it's")
    assert [piece for piece, _ in found] == ["a", "+=", "b", "Ġ", "123", "45", "Ġit", "'", "s"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": "llama"}, "tokenizer.ggml.model = llama"),
        ({"pre": "tekken"}, "tokenizer.ggml.pre = tekken"),
        ({"token_type": [1]}, "differ in length"),
        ({"merges": ["no pair here"]}, "not a pair"),
        ({"merges": ["zzz yyy"]}, "don't fit"),
    ],
)
def test_what_cannot_be_rebuilt_is_refused(gguf_file: Path, change: dict, message: str) -> None:
    meta = fields(gguf_file) | {f"tokenizer.ggml.{key}": value for key, value in change.items()}
    with pytest.raises(ExportError, match=message) as refusal:
        from_gguf(Fields(meta))
    assert refusal.value.hint
