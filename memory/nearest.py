"""The notes nearest to a text by the words they share, rare words counting more."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from memoryd.memory.memo import kept_for_short
from memoryd.memory.providers.base import ShownNote
from memoryd.memory.text import words

#: How much more a word of the name or description counts than one of the body.
_HEAD = 2.0


class NearestNotes:
    """Notes indexed once, asked for each chunk.

    The score of a note is the sum of ``log(1 + N / df)`` over the words it shares with the text,
    doubled for words of its name and description, over the square root of its number of words.
    """

    def __init__(self, notes: Sequence[ShownNote]) -> None:
        self._notes = tuple(notes)
        spoken = [_words(note.name, note.description, note.body) for note in self._notes]
        self._heads = [head for head, _ in spoken]
        self._all = [every for _, every in spoken]
        self._spread = Counter(word for found in self._all for word in found)

    def find(self, text: str, limit: int = 5) -> list[ShownNote]:
        """At most ``limit`` notes that share a word with ``text``, the nearest first.

        Equal scores are ordered by store and path, so that the answer is always the same.
        """
        asked = frozenset(words(text))
        scored = [
            (-score, note.store, note.path, note)
            for at, note in enumerate(self._notes)
            if (score := self._score(at, asked)) > 0
        ]
        return [row[3] for row in sorted(scored, key=lambda row: row[:3])[:limit]]

    def others(self, found: Sequence[ShownNote], limit: int) -> list[ShownNote]:
        """All the notes that were not ``found``, where there are at most ``limit`` in all."""
        return [note for note in self._notes if note not in found and len(self._notes) <= limit]

    def _score(self, at: int, asked: frozenset[str]) -> float:
        shared = self._all[at] & asked
        weight = sum(self._rarity(word, at) for word in sorted(shared))
        return weight / math.sqrt(1 + len(self._all[at])) if shared else 0.0

    def _rarity(self, word: str, at: int) -> float:
        if len(word) < 2:
            return 0.0
        rarity = math.log(1 + len(self._notes) / self._spread[word])
        return rarity * (_HEAD if word in self._heads[at] else 1.0)


@kept_for_short
def _words(name: str, description: str, body: str) -> tuple[frozenset[str], frozenset[str]]:
    """The words of a note's name and description, and all of its words."""
    head = frozenset(words(f"{name} {description}"))
    return head, head | frozenset(words(body))


def nearest(notes: Iterable[ShownNote], text: str, limit: int = 5) -> list[ShownNote]:
    """At most ``limit`` of ``notes`` nearest to ``text``; see ``NearestNotes``."""
    return NearestNotes(tuple(notes)).find(text, limit)
