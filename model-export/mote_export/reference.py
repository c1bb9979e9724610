"""The independent forward pass: a bundle's graph walked node by node in plain numpy.

It unpacks weights.bin by docs/bundle.md itself and shares no code with the packer, so that a fault in either shows. It
is not made for speed.
"""

import argparse
import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np
import onnx
from onnx import numpy_helper
from tokenizers import Tokenizer

from .checkpoint import Checkpoint
from .errors import ExportError, bad_input
from .open import open_checkpoint
from .progress import Progress
from .unpack import Packed, WeightsReader, read_manifest


class Weights(Protocol):
    """Where the forward pass takes its weights from, and how it multiplies by them."""

    def linear(self, x: np.ndarray, name: str) -> np.ndarray:
        """Rows `x` [S, K] times the matrix `name` [N, K]."""

    def embed(self, ids: np.ndarray, name: str) -> np.ndarray:
        """Rows `ids` of the matrix `name` in f32."""

    def vector(self, name: str) -> np.ndarray:
        """A vector that isn't in the graph."""


class Quantized:
    """What the device computes: packed weights, and activations rounded to i8."""

    def __init__(self, reader: WeightsReader):
        self.reader = reader

    def linear(self, x: np.ndarray, name: str) -> np.ndarray:
        return quantized_linear(x, self.reader.matrix(name))

    def embed(self, ids: np.ndarray, name: str) -> np.ndarray:
        return self.reader.matrix(name).take(ids)

    def vector(self, name: str) -> np.ndarray:
        return self.reader.vector(name)


class Exact(Quantized):
    """The bundle's weights in f32, activations as they are."""

    def linear(self, x: np.ndarray, name: str) -> np.ndarray:
        return x @ self.reader.matrix(name).dequantize().T


class Source:
    """The weights of the checkpoint itself, in f32."""

    PARTS = {"qkv": ("q", "k", "v"), "gate_up": ("gate", "up")}

    def __init__(self, checkpoint: Checkpoint):
        self.checkpoint = checkpoint

    def linear(self, x: np.ndarray, name: str) -> np.ndarray:
        layer, _, part = name.rpartition(".")
        names = [f"{layer}.{p}" if layer else p for p in self.PARTS.get(part, (part,))]
        found = [self.checkpoint.matrix(n) for n in names]
        return np.concatenate([x @ matrix.f32(np.arange(matrix.rows)).T for matrix in found], axis=1)

    def embed(self, ids: np.ndarray, name: str) -> np.ndarray:
        matrix = self.checkpoint.matrix(name)
        return np.concatenate([matrix.f32(np.array([token])) for token in ids])

    def vector(self, name: str) -> np.ndarray:
        return self.checkpoint.vector(name)


class Jittered(Quantized):
    """The device's matmuls with every result moved by at most 2^-22 of its row's largest value.

    That is what another order of summation, or a fused multiply-add, does to a dot product of a few dozen groups.
    """

    def __init__(self, reader: WeightsReader, seed: int):
        super().__init__(reader)
        self.rng = np.random.default_rng(seed)

    def linear(self, x: np.ndarray, name: str) -> np.ndarray:
        found = super().linear(x, name)
        step = np.abs(found).max(axis=1, keepdims=True) * np.float32(2.0**-22)
        return found + step * self.rng.uniform(-1, 1, found.shape).astype(np.float32)


