"""Which notes are close by the words they share, found without comparing every two of a store."""

from __future__ import annotations

import heapq
from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from memoryd.memory.notes import Note
from memoryd.memory.text import words
from memoryd.memory.values import distinct_values

#: Overlap (0..1) of their words from which two notes are suspected to say the same.
SUSPECTED = 0.35
#: Overlap below which two notes that share no rare word and no value are about different things.
RELATED = 0.2
#: Most pairs that are named.
PAIRS = 200

#: A note is looked up by its rarest words, each of which leads to the last few notes that have it.
_INDEXED, _ASKED, _REMEMBERED, _COMPARED = 24, 12, 16, 8
_BODY_CHARACTERS = 4_000
_VALUE_CHARACTERS = 3
_RARE_IN, _RARE_SHARE = 3, 50
#: Words that stand in any text, English and Arabic.
COMMON = frozenset(
    words(
        "am an as at be by do he if in is it me my no of on one or so to up us we"
        " about after again all also always and any are because been before but can could did does"
        " each every for from had has have her here his how into its just keep like made make may"
        " more most must never new not note now off old only our out over said same should since"
        " some such than that the their them then there these they this those under until use used"
        " uses using very want was were what when where which while who will with without would you"
        " your على في من إلى عن هذا هذه التي الذي ان كل لا ما مع بعد قبل عند كان"
    )
)


@dataclass(frozen=True)
class Pair:
    """Two notes, by path, whose words overlap by ``score`` (0..1)."""

    one: str
    other: str
    score: float


def telling(note: Note) -> frozenset[str]:
    """The words by which a note is compared: of its name, description and body, no fillers."""
    return telling_words(f"{note.name} {note.description} {note.body[:_BODY_CHARACTERS]}")


def telling_words(text: str) -> frozenset[str]:
    """The words of ``text`` but for single letters and fillers."""
    return frozenset(word for word in words(text) if len(word) > 1 and word not in COMMON)


class Closeness:
    """The words of a store's notes, indexed once."""

    def __init__(self, notes: Sequence[Note]) -> None:
        self._paths = [note.path for note in notes]
        ids: dict[str, int] = {}
        self._words = [
            array("I", (ids.setdefault(word, len(ids)) for word in sorted(telling(note))))
            for note in notes
        ]
        self._ids = ids
        self._spread = Counter(word for found in self._words for word in found)

    def pairs(self) -> tuple[Pair, ...]:
        """The closest pairs from ``SUSPECTED`` up, at most ``PAIRS``, the closest first."""
        found: list[Pair] = []
        postings: dict[int, list[int]] = {}
        for at, own in enumerate(self._words):
            shared = [word for word in own if self._spread[word] > 1]
            rarest = heapq.nsmallest(_INDEXED, shared, key=lambda word: (self._spread[word], word))
            found += self._near(at, rarest, postings)
            for word in rarest:
                postings.setdefault(word, []).append(at)
        return tuple(heapq.nsmallest(PAIRS, found, key=lambda p: (-p.score, p.one, p.other)))

    def _near(self, at: int, rarest: list[int], postings: dict[int, list[int]]) -> list[Pair]:
        """The pairs of a note with those before it."""
        met: Counter[int] = Counter()
        for word in rarest[:_ASKED]:
            met.update(postings.get(word, [])[-_REMEMBERED:])
        own = set(self._words[at])
        scores = [
            (other, _overlap(own, self._words[other])) for other, _ in met.most_common(_COMPARED)
        ]
        return [
            Pair(self._paths[other], self._paths[at], score)
            for other, score in scores
            if score >= SUSPECTED
        ]

    def related(self, one: Note, other: Note) -> bool:
        """Whether two notes may be about the same: a rare word, a value, or ``RELATED`` in common.

        A word is rare that at most 3 notes have, or a fiftieth of them; it has 3 letters or more. A
        value (``memory/values.py``) has 3 characters or more.
        """
        left, right = telling(one), telling(other)
        common = left & right
        if common and len(common) >= RELATED * len(left | right):
            return True
        return any(map(self._is_rare, common)) or not _values(one).isdisjoint(_values(other))

    def _is_rare(self, word: str) -> bool:
        few = max(_RARE_IN, len(self._paths) // _RARE_SHARE)
        return len(word) > 2 and self._spread[self._ids.get(word, -1)] <= few


def _overlap(own: set[int], other: array[int]) -> float:
    common = len(own.intersection(other))
    return common / (len(own) + len(other) - common) if common else 0.0


def _values(note: Note) -> set[str]:
    found = distinct_values(f"{note.description}\n{note.body}")
    return {value for value in found if len(value) >= _VALUE_CHARACTERS}
