"""onnxruntime-genai: load, prefill and decode of an exported folder, as one JSON object on stdout."""

import argparse
import json
import time

import numpy as np
import onnxruntime_genai as og

from memory import anonymous_bytes


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--prefill", type=int, nargs="*", default=[128, 512])
    parser.add_argument("--decode", type=int, default=32)
    parser.add_argument("--decode-2k", type=int, default=0)
    arguments = parser.parse_args()
    report: dict = {"engine": "onnxruntime-genai", "base_anon": anonymous_bytes(), "prefill": {}}
    started = time.perf_counter()
    config = og.Config(arguments.folder)
    threads = {"intra_op_num_threads": arguments.threads}
    config.overlay(json.dumps({"model": {"decoder": {"session_options": threads}}}))
    model = og.Model(config)
    report["load_ms"] = round((time.perf_counter() - started) * 1000)
    decode(prefill(model, 8)[0], 2)
    for n_tokens in arguments.prefill:
        report["prefill"][n_tokens] = n_tokens / prefill(model, n_tokens)[1]
    if arguments.decode:
        report["decode_tok_s"] = decode(prefill(model, 1)[0], arguments.decode)
    if arguments.decode_2k:
        report["decode_tok_s_2k"] = decode(prefill(model, 2048)[0], arguments.decode_2k)
    print(json.dumps(report))


def prefill(model: og.Model, n_tokens: int) -> tuple[og.Generator, float]:
    parameters = og.GeneratorParams(model)
    parameters.set_search_options(max_length=4096, do_sample=False)
    generator = og.Generator(model, parameters)
    ids = (np.arange(n_tokens, dtype=np.int32) * 7919 + 101) % 32000
    started = time.perf_counter()
    generator.append_tokens(ids)
    return generator, time.perf_counter() - started


def decode(generator: og.Generator, n_tokens: int) -> float:
    generator.generate_next_token()
    started = time.perf_counter()
    for _ in range(n_tokens):
        generator.generate_next_token()
    return n_tokens / (time.perf_counter() - started)


if __name__ == "__main__":
    main()
