"""Files that survive a power cut: temp in the same folder, fsync, rename, fsync the folder."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
from collections.abc import Callable
from pathlib import Path

from memoryd.memory import seams
from memoryd.memory.errors import DiskFull
from memoryd.memory.exchange import Still, put_in_place

FILE_MODE = 0o600
DIRECTORY_MODE = 0o700
#: The umask of every program that writes into the home for us.
PRIVATE = 0o077


def sha256(data: bytes) -> str:
    """Lower-case hex of the sha256 of ``data``."""
    return hashlib.sha256(data).hexdigest()


def is_full(error: OSError) -> bool:
    """Whether there was no room on the disk, or none left of the person's share."""
    return error.errno in {errno.ENOSPC, errno.EDQUOT}


def full_disk(message: str) -> DiskFull:
    """The error for what could not be written for want of room."""
    return DiskFull(message, hint="make room on the disk: nothing is lost, it is tried again")


def sync_directory(path: Path) -> None:
    """Make renames and creations in ``path`` durable. Raises ``OSError``."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_directory(path: Path) -> None:
    """Create ``path`` and its parents with mode 0700; one that exists keeps its mode."""
    missing = []
    folder = path
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    for folder in reversed(missing):
        try:
            folder.mkdir(mode=DIRECTORY_MODE)
        except FileExistsError:
            continue
        sync_directory(folder.parent)


def make_database_file(path: Path) -> None:
    """Make an empty file (0600) for a database where none is; an existing one is not opened.

    Closing any descriptor of a file drops every lock that this process has on it, SQLite's among
    them; another process may then take a log away that is still read
    (sqlite.org/howtocorrupt.html, 2.2). Raises ``OSError`` where it could not be written to.
    """
    file = path.resolve()
    try:
        os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE))
    except FileExistsError:
        if file.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), file) from None
        if not os.access(file, os.R_OK | os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), file) from None


#: The names under which ``write_atomic`` writes, and what SQLite lays beside a database so named.
_TEMPORARY = re.compile(r"\..{1,40}\.[0-9a-f]{12}\.tmp(?:-(?:journal|wal|shm))?", re.DOTALL)


def temporary_name(name: str) -> str:
    """A name for what is to be ``name`` when it is whole; ``old_leftovers`` knows it again."""
    return f".{name[:40]}.{secrets.token_hex(6)}.tmp"


def _never() -> bool:
    return False


def write_atomic(
    path: Path,
    data: bytes,
    *,
    still: Still | None = None,
    keep: Callable[[], bool] = _never,
    mode: int = FILE_MODE,
) -> bool:
    """Replace ``path`` by ``data`` (mode 0600): readers see the old bytes or the new, never half.

    ``mode`` is for files that are not ours and keep what they had. ``still`` is asked of the file
    that is replaced, when the new bytes are on disk under another name: False leaves that file, and
    False comes back. Raises ``OSError``; then the old file still stands and no temporary file is
    left, unless ``keep()`` says by then that ``leftovers`` is to find it.
    """
    temporary = path.with_name(temporary_name(path.name))
    try:
        seams.before("file.begun")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE)
        seams.reach("file.begun")
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            if mode != FILE_MODE:
                os.fchmod(file.fileno(), mode)
            seams.before("file.synced")
            os.fsync(file.fileno())
        seams.reach("file.synced")
        seams.before("file.placed")
        if still is None:
            temporary.replace(path)
        elif not put_in_place(temporary, path, still):
            temporary.unlink()
            return False
    except BaseException:  # passed on: no half-written file stays
        if not keep():
            temporary.unlink(missing_ok=True)
        raise
    seams.reach("file.placed")
    sync_directory(path.parent)
    return True


def leftovers(path: Path) -> list[Path]:
    """The temporary files of writes of ``path`` whose process died before they got its name.

    Nobody may be writing it now. Raises ``OSError``.
    """
    if not path.parent.is_dir():
        return []
    own = re.compile(rf"\.{re.escape(path.name[:40])}\.[0-9a-f]{{12}}\.tmp")
    return [each for each in sorted(path.parent.iterdir()) if own.fullmatch(each.name)]


def old_leftovers(folder: Path, before_ms: int) -> list[Path]:
    """Temporary files of whatever writes in ``folder``, last touched before ``before_ms`` (wall).

    Raises ``OSError``.
    """
    if not folder.is_dir():
        return []
    left = [each for each in sorted(folder.iterdir()) if _TEMPORARY.fullmatch(each.name)]
    return [each for each in left if _is_older(each, before_ms)]


def _is_older(path: Path, before_ms: int) -> bool:
    try:
        return path.lstat().st_mtime_ns // 1_000_000 < before_ms
    except FileNotFoundError:
        return False  # its writer is done


def read_or_none(path: Path) -> bytes | None:
    """The bytes of ``path``, or None where there is no such file. Other ``OSError`` is raised."""
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
