"""Times the micro programs in mote's machine, rhai and pydantic-monty: python compare.py BENCH_BINARY, where monty is installed.

All three compile and run each program; rounds go through the engines in turn, and the best of RUNS counts. Monty runs in a
worker process that stays: the time of an empty program in it is taken off its times. Rhai's programs are written as its
users would: its maps have only string keys, it has no format specs and no `join`.
"""

import importlib.metadata
import pathlib
import re
import subprocess
import sys
import time

import pydantic_monty

RUNS = 7


def main() -> None:
    here = pathlib.Path(__file__).parent
    programs = (here / "programs.src").read_text().split("\n---\n")
    rhai = re.search(r'name = "rhai"\nversion = "([^"]+)"', (here / "Cargo.lock").read_text())
    monty = importlib.metadata.version("pydantic-monty")
    command = [sys.argv[1], here / "programs.src", here / "programs.rhai"]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)

    def ask(engine: str, at: int) -> float:
        print(engine, at, file=server.stdin, flush=True)
        answer = server.stdout.readline()
        if not answer:
            sys.exit(f"{engine} failed at program {at}")
        return float(answer)

    best = [dict.fromkeys(("mote", "rhai", "monty"), float("inf")) for _ in range(len(programs) + 1)]
    with pydantic_monty.Monty() as pool, pool.checkout() as session:
        for _ in range(RUNS):
            for at, program in enumerate([*programs, "x = 1"]):
                for engine in ("mote", "rhai"):
                    best[at][engine] = min(best[at][engine], ask(engine, at))
                started = time.perf_counter()
                session.feed_run(program + "\n", print_callback=lambda *_: None)
                best[at]["monty"] = min(best[at]["monty"], (time.perf_counter() - started) * 1e6)
    server.stdin.close()
    server.wait()
    empty = best[-1]
    print(f"| program | mote us | monty {monty} us | rhai {rhai[1]} us | mote / monty | mote / rhai |\n|---|---|---|---|---|---|")
    for program, times in zip(programs, best):
        mote, other, third = times["mote"], times["monty"] - empty["monty"], times["rhai"]
        name = program.strip().splitlines()[0][:40]
        print(f"| `{name}` | {mote:.0f} | {other:.0f} | {third:.0f} | {mote / other:.2f} | {mote / third:.2f} |")
    print(
        f"\nAn engine made and `x = 1` run in it: mote {empty['mote']:.1f} us, rhai {empty['rhai']:.0f} us; "
        f"monty's warm worker, with its pipe: {empty['monty']:.0f} us."
    )


main()
