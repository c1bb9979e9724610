"""What a right runtime gives for a bundle: the reference's greedy tokens, and how near a tie may be decided otherwise.

Activations are rounded to i8 before every matmul, so a difference in the last bit of a sum now and then moves an
integer by one, and the layers behind it carry that on. How far such differences reach is measured, not guessed: the
reference runs again over the same tokens with every matmul moved by rounding noise (`Jittered`). `bound` is SAFETY
times the largest change of the distance between the two best logits; a token whose margin is above it must be the
same everywhere. `logit_bound` is SAFETY times the largest change of any first logit; `same_tokens` is
the fraction of tokens that the noise left alone, and `logprob_noise` the root mean square by which it moved a token's
log-probability.
"""

import argparse
import json
import sys
from pathlib import Path

import numpy as np

from .errors import ExportError
from .reference import Exact, Greedy, Jittered, Model, Weights, divergence, generate, log_softmax

PROMPTS = (
    "Task: What time is it in Tokyo?\nProgram: t = time.now(zone=",
    "def count_lines(path):\n    total = 0\n    with open(path) as file:\n",
    "The capital of France is Paris. The capital of Japan is",
    "<|im_start|>user\nList three uses of a small computer.<|im_end|>\n<|im_start|>assistant\n",
    "Die Temperatur beträgt 21.5 °C, also ist es draußen",
)
SAFETY = 1.5
"""The largest of some hundred samples is not the largest there is; another runtime is one more sample."""


def expect(folder: Path, n_tokens: int = 64, n_jitters: int = 8) -> dict[str, object]:
    """The tokens, margins and bounds of one bundle for PROMPTS, as expected.json holds them."""
    model = Model(folder)
    prompts: list[dict[str, object]] = []
    margin_change = logit_change = 0.0
    same: list[np.ndarray] = []
    logprob_changes: list[np.ndarray] = []
    for number, text in enumerate(PROMPTS, 1):
        ids = model.tokenizer.encode(text, add_special_tokens=False).ids
        found = generate(model, ids, n_tokens, f"reference, prompt {number} of {len(PROMPTS)}:")
        steps = np.arange(n_tokens)
        for seed in range(n_jitters):
            moved = replay(model, ids, found.tokens, Jittered(model.weights.reader, seed))
            logit_change = max(logit_change, float(np.abs(moved[0] - found.first_logits).max()))
            margin_change = max(margin_change, _margin_change(moved, found))
            same.append(moved.argmax(axis=1) == found.tokens)
            logprob_changes.append(log_softmax(moved)[steps, found.tokens] - found.logprobs)
        prompt = {"ids": ids, "tokens": found.tokens, "margins": found.margins, "logprobs": found.logprobs}
        prompts.append(prompt | {"first_logits": found.first_logits.tolist()})
    bounds = {"bound": SAFETY * margin_change, "logit_bound": SAFETY * logit_change}
    noise = {"same_tokens": float(np.concatenate(same).mean()), "logprob_noise": rms(np.concatenate(logprob_changes))}
    return {"prompts": prompts, **bounds, **noise}


def rms(values: np.ndarray) -> float:
    """The root of the mean square."""
    return float(np.sqrt(np.square(values).mean()))


def replay(model: Model, ids: list[int], tokens: list[int], weights: Weights, round_kv: bool = True) -> np.ndarray:
    """Logits [tokens, vocab] from which each of `tokens` was chosen, by the same model with other weights."""
    return Model(model.folder, weights, round_kv).forward(ids + tokens[:-1], every=True)[len(ids) - 1 :]


def compare_f32(model: Model, expected: dict[str, object], weights: Weights | None = None) -> dict[str, float]:
    """How far the reference's logits are from f32 on the expected tokens, over all prompts."""
    exact_weights = weights or Exact(model.weights.reader)
    runs = [(prompt["ids"], prompt["tokens"]) for prompt in expected["prompts"]]
    quantized = [replay(model, ids, tokens, model.weights) for ids, tokens in runs]
    exact = [replay(model, ids, tokens, exact_weights, round_kv=False) for ids, tokens in runs]
    return divergence(np.concatenate(quantized), np.concatenate(exact))


def _margin_change(moved: np.ndarray, found: Greedy) -> float:
    steps = np.arange(len(found.tokens))
    best = moved[steps, found.tokens]
    others = moved.copy()
    others[steps, found.tokens] = -np.inf
    return float(np.abs(best - others.max(axis=1) - found.margins).max())


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line and returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m mote_export.expected", description="Write what a right runtime gives.")
    parser.add_argument("bundle", type=Path, metavar="BUNDLE")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE")
    parser.add_argument("--tokens", type=int, default=64, help="tokens a prompt (%(default)s)")
    parser.add_argument("--jitters", type=int, default=8, help="noisy runs a prompt, to measure the bound (%(default)s)")
    options = parser.parse_args(arguments)
    try:
        expected = expect(options.bundle, options.tokens, options.jitters)
    except ExportError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    options.out.write_text(json.dumps(rounded(expected), separators=(",", ":")) + "\n", encoding="utf-8")
    print(f"{options.out}: bound {expected['bound']:.3g}, logit bound {expected['logit_bound']:.3g}")
    return 0


def rounded(value: object) -> object:
    """The same with floats to seven digits, which is what f32 holds."""
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [rounded(item) for item in value]
    return float(f"{value:.7g}") if isinstance(value, float) else value


if __name__ == "__main__":
    sys.exit(main())
