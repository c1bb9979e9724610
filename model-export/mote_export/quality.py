"""What quantizing costs: perplexity and KL divergence from f32, for our kinds and for llama.cpp's types, measured alike.

Every candidate is made from the same f32 file (float_reference.py), by the exporter or by llama.cpp's own quantizer,
with embedding and output at eight bits in all of them. All are evaluated by one forward pass in numpy over dequantized
weights, with activations in f32, so that nothing but the error of the weights counts.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import gguf
import numpy as np

from .bundle import Kinds, write_bundle
from .calibrate import read_text
from .errors import ExportError, bad_input
from .fetch import NAMED, default_cache, fetch
from .float_reference import REFERENCES, write_reference
from .matrix import blocks
from .open import open_checkpoint
from .quantize import quantize
from .reference import Model, Source, Weights
from .unpack import WeightsReader

CONTEXT = 512
"""Tokens that attend to each other; the first of each context are predicted from little, by all candidates alike."""

QUANTIZE_LIMIT_S = 600

LLAMA_TYPES = {"Q4_0": 2, "Q4_1": 3, "Q4_K_M": 15}
"""llama.cpp's file types by their numbers in `llama_ftype`."""

LLAMA_PROGRAM = """
import ctypes, sys, llama_cpp
source, out, ftype = sys.argv[1:]
options = llama_cpp.llama_model_quantize_default_params()
options.ftype = int(ftype)
options.token_embedding_type = options.output_tensor_type = 8
sys.exit(llama_cpp.llama_model_quantize(source.encode(), out.encode(), ctypes.byref(options)))
"""
"""8 is GGML_TYPE_Q8_0."""


class Dense:
    """Weights in f32, dequantized once; what `matrix(name)` gives is kept."""

    def __init__(self, matrix: Callable[[str], np.ndarray], vector: Callable[[str], np.ndarray]):
        self.kept: dict[str, np.ndarray] = {}
        self.matrix = matrix
        self.vector = vector

    def linear(self, x: np.ndarray, name: str) -> np.ndarray:
        """Rows `x` times the matrix."""
        return x @ self._dense(name).T

    def embed(self, ids: np.ndarray, name: str) -> np.ndarray:
        """Rows of the matrix."""
        return self._dense(name)[ids]

    def _dense(self, name: str) -> np.ndarray:
        if name not in self.kept:
            self.kept[name] = np.ascontiguousarray(self.matrix(name), np.float32)
        return self.kept[name]


@dataclass(frozen=True)
class Candidate:
    """Quantized weights, and their bytes apart from embedding, output and norms."""

    name: str
    weights: Weights
    layer_bytes: int


@dataclass(frozen=True)
class Score:
    """What a candidate costs on a text."""

    perplexity: float
    kl: float
    kl_error: float
    kl_p99: float
    same_best: float


class Evaluator:
    """The reference's log-probabilities on a text, on disk, and the comparison of others with them."""

    def __init__(self, graph: Path, weights: Weights, ids: list[int], folder: Path):
        self.graph = graph
        self.contexts = [np.array(ids[i : i + CONTEXT]) for i in range(0, len(ids), CONTEXT)]
        self.files = [folder / f"{number}.npy" for number in range(len(self.contexts))]
        model = Model(graph, weights, round_kv=False)
        surprise = []
        for context, file in zip(self.contexts, self.files):
            logprobs = self._logprobs(model, context)
            np.save(file, logprobs)
            surprise.append(_surprise(logprobs, context))
        self.perplexity = float(np.exp(np.concatenate(surprise).mean()))

    def score(self, weights: Weights, graph: Path | None = None) -> Score:
        """KL(reference || candidate) in nats a token, and perplexity; `graph` where the candidate's norms are others."""
        model = Model(graph or self.graph, weights, round_kv=False)
        surprise, kl, same = [], [], []
        for context, file in zip(self.contexts, self.files):
            expected, found = np.load(file), self._logprobs(model, context)
            surprise.append(_surprise(found, context))
            same.append(expected.argmax(axis=1) == found.argmax(axis=1))
            kl.append((np.exp(expected) * (expected - found)).sum(axis=1, dtype=np.float64))
        every = np.concatenate(kl)
        return Score(
            perplexity=float(np.exp(np.concatenate(surprise).mean())),
            kl=float(every.mean()),
            kl_error=float(every.std() / np.sqrt(len(every))),
            kl_p99=float(np.quantile(every, 0.99)),
            same_best=float(np.concatenate(same).mean()),
        )

    @staticmethod
    def _logprobs(model: Model, context: np.ndarray) -> np.ndarray:
        model.reset()
        logits = model.forward(context.tolist(), every=True)
        logits -= logits.max(axis=1, keepdims=True)
        logits -= np.log(np.exp(logits).sum(axis=1, dtype=np.float64))[:, None].astype(np.float32)
        return logits


