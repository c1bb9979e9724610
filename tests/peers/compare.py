"""mote beside other programs that run 4-bit models on a CPU: `measure` takes figures, `report` prints them as ratios.

Every measurement is a process of its own, one at a time. A round goes through all engines, and the next one starts with
another engine, so that a machine that slows down touches all alike; the median of the rounds counts. `measure` adds a line to
a file for each process, so that rounds may be spread over the day; `report` reads them all.
"""

import argparse
import datetime
import importlib.metadata
import json
import os
import platform
import resource
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from statistics import median

import engines
from engines import Engine, Phase
from memory import Peak

SHORT = Phase("short", prefill=[128, 512], decode=48)
LONG = Phase("long", decode=16, decode_long=24)
BUSY = Phase("busy", decode=24)
PHASES = {phase.name: phase for phase in (SHORT, LONG, BUSY)}

LIMIT_S = 900

# The rows of a table.
ORDER = [
    "decode", "decode after 2048", "of that without context", "decode beside a busy process", "prefill 128", "prefill 512", "prefill 2048", "p99_ms", "load_ms",
    "MiB own, without KV", "MiB own, with KV", "read_gb_s", "fraction_of_bandwidth", "fraction_of_kernels",
]

# A process beside which others took more of the machine than this does not count, if there are quieter ones of its kind.
QUIET = 0.1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    actions = parser.add_subparsers(required=True)
    measured = actions.add_parser("measure")
    measured.add_argument("raw", type=Path, help="file of measurements, appended to")
    measured.add_argument("--shape", required=True, help="name of what is measured, such as 4B")
    measured.add_argument("--mote", required=True, help="the mote binary")
    measured.add_argument("--bundle", required=True)
    measured.add_argument("--gguf", action="append", default=[], help="LABEL=FILE, the same model for the others")
    measured.add_argument("--kernels", action="append", default=[], help="also mote with these kernels by name")
    measured.add_argument("--genai", help="folder of an exported onnxruntime-genai model")
    measured.add_argument("--ik-bench", default=os.environ.get("IK_LLAMA_BENCH"), help="llama-bench of ik_llama.cpp")
    measured.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    measured.add_argument("--rounds", type=int, default=3)
    measured.add_argument("--phase", nargs="+", choices=PHASES, default=list(PHASES))
    measured.add_argument("--only", nargs="*", help="engines whose name begins with one of these")
    measured.set_defaults(action=measure)
    reported = actions.add_parser("report")
    reported.add_argument("raw", type=Path)
    reported.add_argument("--markdown", type=Path)
    reported.add_argument("--json", type=Path)
    reported.add_argument("--note", default="", help="a sentence for the record, such as which mote it was")
    reported.set_defaults(action=report)
    arguments = parser.parse_args()
    arguments.action(arguments)


def measure(arguments: argparse.Namespace) -> None:
    found = all_engines(arguments)
    earlier = len(arguments.raw.read_text().splitlines()) if arguments.raw.exists() else 0
    for phase in (PHASES[name] for name in arguments.phase):
        for threads in arguments.threads:
            for turn in range(arguments.rounds):
                first = (earlier + turn) % len(found)
                for engine in found[first:] + found[:first]:
                    record = one(engine, phase, threads) | {"shape": arguments.shape}
                    with arguments.raw.open("a") as raw:
                        print(json.dumps(record), file=raw)
                    print(line(record), file=sys.stderr, flush=True)


def all_engines(arguments: argparse.Namespace) -> list[Engine]:
    found = [engines.mote(arguments.mote, arguments.bundle)]
    found += [engines.mote(arguments.mote, arguments.bundle, name) for name in arguments.kernels]
    kv = engines.kv_bytes_per_token(arguments.bundle)
    for label, file in (pair.split("=", 1) for pair in arguments.gguf):
        found.append(engines.llama_cpp(file, label))
        if arguments.ik_bench:
            found.append(engines.ik_llama(arguments.ik_bench, file, label, kv))
        found.append(engines.mistralrs(file, label))
    if arguments.genai:
        found.append(engines.genai(arguments.genai))
    if arguments.only:
        found = [engine for engine in found if engine.name.startswith(tuple(arguments.only))]
    return found


