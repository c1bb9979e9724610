"""Writes conformance.jsonl: what CPython prints and raises for each program of conformance.src.

Run it with Python 3.11 or later after a change of the programs: python3 conformance.py
With `-` it answers programs from standard input, one JSON string a line. A program that takes too long or too much memory ends
in the error `TooMuch`, which is none of Python's. A bare last expression is printed, as the language has it.
"""

import ast
import contextlib
import io
import json
import pathlib
import resource
import signal
import sys
import warnings

SECONDS = 0.5
BYTES = 1 << 30
PRINTED = 1 << 14


class TooMuch(BaseException):
    """No `except` of a program catches it."""


stopped = False


def stop(*_: object) -> None:
    global stopped
    stopped = True
    raise TooMuch


class Out(io.StringIO):
    """What a program prints, up to a limit."""

    def write(self, text: str) -> int:
        if self.tell() + len(text) > PRINTED:
            stop()
        return super().write(text)


def run(source: str) -> dict:
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return {"source": source, "output": "", "error": "SyntaxError"}
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        tree.body[-1] = ast.Assign([ast.Name("__last", ast.Store())], tree.body[-1].value)
        ast.fix_missing_locations(tree)
    global stopped
    stopped = False
    out = Out()
    scope: dict = {}
    error = None
    with contextlib.redirect_stdout(out):
        try:
            signal.setitimer(signal.ITIMER_REAL, SECONDS)
            exec(compile(tree, "program", "exec"), scope)
            if scope.get("__last") is not None:
                print(scope["__last"])
        except (TooMuch, MemoryError):
            error = "TooMuch"
        except SyntaxError:
            error = "SyntaxError"
        except Exception as e:
            error = type(e).__name__
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    # A `finally` of the program may have raised something else on the way out.
    return {"source": source, "output": out.getvalue(), "error": "TooMuch" if stopped else error}


def main() -> None:
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, stop)
    if sys.argv[1:] == ["-"]:
        resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
        for line in sys.stdin:
            print(json.dumps(run(json.loads(line))))
        return
    here = pathlib.Path(__file__).parent
    programs = (here / "conformance.src").read_text().split("\n---\n")
    lines = [json.dumps(run(p.rstrip("\n") + "\n"), ensure_ascii=False) for p in programs]
    (here / "conformance.jsonl").write_text("\n".join(lines) + "\n")


main()
