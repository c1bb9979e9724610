"""BM25F over weighted fields of stems, dense over all pairs of query and tool."""

from collections import Counter

import numpy as np

from .words import fields, stem, words

K1, B = 1.2, 0.75
WEIGHTS = {"name": 3.0, "description": 1.0, "parameter": 0.5, "said": 0.3}
REQUIRED_DISCOUNT, MAX_DISCOUNTED = 0.02, 5


def stems(text: str) -> list[str]:
    """The stems of a text's words."""
    return [stem(word) for word in words(text)]


def plain_counts(tool: dict) -> Counter:
    """All words of a tool alike: the BM25 to compare with."""
    return Counter(word for texts in fields(tool).values() for text in texts for word in words(text))


def weighted_counts(tool: dict) -> Counter:
    """The stems of a tool, weighted by field."""
    counts: Counter = Counter()
    for field, texts in fields(tool).items():
        for text in texts:
            for word in stems(text):
                counts[word] += WEIGHTS[field]
    return counts


def bm25(counts: list[Counter], queries: list[list[str]]) -> np.ndarray:
    """Scores `[queries, tools]`."""
    lengths = np.array([sum(count.values()) for count in counts])
    norm = K1 * (1 - B + B * lengths / lengths.mean())
    postings: dict[str, list[tuple[int, float]]] = {}
    for idx, count in enumerate(counts):
        for word, weight in count.items():
            postings.setdefault(word, []).append((idx, weight))
    columns = {}
    for word in {word for query in queries for word in query} & postings.keys():
        at = np.array([idx for idx, _ in postings[word]])
        weight = np.array([weight for _, weight in postings[word]])
        idf = np.log(1 + (len(counts) - len(at) + 0.5) / (len(at) + 0.5))
        columns[word] = (at, idf * weight * (K1 + 1) / (weight + norm[at]))
    scores = np.zeros((len(queries), len(counts)), np.float32)
    for row, query in zip(scores, queries, strict=True):
        for word in set(query):
            if word in columns:
                at, values = columns[word]
                row[at] += values
    return scores


def discounts(tools: list[dict]) -> np.ndarray:
    """What required arguments take off."""
    parameters = [tool["parameters"] for tool in tools]
    required = [min(len(set(it.get("required", [])) & set(it.get("properties", {}))), MAX_DISCOUNTED) for it in parameters]
    return 1 - REQUIRED_DISCOUNT * np.array(required, np.float32)


def asked(query: str) -> list[str]:
    """The stems of a query without its numbers, which are values and not purposes."""
    return [word for word in stems(query) if not (word.isascii() and word.isdigit())]


def lexical(tools: list[dict], queries: list[str]) -> np.ndarray:
    """The lexical half of the hybrid."""
    return bm25([weighted_counts(tool) for tool in tools], [asked(query) for query in queries]) * discounts(tools)


def plain(tools: list[dict], queries: list[str]) -> np.ndarray:
    """The usual BM25."""
    return bm25([plain_counts(tool) for tool in tools], [words(query) for query in queries])
