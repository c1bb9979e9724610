"""Compares the micro programs with pydantic-monty: python compare.py MICRO_BINARY, in an environment that has it.

Both compile and run each program, best of RUNS, on one machine in turn. Monty runs in a worker process that stays: the
time of an empty program in it is taken off its times, so that the ratio is that of the interpreters.
"""

import importlib.metadata
import pathlib
import subprocess
import sys
import time

import pydantic_monty

RUNS = 7


def monty_us(session, program: str) -> float:
    best = float("inf")
    for _ in range(RUNS):
        started = time.perf_counter()
        session.feed_run(program, print_callback=lambda *_: None)
        best = min(best, time.perf_counter() - started)
    return best * 1e6


def main() -> None:
    here = pathlib.Path(__file__).parent
    programs = (here / "programs.src").read_text().split("\n---\n")
    out = subprocess.run([sys.argv[1], here / "programs.src", str(RUNS)], check=True, capture_output=True, text=True)
    ours = [float(line) for line in out.stdout.split()]
    with pydantic_monty.Monty() as pool, pool.checkout() as session:
        empty = monty_us(session, "x = 1")
        theirs = [monty_us(session, program + "\n") - empty for program in programs]
    version = importlib.metadata.version("pydantic-monty")
    print(f"| program | mote us | monty {version} us | mote / monty |\n|---|---|---|---|")
    for program, mine, other in zip(programs, ours, theirs):
        print(f"| `{program.strip().splitlines()[0][:40]}` | {mine:.0f} | {other:.0f} | {mine / other:.2f} |")
    print(f"\nA machine made and `x = 1` run in it: {ours[-1]:.1f} us; monty's warm worker, with its pipe: {empty:.0f} us.")


main()
