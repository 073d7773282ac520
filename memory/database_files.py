"""What stands in the place of an SQLite database, seen before anything opens it.

SQLite opens whatever it finds: an empty file becomes a new database, a pipe fails in words of its
own. Looking first tells a person what is there, and changes nothing.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
import stat
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from memoryd.memory.text import clip

#: The files that belong to a database in WAL mode (sqlite.org/wal.html).
COMPANIONS = ("-wal", "-shm")
#: Ends the name of a note beside a database that was put aside.
_LOST = "-lost"
#: What SQLite says of a file that is not whole; the rest is about the system around it.
_DAMAGE = (
    "malformed",
    "not a database",
    "encrypted",
    "no such table",
    "no such column",
    "no such index",
    "corrupt",
)
#: What SQLite says where the disk, or the system's limits, refuse.
_REFUSAL = ("is full", "disk I/O", "readonly", "unable to open")

#: The smallest page: a shorter file holds none.
_PAGE_BYTES = 512
#: Opens a file to ask whether it still has a name. Where the system has no such way, closing it
#: gives up this process's locks on it, which without a log protect nothing.
_LOOKING = getattr(os, "O_PATH", os.O_RDONLY | os.O_NONBLOCK) | os.O_CLOEXEC

#: With less than this SQLite cannot even open a log.
_ROOM_BYTES = 1 << 20


def out_of_place(path: Path) -> str:
    """What is wrong with what stands at ``path`` and beside it, in words; empty: a file or nothing.

    A link to a file is as good as the file. Raises ``OSError`` where it cannot be looked at.
    """
    if path.is_symlink() and not path.exists():
        return f"{path} is a link that leads nowhere"
    for each in (path, *companions(path)):
        try:
            found = each.stat() if each == path else each.lstat()
        except FileNotFoundError:
            continue
        if not stat.S_ISREG(found.st_mode):
            return f"{each} is {_named(found.st_mode)} where a file of a database should be"
        if each == path and 0 < found.st_size < _PAGE_BYTES:  # SQLite would begin anew over it
            return f"{each} has {found.st_size} bytes: it is no database"
    return ""


def companions(path: Path) -> tuple[Path, ...]:
    """The names of the log and the shared memory of the database at ``path``."""
    real = path.resolve()
    return tuple(real.with_name(f"{real.name}{each}") for each in COMPANIONS)


def is_log_lost(path: Path) -> bool:
    """Whether the log of the database at ``path`` was taken away after an unclean end.

    SQLite makes the log before the shared memory, and removes it after that, so shared memory
    without a log shows only where somebody took the log away. Others may open and close it between
    two looks: it counts where one file was there before and after the log was seen missing. Raises
    ``OSError``.
    """
    log, shared = companions(path)
    if os.path.lexists(log):
        return False
    try:
        held = os.open(shared, _LOOKING)
    except FileNotFoundError:
        return False
    try:
        is_gone = not os.path.lexists(log)
        return is_gone and os.fstat(held).st_nlink > 0 and not is_empty(path)
    finally:
        os.close(held)


def is_empty(path: Path) -> bool:
    """Whether no byte of a database is at ``path``. Raises ``OSError``."""
    try:
        return path.stat().st_size == 0
    except FileNotFoundError:
        return True


def is_damage(text: str) -> bool:
    """Whether what SQLite said means that the file itself is not whole."""
    return any(words in text for words in _DAMAGE)


def is_refusal(text: str) -> bool:
    """Whether what SQLite said means that the system refused: no room, no right, no descriptor."""
    return any(words in text for words in _REFUSAL)


def glance(path: Path, seconds: float) -> str:
    """What is wrong with the database at ``path``, as far as is seen within ``seconds``.

    Empty where nothing is, none is there, or it was kept from looking. Writes nothing of its own.
    """
    import sqlite3

    try:
        if is_empty(path) or (wrong := out_of_place(path)):
            return "" if is_empty(path) else wrong
        ends = time.monotonic() + seconds
        where = f"file:{quote(os.fspath(path))}?mode=ro"
        with contextlib.closing(sqlite3.connect(where, uri=True, timeout=seconds)) as opened:
            opened.set_progress_handler(lambda: time.monotonic() > ends, 10_000)
            found = str(opened.execute("pragma quick_check(1)").fetchone()[0])
    except OSError:
        return ""
    except sqlite3.Error as error:
        return one_line(str(error)) if is_damage(str(error)) else ""
    return "" if found == "ok" else one_line(found)


def one_line(said: str) -> str:
    """What SQLite said of damage, in one line of 200 characters at most.

    ``quick_check`` puts its own heading, in stars, above what it found.
    """
    words = " ".join(each for each in said.split("\n") if not each.startswith("***"))
    return clip(" ".join(words.split()) or "it is not whole", 200)


def refused_todo(path: Path) -> str:
    """What to do where the system refused the database at ``path``: the likeliest cause, looked at
    now."""
    try:
        disk = os.statvfs(path.parent)
        os.close(os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):
            return f"too many files are open ({error.strerror}): raise the limit (ulimit -n)"
        return f"{path.parent} cannot be looked at: {error.strerror}"
    if disk.f_flag & os.ST_RDONLY:
        return "the disk is mounted read-only: mount it for writing; nothing is lost"
    if disk.f_bavail * disk.f_frsize < _ROOM_BYTES:
        return "the disk is full: make room, then ask again; what memoryd keeps is not lost"
    return "check that the disk has room and who owns the home: `memoryd doctor` looks it over"


def address(path: Path) -> str:
    """The URI by which SQLite opens the database at ``path`` and makes none where none is."""
    return f"file:{quote(os.fspath(path))}?mode=rw"


def reading_address(path: Path) -> str:
    """The URI by which SQLite opens the database at ``path`` for reading alone.

    A reader shares memory with those who write, in a file beside the database; where that is not
    there and cannot be made, nobody writes, and a database without a log is read as it is
    (sqlite.org/wal.html, "Read-Only Databases"). Raises ``sqlite3.Error`` where it cannot be read.
    """
    only = f"file:{quote(os.fspath(path))}?mode=ro"
    try:
        with closing(sqlite3.connect(only, uri=True)) as connection:
            connection.execute("pragma schema_version").fetchone()
    except sqlite3.OperationalError as error:
        if not is_refusal(str(error)) or not all(map(is_empty, companions(path)[:1])):
            raise
        return f"{only}&immutable=1"
    return only


def _named(mode: int) -> str:
    kinds = {
        stat.S_IFDIR: "a folder",
        stat.S_IFIFO: "a pipe",
        stat.S_IFLNK: "a link",
        stat.S_IFSOCK: "a socket",
    }
    return kinds.get(stat.S_IFMT(mode), "a device")


def put_aside(path: Path, now_ms: int) -> Iterator[tuple[Path, Path]]:
    """Move the database at ``path`` and its companions aside; each old and new name.

    They keep their content: ``NAME.damaged-<time>``, ``NAME.damaged-<time>-wal``. Whoever holds the
    home's lock calls it. Raises ``OSError``.
    """
    aside = path.with_name(f"{path.name}.damaged-{now_ms}")
    for each, to in (
        (path, aside),
        *(
            (path.with_name(f"{path.name}{end}"), aside.with_name(f"{aside.name}{end}"))
            for end in COMPANIONS
        ),
    ):
        if os.path.lexists(each):
            each.rename(to)
            yield each, to


def asides(path: Path) -> list[Path]:
    """What was put aside of the database at ``path``, the oldest first."""
    found = path.parent.glob(f"{path.name}.damaged-*")
    return sorted(each for each in found if not each.name.endswith((*COMPANIONS, _LOST)))


def lost_note(aside: Path) -> Path:
    """Where it is written that a database put aside may have known what nothing else knows."""
    return aside.with_name(f"{aside.name}{_LOST}")
