"""llama.cpp through its C API: load, prefill and decode of one GGUF file, as one JSON object on stdout.

The library is the one that `llama-cpp-python` builds from its vendored source. Settings are llama.cpp's own fast ones:
the file mapped, weights repacked for the CPU where it knows how, flash attention, batches of 512, an f16 KV cache.
"""

import argparse
import ctypes
import json
import sys
import time

import llama_cpp as C

from memory import anonymous_bytes

BATCH = 512
LONG = 2048


def main() -> None:
    arguments = parse()
    base = anonymous_bytes()
    C.llama_log_set(silent, ctypes.c_void_p(0))
    C.llama_backend_init()
    started = time.perf_counter()
    model, context = load(arguments)
    load_ms = (time.perf_counter() - started) * 1000
    runner = Runner(model, context)
    runner.prefill(8)
    runner.decode(2)
    report = {"engine": "llama.cpp", "base_anon": base, "load_ms": round(load_ms)}
    report["prefill"] = {n: runner.prefill(n) for n in arguments.prefill}
    if arguments.decode:
        runner.prefill(arguments.after)
        report["decode_tok_s"], report["p99_ms"] = runner.decode(arguments.decode)
    if arguments.decode_2k:
        report["prefill"][LONG] = runner.prefill(LONG)
        report["decode_tok_s_2k"], _ = runner.decode(arguments.decode_2k)
    report["kv_bytes"] = kv_bytes(model, C.llama_n_ctx(context))
    report["system"] = C.llama_print_system_info().decode()
    print(json.dumps(report))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--prefill", type=int, nargs="*", default=[128, 512])
    parser.add_argument("--decode", type=int, default=32, help="tokens after a short prompt")
    parser.add_argument("--after", type=int, default=32, help="length of the short prompt")
    parser.add_argument("--decode-2k", type=int, default=0, help="tokens after a prompt of 2048")
    parser.add_argument("--no-flash", action="store_true")
    parser.add_argument("--no-repack", action="store_true")
    return parser.parse_args()


@C.llama_log_callback
def silent(_level: int, _text: bytes, _data: ctypes.c_void_p) -> None:
    pass


def load(arguments: argparse.Namespace):
    model_parameters = C.llama_model_default_params()
    model_parameters.n_gpu_layers = 0
    model_parameters.use_extra_bufts = not arguments.no_repack
    model = C.llama_model_load_from_file(arguments.model.encode(), model_parameters)
    if not model:
        sys.exit(f"llama.cpp cannot load: {arguments.model}")
    parameters = C.llama_context_default_params()
    longest = max([*arguments.prefill, arguments.after + arguments.decode, 64])
    if arguments.decode_2k:
        longest = max(longest, LONG + arguments.decode_2k)
    parameters.n_ctx = longest
    parameters.n_batch = parameters.n_ubatch = BATCH
    parameters.n_threads = parameters.n_threads_batch = arguments.threads
    parameters.flash_attn_type = 0 if arguments.no_flash else 1
    parameters.offload_kqv = False
    context = C.llama_init_from_model(model, parameters)
    if not context:
        sys.exit("llama.cpp cannot make a context")
    return model, context


def kv_bytes(model, n_ctx: int) -> int:
    heads = C.llama_model_n_head(model)
    key = ctypes.create_string_buffer(64)
    arch = ctypes.create_string_buffer(64)
    C.llama_model_meta_val_str(model, b"general.architecture", arch, 64)
    known = C.llama_model_meta_val_str(model, arch.value + b".attention.key_length", key, 64) > 0
    head_dim = int(key.value) if known else C.llama_model_n_embd(model) // heads
    return n_ctx * C.llama_model_n_layer(model) * C.llama_model_n_head_kv(model) * head_dim * 2 * 2


class Runner:
    """Feeds tokens that are the same on every machine, and those that mote's own bench takes."""

    def __init__(self, model, context) -> None:
        self.context = context
        self.n_vocab = C.llama_vocab_n_tokens(C.llama_model_get_vocab(model))
        self.length = 0

    def prefill(self, n_tokens: int) -> float:
        C.llama_memory_clear(C.llama_get_memory(self.context), True)
        self.length = 0
        started = time.perf_counter()
        for first in range(0, n_tokens, BATCH):
            self.evaluate(min(BATCH, n_tokens - first))
        return n_tokens / (time.perf_counter() - started)

    def decode(self, n_tokens: int) -> tuple[float, float]:
        times = []
        for _ in range(n_tokens):
            started = time.perf_counter()
            self.evaluate(1)
            times.append(time.perf_counter() - started)
        p99 = sorted(times)[-(-len(times) * 99 // 100) - 1]
        return len(times) / sum(times), round(p99 * 1000, 2)

    def evaluate(self, n_tokens: int) -> None:
        ids = (C.llama_token * n_tokens)(*(((self.length + i) * 7919 + 101) % self.n_vocab for i in range(n_tokens)))
        batch = C.llama_batch_get_one(ids, n_tokens)
        if C.llama_decode(self.context, batch) != 0:
            sys.exit(f"llama.cpp cannot evaluate {n_tokens} tokens after {self.length}")
        C.llama_synchronize(self.context)
        self.length += n_tokens


if __name__ == "__main__":
    main()
