"""A tokenizer of the form and size of Qwen3's, with merges of our own: its vocabulary is not part of this repository.

The split, normalizer, byte alphabet, special tokens and their ids are those of the published tokenizer; between the bytes
and the special tokens stand made-up merges of one, two and four letters, commonest letters first, so that English words take
about as many tokens as they should in a benchmark. Text goes in and comes out unchanged.
"""

from collections.abc import Iterator

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers

from .tokenizer import PRE_TOKENIZERS

N_BASE = 151643
"""Tokens in front of the special ones, as published."""

SPECIAL_TOKENS = (
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>", "<|object_ref_end|>", "<|box_start|>", "<|box_end|>",
    "<|quad_start|>", "<|quad_end|>", "<|vision_start|>", "<|vision_end|>", "<|vision_pad|>", "<|image_pad|>", "<|video_pad|>",
)  # fmt: skip
ADDED_TOKENS = (
    "<tool_call>", "</tool_call>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|fim_pad|>", "<|repo_name|>",
    "<|file_sep|>", "<tool_response>", "</tool_response>", "<think>", "</think>",
)  # fmt: skip
"""Matched in the text like the special ones, but shown when decoded."""

CHAT_TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n<think>\\n\\n</think>\\n\\n' }}{% endif %}"
)

LETTERS = "etaoinshrdlcumwfgypbvkjxqz"
SPACE, NEWLINE = "\u0120", "\u010a"
"""The letters that stand for the bytes 32 and 10."""


def merges(n_base: int = N_BASE) -> list[tuple[str, str]]:
    """The merges, in order of rank, that make `n_base` tokens out of the bytes."""
    return list(_merges(n_base - len(pre_tokenizers.ByteLevel.alphabet())))


def qwen_tokenizer(n_base: int = N_BASE) -> Tokenizer:
    """The tokenizer, as a Hugging Face folder of the family has it."""
    pairs = merges(n_base)
    tokens = [*sorted(pre_tokenizers.ByteLevel.alphabet()), *(first + second for first, second in pairs)]
    tokenizer = Tokenizer(models.BPE(vocab={token: number for number, token in enumerate(tokens)}, merges=pairs))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = PRE_TOKENIZERS["qwen2"]()
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, normalized=False, special=True) for token in SPECIAL_TOKENS])
    tokenizer.add_tokens([AddedToken(token, normalized=False) for token in ADDED_TOKENS])
    return tokenizer


def _merges(count: int) -> Iterator[tuple[str, str]]:
    runs = [(SPACE * n, SPACE * n) for n in (1, 2, 4, 8)] + [(NEWLINE, NEWLINE)]
    lower = [(first, second) for first in LETTERS for second in LETTERS]
    initial = [(first, second) for first in LETTERS.upper() for second in LETTERS]
    spaced = [(SPACE, letter) for letter in LETTERS + LETTERS.upper()]
    short = runs + spaced + lower + initial
    yield from short
    left = count - len(short)
    starts = [first + second for first, second in spaced + lower + initial]
    ends = [first + second for first, second in lower]
    for total in range(len(starts) + len(ends)):
        for place in range(max(0, total - len(ends) + 1), min(total + 1, len(starts))):
            if left == 0:
                return
            left -= 1
            yield starts[place], ends[total - place]