def _surprise(logprobs: np.ndarray, context: np.ndarray) -> np.ndarray:
    return -logprobs[np.arange(len(context) - 1), context[1:]].astype(np.float64)


def checkpoint_candidate(name: str, path: Path) -> Candidate:
    """A GGUF file's weights as they are."""
    source = Source(open_checkpoint(path))
    layer_bytes = sum(
        int(tensor.n_bytes) for tensor in gguf.GGUFReader(path).tensors if tensor.name.startswith("blk.") and len(tensor.shape) > 1
    )

    def matrix(name: str) -> np.ndarray:
        layer, _, part = name.rpartition(".")
        parts = [f"{layer}.{p}" if layer else p for p in source.PARTS.get(part, (part,))]
        found = [source.checkpoint.matrix(p) for p in parts]
        return np.concatenate([m.f32(np.arange(m.rows)) for m in found])

    return Candidate(name, Dense(matrix, source.vector), layer_bytes)


def bundle_candidate(name: str, folder: Path) -> Candidate:
    """A bundle's weights."""
    reader = WeightsReader(folder / "weights.bin")
    layer_bytes = sum(int(e["bytes"]) for e in reader.index.values() if "." in e["name"] and e["kind"] != "f32")
    return Candidate(name, Dense(lambda n: reader.matrix(n).dequantize(), reader.vector), layer_bytes)


def plain_candidate(name: str, reference: Candidate, kind: str, layer_bytes: int) -> Candidate:
    """The reference's layers rounded to the range of each group, without any search."""

    def matrix(weight: str) -> np.ndarray:
        x = reference.weights.matrix(weight)
        if "." not in weight:
            return quantize(x, "q8").dequantize()
        groups = x.reshape(len(x), -1, 32)
        low, high = groups.min(axis=2, keepdims=True), groups.max(axis=2, keepdims=True)
        if kind == "q4":
            scales, mins, bottom = np.where(high > -low, high, low) / -8, np.float32(0), -8
        else:
            scales, mins, bottom = (high - low) / 15, low.astype(np.float16).astype(np.float32), 0
        scales = scales.astype(np.float16).astype(np.float32)
        inverse = np.divide(np.float32(1), scales, out=np.zeros_like(scales), where=scales != 0)
        return (np.rint((groups - mins) * inverse).clip(bottom, bottom + 15) * scales + mins).reshape(x.shape)

    return Candidate(name, Dense(matrix, reference.weights.vector), layer_bytes)


def llama_quantize(python: Path, source: Path, file_type: str, out: Path) -> None:
    """Runs llama.cpp's quantizer in a Python that has `llama_cpp`."""
    command = [str(python), "-c", LLAMA_PROGRAM, str(source), str(out), str(LLAMA_TYPES[file_type])]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=QUANTIZE_LIMIT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as cause:
        raise bad_input(f"cannot run llama.cpp's quantizer: {python} ({cause})", "see make quality") from cause
    if run.returncode != 0:
        raise ExportError("mismatch", f"llama.cpp's quantizer failed: {run.stderr.strip()[-300:]}", "run it by hand")