def quantize_activations(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Integers [groups, S, 32] as f32, and their scales [groups, S], of rows [S, K]."""
    groups = x.reshape(len(x), -1, 32).transpose(1, 0, 2)
    amax = np.abs(groups).max(axis=2)
    inverse = np.divide(np.float32(127), amax, out=np.zeros_like(amax), where=amax != 0)
    return np.rint(groups * inverse[..., None]), amax / np.float32(127)


def quantized_linear(x: np.ndarray, weight: Packed) -> np.ndarray:
    """Rows [S, K] times a packed matrix [N, K], with activations quantized to i8 and groups summed in order."""
    integers, scales = quantize_activations(x)
    total = np.zeros((len(x), weight.rows), np.float32)
    for g in range(len(integers)):
        dots = integers[g] @ weight.values[g].astype(np.float32, copy=False)
        s, w = scales[g][:, None], weight.scales[g]
        if weight.mins is None:
            total += (dots * w) * s
        else:
            total += dots * (w * s) + weight.mins[g] * (s * integers[g].sum(axis=1, keepdims=True))
    return total


class Model:
    """One conversation with a bundle: every call of `forward` continues after the positions seen so far.

    `round_kv` says whether keys and values pass through f16, as they do on the device.
    """

    def __init__(self, folder: Path, weights: Weights | None = None, round_kv: bool = True):
        self.folder = folder
        self.manifest = read_manifest(folder)
        self.weights = weights or Quantized(WeightsReader(folder / "weights.bin"))
        graph = onnx.load_model(folder / "model.onnx").graph
        self.nodes = [(node, {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}) for node in graph.node]
        self.constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
        self.kv_type = np.float16 if round_kv else np.float32
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.reset()

    def reset(self) -> None:
        """Forgets every position."""
        self.position = 0
        self.cache: dict[int, tuple[np.ndarray, np.ndarray]] = {}

    def forward(self, ids: list[int], every: bool = False) -> np.ndarray:
        """Logits [R, vocab] behind the last of `ids`, or behind every one."""
        rows = np.arange(len(ids)) if every else np.array([len(ids) - 1])
        values = self.constants | {"ids": np.array(ids, np.int64), "rows": rows}
        for node, attributes in self.nodes:
            inputs = [values[name] for name in node.input]
            values[node.output[0]] = self._node(node.op_type, inputs, attributes)
        self.position += len(ids)
        return values["logits"]

    def _node(self, op: str, inputs: list[np.ndarray], attributes: dict[str, object]) -> np.ndarray:
        weight = attributes.get("weight", b"").decode()
        match op:
            case "Embed":
                return self.weights.embed(inputs[0], weight)
            case "QMatMul":
                return self.weights.linear(inputs[0], weight)
            case "KvAttention":
                return self._attention(inputs[0], attributes)
            case "SwiGlu":
                gate, up = np.split(inputs[0], 2, axis=1)
                with np.errstate(over="ignore"):
                    return gate / (1 + np.exp(-gate)) * up
            case "RMSNormalization":
                return rms_norm(inputs[0], inputs[1], attributes["epsilon"])
            case "Add":
                return inputs[0] + inputs[1]
            case "Gather":
                return inputs[0][inputs[1]]
        raise bad_input(f"the graph has an operator that bundles don't have: {op}", "export the bundle again")

    def _attention(self, qkv: np.ndarray, a: dict[str, object]) -> np.ndarray:
        heads, kv_heads, dim = a["heads"], a["kv_heads"], a["head_dim"]
        q, k, v = np.split(qkv.reshape(len(qkv), -1, dim), [heads, heads + kv_heads], axis=1)
        if "q_norm" in a:
            q = rms_norm(q, self.weights.vector(a["q_norm"].decode()), a["norm_eps"])
            k = rms_norm(k, self.weights.vector(a["k_norm"].decode()), a["norm_eps"])
        positions = np.arange(self.position, self.position + len(qkv))
        q, k = (rope(part, positions, a["rope_theta"]) for part in (q, k))
        k, v = k.astype(self.kv_type), v.astype(self.kv_type)
        if a["layer"] in self.cache:
            before_k, before_v = self.cache[a["layer"]]
            k, v = np.concatenate([before_k, k]), np.concatenate([before_v, v])
        self.cache[a["layer"]] = (k, v)

        return attend(q, k.astype(np.float32), v.astype(np.float32), positions).reshape(len(qkv), -1)


def attend(q: np.ndarray, k: np.ndarray, v: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """Causal attention of `q` [S, heads, dim] at `positions` over `k` and `v` [T, kv_heads, dim] from position 0."""
    share = q.shape[1] // k.shape[1]
    keys = k.repeat(share, axis=1).transpose(1, 2, 0)
    values = v.repeat(share, axis=1).transpose(1, 0, 2)
    scores = q.transpose(1, 0, 2) @ keys * np.float32(1 / np.sqrt(q.shape[2]))
    scores = np.where(np.arange(len(k)) <= positions[:, None], scores, -np.inf)
    scores = np.exp(scores - scores.max(axis=2, keepdims=True))
    attended = scores @ values / scores.sum(axis=2, keepdims=True)
    return attended.transpose(1, 0, 2)


def rms_norm(x: np.ndarray, weight: np.ndarray, epsilon: float) -> np.ndarray:
    """`x / sqrt(mean(x^2) + epsilon) * weight` over the last axis."""
    return x / np.sqrt(np.square(x).mean(axis=-1, keepdims=True) + np.float32(epsilon)) * weight


def rope(x: np.ndarray, positions: np.ndarray, theta: float) -> np.ndarray:
    """Rotates the halves of each head of `x` [S, heads, head_dim]; angles in f64."""
    half = x.shape[2] // 2
    angles = positions[:, None] * float(theta) ** (-np.arange(half) / half)
    cos, sin = (f(angles).astype(np.float32)[:, None, :] for f in (np.cos, np.sin))
    low, high = x[..., :half], x[..., half:]
    return np.concatenate([low * cos - high * sin, high * cos + low * sin], axis=2)


@dataclass
class Greedy:
    """Greedy tokens, and at each the distance of the two best logits and the token's log-probability."""

    tokens: list[int] = field(default_factory=list)
    margins: list[float] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    first_logits: np.ndarray | None = None

    def add(self, logits: np.ndarray) -> int:
        """Chooses the next token."""
        token = int(logits.argmax())
        runner_up, best = np.partition(logits, -2)[-2:]
        self.tokens.append(token)
        self.margins.append(float(best - runner_up))
        self.logprobs.append(float(log_softmax(logits[None])[0, token]))
        return token


def generate(model: Model, ids: list[int], n_tokens: int, label: str = "decoding") -> Greedy:
    """`n_tokens` greedy tokens after `ids`, past every stop token."""
    model.reset()
    found = Greedy()
    logits = found.first_logits = model.forward(ids)[0]
    progress = Progress(label, n_tokens)
    for step in range(n_tokens):
        token = found.add(logits)
        progress.advance(1)
        if step + 1 < n_tokens:
            logits = model.forward([token])[0]
    progress.finish()
    return found


def divergence(logits: np.ndarray, exact: np.ndarray) -> dict[str, float]:
    """How far `logits` [steps, vocab] are from `exact`: differences, KL(exact || logits) in nats, equal best tokens."""
    p, q = log_softmax(exact), log_softmax(logits)
    kl = (np.exp(p) * (p - q)).sum(axis=1)
    return {
        "max_logit_difference": float(np.abs(logits - exact).max()),
        "mean_logit_difference": float(np.abs(logits - exact).mean()),
        "mean_kl": float(kl.mean()),
        "max_kl": float(kl.max()),
        "same_best_token": float((logits.argmax(axis=1) == exact.argmax(axis=1)).mean()),
    }


def log_softmax(logits: np.ndarray) -> np.ndarray:
    """Log-probabilities of rows of logits, in f64."""
    x = logits.astype(np.float64)
    x -= x.max(axis=1, keepdims=True)
    return x - np.log(np.exp(x).sum(axis=1, keepdims=True))


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line and returns its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m mote_export.reference", description="Greedy decoding of a bundle in plain numpy, to compare mote with."
    )
    parser.add_argument("bundle", type=Path, metavar="BUNDLE")
    prompt = parser.add_mutually_exclusive_group(required=True)
    prompt.add_argument("--ids", help="the prompt as token ids: 1,2,3")
    prompt.add_argument("--prompt", help="the prompt as text")
    parser.add_argument("--tokens", type=int, default=64, help="how many to decode (%(default)s)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--f32", action="store_true", help="also compare with f32: the same weights, activations not quantized")
    parser.add_argument("--source", type=Path, metavar="CHECKPOINT", help="also compare with this checkpoint's weights in f32")
    options = parser.parse_args(arguments)
    try:
        result = _run(options)
    except ExportError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if options.json:
        print(json.dumps(result))
    else:
        for key, value in result.items():
            print(f"{key}: {value}")
    return 0


