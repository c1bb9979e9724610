"""`python -m mote_anchor.evaluate ANCHOR BUNDLE`: the table of docs/retrieval.md, from an implementation of its own."""

import argparse
import json
import subprocess
import sys
from pathlib import Path

import numpy as np

from .anchor import Anchor, Tokens
from .data import DATA, QUERIES, Toolspace, distractors, load
from .lexical import lexical, plain

TOP = 5
TOLERANCE = 0.003
N_TOOLS_OF_SHARE = 199


def reached(scores: np.ndarray, gold: list[list[int]]) -> tuple[float, float]:
    """hit@1 and recall@5."""
    order = np.argsort(-scores, axis=1, kind="stable")[:, :TOP]
    order = [[idx for idx in best if row[idx] > 0] for row, best in zip(scores, order, strict=True)]
    hit = np.mean([best[:1] != [] and best[0] in wanted for best, wanted in zip(order, gold, strict=True)])
    recall = np.mean([len(set(best) & set(wanted)) / len(wanted) for best, wanted in zip(order, gold, strict=True)])
    return float(hit), float(recall)


def scores(anchor: Anchor, tokens: Tokens, rows: np.ndarray, tools: list[dict], queries: list[str]) -> dict[str, np.ndarray]:
    """Scores `[queries, tools]` of every method."""
    cosines = anchor.cosines(
        anchor.embed([tokens.ids(query) for query in queries], rows),
        anchor.embed([tokens.of_tool(tool) for tool in tools], rows),
    )
    by_words = lexical(tools, queries)
    growth = np.sqrt(np.log(max(len(tools), N_TOOLS_OF_SHARE)) / np.log(N_TOOLS_OF_SHARE))
    hybrid = by_words + 2 * anchor.share * anchor.gamma * growth * np.maximum(cosines, 0)
    return {"bm25": plain(tools, queries), "words": by_words, "anchor": cosines, "hybrid": hybrid}


Table = dict[tuple[str, str], dict[str, tuple[float, float]]]


def table(anchor: Anchor, tokens: Tokens, rows: np.ndarray, n_tools: int | None = None, folder: Path = DATA) -> Table:
    """Prints and returns hit@1 / recall@5 of every method for every catalogue and split."""
    reach_of: Table = {}
    for name in QUERIES:
        space: Toolspace = load(name, folder)
        tools = space.tools + (distractors(name, n_tools, folder) if n_tools else [])
        found = scores(anchor, tokens, rows, tools, space.queries)
        for split in sorted(set(space.splits)):
            wanted = [idx for idx, it in enumerate(space.splits) if it == split]
            gold = [space.gold[idx] for idx in wanted]
            reach = {method: reached(values[wanted], gold) for method, values in found.items()}
            reach_of[name, split] = reach
            row = "  ".join(f"{method} {hit:.3f} / {recall:.3f}" for method, (hit, recall) in reach.items())
            print(f"{name:16} {split:8} {len(tools):6} tools {len(gold):6} queries  {row}", flush=True)
    return reach_of


def differences(mote: str, bundle: Path, n_tools: int | None, ours: Table) -> list[str]:
    """Where `mote eval retrieval` says otherwise, by more than rounding and ties can do."""
    command = [mote, "eval", "retrieval", str(DATA), "--model", str(bundle), "--tools", str(n_tools or 0), "--json"]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    theirs = {(row["catalogue"], row["split"] or "all"): row for row in map(json.loads, said.splitlines())
              if row["queries"] == f"{row['catalogue']}.{QUERIES.get(row['catalogue'])}.jsonl"}  # fmt: skip
    return [
        f"{key} {method} {measure}: {value:.4f}, mote says {theirs[key][method][measure]:.4f}"
        for key, reach in ours.items()
        for method, values in reach.items()
        for measure, value in zip(("hit1", "recall5"), values, strict=True)
        if abs(theirs[key][method][measure] - value) > TOLERANCE
    ]


def embedding_rows(bundle: Path) -> np.ndarray:
    """The embedding table of a bundle."""
    from mote_export.unpack import WeightsReader

    return np.ascontiguousarray(WeightsReader(bundle / "weights.bin").matrix("embed").dequantize())


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(prog="python -m mote_anchor.evaluate", description=__doc__)
    parser.add_argument("anchor", type=Path)
    parser.add_argument("bundle", type=Path)
    parser.add_argument("--tools", type=int, help="add distractors up to so many tools")
    parser.add_argument("--mote", help="compare with what this program measures")
    options = parser.parse_args()
    tokens = Tokens(options.bundle / "tokenizer.json")
    ours = table(Anchor.read(options.anchor), tokens, embedding_rows(options.bundle), options.tools)
    if options.mote:
        found = differences(options.mote, options.bundle, options.tools, ours)
        print("\n".join(found) or f"mote agrees within {TOLERANCE}")
        sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
