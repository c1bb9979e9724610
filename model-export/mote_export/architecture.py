"""The shape of a model, as the manifest states it, with the limits a bundle accepts."""

from dataclasses import asdict, dataclass

from .errors import bad_input, unsupported

GROUP = 32
"""Columns that share one scale; the only group size of format version 1."""

MAX_LAYERS = 1024
MAX_WIDTH = 1 << 20
"""Limits far above any model of these families: a header beyond them is corrupt, not large."""

FAMILIES = ("llama", "qwen3")


@dataclass(frozen=True)
class Architecture:
    """Field by field the `architecture` object of manifest.json."""

    family: str
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    vocab: int
    rope_theta: float
    norm_eps: float
    tied_embeddings: bool
    qk_norm: bool

    def __post_init__(self) -> None:
        if self.family not in FAMILIES:
            raise unsupported(f"unknown architecture: {self.family}", f"supported families: {', '.join(FAMILIES)}")
        counts = {name: value for name, value in asdict(self).items() if type(value) is int}
        for name, value in counts.items():
            limit = MAX_LAYERS if name == "layers" else MAX_WIDTH
            if not 0 < value <= limit:
                raise bad_input(f"{name} is outside 1..={limit}: {value}", "the checkpoint's header is damaged; fetch it again")
        if self.heads % self.kv_heads:
            raise bad_input(
                f"heads is no multiple of kv_heads: {self.heads}, {self.kv_heads}",
                "the checkpoint's header is damaged; fetch it again",
            )
        if self.head_dim % 2:
            raise unsupported(f"head_dim is odd: {self.head_dim}", "rope needs an even head_dim")
        if not 0 < self.norm_eps < 1 or not 0 < self.rope_theta < 1e12:
            raise bad_input(
                f"norm_eps or rope_theta is out of range: {self.norm_eps}, {self.rope_theta}",
                "the checkpoint's header is damaged; fetch it again",
            )
        for name, width in (("hidden", self.hidden), ("heads * head_dim", self.q_rows), ("ffn", self.ffn)):
            if width % GROUP:
                raise unsupported(
                    f"{name} is no multiple of the group of {GROUP}: {width}",
                    "format version 1 packs whole groups only; choose another model",
                )

    @property
    def q_rows(self) -> int:
        """Rows of the query projection."""
        return self.heads * self.head_dim

    @property
    def kv_rows(self) -> int:
        """Rows of the key projection, and of the value projection."""
        return self.kv_heads * self.head_dim
