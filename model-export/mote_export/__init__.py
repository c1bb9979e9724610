"""Checkpoints (GGUF, Hugging Face safetensors) to mote bundles; the format is docs/bundle.md."""

__version__ = "0.1.0"
