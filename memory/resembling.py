"""Which notes say what is about to be saved: the same, nearly the same, or something alike.

The same: what is to be saved, word for word but for case, white space and the final stop, is a
note's description, its body or a line of it (``known.says_same``). Nearly the same: at least 80 %
of the words of both (Jaccard, description and body) and no value (number, path, name of code) that
only one of them has. Alike: as many words but other values, or the same description. 80 % because
one word changed in a sentence of nine is nearly the same and one in eight is not: "tabs" for
"spaces" in a short sentence is another statement.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, field

from memoryd.memory.errors import NoteError, StoreError
from memoryd.memory.head import NEAR, Head, digits, rarest
from memoryd.memory.heads import Heads
from memoryd.memory.known import says_same
from memoryd.memory.notes import Note, parse
from memoryd.memory.store import Store
from memoryd.memory.text import similarity, statement_key, words
from memoryd.memory.values import distinct_values, sense_key

_READ = 20


@dataclass
class Resembling:
    """Notes by how much they resemble what is to be saved, the nearest first."""

    same: list[Note] = field(default_factory=list)
    near: list[Note] = field(default_factory=list)
    alike: list[Note] = field(default_factory=list)


def resembling(
    store: Store,
    heads: Heads,
    description: str,
    content: str,
    *,
    without: Collection[str] = (),
) -> Resembling:
    """What of ``heads`` resembles a note of this description and content.

    ``heads`` are those of the store, refreshed; ``without`` are paths not to be looked at. At most
    20 files are read.
    """
    wanted = _Wanted.of(description, content)
    scored = [
        (-score, head.path)
        for head in wanted.candidates(heads)
        if head.path not in without and (score := wanted.score(head))
    ]
    found = Resembling()
    for _, path in sorted(scored)[:_READ]:
        note = _read(store, path)
        if note is not None:
            _sort(found, note, description, content)
    return found


@dataclass(frozen=True)
class _Wanted:
    """What is looked for, in the digits of heads."""

    content: str
    description: str
    rare: tuple[str, ...]
    size: int

    @classmethod
    def of(cls, description: str, content: str) -> _Wanted:
        spoken = set(words(f"{description} {content}"))
        return cls(
            digits(sense_key(content)),
            digits(sense_key(description)),
            tuple(map(digits, rarest(spoken))),
            len(spoken),
        )

    def candidates(self, heads: Heads) -> list[Head]:
        """All that ``score`` may give something."""
        least, most = math.floor(NEAR * self.size), math.ceil(self.size / NEAR)
        return heads.resembling({self.content, self.description}, self.rare, least, most)

    def score(self, head: Head) -> int:
        """0 for what cannot resemble it, more for what is likelier to."""
        score = 0
        if self.content in head.says:
            score = 1_000
        if self.description in head.says:
            score += 100
        if NEAR * self.size <= head.words and NEAR * head.words <= self.size:
            for word in self.rare:
                if word in head.rare:
                    score += 1
        return score


def _sort(found: Resembling, note: Note, description: str, content: str) -> None:
    one, other = f"{description} {content}", f"{note.description} {note.body}"
    near = similarity(one, other) >= NEAR
    if says_same(note, content):
        found.same.append(note)
    elif near and distinct_values(one) == distinct_values(other):
        found.near.append(note)
    elif near or statement_key(note.description) == statement_key(description):
        found.alike.append(note)


def _read(store: Store, path: str) -> Note | None:
    try:
        data = store.read(path)
        return None if data is None else parse(data, path)
    except (NoteError, StoreError):  # changed since it was looked at: nothing to compare with
        return None
