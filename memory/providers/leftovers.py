"""What a program of ours started and left: found by a mark in its environment, and ended.

A process group holds only what stays in it: a program may fork, begin a session of its own, and let
its parent die. Its environment it hands on all the same. So each call has a mark, ``MEMORYD_CALL``:
the home, the process that called, when that was born, and a number. It is read from ``/proc`` where
there is one, else from ``ps``. A mark needs no file that could be stale, and tells after a crash
whose caller is dead.

What escapes: a process that clears its environment, leaves the group and outlives its parent.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

VARIABLE = "MEMORYD_CALL"
_PROC = Path("/proc")
#: Marks are looked for again until none is left: what is killed may be forking.
_ROUNDS = 20
_ENVIRONMENT_BYTES = 1 << 20
_PS_SECONDS = 10
_MARK = re.compile(rf"\b{VARIABLE}=([0-9a-f]{{12}})-(\d+)-(\w+)-(\d+)")
_numbers = itertools.count()


@dataclass(frozen=True)
class Mark:
    """Whose a process is: the folder of its home that it runs in (hashed), and who called."""

    place: str
    caller: int
    born: str
    number: int

    def __str__(self) -> str:
        return f"{self.place}-{self.caller}-{self.born}-{self.number}"


def new_mark(place: Path) -> Mark:
    """A mark for one call of this process, for a program that runs in ``place``."""
    return Mark(_hashed(place), os.getpid(), born(os.getpid()), next(_numbers))


def end_call(mark: Mark) -> None:
    """End every process that has ``mark``, wherever it went."""
    _end(mark.__eq__)


def end_calls_of_the_dead(place: Path) -> int:
    """End what callers that died left in ``place``; how many processes.

    For whoever holds the home's lock. Other callers of the home that live keep theirs.
    """
    here, alive = _hashed(place), {}

    def is_left(mark: Mark) -> bool:
        if (mark.caller, mark.born) not in alive:
            alive[mark.caller, mark.born] = born(mark.caller) == mark.born
        return mark.place == here and not alive[mark.caller, mark.born]

    return _end(is_left)


def born(pid: int) -> str:
    """When a process began, as a word that no later one of its number shares; "" where it is gone.

    Linux: field 22 of ``/proc/PID/stat``, in clock ticks since boot. Elsewhere ``ps -o lstart``.
    """
    if _PROC.is_dir():
        try:
            stat = (_PROC / str(pid) / "stat").read_text("utf-8", "replace")
        except OSError:
            return ""
        return stat.rpartition(")")[2].split()[19]
    return re.sub(r"\W", "", _ps("-o", "lstart=", "-p", str(pid)))


def _end(is_meant: Callable[[Mark], bool]) -> int:
    ended: set[int] = set()
    for _ in range(_ROUNDS):
        found = {pid for pid, mark in _marked() if is_meant(mark)} - {os.getpid(), os.getppid()}
        if not found:
            break
        for pid in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        ended |= found
    return len(ended)


def _marked() -> Iterator[tuple[int, Mark]]:
    """Every process of this user that has a mark. One that is dead and not yet reaped has none."""
    for pid, environment in _from_proc() if _PROC.is_dir() else _from_ps():
        if found := _MARK.search(environment):
            yield pid, Mark(found[1], int(found[2]), found[3], int(found[4]))


def _from_proc() -> Iterator[tuple[int, str]]:
    for entry in os.scandir(_PROC):
        if entry.name.isdigit():
            # Gone by now, or another user's.
            with suppress(OSError), (_PROC / entry.name / "environ").open("rb") as file:
                yield int(entry.name), file.read(_ENVIRONMENT_BYTES).decode("utf-8", "replace")


def _from_ps() -> Iterator[tuple[int, str]]:
    """The environment stands behind the command; the user's own processes alone show it."""
    for line in _ps("-axww", "-E", "-o", "pid=,command=").splitlines():
        pid, _, words = line.strip().partition(" ")
        if pid.isdigit():
            yield int(pid), words


def _ps(*options: str) -> str:
    """What ``ps`` prints, "" where it cannot be run."""
    try:
        done = subprocess.run(["ps", *options], capture_output=True, timeout=_PS_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "replace")


def _hashed(place: Path) -> str:
    return hashlib.sha256(os.fsencode(place.absolute())).hexdigest()[:12]
