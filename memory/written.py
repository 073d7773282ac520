"""Which files each plan has put into a store, known before anyone can see them.

A plan that died before its commit leaves files that a person may take away again: by hand, by
forgetting, renaming or superseding the note. To the call that goes on with the plan such a file
looks like one that was never written. So a new file is noted here first, one synced line, and what
is noted and gone is a person's doing. The line is written when the file is there under a temporary
name, so that a process which dies between the line and the file leaves that: then it was never in
place, and ``take_up`` says so. (After a power cut even that may be gone: the fact then is not
written, and nothing else is lost by it.)

The file stands beside the baseline and holds the lines of plans that are not committed yet: a plan
and a path each. The caller holds the writer lock.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from memoryd.memory import seams
from memoryd.memory.errors import StoreError
from memoryd.memory.files import (
    FILE_MODE,
    full_disk,
    is_full,
    leftovers,
    read_or_none,
    sha256,
    sync_directory,
    write_atomic,
)
from memoryd.memory.plan import Operation, Plan
from memoryd.memory.store import Store

_NAME = "memoryd-written"


@dataclass
class Written:
    """The new files of one plan in one store. ``plan`` is ``Plan.digest``."""

    store: Store
    plan: str
    paths: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, store: Store, plan: Plan) -> Written:
        """What the plan had put into the store so far. Raises ``StoreError``."""
        written = cls(store, plan.digest)
        written.paths = {path for owner, path in written._lines() if owner == written.plan}
        return written

    def __contains__(self, path: str) -> bool:
        return path in self.paths

    def note(self, path: str) -> None:
        """Have it known, also after a power cut, that the file is there. Raises ``StoreError``."""
        if path in self.paths:
            return
        place = self._place
        seams.before("written.noted")
        try:
            is_new = not place.exists()
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(place, flags, FILE_MODE)
            try:
                # A line that a power cut left in halves ends here, too.
                os.write(descriptor, f"\n{self.plan}\t{path}\n".encode())
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            if is_new:
                sync_directory(place.parent)
        except OSError as error:
            raise _failed(place, error) from error
        self.paths.add(path)
        seams.reach("written.noted")

    def take_up(self, operations: Iterable[Operation]) -> list[Path]:
        """Find what a process that died had not put in place yet: that was not written.

        The temporary files of it come back, to be removed once the files are in place, and those
        of what ``operations`` remove, set aside a moment before. One that holds anything else than
        they leave or found is not ours to remove. Raises ``StoreError``.
        """
        found: list[Path] = []
        for each in operations:
            place = self.store.root / each.path
            try:
                begun = [left for left in leftovers(place) if _is_of(each, left.read_bytes())]
            except OSError as error:
                raise _failed(place, error) from error
            if begun and each.content is not None and not os.path.lexists(place):
                self.paths.discard(each.path)
            found += begun
        return found

    def forget(self) -> None:
        """The plan is committed or given up: drop its lines. Raises ``StoreError``."""
        lines = self._lines()
        others = [(owner, path) for owner, path in lines if owner != self.plan]
        if len(others) == len(lines):
            return
        text = "".join(f"{owner}\t{path}\n" for owner, path in others)
        try:
            if text:
                write_atomic(self._place, text.encode())
            else:
                # Not synced: the lines of a plan that is committed say nothing any more.
                self._place.unlink()
        except OSError as error:
            raise _failed(self._place, error) from error

    @property
    def _place(self) -> Path:
        return self.store.git_dir / _NAME

    def _lines(self) -> list[tuple[str, str]]:
        try:
            data = read_or_none(self._place) or b""
        except OSError as error:
            raise _failed(self._place, error) from error
        parts = (line.partition("\t") for line in data.decode("utf-8", "replace").split("\n"))
        return [(owner, path) for owner, tab, path in parts if tab]


def any_written(store: Store) -> bool:
    """Whether a plan stands half applied in the store. Raises ``StoreError``."""
    return bool(Written(store, "")._lines())


def _is_of(operation: Operation, data: bytes) -> bool:
    """Whether ``data`` is what the operation writes, as far as it came, or what it takes away."""
    if operation.content is None:
        return sha256(data) == operation.before
    return operation.content.encode().startswith(data)


def _failed(place: Path, error: OSError) -> StoreError:
    reason = error.strerror or "it cannot be used"
    if is_full(error):
        return full_disk(f"{place.name} of the baseline cannot be written: {reason}")
    return StoreError(f"{place} cannot be used", hint=reason)
