"""What every kind of checkpoint offers to the exporter: a shape, named weights read on demand, and a tokenizer."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from tokenizers import Tokenizer

from .architecture import Architecture
from .errors import bad_input
from .matrix import Matrix

TURN_ENDS = ("<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|end_of_text|>")
"""Tokens that end a completion in the templates of these families, beside the end token that a checkpoint names."""


@dataclass(frozen=True)
class Special:
    """The special tokens of a model; ids that a checkpoint doesn't name are None."""

    bos: int | None
    eos: int | None
    pad: int | None
    ends: tuple[int, ...] = ()

    def stops(self, tokenizer: Tokenizer) -> list[int]:
        """The ids that end a completion, without repetition."""
        named = [self.eos, *self.ends, *(tokenizer.token_to_id(token) for token in TURN_ENDS)]
        return list(dict.fromkeys(token for token in named if token is not None))


@dataclass(frozen=True)
class Checkpoint:
    """A model to export.

    Weight names are a bundle's own (docs/bundle.md), with the parts that a bundle fuses still apart: `l0.q`, `l0.k`,
    `l0.v`, `l0.gate`, `l0.up`; norms are `l0.attn_norm`, `l0.ffn_norm`, `final_norm`.
    """

    name: str
    source: str
    license: str
    architecture: Architecture
    context_length: int
    tokenizer: Tokenizer
    special: Special
    add_bos: bool
    chat_template: str | None
    matrix: Callable[[str], Matrix] = field(repr=False)
    vector: Callable[[str], np.ndarray] = field(repr=False)


def check_shape(name: str, found: tuple[int, ...], expected: tuple[int, ...]) -> None:
    """Refuses a weight whose shape is not what the header promises."""
    if tuple(found) != expected:
        raise bad_input(
            f"weight {name} has another shape than the header says: {list(found)}, expected {list(expected)}",
            "the checkpoint is damaged or of another architecture; fetch it again",
        )


def shapes(arch: Architecture) -> dict[str, tuple[int, ...]]:
    """Every weight that a model of this shape has, by its name."""
    found: dict[str, tuple[int, ...]] = {"embed": (arch.vocab, arch.hidden)}
    for layer in range(arch.layers):
        part = {
            "attn_norm": (arch.hidden,),
            "q": (arch.q_rows, arch.hidden),
            "k": (arch.kv_rows, arch.hidden),
            "v": (arch.kv_rows, arch.hidden),
            "o": (arch.hidden, arch.q_rows),
            "ffn_norm": (arch.hidden,),
            "gate": (arch.ffn, arch.hidden),
            "up": (arch.ffn, arch.hidden),
            "down": (arch.hidden, arch.ffn),
        }
        if arch.qk_norm:
            part |= {"q_norm": (arch.head_dim,), "k_norm": (arch.head_dim,)}
        found |= {f"l{layer}.{name}": shape for name, shape in part.items()}
    found["final_norm"] = (arch.hidden,)
    if not arch.tied_embeddings:
        found["output"] = (arch.vocab, arch.hidden)
    return found


def check_names(found: set[str], expected: set[str], source_name: Callable[[str], str]) -> None:
    """Refuses a checkpoint that lacks a weight, or has one that the graph has no place for."""
    missing = sorted(source_name(name) for name in expected - found)
    if missing:
        raise bad_input(
            f"the checkpoint lacks {len(missing)} weights, the first: {missing[0]}", "it is cut short; fetch it again"
        )


def bundle_name(stem: str) -> str:
    """A file or folder name as a bundle's name: lower case, words of ASCII joined by hyphens."""
    words = "".join(c if c.isascii() and (c.isalnum() or c == "_") else " " for c in stem.lower()).split()
    return "-".join(words).strip("_-") or "model"
