"""Notes that are gone: who moved them, and when so many at once are an accident.

A note that turns up elsewhere was moved: under the same bytes, the same file name whatever its
case, or with most of its words, in the store's folders, beside them, or in another store. What is
left is gone. A third of a store or twenty notes gone at once, or the whole folder, is no decision
but an accident (a disk that is not mounted, a cloud drive that is away, a slip of the hand) until a
person says otherwise: the store is held, and its index stays as it was.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from memoryd.memory.baseline import Baseline, blob_id
from memoryd.memory.conflicts import conflict_of
from memoryd.memory.errors import NoteError, StoreError, StoreHeld
from memoryd.memory.notes import parse
from memoryd.memory.store import TOMBSTONES, Store
from memoryd.memory.text import statement_key

#: Notes gone at once that hold a store: this many, or a third of it where that is three or more.
MASS_NOTES = 20
MASS_SHARE = 3
MASS_AT_LEAST = 3

#: Comparing words is left out where it would be more pairs of notes than this.
_MOST_PAIRS = 20_000

#: Folders inside a store's root that are looked through for notes that were parked there.
_MOST_FOLDERS = 200


@dataclass(frozen=True)
class Moved:
    """A note that a person moved: ``path`` is where it was, ``to`` where it is now.

    ``store`` is the key of another store it went to; None where it stayed in its own. A ``to`` that
    is no place of notes (a folder beside them) is no memory any more, and not forgotten either.
    ``names`` are its ``type/name`` before and after, where both are readable notes of the store.
    """

    path: str
    to: str
    store: str | None = None
    names: tuple[str, str] | None = field(default=None, compare=False)


def is_kept_elsewhere(store: Store, path: str) -> bool:
    """Whether a cloud drive took the file away and left a placeholder for it."""
    folder, _, name = path.rpartition("/")
    return os.path.lexists(store.root / folder / f".{name}.icloud")


def is_empty(data: bytes | None) -> bool:
    """Whether a file holds nothing, as a placeholder of a cloud drive or a cut write does."""
    return data is not None and not data.strip(b"\0 \t\r\n")


def same_name(one: str, other: str) -> bool:
    """Whether two paths end in one file name, whatever its case and Unicode form."""
    return _folded(one) == _folded(other)


class Trail:
    """What became of the ``vanished`` notes (path: blob in ``HEAD``) of a store.

    ``new`` are the files (path: blob) that it has and ``HEAD`` has not. Whatever has to be read for
    an answer is read once, and only when it is asked for.
    """

    def __init__(
        self, baseline: Baseline, vanished: Mapping[str, str], new: Mapping[str, str]
    ) -> None:
        self.baseline = baseline
        self._vanished = vanished
        self._new = new

    def here(self, path: str) -> list[str]:
        """Which of the new files the note that was at ``path`` may have become."""
        blob = self._vanished[path]
        found = [
            other
            for other, made in self._new.items()
            if made == blob or same_name(path, other) or conflict_of(other) == path
        ]
        if found or len(self._new) * len(self._vanished) > _MOST_PAIRS:
            return found
        return [other for other, words in self._new_words.items() if _alike(self._old(path), words)]

    def elsewhere(self, path: str) -> Moved | None:
        """Where outside the store's folders of notes the note that was at ``path`` is now."""
        name, blob = _folded(path), self._vanished[path]
        for other, found in self._in_other_stores.get(name, ()):
            data = _read(other, found)
            if data is not None and (
                blob_id(data) == blob or _alike(self._old(path), _words(data, found))
            ):
                return Moved(path, found, other.key)
        beside = (each for each in self._beside.get(name, ()) if self._blob_of(each) == blob)
        return next((Moved(path, each) for each in beside), None)

    def _old(self, path: str) -> set[str]:
        return self._old_words[self._vanished[path]]

    @cached_property
    def _old_words(self) -> dict[str, set[str]]:
        paths = {blob: path for path, blob in self._vanished.items()}
        contents = self.baseline.contents(paths)
        return {blob: _words(data, paths[blob]) for blob, data in contents.items()}

    @cached_property
    def _new_words(self) -> dict[str, set[str]]:
        return {path: _words(_read(self.baseline.store, path), path) for path in self._new}

    @cached_property
    def _in_other_stores(self) -> dict[str, list[tuple[Store, str]]]:
        store = self.baseline.store
        found: dict[str, list[tuple[Store, str]]] = {}
        for other in Store.in_projects(store.home):
            for path in () if other.key == store.key else _paths(other):
                found.setdefault(_folded(path), []).append((other, path))
        return found

    @cached_property
    def _beside(self) -> dict[str, list[str]]:
        """Files below the store's root that are no notes, as one that was parked there."""
        store = self.baseline.store
        found: dict[str, list[str]] = {}
        for number, (folder, folders, names) in enumerate(os.walk(store.root)):
            if number >= _MOST_FOLDERS:
                break
            folders[:] = [each for each in folders if not each.startswith(".")]
            inside = Path(folder).relative_to(store.root)
            for path in ((inside / name).as_posix() for name in names):
                if not store.holds(path):
                    found.setdefault(_folded(path), []).append(path)
        return found

    def _blob_of(self, path: str) -> str | None:
        place = self.baseline.store.root / path
        try:
            plain = place.is_file() and not place.is_symlink()
            return blob_id(place.read_bytes()) if plain else None
        except OSError:  # what cannot be read there is not the note
            return None


def require_no_mass(store: Store, gone: int, known: Mapping[str, str]) -> None:
    """Raise ``StoreHeld`` where ``gone`` of the ``known`` notes are too many to be meant."""
    total = sum(1 for path in known if path != TOMBSTONES)
    if is_mass(gone, total):
        raise StoreHeld(
            f"{gone} of {total} notes of {store.key} vanished at once or became empty",
            hint=f"`memoryd memory restore --project {store.key}` puts them back,"
            " with --let-go it forgets them",
        )


def is_mass(gone: int, total: int) -> bool:
    """Whether ``gone`` of ``total`` notes at once is an accident rather than a wish."""
    return gone >= MASS_NOTES or (gone >= MASS_AT_LEAST and gone * MASS_SHARE >= total)


def require_folder(baseline: Baseline) -> None:
    """Raise ``StoreHeld`` where the store's whole folder is away and its history holds notes."""
    store = baseline.store
    total = sum(1 for path in baseline.files() if path != TOMBSTONES)
    if total:
        raise StoreHeld(
            f"the folder of {store.key} vanished with its {total} notes",
            hint=f"put {store.root} back, or have it made from its history:"
            f" `memoryd memory restore --project {store.key}`",
        )


def _folded(path: str) -> str:
    name = path.rpartition("/")[2]
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def _paths(store: Store) -> list[str]:
    try:
        return store.paths()
    except StoreError:  # what cannot be listed there is not moved there
        return []


def _read(store: Store, path: str) -> bytes | None:
    try:
        return store.read(path)
    except StoreError:  # unreadable there is not moved there
        return None


def _words(data: bytes | None, path: str) -> set[str]:
    """The statements of a note, one a line; of a file whose header is damaged all its lines."""
    if data is None:
        return set()
    try:
        note = parse(data, path)
        lines = [note.description, *note.body.splitlines()]
    except NoteError:
        lines = data.decode("utf-8", "replace").splitlines()
    return {key for line in lines if (key := statement_key(line))}


def _alike(one: set[str], other: set[str]) -> bool:
    return bool(one and other) and 2 * len(one & other) > max(len(one), len(other))
