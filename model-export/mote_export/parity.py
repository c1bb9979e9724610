"""Compares the runtime's greedy tokens on a bundle with the reference's, wherever they are not a near tie.

Where a near tie goes the other way, the runtime is started again behind the reference's own token, so that every
token of every prompt is compared.
"""

import argparse
import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from .errors import ExportError, bad_input
from .expected import PROMPTS, compare_f32, expect, rms
from .open import open_checkpoint
from .reference import Model, Source

RUN_LIMIT_S = 600
"""A run of the runtime that takes longer hangs."""

SAME_TOKENS_SLACK = 0.05
"""How far the fraction of equal tokens may lie below what rounding noise alone gives."""

LOGPROB_FACTOR = 3.0
"""How far log-probabilities may be moved beyond what noise does; in a small model a moved integer is a rare event."""


def mote_tokens(mote: Path, bundle: Path, ids: list[int], n_tokens: int) -> tuple[list[int], list[float]]:
    """Greedy tokens of the runtime after `ids` and their log-probabilities; fewer if it stopped at a stop token."""
    command = [str(mote), "model", "generate", "--model", str(bundle.resolve()), "--json", "--logprobs", "--temperature", "0"]
    command += ["--max-tokens", str(n_tokens), "--raw-ids", ",".join(map(str, ids))]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=RUN_LIMIT_S, check=False)
    except OSError as cause:
        raise bad_input(f"cannot run mote: {mote} ({cause.strerror})", "build it: make build") from cause
    except subprocess.TimeoutExpired as cause:
        raise ExportError("mismatch", f"mote took longer than its limit in seconds: {RUN_LIMIT_S}", "run it by hand") from cause
    shown = " ".join(command)
    if run.returncode != 0:
        raise ExportError(
            "mismatch", f"mote failed with exit code {run.returncode}: {run.stderr.strip()}", f"run it by hand: {shown}"
        )
    try:
        found = json.loads(run.stdout.strip().splitlines()[-1])
        return found["tokens"], found["logprobs"]
    except (ValueError, IndexError, KeyError, TypeError) as cause:
        raise ExportError("mismatch", f"mote printed no tokens: {run.stdout[:200]!r}", f"run it by hand: {shown}") from cause


@dataclass
class Result:
    """How one prompt compared."""

    compared: int = 0
    same: int = 0
    near_ties: int = 0
    widest_flip: float = 0.0
    logprob_changes: list[float] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


def compare(mote: Path, bundle: Path, prompt: dict[str, object], bound: float, stop: list[int]) -> Result:
    """Compares one prompt token by token, up to the reference's first stop token."""
    tokens, margins = prompt["tokens"], prompt["margins"]
    end = next((i for i, token in enumerate(tokens) if token in stop), len(tokens))
    result = Result(near_ties=sum(margin <= bound for margin in margins[:end]))
    while result.compared < end:
        start = result.compared
        found, logprobs = mote_tokens(mote, bundle, prompt["ids"] + tokens[:start], end - start)
        for i in range(start, end):
            token = found[i - start] if i - start < len(found) else None
            result.compared += 1
            if token == tokens[i]:
                result.same += 1
                result.logprob_changes.append(logprobs[i - start] - prompt["logprobs"][i])
                continue
            result.widest_flip = max(result.widest_flip, margins[i])
            if margins[i] > bound:
                result.faults.append(
                    f"token {i}: mote chose {token}, the reference {tokens[i]} by {margins[i]:.3f} > {bound:.3f}"
                )
            break
    return result


def default_bundle() -> Path:
    """The bundle that mote takes by default: `bundles/default` in MOTE_HOME names it."""
    home = os.environ.get("MOTE_HOME")
    if not home:
        raise bad_input("no bundle given, and MOTE_HOME is not set", "give the bundle's folder")
    bundles = Path(home) / "bundles"
    try:
        return bundles / (bundles / "default").read_text(encoding="utf-8").strip()
    except OSError as cause:
        raise bad_input(f"no default bundle in {bundles} ({cause.strerror})", "import one: make model") from cause


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line and returns its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m mote_export.parity",
        description="Check that mote decodes a bundle as the independent numpy reference does. Minutes for 135M weights.",
    )
    parser.add_argument("bundle", type=Path, nargs="?", metavar="BUNDLE", help="a folder (the default bundle in $MOTE_HOME)")
    parser.add_argument("--mote", type=Path, required=True, metavar="BINARY")
    parser.add_argument("--tokens", type=int, default=64, help="tokens a prompt (%(default)s)")
    parser.add_argument("--jitters", type=int, default=2, help="noisy runs a prompt, to measure the bound (%(default)s)")
    parser.add_argument(
        "--expected", type=Path, metavar="FILE", help="what mote_export.expected wrote, in place of running the reference"
    )
    parser.add_argument("--source", type=Path, metavar="CHECKPOINT", help="take f32 weights from here, not from the bundle")
    options = parser.parse_args(arguments)
    try:
        options.bundle = options.bundle or default_bundle()
        return _run(options)
    except ExportError as error:
        print(f"error: {error}", file=sys.stderr)
        return 6


def _run(options: argparse.Namespace) -> int:
    model = Model(options.bundle)
    expected = _expected(options)
    bound, stop = expected["bound"], model.manifest["special_tokens"]["stop"]
    print(f"bundle {model.manifest['name']}: margins above {bound:.3g} must agree")
    results = []
    for text, prompt in zip(PROMPTS, expected["prompts"]):
        result = compare(options.mote, options.bundle, prompt, bound, stop)
        results.append(result)
        print(f"  {result.same} of {result.compared} tokens the same, {result.near_ties} near ties, after {text!r}")
        for fault in result.faults:
            print(f"    {fault}")
    compared = sum(result.compared for result in results)
    same = sum(result.same for result in results) / max(compared, 1)
    changes = np.array([change for result in results for change in result.logprob_changes])
    moved, noise = rms(changes), expected["logprob_noise"]
    widest = max(result.widest_flip for result in results)
    print(f"the same tokens: {same:.1%} (rounding noise alone: {expected['same_tokens']:.1%})")
    print(f"the widest tie decided otherwise: {widest:.2g}")
    print(f"log-probabilities differ by {moved:.2g} root mean square (rounding noise alone: {noise:.2g})")
    found = compare_f32(model, expected, Source(open_checkpoint(options.source)) if options.source else None)
    print(
        f"reference against f32: KL {found['mean_kl']:.2g} mean, {found['max_kl']:.2g} largest; logits differ by "
        f"{found['mean_logit_difference']:.2g} mean, {found['max_logit_difference']:.2g} largest; "
        f"best token the same {found['same_best_token']:.1%}"
    )
    n_faults = sum(len(result.faults) for result in results)
    if n_faults:
        print(f"parity FAILED: {n_faults} tokens differ beyond the bound")
        return 1
    if same < expected["same_tokens"] - SAME_TOKENS_SLACK:
        print(f"parity FAILED: fewer tokens are the same than noise explains: {same:.1%}")
        return 1
    if moved > LOGPROB_FACTOR * noise:
        print(f"parity FAILED: log-probabilities differ by more than noise explains: {moved:.2g}")
        return 1
    print("parity holds")
    return 0


def _expected(options: argparse.Namespace) -> dict[str, object]:
    if options.expected is None:
        return expect(options.bundle, options.tokens, options.jitters)
    try:
        return json.loads(options.expected.read_text(encoding="utf-8"))
    except (OSError, ValueError) as cause:
        raise bad_input(f"cannot read: {options.expected} ({cause})", "write it with python -m mote_export.expected") from cause


if __name__ == "__main__":
    sys.exit(main())
