#!/usr/bin/env python3
"""Counts the inner loops of the ARM kernels in a disassembly, for docs/kernels.md.

    aarch64-linux-gnu-objdump -d --no-show-raw-insn PROGRAM | tests/arm_loops.py [LLVM-MCA]

Prints, for each innermost loop that multiplies, its instructions, those that multiply integers, the step of its pointer to
the weights, and with LLVM-MCA the cycles of one round that LLVM's models of three CPUs expect. These models are no
measurement: they know nothing of caches and memory.
"""

import re
import subprocess
import sys

# The models stand for Cortex-A53, A72 and A76: LLVM has the A72 as an A57, and the A76 as its server twin.
CPUS = ["cortex-a53", "cortex-a72", "neoverse-n1"]
MULTIPLIES = ("smull", "smull2", "smlal", "smlal2", "sdot", "smmla")
HEAD = re.compile(r"^[0-9a-f]+ <(.*)>:")
LINE = re.compile(r"^\s+([0-9a-f]+):\s+(\S+)\s*(.*)")
TARGET = re.compile(r"\b([0-9a-f]+) <")


def functions(lines):
    name, body = None, []
    for line in lines:
        if head := HEAD.match(line):
            yield name, body
            name, body = head[1], []
        elif match := LINE.match(line):
            body.append((int(match[1], 16), match[2], match[3].split("//")[0].strip()))
    yield name, body


def innermost_loops(body):
    places = {address: place for place, (address, _, _) in enumerate(body)}
    loops = []
    for end, (_, op, args) in enumerate(body):
        target = TARGET.search(args) if op.startswith(("b", "cb", "tb")) else None
        start = places.get(int(target[1], 16)) if target else None
        if start is not None and start <= end:
            loops.append((start, end))
    for start, end in loops:
        if not any((start, end) != other and start <= other[0] and other[1] <= end for other in loops):
            yield body[start : end + 1]


def cycles(mca, cpu, loop):
    text = "\n".join(f"{op} {args}" for _, op, args in loop if not op.startswith("b."))
    command = [mca, "-mtriple=aarch64", f"-mcpu={cpu}", "-mattr=+dotprod,+i8mm", "-iterations=200"]
    report = subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout
    return int(re.search(r"Total Cycles:\s+(\d+)", report)[1]) / 200


def main():
    mca = sys.argv[1] if len(sys.argv) > 1 else None
    print("instructions multiplies step", *(CPUS if mca else []), "function")
    for name, body in functions(sys.stdin):
        if not name or "mote_kernels4neon" not in name and "mote_kernels..neon" not in name:
            continue
        for loop in innermost_loops(body):
            multiplies = sum(op in MULTIPLIES for _, op, _ in loop)
            if multiplies:
                steps = [int(m[2], 16) for _, op, args in loop if op == "add" and (m := re.match(r"(x\d+), \1, #0x([0-9a-f]+)$", args))]
                rates = [f"{cycles(mca, cpu, loop):.1f}" for cpu in CPUS] if mca else []
                print(len(loop), multiplies, max(steps, default="-"), *rates, re.sub(r"17h[0-9a-f]{16}E.*", "", name))


main()
