"""The file in which heads are kept, ``.graph/heads.sqlite``: asked by index, never read whole.

Derived, and treated so: a file that is damaged, of another version or not ours is removed and made
anew; where none can be used (a full or read-only disk, a link in its place) one in memory stands
in for as long as it is needed. Nothing is synced: what a crash of the machine spoils is made anew.
A crash of a process spoils nothing (SQLite's journal).
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from memoryd.memory.files import FILE_MODE, make_directory
from memoryd.memory.head import Head, Stamp
from memoryd.memory.notes import TYPES
from memoryd.memory.store import DERIVED, Store

FILE = "heads.sqlite"

#: Where heads were kept before.
_FORMER = "heads.jsonl"
_VERSION = 1
_MEMORY = ":memory:"
#: Whoever fills the file for the first time takes this long; reading every note takes longer.
_WAIT_SECONDS = 1.0
#: Notes that one question may find by digits, the likeliest.
_MANY = 100

_TABLES = (
    """CREATE TABLE head (
        id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, changed_ns INTEGER NOT NULL,
        size INTEGER NOT NULL, readable INTEGER NOT NULL, name TEXT NOT NULL, key TEXT NOT NULL,
        description TEXT NOT NULL, source TEXT, valid_from TEXT, says TEXT NOT NULL,
        rare TEXT NOT NULL, words INTEGER NOT NULL, file TEXT NOT NULL)""",
    "CREATE INDEX head_key ON head (key)",
    "CREATE INDEX head_file ON head (file)",
    """CREATE TABLE digit (
        digit INTEGER NOT NULL, head INTEGER NOT NULL, PRIMARY KEY (digit, head)) WITHOUT ROWID""",
    "CREATE TABLE folder (path TEXT PRIMARY KEY, stamp TEXT NOT NULL)",
    f"PRAGMA user_version = {_VERSION}",
)
_COLUMNS = ", ".join(Head._fields)
_HEADS = f"SELECT {_COLUMNS} FROM head"
#: Faults of the place or the moment; after any other the file is made anew.
_NOT_THE_FILE = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_NOMEM,
    }
)


class _NotOursError(sqlite3.DatabaseError):
    """A file of another version, or of what no version of ours writes."""


@dataclass
class HeadFile:
    """The heads of one store as they are kept. Every method but ``open`` raises ``sqlite3.Error``;
    then ``instead`` gives another file, or memory."""

    store: Store
    database: sqlite3.Connection
    #: None: in memory.
    path: Path | None
    #: It was just made in the place of one that could not be used.
    anew: bool = False

    @classmethod
    def open(cls, store: Store) -> HeadFile:
        """What is kept of ``store``; something empty where nothing is or it cannot be used."""
        path = _usable(store)
        if path is None:
            return cls._in_memory(store)
        try:
            return cls(store, _connected(path), path)
        except sqlite3.Error as error:
            return cls._after(store, path, error)

    def instead(self, error: sqlite3.Error) -> HeadFile:
        """What to go on with after ``error``, empty. Raises it where even memory fails."""
        with contextlib.closing(self.database):
            if self.path is None:
                raise error
            return (
                self._in_memory(self.store)
                if self.anew
                else self._after(self.store, self.path, error)
            )

    @classmethod
    def _after(cls, store: Store, path: Path, error: sqlite3.Error) -> HeadFile:
        """A new file where ``error`` is the old one's fault, else memory."""
        if _is_spoilt(error):
            with contextlib.suppress(sqlite3.Error, OSError):
                path.unlink()
                path.with_name(f"{FILE}-journal").unlink(missing_ok=True)
                _create(path)
                return cls(store, _connected(path), path, anew=True)
        return cls._in_memory(store)

    @classmethod
    def _in_memory(cls, store: Store) -> HeadFile:
        return cls(store, _made(sqlite3.connect(_MEMORY, isolation_level=None)), None)

    def folders(self) -> dict[str, str]:
        """The stamp kept of each folder."""
        return dict(self.database.execute("SELECT path, stamp FROM folder").fetchall())

    def stamps(self, folder: str) -> dict[str, Stamp]:
        """The notes kept of a folder, by path."""
        found = self.database.execute(
            "SELECT path, changed_ns, size FROM head WHERE path > ? AND path < ?", _range(folder)
        )
        return {path: (changed_ns, size) for path, changed_ns, size in found}

    def paths(self, folder: str) -> set[str]:
        """Their paths alone."""
        found = self.database.execute(
            "SELECT path FROM head WHERE path > ? AND path < ?", _range(folder)
        )
        return {path for (path,) in found}

    def all(self) -> list[Head]:
        """Every head, by path."""
        return self._heads(f"{_HEADS} ORDER BY path")

    def keyed(self, *keys: str) -> list[Head]:
        """Those whose name has one of these keys."""
        marks = ", ".join("?" * len(keys))
        return self._heads(f"{_HEADS} WHERE key IN ({marks}) ORDER BY path", *keys)

    def filed(self, path: str) -> list[Head]:
        """Those in the file ``path``, case aside."""
        return self._heads(f"{_HEADS} WHERE file = ? ORDER BY path", path.casefold())

    def saying(self, digits: str) -> list[Head]:
        """Those of which one of the digits is this; a hundred at most."""
        return self._heads(
            f"{_HEADS} WHERE id IN (SELECT head FROM digit WHERE digit = ?) ORDER BY path LIMIT ?",
            int(digits, 16),
            _MANY,
        )

    def sharing(self, digits: Iterable[str], least: int, most: int) -> list[Head]:
        """Those of at least and at most so many words that have one of these digits.

        A hundred at most, those that have most of them first.
        """
        wanted = ", ".join(str(int(each, 16)) for each in digits)  # more than may be parameters
        return self._heads(
            f"""{_HEADS} JOIN (SELECT head, count(*) AS shared FROM digit
                WHERE digit IN ({wanted}) GROUP BY head) ON head = id
                WHERE words BETWEEN ? AND ? ORDER BY shared DESC, path LIMIT ?""",
            least,
            most,
            _MANY,
        )

    def change(
        self, gone: Iterable[str], fresh: Iterable[Head], folders: Mapping[str, str]
    ) -> None:
        """Keep ``fresh``, and of these folders these stamps; what is ``gone`` is no longer kept."""
        fresh = list(fresh)
        with self._transaction():
            for path in (*gone, *(head.path for head in fresh)):
                self._drop(path)
            for head in fresh:
                self._add(head)
            self.database.executemany("REPLACE INTO folder VALUES (?, ?)", folders.items())

    def rewrite(self) -> None:
        """Leave nothing in the file that was dropped: unused parts of its pages hold old rows."""
        self.database.execute("PRAGMA temp_store = MEMORY")
        self.database.execute("VACUUM")

    def close(self) -> None:
        """Let go of the file."""
        self.database.close()

    def _heads(self, question: str, *values: object) -> list[Head]:
        rows = self.database.execute(question, values).fetchall()
        try:
            return msgspec.convert(rows, list[Head], strict=False)
        except msgspec.ValidationError as error:
            raise _NotOursError("no heads") from error

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        self.database.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.database.execute("COMMIT")
        except BaseException:  # passed on: the transaction must not stay open
            if self.database.in_transaction:
                self.database.execute("ROLLBACK")
            raise

    def _drop(self, path: str) -> None:
        found = self.database.execute("SELECT id, says, rare FROM head WHERE path = ?", (path,))
        for number, says, rare in found.fetchall():
            self.database.executemany(
                "DELETE FROM digit WHERE digit = ? AND head = ?", _digits(number, says, rare)
            )
            self.database.execute("DELETE FROM head WHERE id = ?", (number,))

    def _add(self, head: Head) -> None:
        places = ", ".join("?" * (len(head) + 1))
        made = self.database.execute(
            f"INSERT INTO head ({_COLUMNS}, file) VALUES ({places})", (*head, head.path.casefold())
        )
        self.database.executemany(
            "INSERT OR IGNORE INTO digit VALUES (?, ?)",
            _digits(made.lastrowid or 0, head.says, head.rare),
        )


