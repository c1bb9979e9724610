"""Writes conformance.jsonl: what CPython prints and raises for each program of conformance.src.

Run it with Python 3.11 or later after a change of the programs: python3 conformance.py
A bare last expression is printed, as the language has it.
"""

import ast
import contextlib
import io
import json
import pathlib
import sys
import warnings


def run(source: str) -> dict:
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return {"source": source, "output": "", "error": "SyntaxError"}
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        tree.body[-1] = ast.Assign([ast.Name("__last", ast.Store())], tree.body[-1].value)
        ast.fix_missing_locations(tree)
    out = io.StringIO()
    scope: dict = {}
    error = None
    with contextlib.redirect_stdout(out):
        try:
            exec(compile(tree, "program", "exec"), scope)
            if scope.get("__last") is not None:
                print(scope["__last"])
        except Exception as e:
            error = type(e).__name__
    return {"source": source, "output": out.getvalue(), "error": error}


def main() -> None:
    warnings.simplefilter("ignore")
    if sys.argv[1:] == ["-"]:
        for line in sys.stdin:
            print(json.dumps(run(json.loads(line))))
        return
    here = pathlib.Path(__file__).parent
    programs = (here / "conformance.src").read_text().split("\n---\n")
    lines = [json.dumps(run(p.rstrip("\n") + "\n"), ensure_ascii=False) for p in programs]
    (here / "conformance.jsonl").write_text("\n".join(lines) + "\n")


main()