def measure(options: argparse.Namespace, source: Path, how: str, folder: Path) -> list[str]:
    """The rows of one table."""
    path = folder / f"{how}.gguf"
    write_reference(source, how, path)
    checkpoint = open_checkpoint(path)
    n_weights = sum(_layer_weights(checkpoint))
    ids = checkpoint.tokenizer.encode(read_text(options.text), add_special_tokens=False).ids[: options.tokens]
    calibration = read_text(options.calibration)
    graph = folder / f"{how}-q4m"
    write_bundle(checkpoint, graph, Kinds("q4m"), "chat", replace=False)
    reference = checkpoint_candidate("f32", path)
    evaluator = Evaluator(graph, reference.weights, ids, folder)
    rows = [f"| f32, {how} | 32 | | {evaluator.perplexity:.2f} | | | |"]
    print(rows[-1], flush=True)

    def add(candidate: Candidate, graph: Path | None = None) -> None:
        started = time.monotonic()
        score = evaluator.score(candidate.weights, graph)
        bits = 8 * candidate.layer_bytes / n_weights
        rows.append(
            f"| {candidate.name} | {bits:.2f} | {candidate.layer_bytes / 1e6:.1f} | {score.perplexity:.2f} | "
            f"{score.kl:.4f} ± {score.kl_error:.4f} | {score.kl_p99:.3f} | {score.same_best:.1%} |"
        )
        print(rows[-1], f"({time.monotonic() - started:.0f} s)", flush=True)

    shipped = folder / "shipped"
    write_bundle(open_checkpoint(source), shipped, Kinds(), "chat", replace=False)
    add(checkpoint_candidate("as shipped (Q4_1)", source), shipped)
    for kind in options.kinds:
        searched, calibrated = folder / f"{how}-{kind}", folder / f"{how}-{kind}-calibrated"
        if not searched.exists():
            write_bundle(checkpoint, searched, Kinds(kind), "chat", replace=False)
        write_bundle(checkpoint, calibrated, Kinds(kind), "chat", replace=False, calibration_text=calibration)
        candidate = bundle_candidate(f"mote {kind}", searched)
        add(plain_candidate(f"{kind}, plain range", reference, kind, candidate.layer_bytes))
        add(candidate)
        add(bundle_candidate(f"mote {kind}, calibrated", calibrated))
    for file_type in options.llama_types if options.llama_python else ():
        out = folder / f"{how}-{file_type}.gguf"
        llama_quantize(options.llama_python, path, file_type, out)
        add(checkpoint_candidate(f"llama.cpp {file_type}", out))
    return rows


def _layer_weights(checkpoint: object) -> list[int]:
    parts = ("q", "k", "v", "o", "gate", "up", "down")
    found = [checkpoint.matrix(f"l{i}.{part}") for i in range(checkpoint.architecture.layers) for part in parts]
    return [matrix.rows * matrix.cols for matrix in found]


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line and returns its exit code."""
    here = Path(__file__).resolve().parents[1] / "quality"
    parser = argparse.ArgumentParser(
        prog="python -m mote_export.quality",
        description="Measure perplexity and KL divergence of quantized weights, ours and llama.cpp's. Minutes for 135M weights.",
    )
    parser.add_argument("--checkpoint", type=Path, metavar="FILE", help="a GGUF file in Q4_1 (the default model)")
    parser.add_argument("--llama-python", type=Path, metavar="BINARY", help="a Python with llama_cpp, to compare with its quantizer")
    parser.add_argument("--text", type=Path, default=here / "evaluation.txt", metavar="FILE")
    parser.add_argument("--calibration", type=Path, default=here / "calibration.txt", metavar="FILE")
    parser.add_argument("--tokens", type=int, default=4096, help="tokens evaluated (%(default)s)")
    parser.add_argument("--reference", nargs="+", choices=REFERENCES, default=list(REFERENCES), help="f32 models (%(default)s)")
    parser.add_argument("--kinds", nargs="+", choices=("q4", "q4m"), default=["q4", "q4m"], help="ours (%(default)s)")
    parser.add_argument("--llama-types", nargs="+", choices=tuple(LLAMA_TYPES), default=list(LLAMA_TYPES), help="%(default)s")
    parser.add_argument("--cache", type=Path, default=default_cache(), metavar="DIR", help="where fetched models are kept")
    options = parser.parse_args(arguments)
    try:
        source = options.checkpoint or fetch(next(iter(NAMED)), options.cache)
        for how in options.reference:
            with tempfile.TemporaryDirectory(prefix="mote-quality.") as folder:
                print(f"\n| {how} | bits a layer weight | MB | perplexity | KL, nats | 99% | best token the same |\n|---|---|---|---|---|---|---|")
                measure(options, source, how, Path(folder))
    except ExportError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