def one(engine: Engine, phase: Phase, threads: int) -> dict:
    """Runs one process. What goes wrong is a result as well."""
    record = {"engine": engine.name, "phase": phase.name, "threads": threads,
              "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")}
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"])] if phase is BUSY else []
    try:
        process = subprocess.Popen(engine.command(phase, threads), env=engines.environment(engine, threads),
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace")
        peak, load = Peak(process.pid), Load()
        out, err = process.communicate(timeout=LIMIT_S)
        record["others"] = load.others()
        if process.returncode != 0:
            return record | {"error": (err.strip().splitlines() or ["no message"])[-1][:300]}
        return record | engine.read(out) | {"engine": engine.name, "peak_anon": peak.bytes}
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return record | {"error": f"not done within {LIMIT_S} s"}
    except (OSError, ValueError, KeyError) as error:
        return record | {"error": f"{type(error).__name__}: {error}"[:300]}
    finally:
        for other in busy:
            other.kill()
            other.wait()


class Load:
    """What part of the machine's cores other programs take, this one and its ended children apart."""

    def __init__(self) -> None:
        self.start, self.before = self.now(), os.times().elapsed

    def now(self) -> float:
        """Seconds that the cores worked for others so far; what the hypervisor takes counts too."""
        user, nice, system, _, _, irq, softirq, steal = map(int, Path("/proc/stat").read_text().split()[1:9])
        own = sum(usage.ru_utime + usage.ru_stime for usage in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))
        return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK") - own

    def others(self) -> float:
        return round((self.now() - self.start) / (os.times().elapsed - self.before) / (os.cpu_count() or 1), 3)


def line(record: dict) -> str:
    others = record.get("others", 0)
    head = f"{record['shape']} {record['phase']} T={record['threads']} {record['engine']}: "
    if others > QUIET and record["phase"] != "busy":
        head += f"(others take {others:.0%} of the machine) "
    if "error" in record:
        return head + record["error"]
    return head + ", ".join(f"{name} {value:.1f}" for name, value in figures(record).items())


def is_quiet(record: dict) -> bool:
    return record["phase"] == "busy" or record.get("others", 0) <= QUIET


def quiet(records: list[dict]) -> list[dict]:
    """Without those that were disturbed, where the same was measured undisturbed."""
    kind = lambda record: (record["shape"], record["engine"], record["phase"], record["threads"])
    measured = {kind(record) for record in records if is_quiet(record) and "error" not in record}
    return [record for record in records if is_quiet(record) or kind(record) not in measured]


def figures(record: dict) -> dict[str, float]:
    """What is compared: a name and a number, more is better but for memory and load."""
    if "error" in record:
        return {}
    if record["phase"] == "busy":
        return {"decode beside a busy process": record["decode_tok_s"]}
    found = {f"prefill {n}": rate for n, rate in record["prefill"].items()
             if record["phase"] == "short" or n not in ("32", "128", "512")}
    if record["phase"] == "long":
        if record.get("decode_tok_s_2k"):
            found["decode after 2048"] = record["decode_tok_s_2k"]
            found["of that without context"] = record["decode_tok_s_2k"] / record["decode_tok_s"]
        return found
    found["decode"] = record["decode_tok_s"]
    for field in ("load_ms", "read_gb_s", "fraction_of_bandwidth", "fraction_of_kernels", "p99_ms"):
        if record.get(field) is not None:
            found[field] = record[field]
    if record.get("peak_anon"):
        own = record["peak_anon"] - record.get("base_anon", 0)
        if record.get("kv_bytes") is not None:
            found["MiB own, without KV"] = (own - record["kv_bytes"]) / 2**20
        else:
            found["MiB own, with KV"] = own / 2**20
    return found


