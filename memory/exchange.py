"""Putting a file in the place of another, and taking one away, without losing a save in between.

Between a look at a file and a rename over it a person's editor may save. Linux can exchange two
names in one step (``renameat2``, ``RENAME_EXCHANGE``): what was really replaced is looked at after
it, and put back where it is not what was meant. Where the system or the file system cannot, the
file is looked at right before the rename, and a save within those microseconds is overwritten.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import secrets
from collections.abc import Callable
from pathlib import Path

from memoryd.memory import seams

_AT_FDCWD = -100
_EXCHANGE = 2  # RENAME_EXCHANGE of linux/fs.h
_CANNOT = {errno.ENOSYS, errno.EINVAL, errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK}

#: Whether the file at a place is the one that was decided on.
Still = Callable[[Path], bool]


def put_in_place(new: Path, path: Path, still: Still) -> bool:
    """Rename ``new`` to ``path`` if the file there is ``still`` the same (or still missing).

    False when it is not: then ``path`` is as its last writer left it, and ``new`` may be removed.
    Raises ``OSError``.
    """
    there = os.path.lexists(path)
    if not still(path):
        return False
    if not there:
        return _link(new, path)
    ours = _identity(new)
    try:
        exchanged = exchange(new, path)
    except FileNotFoundError:  # deleted at this moment
        return False
    if not exchanged:
        new.replace(path)
        return True
    if still(new):
        new.unlink()
        return True
    _back(new, path, ours)
    return False


def take_away(path: Path, still: Still) -> bool:
    """Unlink ``path`` if it is ``still`` the same; False, and it stands, when it is not.

    It is set aside first, so that what is unlinked is what was looked at. Raises ``OSError``.
    """
    if not still(path):
        return False
    aside = path.with_name(f".{path.name[:40]}.{secrets.token_hex(6)}.tmp")
    seams.before("file.set-aside")
    try:
        path.rename(aside)
    except FileNotFoundError:
        return False
    try:
        seams.reach("file.set-aside")
        if still(aside):
            aside.unlink()
            return True
    except BaseException:  # passed on: nothing is left under a name that nobody looks for
        _link(aside, path)
        aside.unlink(missing_ok=True)
        raise
    _link(aside, path)
    aside.unlink(missing_ok=True)  # where it is left, a newer save stands at the path
    return False


def exchange(one: Path, other: Path) -> bool:
    """Exchange the files of two names in one step; False where that cannot be done here.

    Raises ``OSError``, as when either is missing.
    """
    call = _renameat2()
    if call is None:
        return False
    number = call(os.fsencode(one), os.fsencode(other))
    if number in _CANNOT:
        return False
    if number:
        raise OSError(number, os.strerror(number), str(other))
    return True


def _back(new: Path, path: Path, ours: tuple[int, ...] | None) -> None:
    """Exchange again; where a person saved once more in between, their newest stands."""
    with contextlib.suppress(FileNotFoundError):  # deleted at this moment: that stands
        exchange(new, path)
        if _identity(new) != ours:
            exchange(new, path)


def _identity(path: Path) -> tuple[int, ...] | None:
    try:
        seen = path.lstat()
    except FileNotFoundError:
        return None
    return seen.st_dev, seen.st_ino, seen.st_mtime_ns, seen.st_size


def _link(new: Path, path: Path) -> bool:
    """Move ``new`` to ``path``, which no file has; False when one has it by now."""
    try:
        os.link(new, path, follow_symlinks=False)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _CANNOT:
            raise
        if os.path.lexists(path):
            return False
        new.replace(path)  # a file system without hard links
        return True
    new.unlink()
    return True


@functools.cache
def _renameat2() -> Callable[[bytes, bytes], int] | None:
    """``renameat2`` with the exchange flag, giving the error's number; None where it is missing."""
    import ctypes

    try:
        call = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError):
        return None

    def exchanging(one: bytes, other: bytes) -> int:
        done = call(_AT_FDCWD, one, _AT_FDCWD, other, _EXCHANGE)
        return ctypes.get_errno() if done else 0

    return exchanging
