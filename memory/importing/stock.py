"""What a store holds, has held and has forgotten: what a file to be imported is held against."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field

from memoryd.memory.baseline import Baseline
from memoryd.memory.notes import Note
from memoryd.memory.store import TOMBSTONES, Store
from memoryd.memory.text import statement_key, words
from memoryd.memory.tombstones import Tombstones

#: The trailer that names, by digest, every file an import commit took in.
IMPORTED = "Memoryd-Imported"

_DIGEST_CHARACTERS = 16
#: A line with fewer words is a heading or a label, and no statement that could be forgotten.
_STATEMENT_WORDS = 2


@dataclass
class Stock:
    """What a store holds and has held, and what this import adds to it."""

    tombstones: Tombstones | None
    #: Of every file an import ever took in.
    digests: set[str]
    #: Lower-cased, of what is in the store, in ``HEAD`` or to be written.
    paths: set[str]
    #: In ``HEAD``, and not in the store any more.
    gone: set[str]
    #: Notes by their ``source``, by what they say, and by type and name.
    origins: dict[str, Note] = field(default_factory=dict)
    bodies: dict[str, Note] = field(default_factory=dict)
    names: dict[tuple[str, str], Note] = field(default_factory=dict)

    @classmethod
    def of(cls, store: Store) -> Stock:
        """What ``store`` holds now. Raises ``StoreError`` where it cannot be read."""
        baseline = Baseline(store)
        here = store.paths()
        known = set(baseline.files())
        made = cls(
            Tombstones.of(store) if store.read(TOMBSTONES) else None,
            {
                each
                for commit in baseline.with_trailer(IMPORTED)
                for line in commit.values(IMPORTED)
                for each in line.split()
            },
            {path.lower() for path in (*here, *known)},
            known - set(here),
        )
        for note in store.notes():
            made.add(note)
        return made

    def add(self, note: Note) -> None:
        """Count ``note`` as there."""
        self.paths.add(note.path.lower())
        if note.source:
            self.origins.setdefault(note.source, note)
        self.bodies.setdefault(says(note), note)
        if not note.archived:
            self.names.setdefault((note.type, note.name.casefold()), note)

    def forgets(self, note: Note) -> bool:
        """Whether the person forgot it: its name, what it says, or a line of it."""
        if self.tombstones is None:
            return False
        texts = {note.body, *_statements(note.body)}
        if statement_key(note.description) not in _headings(note.body):
            texts.add(note.description)
        return any(self.tombstones.forgets(note.name, text) for text in texts)

    def in_the_way(self, note: Note) -> str:
        """The path of the current note that has this note's name and type; else empty."""
        named = self.names.get((note.type, note.name.casefold()))
        return named.path if named is not None else ""


def _statements(body: str) -> Iterable[str]:
    """The lines of a body that state something: no headings, no labels."""
    for line in body.splitlines():
        text = line.strip().strip("*")
        if (
            not text.startswith("#")
            and not text.endswith(":")
            and len(words(text)) >= _STATEMENT_WORDS
        ):
            yield line


def _headings(body: str) -> set[str]:
    lines = (line.strip() for line in body.splitlines())
    return {statement_key(line.lstrip("#")) for line in lines if line.startswith("#")}


def says(note: Note) -> str:
    """What a note says, such that two that say the same are equal."""
    return statement_key(note.body) or statement_key(note.description)


def digest(origin: str) -> str:
    """What stands for a file in the trailer of the commit that took it in."""
    return hashlib.sha256(origin.encode()).hexdigest()[:_DIGEST_CHARACTERS]
