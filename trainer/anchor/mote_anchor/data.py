"""Catalogues and queries of `data/toolspaces`, and a larger toolspace made of all of them."""

import json
import tomllib
from dataclasses import dataclass
from pathlib import Path

PACKS = Path(__file__).parents[3] / "toolpacks"
DATA = Path(__file__).parents[3] / "data" / "toolspaces"
STEPS = (7919, 104729, 1299709)
QUERIES = {"metatool": "queries", "sealtools": "dev", "stabletoolbench": "dev"}


@dataclass(frozen=True)
class Toolspace:
    """Tools, and queries with the indices of the tools they want; `splits` is parallel to `queries`."""

    tools: list[dict]
    queries: list[str]
    gold: list[list[int]]
    splits: list[str]


def lines(path: Path) -> list[dict]:
    """A file of JSON Lines."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]


def load(name: str, folder: Path = DATA) -> Toolspace:
    """One catalogue with its queries."""
    tools = lines(folder / f"{name}.catalogue.jsonl")
    at = {f"{tool['server']}.{tool['tool']}": idx for idx, tool in enumerate(tools)}
    queries = lines(folder / f"{name}.{QUERIES[name]}.jsonl")
    gold = [[at[tool] for tool in query["gold"]] for query in queries]
    return Toolspace(tools, [query["query"] for query in queries], gold, [query.get("split", "all") for query in queries])


def distractors(name: str, n_tools: int, folder: Path = DATA) -> list[dict]:
    """Tools of the other catalogues, then made-up ones with the name of one tool, the server of a second and half the description of
    it and of a third, until the catalogue `name` would have `n_tools`."""
    n_wanted = n_tools - len(lines(folder / f"{name}.catalogue.jsonl"))
    found = [tool for other in sorted(QUERIES) if other != name for tool in lines(folder / f"{other}.catalogue.jsonl")]
    n_real = len(found)
    for idx in range(n_wanted - n_real):
        first, second, third = (found[idx * step % n_real] for step in STEPS)
        text, other = first["description"].split(), third["description"].split()
        description = " ".join(text[: len(text) // 2] + other[len(other) // 2 :])
        found.append(first | {"server": f"{second['server']}_{idx}", "description": description})
    return found[:n_wanted]


def builtin(folder: Path = PACKS) -> list[dict]:
    """The tools of the built-in packs, in the form of a catalogue, with the tasks of their worked examples as `tasks`."""
    found = []
    for path in sorted(folder.glob("*/toolpack.toml")):
        pack = tomllib.loads(path.read_text(encoding="utf-8"))
        for tool in pack["tool"]:
            params = tool.get("params", [])
            properties = {param["name"]: {"description": param.get("description", "")} for param in params}
            required = [param["name"] for param in params if "default" not in param and not param.get("optional")]
            found.append(
                {
                    "server": pack["name"],
                    "tool": tool["name"],
                    "description": tool["description"],
                    "parameters": {"type": "object", "properties": properties, "required": required},
                    "tasks": [example["task"] for example in tool.get("example", [])],
                }
            )
    return found