def medians(records: list[dict]) -> tuple[dict, dict]:
    """`{(shape, threads): {figure: {engine: median}}}` and the reasons of those that failed."""
    values: dict = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    failed: dict = {}
    for record in quiet(records):
        if "error" in record:
            failed[(record["shape"], record["engine"])] = record["error"]
        for name, value in figures(record).items():
            values[(record["shape"], record["threads"])][name][record["engine"]].append((value, is_quiet(record)))
    return {key: {name: {engine: summary(measured) for engine, measured in by_engine.items()} for name, by_engine in table.items()}
            for key, table in values.items()}, failed


def summary(measured: list[tuple[float, bool]]) -> dict:
    values = [value for value, _ in measured]
    return {"median": median(values), "low": min(values), "high": max(values), "n": len(values),
            "quiet": all(is_quiet for _, is_quiet in measured)}


def report(arguments: argparse.Namespace) -> None:
    records = [json.loads(text) for text in arguments.raw.read_text().splitlines()]
    tables, failed = medians(records)
    lines = ["# mote beside its peers", "", f"{arguments.note} {about(records)}".strip(), ""]
    for (shape, threads), table in sorted(tables.items()):
        lines += [f"## {shape}, {threads} thread{'s' if threads > 1 else ''}", "", *markdown(table), ""]
    if failed:
        lines += ["## What did not run", ""]
        lines += [f"- {shape}, {engine}: {why}" for (shape, engine), why in sorted(failed.items())]
    text = "\n".join(lines).rstrip() + "\n"
    if arguments.json:
        flat = [{"shape": shape, "threads": threads, "figures": table} for (shape, threads), table in sorted(tables.items())]
        record = {"about": facts(records) | {"note": arguments.note}, "tables": flat, "failed": [[*key, why] for key, why in failed.items()]}
        arguments.json.write_text(json.dumps(record, indent=1) + "\n")
    if arguments.markdown:
        arguments.markdown.write_text(text)
    print(text)


def markdown(table: dict) -> list[str]:
    """A row a figure, a column an engine: the median, and in brackets mote's ratio to it."""
    columns = sorted({engine for row in table.values() for engine in row}, key=lambda name: (not name.startswith("mote"), name))
    lines = ["| | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    for name, row in sorted(table.items(), key=lambda item: ORDER.index(item[0])):
        cells = []
        for engine in columns:
            if engine not in row:
                cells.append("")
                continue
            value = row[engine]["median"]
            digits = 2 if value < 20 else 1 if value < 100 else 0
            own = row.get("mote", {}).get("median")
            ratio = f" ({own / value:.2f}x)" if own and not engine.startswith("mote") and value else ""
            cells.append(f"{value:.{digits}f}{'' if row[engine]['quiet'] else '*'}{ratio}")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


def facts(records: list[dict]) -> dict:
    versions = {}
    for name in ("llama-cpp-python", "mistralrs", "onnxruntime-genai"):
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = None
    return {"cpu": cpu(), "cores": os.cpu_count(), "system": platform.release().split("-")[0], "versions": versions,
            "first": min(record["time"] for record in records), "last": max(record["time"] for record in records),
            "processes": len(records), "ik_llama.cpp": os.environ.get("IK_LLAMA_VERSION")}


def about(records: list[dict]) -> str:
    fact = facts(records)
    versions = ", ".join(f"{name} {version}" for name, version in fact["versions"].items() if version)
    ik = f", ik_llama.cpp {fact['ik_llama.cpp']}" if fact["ik_llama.cpp"] else ""
    return (f"{fact['cpu']}, {fact['cores']} cores; {versions}{ik}. {fact['processes']} processes from {fact['first']} to "
            f"{fact['last']}. Tokens a second, the median of the rounds; in brackets what mote reaches as a multiple of it "
            f"(for memory and load less is better). A star: others took more than {QUIET:.0%} of the machine.")


def cpu() -> str:
    for text in Path("/proc/cpuinfo").read_text().splitlines():
        if text.startswith(("model name", "Model")):
            return text.split(":", 1)[1].strip()
    return platform.machine()


if __name__ == "__main__":
    main()
