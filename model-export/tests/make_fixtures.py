"""The tiny bundles that tests of other packages read: `python tests/make_fixtures.py` writes them anew.

Their bytes are compared with a fresh export by test_fixtures.py, so they always are what this exporter writes.
"""

import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mote_export.bundle import Kinds, write_bundle  # noqa: E402
from mote_export.expected import expect, rounded  # noqa: E402
from mote_export.hf_source import open_folder  # noqa: E402
from mote_export.synthetic import write_checkpoint  # noqa: E402

FIXTURES = Path(__file__).resolve().parents[2] / "tests" / "fixtures" / "bundles"

RECIPES = {"tiny-llama": ("llama", "q4"), "tiny-qwen3": ("qwen3", "q4m")}
"""Family and kind of the layers; embedding and output are q8."""


def make(name: str, out: Path, n_jitters: int = 8) -> None:
    """Writes the bundle `name` and what the reference expects of it to `out`."""
    family, layers = RECIPES[name]
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / name
        write_checkpoint(family, source)
        write_bundle(open_folder(source), out, Kinds(layers), "completion", replace=True)
    text = json.dumps(rounded(expect(out, n_jitters=n_jitters)), separators=(",", ":"))
    (out / "expected.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    for fixture in RECIPES:
        make(fixture, FIXTURES / fixture)
        print(FIXTURES / fixture)