def _digits(number: int, says: str, rare: str) -> list[tuple[int, int]]:
    try:
        return [(int(each, 16), number) for each in f"{says} {rare}".split()]
    except ValueError as error:
        raise _NotOursError("no digits") from error


def _range(folder: str) -> tuple[str, str]:
    """What the paths in a folder are between: ``0`` comes after ``/``."""
    return f"{folder}/", f"{folder}0"


def remove(store: Store) -> None:
    """Have nothing kept of a store. Raises ``OSError``."""
    for name in (FILE, f"{FILE}-journal"):
        (store.root / DERIVED / name).unlink(missing_ok=True)


def _usable(store: Store) -> Path | None:
    """The file, made where it is missing; None where it should not or cannot be."""
    folder = store.root / DERIVED
    path = folder / FILE
    if not any((store.root / each).is_dir() for each in TYPES):
        return None  # there is nothing to keep, and looking at it makes nothing
    try:
        make_directory(folder)
        if not stat.S_ISDIR(folder.lstat().st_mode):
            return None
        with contextlib.suppress(OSError):
            (folder / _FORMER).unlink()
        if not os.path.lexists(path):
            _create(path)
        return path if stat.S_ISREG(path.lstat().st_mode) else None
    except OSError:  # a file in the folder's place, a disk that takes none: slower, no more
        return None


def _create(path: Path) -> None:
    # Only where there is none: closing a file drops the locks that SQLite has on it.
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, FILE_MODE))


def _connected(path: Path) -> sqlite3.Connection:
    database = sqlite3.connect(path, timeout=_WAIT_SECONDS, isolation_level=None)
    try:
        database.execute("PRAGMA synchronous = OFF")
        database.execute("PRAGMA secure_delete = ON")
        # A journal that stays: the folder does not change with every save.
        database.execute("PRAGMA journal_mode = TRUNCATE")
        if _is_empty(database):
            database.execute("BEGIN IMMEDIATE")
            if _is_empty(database):
                _made(database)
            database.execute("COMMIT")
        _require_version(database)
    except BaseException:  # passed on: the file must not stay open
        database.close()
        raise
    return database


def _is_empty(database: sqlite3.Connection) -> bool:
    (found,) = database.execute("SELECT count(*) FROM sqlite_master").fetchone()
    return int(found) == 0


def _made(database: sqlite3.Connection) -> sqlite3.Connection:
    for statement in _TABLES:
        database.execute(statement)
    return database


def _require_version(database: sqlite3.Connection) -> None:
    if database.execute("PRAGMA user_version").fetchone() != (_VERSION,):
        raise _NotOursError("another version")


def _is_spoilt(error: sqlite3.Error) -> bool:
    """Whether the file is at fault: damaged, of another version, not ours."""
    code = int(getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT))
    return (code & 0xFF) not in _NOT_THE_FILE
