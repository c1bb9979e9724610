"""The anchor as it is on disk, and embeddings by it: the layout is in docs/retrieval.md."""

import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from .words import fields, words

MAGIC, VERSION = b"MOTEANC\0", 1
ANCHORED = ("name", "description", "parameter")


class Tokens:
    """Token ids of words, each as if a space stood before it."""

    def __init__(self, path: Path):
        self.tokenizer = Tokenizer.from_file(str(path))
        self.known: dict[str, list[int]] = {}

    def ids(self, text: str) -> list[int]:
        """The tokens of a text's words."""
        found: list[int] = []
        for word in words(text):
            if word not in self.known:
                self.known[word] = self.tokenizer.encode(f" {word}", add_special_tokens=False).ids
            found += self.known[word]
        return found

    def of_tool(self, tool: dict, kinds: tuple[str, ...] = ANCHORED) -> list[int]:
        """The tokens of a tool's fields."""
        said = fields(tool)
        return [token for kind in kinds for text in said[kind] for token in self.ids(text)]


@dataclass(frozen=True)
class Anchor:
    """A trained projection: `weights` i8 `[dim, hidden]`, `scales` and `bias` `[dim]`, `tokens` i8 `[vocab]`: ln(weight) / token_scale."""

    row_scale: float
    gamma: float
    share: float
    token_scale: float
    probes: list[tuple[int, float]]
    bias: np.ndarray
    scales: np.ndarray
    weights: np.ndarray
    tokens: np.ndarray

    def write(self, path: Path) -> None:
        """Writes the file."""
        dim, hidden = self.weights.shape
        head = struct.pack("<IIIIffffI", VERSION, hidden, dim, len(self.tokens), self.row_scale, self.gamma, self.share,
                           self.token_scale, len(self.probes))  # fmt: skip
        probes = b"".join(struct.pack("<If", *probe) for probe in self.probes)
        arrays = [self.bias.astype("<f4"), self.scales.astype("<f4"), self.weights, self.tokens]
        path.write_bytes(MAGIC + head + probes + b"".join(array.tobytes() for array in arrays))

    @staticmethod
    def read(path: Path) -> "Anchor":
        """Reads the file."""
        data = path.read_bytes()
        version, hidden, dim, vocab, row_scale, gamma, share, token_scale, n_probes = struct.unpack_from("<IIIIffffI", data, 8)
        if data[:8] != MAGIC or version != VERSION:
            raise ValueError(f"not an anchor of version {VERSION}: {path}")
        at = 44
        probes = [struct.unpack_from("<If", data, at + 8 * idx) for idx in range(n_probes)]
        at += 8 * n_probes
        floats = np.frombuffer(data, "<f4", 2 * dim, at)
        integers = np.frombuffer(data, np.int8, dim * hidden + vocab, at + 8 * dim)
        return Anchor(row_scale, gamma, share, token_scale, probes, floats[:dim], floats[dim:],
                      integers[: dim * hidden].reshape(dim, hidden), integers[dim * hidden :])  # fmt: skip

    def embed(self, texts: list[list[int]], rows: np.ndarray) -> np.ndarray:
        """Unit vectors `[texts, dim]`; `rows` is the embedding table. A text without tokens gives zeros."""
        weight = np.exp(self.tokens * np.float32(self.token_scale))
        pooled = np.zeros((len(texts), rows.shape[1]), np.float32)
        total = np.zeros((len(texts), 1), np.float32)
        for idx, tokens in enumerate(texts):
            if tokens:
                pooled[idx] = weight[tokens] @ rows[tokens]
                total[idx] = weight[tokens].sum()
        found = self.row_scale * (pooled @ self.weights.T.astype(np.float32)) * self.scales + total * self.bias
        return found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-9)

    def cosines(self, queries: np.ndarray, tools: np.ndarray) -> np.ndarray:
        """Cosines between embeddings that are kept in eight bits each."""
        return quantized(queries) @ quantized(tools).T


def quantized(vectors: np.ndarray) -> np.ndarray:
    """What eight bits a value keep of it, each vector with a scale of its own."""
    scale = np.maximum(np.abs(vectors).max(axis=1, keepdims=True), 1e-9) / 127
    return np.rint(vectors / scale) * scale
