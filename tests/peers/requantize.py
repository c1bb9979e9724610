"""Writes a GGUF file again in another 4-bit format of llama.cpp: for speed only, as the quality of one rounded twice is not its own."""

import sys

import llama_cpp as C

FORMATS = {"q4_0": C.LLAMA_FTYPE_MOSTLY_Q4_0, "q4_k_m": C.LLAMA_FTYPE_MOSTLY_Q4_K_M}


def main() -> None:
    source, target, name = sys.argv[1:]
    parameters = C.llama_model_quantize_default_params()
    parameters.ftype = FORMATS[name]
    parameters.allow_requantize = True
    if C.llama_model_quantize(source.encode(), target.encode(), parameters) != 0:
        sys.exit(f"llama.cpp cannot write as {name}: {source}")


if __name__ == "__main__":
    main()
