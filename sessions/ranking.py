"""Which of the messages that were found come first: BM25 over just these, in Python, in bulk."""

from __future__ import annotations

import heapq
import math
import re
from collections.abc import Sequence

from memoryd.sessions.tokens import Term, index_tokens

#: How many more than are asked for are counted exactly, of those that look best.
CLOSELY = 60
#: A word that stands in more messages than this is common, and says as little as any such.
WEIGHED = 1_000

#: Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009).
_K1, _B = 1.2, 0.75

#: A candidate: its place, the row ids of its message and session, its text. Thousands are made.
Row = tuple[int, int, int, str]


class Ranking:
    """BM25 over the candidates, whose texts all hold each of the words at least once."""

    def __init__(
        self, wanted: Sequence[Term], rows: Sequence[Row], weights: Sequence[float]
    ) -> None:
        self._rows = rows
        self._terms = [
            (*_needle(term), weight) for term, weight in zip(wanted, weights, strict=True)
        ]
        lengths = [len(text) for *_, text in rows]
        fixed, growing = _K1 * (1 - _B), _K1 * _B * len(rows) / sum(lengths)
        self._lengths = [fixed + growing * length for length in lengths]

    def best(self, limit: int) -> list[Row]:
        """The ``limit`` best of them, equal ones by time.

        All are scored by a count that also sees a word inside of others, the best again without.
        """
        likely = self._order(limit + CLOSELY, self._rough(), range(len(self._rows)))
        exact = [self._exact(at) for at in likely]
        return [self._rows[at] for at in self._order(limit, exact, likely)]

    def _order(self, limit: int, scores: list[float], of: Sequence[int]) -> list[int]:
        places = [self._rows[at][0] for at in of]
        return [at for *_, at in heapq.nlargest(limit, zip(scores, places, of, strict=True))]

    def _rough(self) -> list[float]:
        """The score of each row. Row by row this takes twice as long, for thousands of them."""
        texts = [f" {text.casefold()} " for *_, text in self._rows]
        scores = [0.0] * len(texts)
        for needle, _, weight in self._terms:
            counts = [text.count(needle) or 1 for text in texts]
            scores = [
                score + weight * often / (often + length)
                for score, often, length in zip(scores, counts, self._lengths, strict=True)
            ]
        return scores

    def _exact(self, at: int) -> float:
        text = self._rows[at][3].casefold()
        counts = [(len(whole.findall(text)) or 1, weight) for _, whole, weight in self._terms]
        return sum(weight * often / (often + self._lengths[at]) for often, weight in counts)


def _needle(term: Term) -> tuple[str, re.Pattern[str]]:
    """What is counted in a caseless text for a term, quickly and well.

    Where the text writes it otherwise it is not seen; it then counts as standing there once.
    """
    tokens = term.phrases[0]
    needle = tokens[0] if len(tokens) == 1 else term.typed.casefold()
    if term.begins or not needle.isascii():
        return needle, re.compile(re.escape(needle))
    whole = re.compile(f"(?<![a-z0-9]){re.escape(needle)}(?![a-z0-9])")
    return f" {needle} " if len(needle) < 4 else needle, whole


def weights_of(hits: list[int]) -> list[float]:
    """The weight of each word by in how many messages it stands; one in none weighs the least."""
    weights = [math.log(1 + WEIGHED / (min(each, WEIGHED) + 0.5)) for each in hits]
    least = min((weight for weight, each in zip(weights, hits, strict=True) if each), default=1.0)
    return [weight if each else least for weight, each in zip(weights, hits, strict=True)]


def held(text: str, wanted: Sequence[Term]) -> set[int]:
    """Which of the words, by their places in ``wanted``, a text holds."""
    words, parts = (f" {each} " for each in index_tokens(text))
    found = set()
    for at, term in enumerate(wanted):
        end = "" if term.begins else " "
        sought = [f" {' '.join(phrase)}{end}" for phrase in term.phrases]
        if any(each in words or each in parts for each in sought):
            found.add(at)
    return found
