"""The comparison itself, with a stand-in for mote that answers from the expectations, right or wrong."""

import json
import sys
from pathlib import Path

import pytest
from make_fixtures import FIXTURES

from mote_export.parity import main

BUNDLE = FIXTURES / "tiny-llama"


@pytest.fixture
def stand_in(tmp_path: Path) -> Path:
    """A script that continues the prompts of expected.json, with one token changed if FAULT.json says so."""
    script = tmp_path / "mote"
    script.write_text(f"""#!{sys.executable}
import json, pathlib, sys
arguments = dict(zip(sys.argv[1:], sys.argv[2:]))
ids = [int(i) for i in arguments["--raw-ids"].split(",")]
fault = json.loads(pathlib.Path({str(tmp_path / "FAULT.json")!r}).read_text())
for number, prompt in enumerate(json.loads(pathlib.Path({str(BUNDLE / "expected.json")!r}).read_text())["prompts"]):
    whole = prompt["ids"] + prompt["tokens"]
    if whole[:len(ids)] == ids and len(ids) >= len(prompt["ids"]):
        if number == fault["prompt"]:
            whole[len(prompt["ids"]) + fault["token"]] = 499
        first, last = len(ids), len(ids) + int(arguments["--max-tokens"])
        logprobs = [value - fault.get("shift", 0) for value in prompt["ids"] + prompt["logprobs"]]
        print(json.dumps({{"tokens": whole[first:last], "logprobs": logprobs[first:last]}}))
""")
    script.chmod(0o755)
    return script


def run(stand_in: Path, fault: dict, capsys: pytest.CaptureFixture) -> tuple[int, str]:
    (stand_in.parent / "FAULT.json").write_text(json.dumps(fault))
    code = main([str(BUNDLE), "--mote", str(stand_in), "--expected", str(BUNDLE / "expected.json")])
    return code, capsys.readouterr().out


def by_margin(number: int) -> list[int]:
    expected = json.loads((BUNDLE / "expected.json").read_text())
    margins = expected["prompts"][number]["margins"]
    stops = json.loads((BUNDLE / "manifest.json").read_text())["special_tokens"]["stop"]
    tokens = expected["prompts"][number]["tokens"]
    end = next((i for i, token in enumerate(tokens) if token in stops), len(tokens))
    return sorted(range(end), key=lambda i: margins[i])


def test_right_answers_pass(stand_in: Path, capsys: pytest.CaptureFixture) -> None:
    code, out = run(stand_in, {"prompt": -1, "token": 0}, capsys)
    assert (code, out.splitlines()[-1]) == (0, "parity holds"), out


def test_a_near_tie_may_go_the_other_way(stand_in: Path, capsys: pytest.CaptureFixture) -> None:
    code, out = run(stand_in, {"prompt": 1, "token": by_margin(1)[0]}, capsys)
    assert (code, out.splitlines()[-1]) == (0, "parity holds"), out
    assert "the same tokens: 100.0%" not in out


def test_a_clear_difference_fails(stand_in: Path, capsys: pytest.CaptureFixture) -> None:
    token = by_margin(1)[-1]
    code, out = run(stand_in, {"prompt": 1, "token": token}, capsys)
    assert (code, out.splitlines()[-1]) == (1, "parity FAILED: 1 tokens differ beyond the bound"), out
    assert f"token {token}: mote chose 499" in out


def test_shifted_probabilities_fail(stand_in: Path, capsys: pytest.CaptureFixture) -> None:
    code, out = run(stand_in, {"prompt": -1, "token": 0, "shift": 0.5}, capsys)
    assert code == 1
    assert out.splitlines()[-1] == "parity FAILED: log-probabilities differ by more than noise explains: 0.5"


def test_a_missing_binary_is_named(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    code = main([str(BUNDLE), "--mote", str(tmp_path / "none"), "--expected", str(BUNDLE / "expected.json")])
    assert code == 6
    assert (
        capsys.readouterr().err
        == f"error: cannot run mote: {tmp_path / 'none'} (No such file or directory)\nhint: build it: make build\n"
    )
