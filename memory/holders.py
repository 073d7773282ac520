"""Who holds the locks of a home, and since when: a look that takes nothing away from anybody."""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from memoryd.memory.home import Home

#: Longest pid that a lock file holds.
_PID_BYTES = 32
_SUFFIX = ".lock"


@dataclass(frozen=True)
class Holder:
    """A held lock: its name, its holder's pid, since when (ms).

    The name is ``daemon``, ``%inbox``, or the key of a store. ``pid`` is 0 where the
    holder could not write it down.
    """

    lock: str
    pid: int
    since: int


def holders(home: Home) -> list[Holder]:
    """Every lock of ``home`` that is held, the longest held first."""
    try:
        with os.scandir(home.locks) as entries:
            found = [entry.path for entry in entries if entry.name.endswith(_SUFFIX)]
    except OSError:
        return []
    held = (holder for path in found if (holder := _holder(Path(path))) is not None)
    return sorted(held, key=lambda each: (each.since, each.lock))


def _holder(path: Path) -> Holder | None:
    """Who holds the lock in ``path``; None where nobody does, or nobody can say."""
    for descriptor in _opened(path):
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode) or not about.st_size:
            return None  # given back, or never taken
        said = os.pread(descriptor, _PID_BYTES, 0).strip()
        pid = int(said) if said.isdigit() else 0
        if not _lives(pid) or not _is_held(descriptor):
            return None  # what a process left that died
        return Holder(path.name.removesuffix(_SUFFIX), pid, about.st_mtime_ns // 1_000_000)
    return None


def _opened(path: Path) -> Iterator[int]:
    """The lock file, open; nothing where it cannot be."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _lives(pid: int) -> bool:
    """Whether the process is there: a lock is asked about only where it may well be held.

    Asking takes it for an instant where it is free, which somebody who does not wait would see.
    """
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def _is_held(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    return False
