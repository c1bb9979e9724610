"""Checkpoints (GGUF, Hugging Face safetensors) to mote bundles; the format is docs/bundle.md.

The matrices here are small, so numpy's BLAS runs on one thread unless the environment says otherwise: its own threads
wait for each other longer than they compute (4 times slower for the reference on a busy machine with 2 cores).
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

__version__ = "0.1.0"
