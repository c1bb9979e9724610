"""Opening whatever checkpoint lies at a path."""

from pathlib import Path

from .checkpoint import Checkpoint
from .errors import bad_input
from .fetch import NAMED
from .gguf_source import open_gguf
from .hf_source import open_folder


def open_checkpoint(path: Path, tokenizer_file: Path | None = None) -> Checkpoint:
    """A GGUF file or a Hugging Face folder."""
    if path.is_dir():
        return open_folder(path, tokenizer_file)
    if path.is_file():
        return open_gguf(path, tokenizer_file)
    raise bad_input(
        f"no such file or folder: {path}", f"give a .gguf file, a Hugging Face folder, or a name: {', '.join(NAMED)}"
    )