def _run(options: argparse.Namespace) -> dict[str, object]:
    model = Model(options.bundle)
    if options.ids is not None:
        try:
            ids = [int(part) for part in options.ids.split(",")]
        except ValueError as cause:
            raise bad_input(f"not a list of token ids: {options.ids}", "write them as 1,2,3") from cause
    else:
        ids = model.tokenizer.encode(options.prompt, add_special_tokens=False).ids
        if model.manifest["add_bos"]:
            ids.insert(0, model.manifest["special_tokens"]["bos"])
    vocab = model.manifest["architecture"]["vocab"]
    if not ids or min(ids) < 0 or max(ids) >= vocab or options.tokens < 1:
        raise bad_input(f"the prompt needs ids in 0..{vocab}, and --tokens at least 1: {ids[:8]}", "see --help")
    found = generate(model, ids, options.tokens)
    tokens = found.tokens
    result: dict[str, object] = {"ids": ids, "tokens": tokens, "margins": found.margins, "logprobs": found.logprobs}
    result["text"] = model.tokenizer.decode(tokens)
    exact: dict[str, Weights] = {}
    if options.f32:
        exact["f32"] = Exact(model.weights.reader)
    if options.source:
        exact["source_f32"] = Source(open_checkpoint(options.source))
    seen = ids + tokens[:-1]
    for name, weights in exact.items():
        model.reset()
        logits = model.forward(seen, every=True)
        result[name] = divergence(logits, Model(options.bundle, weights, round_kv=False).forward(seen, every=True))
    return result


if __name__ == "__main__":
    sys.exit(main())
