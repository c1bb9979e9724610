"""Words, stems and fields of a tool, as `agent/src/tools/retrieval` has them: written twice so that each tests the other."""

import functools

MAX_WORDS = 512
MAX_DESCRIPTION_CHARS = 1000
STOP_WORDS = frozenset(
    [
        "a",
        "about",
        "all",
        "an",
        "and",
        "any",
        "are",
        "as",
        "at",
        "be",
        "by",
        "can",
        "do",
        "does",
        "for",
        "from",
        "give",
        "how",
        "i",
        "in",
        "is",
        "it",
        "me",
        "my",
        "of",
        "on",
        "or",
        "please",
        "show",
        "tell",
        "that",
        "the",
        "this",
        "to",
        "was",
        "what",
        "which",
        "with",
        "you",
        "your",
    ]
)


def words(text: str) -> list[str]:
    """Runs of letters and digits in lower case, `camelCase` and `snake_case` taken apart, `%` read as `percent`."""
    found: list[str] = []
    word = ""
    before = " "
    for char in text:
        inside = char.isalnum()
        if not inside or (before.islower() and char.isupper()):
            if word and word not in STOP_WORDS:
                found.append(word)
            word = ""
        if char == "%":
            found.append("percent")
        if inside:
            word += char.lower()
        before = char
        if len(found) >= MAX_WORDS:
            return found
    if word and word not in STOP_WORDS:
        found.append(word)
    return found


@functools.lru_cache(None)
def stem(word: str) -> str:
    """Takes English endings off: plural, `-ing`, `-ed`, a last `e`; `y` becomes `i`."""
    if len(word) <= 3 or not (word.isascii() and word.isalpha()):
        return word
    if word.endswith("ies") and len(word) > 4:
        word = word[:-3] + "y"
    elif word.endswith("sses"):
        word = word[:-2]
    elif word.endswith("s") and word[-2] not in "sui":
        word = word[:-1]
    for ending in ("ing", "ed"):
        rest = word.removesuffix(ending)
        if rest != word and len(rest) >= 3 and any(char in "aeiou" for char in rest):
            word = rest[:-1] if rest[-1] == rest[-2] and rest[-1] not in "lsz" else rest
            break
    if len(word) > 3 and word.endswith("e"):
        word = word[:-1]
    if len(word) > 3 and word.endswith("y"):
        word = word[:-1] + "i"
    return word


def without_quoted(text: str) -> str:
    """A text without what stands between equal quotation marks; an apostrophe inside a word is none."""
    kept: list[str] = []
    quote, before = None, " "
    for char in text:
        if quote is not None:
            if char == quote:
                quote = None
        elif char in "'\"`" and not before.isalnum():
            quote = char
        else:
            kept.append(char)
        before = char
    return "".join(kept)


def fields(tool: dict) -> dict[str, list[str]]:
    """The texts of a tool by field."""
    properties = tool["parameters"].get("properties", {})
    description = " ".join(tool["description"].split())[:MAX_DESCRIPTION_CHARS]
    said = [value.get("description") for value in properties.values() if isinstance(value, dict)]
    return {
        "name": [f"{tool['server']} {tool['tool']}"],
        "description": [description],
        "parameter": list(properties),
        "said": [without_quoted(text) for text in said if isinstance(text, str)],
    }
