"""Heads: what each note of a store is called and says, without reading or even looking at it.

Kept in a derived file (``memory/head_file.py``). A folder that is as it was kept is not looked at;
of any other, new and changed files are read. So what is written into a file in place, which leaves
its folder as it was, is seen only by a whole ``refresh``: the listing of notes, renaming and
deleting make one, and so does the daemon when a file has changed. A save does not, since 10,000
``stat`` calls are most of its time. It trusts nothing that it finds: files it finds by name are
looked at, files it finds by what they say are read. A note with a secret in it is never kept.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Callable, Collection, Iterable
from functools import partial
from types import TracebackType
from typing import Self, TypeVar

from memoryd.memory.errors import StoreError
from memoryd.memory.head import FolderStamp, Head, look, name_key, stamp_of, stamps_in
from memoryd.memory.head_file import HeadFile, remove
from memoryd.memory.log import logger
from memoryd.memory.notes import TYPES, type_of
from memoryd.memory.store import Store

_T = TypeVar("_T")

#: A folder that is to be looked at again in any case.
_UNSURE = "?"


class Heads:
    """The heads of a project's live notes, for as long as it is entered: ``refresh``, then ask.

    No question fails for want of the file: what cannot be kept for the next time is only slower.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._file: HeadFile
        #: Heads that may not be kept, by path.
        self._hidden: dict[str, Head] = {}
        #: Folders of which all is known.
        self._known: set[str] = set()

    def __enter__(self) -> Self:
        self._file = HeadFile.open(self._store)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()

    def refresh(self, *, whole: bool = False) -> None:
        """Look at the folders that changed, or with ``whole`` at every file.

        Raises ``StoreError`` when a folder of the store cannot be listed.
        """
        kept = self._ask(HeadFile.folders)
        for folder in TYPES:
            stamp = FolderStamp.of(self._store.root / folder)
            if whole or kept.get(folder, "") != _text(stamp):
                self._look(folder, stamp)
            self._known.add(folder)

    def follow(self) -> None:
        """Before a write of our own where nothing is asked: have ``saved`` know what is as kept."""
        with contextlib.suppress(sqlite3.Error):
            for folder, stamp in self._file.folders().items():
                if stamp == _text(FolderStamp.of(self._store.root / folder)):
                    self._known.add(folder)

    def saved(self, paths: Iterable[str]) -> None:
        """Keep what we just wrote or removed, so that the next ``refresh`` need not look at it.

        The caller has held the writer lock since ``refresh`` or ``follow``. Never fails.
        """
        by_folder: dict[str, list[str]] = {}
        for path in paths:
            by_folder.setdefault(path.rpartition("/")[0], []).append(path)
        for folder in self._known & by_folder.keys():
            with contextlib.suppress(sqlite3.Error, OSError):
                self._keep(folder, by_folder[folder])

    def rewrite(self) -> bool:
        """Leave nothing readable in the file of what is no longer kept; whether that was done."""
        try:
            self._file.rewrite()
        except sqlite3.Error:
            return False
        return self._file.path is not None

    def all(self) -> list[Head]:
        """Every head, by type and path."""
        return sorted(self._with_hidden(self._ask(HeadFile.all)), key=_in_order)

    def named(self, name: str) -> list[Head]:
        """Every note whose name, or type and name, is ``name`` as names are compared.

        Each file is looked at: a note that is called otherwise by now is not among them.
        """
        whole, bare = name_key(name.strip()), name_key(name.strip().partition("/")[2])
        found = self._with_hidden(self._ask(lambda file: file.keyed(whole, bare)))
        return [head for head in self._as_they_are(found) if head.key in {whole, bare}]

    def at(self, path: str) -> list[Head]:
        """Every note in the file ``path``, case aside, each looked at."""
        found = self._with_hidden(self._ask(lambda file: file.filed(path)))
        if all(head.path != path for head in found) and self._store.holds(path):
            stamp = stamp_of(self._store.root / path)  # it came at this moment
            found += [] if stamp is None else [look(self._store, path, stamp)[0]]
        same = [head for head in found if head.path.casefold() == path.casefold()]
        return self._as_they_are(same)

    def resembling(
        self, says: Collection[str], rare: Collection[str], least: int, most: int
    ) -> list[Head]:
        """Notes that may say something: at least those that have one of the digits ``says``, or of
        ``rare`` and so many words at least and at most. They are not looked at."""
        found = self._ask(lambda file: file.sharing(rare, least, most))
        for each in says:
            found += self._ask(partial(HeadFile.saying, digits=each))
        return self._with_hidden({head.path: head for head in found}.values())

    def _ask(self, work: Callable[[HeadFile], _T]) -> _T:
        """What ``work`` finds in the file, or in what takes its place."""
        try:
            return work(self._file)
        except sqlite3.Error as error:
            self._file = self._file.instead(error)
        self.refresh(whole=True)
        return self._ask(work)

    def _look(self, folder: str, stamp: FolderStamp | None) -> None:
        """Have the file hold what is in a folder, whose ``stamp`` was taken before."""
        now_ns = time.time_ns()
        here = {} if stamp is None else stamps_in(self._store, folder)
        kept = self._ask(lambda file: file.stamps(folder))
        changed = [path for path in sorted(here) if kept.get(path) != here[path]]
        looked = [look(self._store, path, here[path]) for path in changed]
        hidden = {head.path: head for head, may_be_kept in looked if not may_be_kept}
        old = {path: head for path, head in self._hidden.items() if head.type != folder}
        self._hidden = old | hidden
        fresh = [head for head, may_be_kept in looked if may_be_kept]
        gone = [path for path in kept if path not in here or path in hidden]
        sure = not hidden and (stamp is None or stamp.tells(now_ns))
        text = _text(stamp) if sure else _UNSURE
        if gone or fresh or self._ask(HeadFile.folders).get(folder, "") != text:
            self._ask(lambda file: file.change(gone, fresh, {folder: text}))

    def _keep(self, folder: str, paths: Collection[str]) -> None:
        now_ns = time.time_ns()
        stamp = FolderStamp.of(self._store.root / folder)
        fresh: list[Head] = []
        for path in paths:
            if (seen := stamp_of(self._store.root / path)) is not None:
                head, may_be_kept = look(self._store, path, seen)
                if not may_be_kept:
                    return
                fresh.append(head)
        if any(head.type == folder for head in self._hidden.values()):
            return
        left = {head.path for head in fresh}
        gone = set(paths) - left
        if self._are_there(folder, (self._file.paths(folder) | left) - gone):
            sure = stamp is None or stamp.tells(now_ns)
            self._file.change(gone, fresh, {folder: _text(stamp) if sure else _UNSURE})

    def _are_there(self, folder: str, paths: set[str]) -> bool:
        """Whether these and no other notes are in a folder: nobody else wrote beside us."""
        place = self._store.root / folder
        names = os.listdir(place) if place.is_dir() else []  # noqa: PTH208 - names are enough
        there = {f"{folder}/{name}" for name in names}
        return paths <= there and not any(map(self._store.holds, there - paths))

    def _with_hidden(self, found: Iterable[Head]) -> list[Head]:
        return [*found, *self._hidden.values()]

    def _as_they_are(self, found: Iterable[Head]) -> list[Head]:
        """These heads, those of changed files read again, those of files that are gone left out."""
        current = []
        for head in sorted(found, key=_in_order):
            stamp = stamp_of(self._store.root / head.path)
            if stamp is not None:
                same = stamp == head.stamp
                current.append(head if same else look(self._store, head.path, stamp)[0])
        return current


def refresh_heads(store: Store) -> None:
    """Look at every note of a project, so that a save need not. A store that cannot be listed is
    left to whoever needs it."""
    with contextlib.suppress(StoreError), Heads(store) as heads:
        heads.refresh(whole=True)


def forget_heads(store: Store) -> None:
    """Have what is kept of a project hold nothing of the notes that are gone. Never fails.

    A file that cannot be rewritten now is removed: what is derived is made anew.
    """
    try:
        with Heads(store) as heads:
            heads.refresh(whole=True)
            if heads.rewrite():
                return
    except StoreError as error:
        logger().warning("heads.unchecked", store=store.key, reason=str(error))
    try:
        remove(store)
    except OSError as error:
        logger().warning("heads.left", store=store.key, reason=str(error))


def _text(stamp: FolderStamp | None) -> str:
    return "" if stamp is None else stamp.text()


def _in_order(head: Head) -> tuple[int, str]:
    return TYPES.index(type_of(head.path)), head.path
