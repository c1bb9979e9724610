"""The programs that are compared: the command that measures one of them, and how its output is read.

Every engine gets the same shapes: prompts of given lengths into an empty cache, tokens decoded without context, and tokens
decoded after 2048. A result is a dictionary with any of `load_ms`, `prefill` (tokens a second by length), `decode_tok_s`,
`decode_tok_s_2k`, `p99_ms`, `kv_bytes` (what of the memory is KV cache) and `base_anon` (bytes before the engine was there).
"""

import json
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable

HERE = Path(__file__).parent
LONG = 2048


@dataclass
class Phase:
    """What one process measures."""

    name: str
    prefill: list[int] = field(default_factory=list)
    decode: int = 0
    decode_long: int = 0


@dataclass
class Engine:
    name: str
    command: Callable[[Phase, int], list[str]]
    read: Callable[[str], dict]
    environment: dict[str, str] = field(default_factory=dict)


def last_object(text: str) -> dict:
    return json.loads(text.strip().splitlines()[-1])


def mote(binary: str, bundle: str, kernels: str | None = None) -> Engine:
    def command(phase: Phase, threads: int) -> list[str]:
        lengths = phase.prefill + [LONG] if phase.decode_long else phase.prefill or [32]
        return [binary, "bench", "--json", "--model", bundle, "--threads", str(threads), "--rounds", "1",
                "--context", str(4096), "--prefill", ",".join(map(str, lengths))]

    def read(text: str) -> dict:
        report = last_object(text)
        report["kv_bytes"] = (report.get("kv_mib") or 0) << 20
        return report

    environment = {"MOTE_KERNELS": kernels} if kernels else {}
    return Engine(f"mote {kernels}" if kernels else "mote", command, read, environment)


def llama_cpp(model: str, label: str) -> Engine:
    def command(phase: Phase, threads: int) -> list[str]:
        return [sys.executable, str(HERE / "llama_cpp_peer.py"), model, "--threads", str(threads),
                "--prefill", *map(str, phase.prefill), "--decode", str(phase.decode), "--decode-2k", str(phase.decode_long)]

    return Engine(f"llama.cpp {label}", command, last_object)


def kv_bytes_per_token(bundle: str) -> int:
    """Bytes of an f16 KV cache for each token."""
    shape = json.loads((Path(bundle) / "manifest.json").read_text())["architecture"]
    return 2 * 2 * shape["layers"] * shape["kv_heads"] * shape["head_dim"]


def ik_llama(bench: str, model: str, label: str, kv_per_token: int) -> Engine:
    def command(phase: Phase, threads: int) -> list[str]:
        command = [bench, "-m", model, "-t", str(threads), "-r", "1", "-rtr", "1", "-fa", "1", "-o", "json"]
        command += ["-p", ",".join(map(str, phase.prefill)) or "0", "-n", str(phase.decode)]
        return command + (["-p", str(LONG), "-gp", f"{LONG},{phase.decode_long}"] if phase.decode_long else [])

    def read(text: str) -> dict:
        result: dict = {"prefill": {}}
        rows = json.loads(text[text.index("["):])
        for row in rows:
            rate = row["avg_ts"]
            if row["n_gen"] == 0:
                result["prefill"][str(row["n_prompt"])] = rate
            elif row["n_prompt"] == 0:
                result["decode_tok_s"] = rate
            else:
                result["decode_tok_s_2k"] = rate
        result["kv_bytes"] = kv_per_token * max(row["n_prompt"] + row["n_gen"] for row in rows)
        return result

    return Engine(f"ik_llama.cpp {label}", command, read)


def mistralrs(model: str, label: str) -> Engine:
    def command(phase: Phase, threads: int) -> list[str]:
        return [sys.executable, str(HERE / "mistralrs_peer.py"), model, "--threads", str(threads),
                "--prefill", *map(str, phase.prefill), "--decode", str(phase.decode), "--decode-2k", str(phase.decode_long)]

    return Engine(f"mistral.rs {label}", command, last_object)


def genai(folder: str) -> Engine:
    def command(phase: Phase, threads: int) -> list[str]:
        return [sys.executable, str(HERE / "genai_peer.py"), folder, "--threads", str(threads),
                "--prefill", *map(str, phase.prefill), "--decode", str(phase.decode), "--decode-2k", str(phase.decode_long)]

    return Engine("onnxruntime-genai int4", command, last_object)


def environment(engine: Engine, threads: int) -> dict[str, str]:
    """Thread counts also for what reads them from the environment only."""
    count = str(threads)
    return os.environ | {"OMP_NUM_THREADS": count, "RAYON_NUM_THREADS": count} | engine.environment
