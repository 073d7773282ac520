"""Names and paths that are free in a store, for the notes of one draft.

A name is taken by a note, whatever file it is in; a path by any file, readable or not, and by what
the draft gave away before. Two that differ by case only, or by how an accent is written, are one:
a volume may ignore both.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Sequence

from memoryd.memory import notes
from memoryd.memory.facts import NoteDraft
from memoryd.memory.files import sha256
from memoryd.memory.notes import ARCHIVE, Note

_SUFFIXES = 1_000


class FreeNames:
    """Asked for one name after another; each answer is taken from then on.

    ``notes_of`` gives the notes of a store, ``paths_of`` all its files, ``read`` a file's bytes.
    """

    def __init__(
        self,
        notes_of: Callable[[str], Sequence[Note]],
        paths_of: Callable[[str], Iterable[str]],
        read: Callable[[str, str], bytes | None],
    ) -> None:
        self._notes_of = notes_of
        self._paths_of = paths_of
        self._read = read
        self._names: dict[str, set[str]] = {}
        self._paths: dict[str, set[str]] = {}

    def name(self, store: str, drafted: NoteDraft) -> str:
        """The draft's name, with a number behind it where another statement holds it."""
        self._look(store)
        for number in range(1, _SUFFIXES):
            name = drafted.name if number == 1 else f"{drafted.name}-{number}"
            path = f"{drafted.type}/{notes.file_name(name)}"
            free = self._is_free(store, path) and self._is_free(store, f"{ARCHIVE}/{path}")
            if free and _caseless(name) not in self._names[store]:
                self._names[store].add(_caseless(name))
                self._paths[store].add(_caseless(path))
                return name
        return f"{drafted.name}-{sha256(drafted.content.encode())[:12]}"

    def path(self, store: str, path: str) -> str:
        """``path``, with a number behind its stem where there is such a file."""
        self._look(store)
        stem = path.removesuffix(".md")
        for number in range(1, _SUFFIXES):
            tried = path if number == 1 else f"{stem}-{number}.md"
            if self._is_free(store, tried):
                self._paths[store].add(_caseless(tried))
                return tried
        return f"{stem}-{sha256(path.encode())[:12]}.md"

    def _look(self, store: str) -> None:
        if store not in self._names:
            found = self._notes_of(store)
            self._names[store] = {_caseless(note.name) for note in found}
            there = (*(note.path for note in found), *self._paths_of(store))
            self._paths[store] = {_caseless(each) for each in there}

    def _is_free(self, store: str, path: str) -> bool:
        return _caseless(path) not in self._paths[store] and self._read(store, path) is None


def _caseless(text: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())
