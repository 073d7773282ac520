"""A deliberate change of a store: files decided on under its writer lock, written, committed.

What a person or their agent asks for at this moment, as opposed to a recorded plan: it is carried
out at once or refused as a whole. A person's uncommitted version of a file is committed as theirs
before it is changed, so that ``undo`` gives it back. A file that a person changed last stays
theirs (their name is on the commit), so that a session still changes it only through review.

A crash between a file and its commit leaves files that are as they were meant; they are taken into
the baseline with the next look at the store.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from memoryd.memory import seams
from memoryd.memory.baseline import Author, Baseline, blob_id
from memoryd.memory.derived import follow_index
from memoryd.memory.edits import write_tombstones
from memoryd.memory.errors import StoreError, UsageError
from memoryd.memory.files import sha256
from memoryd.memory.ids import uuid7
from memoryd.memory.projects import record_key
from memoryd.memory.store import Store
from memoryd.memory.theirs import commit_theirs, has_secret
from memoryd.memory.together import Rewrite, write_together
from memoryd.memory.tombstones import Forgotten, Tombstones

#: How long a person or agent is kept waiting for the writer lock.
WAIT_SECONDS = 5.0

#: The sha256 of files that standing plans leave; asked only when a file is not as ``HEAD`` has it.
Planned = Callable[[], Collection[str]]


def none_planned() -> Collection[str]:
    """No plan stands."""
    return ()


@dataclass(frozen=True)
class Made:
    """What was committed: the last commit, and the id that ``undo`` takes."""

    commit: str
    id: str


@dataclass
class Change:
    """One change while it is decided. The caller holds the writer lock from first to last.

    ``mine``: all of it is the person's own, whoever changed the files before. ``tombstones`` are
    those the store is to have, where they change.
    """

    baseline: Baseline
    now_ms: int
    planned: Planned = none_planned
    mine: bool = False
    tombstones: Tombstones | None = None
    #: What ``undo`` takes, where changes of several stores are one; else the change gets its own.
    id: str = ""
    _before: dict[str, bytes | None] = field(default_factory=dict)
    _after: dict[str, bytes | None] = field(default_factory=dict)
    _like: dict[str, str] = field(default_factory=dict)
    _told: dict[str, Author] = field(default_factory=dict)

    @property
    def store(self) -> Store:
        """The store that is changed."""
        return self.baseline.store

    @property
    def paths(self) -> list[str]:
        """The files that change, in the order in which they were put."""
        return list(self._after)

    def read(self, path: str) -> bytes | None:
        """The file as it stands, or as this change leaves it."""
        if path in self._after:
            return self._after[path]
        if path not in self._before:
            self._before[path] = self.store.read(path)
        return self._before[path]

    def put(
        self, path: str, data: bytes | None, *, like: str = "", author: Author | None = None
    ) -> None:
        """Have ``path`` become ``data`` (None: go); it belongs to whom the file ``like`` does, or
        to ``author``."""
        self.read(path)
        if author is not None:
            self._told[path] = author
        self._after[path] = data
        self._like[path] = like or self._like.get(path, path)

    def free_path(self, path: str) -> str:
        """``path``, or the first with a number behind its name where no file is."""
        stem, number, tried = path.removesuffix(".md"), 1, path
        while self.read(tried) is not None:
            number += 1
            tried = f"{stem}-{number}.md"
        return tried

    def is_persons(self, path: str) -> bool:
        """Whether a person changed the file last, committed as theirs yet or not."""
        data = self._before.get(path)
        if data is None:
            return False
        return self._is_uncommitted(path, data) or self.baseline.last_author(path) == "person"

    def carry_out(self, title: str, *trailers: tuple[str, str]) -> Made:
        """Write and commit. Raises ``UsageError`` for a secret, ``StoreError`` when a file changed
        at this moment: then every file is as it was."""
        self._require_no_secret()
        authors = {path: self._author(path) for path in self._after}
        for path in self._after:
            self._keep(path)
        write_together(
            [
                Rewrite(self.store, path, self._before[path], data)
                for path, data in self._after.items()
            ]
        )
        lines = self._lift()
        try:
            made = self._commit(title, trailers, authors, lines)
        except StoreError:
            self._write_back()
            raise
        follow_index(self.store)
        if not self.store.is_profile:
            record_key(self.store.home, self.store.key)
        return made

    def _is_uncommitted(self, path: str, data: bytes) -> bool:
        if self.baseline.files(None, path).get(path) == blob_id(data):
            return False
        return sha256(data) not in self.planned()

    def _require_no_secret(self) -> None:
        for path, data in self._after.items():
            if has_secret(data) or (data is not None and has_secret(self._before[path])):
                raise UsageError(
                    f"{path} holds a secret as it stands",
                    hint="take it out by hand first: it would stay in the history",
                )

    def _author(self, path: str) -> Author:
        if path in self._told:
            return self._told[path]
        return "person" if self.mine or self.is_persons(self._like[path]) else "memoryd"

    def _keep(self, path: str) -> None:
        data = self._before[path]
        if data == self._after[path]:  # ours, from a change that died before its commit
            return
        if data is not None and not has_secret(data) and self._is_uncommitted(path, data):
            commit_theirs(self.baseline, {path: data}, self.now_ms)

    def _write_back(self) -> None:
        """What could not be committed is not left to be taken for a person's edit."""
        head = self.baseline.files(None, *self._after)
        for path in reversed(self._after):
            data = self._after[path]
            if head.get(path) != (None if data is None else blob_id(data)):
                Rewrite(self.store, path, data, self._before[path]).write()

    def _lift(self) -> Mapping[str, bytes | None]:
        if self.tombstones is None:
            return {}
        old = Tombstones.of(self.store)
        return write_tombstones(self.store, old, self.tombstones)

    def _commit(
        self,
        title: str,
        trailers: tuple[tuple[str, str], ...],
        authors: Mapping[str, Author],
        lines: Mapping[str, bytes | None],
    ) -> Made:
        """One commit, or two with one id where files of both authors change."""
        identity = self.id or uuid7(self.now_ms)
        commit = ""
        rest: dict[str, bytes | None] = dict(lines)
        alone: list[Author] = ["memoryd"] if lines else []
        for author in dict.fromkeys(authors.values()) or alone:
            files = {path: self._after[path] for path in authors if authors[path] == author} | rest
            marks = [("Memoryd-Job", identity), *trailers]
            commit = self.baseline.commit(files, title, marks, author, now_ms=self.now_ms)
            seams.reach("store.committed")
            rest = {}
        return Made(commit, identity)


def lift(change: Change, *again: Forgotten) -> bool:
    """Have ``change`` lift the tombstones that ``again`` meets; whether there are any.

    What is saved deliberately now is said again, later than it was forgotten.
    """
    old = Tombstones.of(change.store)
    new = old.lift(*again) if old.data else old
    if new.data == old.data:
        return False
    change.tombstones = new
    return True
