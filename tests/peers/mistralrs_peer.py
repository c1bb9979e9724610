"""mistral.rs from PyPI: prefill and decode of one GGUF file, as it counts them itself, as one JSON object on stdout.

It takes text, not token ids, so a prompt is a word repeated until the usage it reports has the wanted length.
"""

import argparse
import json
import time
from pathlib import Path

from mistralrs import CompletionRequest, Runner, Which

from memory import anonymous_bytes

WORD = " a"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model", type=Path)
    parser.add_argument("--threads", type=int, required=True, help="set by RAYON_NUM_THREADS as well")
    parser.add_argument("--prefill", type=int, nargs="*", default=[128, 512])
    parser.add_argument("--decode", type=int, default=32)
    parser.add_argument("--decode-2k", type=int, default=0)
    arguments = parser.parse_args()
    report: dict = {"engine": "mistral.rs", "base_anon": anonymous_bytes(), "prefill": {}}
    started = time.perf_counter()
    which = Which.GGUF(str(arguments.model.parent.resolve()), arguments.model.name)
    runner = Runner(which, max_seqs=1, prefix_cache_n=0, no_paged_attn=True)
    report["load_ms"] = round((time.perf_counter() - started) * 1000)
    complete(runner, 8, 2)
    for n_tokens in arguments.prefill:
        usage = complete(runner, n_tokens, 1)
        report["prefill"][usage.prompt_tokens] = usage.prompt_tokens / usage.total_prompt_time_sec
    if arguments.decode:
        report["decode_tok_s"] = complete(runner, 1, arguments.decode + 1).avg_compl_tok_per_sec
    if arguments.decode_2k:
        report["decode_tok_s_2k"] = complete(runner, 2048, arguments.decode_2k + 1).avg_compl_tok_per_sec
    print(json.dumps(report))


def complete(runner: Runner, n_prompt: int, n_tokens: int):
    request = CompletionRequest(
        model="default", prompt=WORD * n_prompt, max_tokens=n_tokens, temperature=0.0, top_k=1, ignore_eos=True
    )
    return runner.send_completion_request(request).usage


if __name__ == "__main__":
    main()
