"""Transcripts in an agent's own SQLite database: positions are row ids. Never written, never held.

A database belongs to its agent, which may be writing it now. It is opened read-only and one row is
read by each statement, so that no lock lasts longer than a row. A plain read-only connection still
makes ``-wal`` and ``-shm`` files beside a database in WAL mode that nobody has open, and writes its
marks into a ``-shm`` that is there; so the first is opened as immutable, for as long as the file
does not change, and the second with ``readonly_shm`` (sqlite.org/wal.html, sqlite.org/uri.html).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path
from typing import Protocol, Self
from urllib.parse import quote

from memoryd.memory.errors import TranscriptBusy, TranscriptError, TranscriptGone
from memoryd.memory.log import logger
from memoryd.sessions.adapter import Found
from memoryd.sessions.lines import LINE_LIMIT_BYTES, is_bomb, mark_of, stat_file
from memoryd.sessions.source import Item, Look

#: How long a lock of the agent's is waited for.
BUSY_SECONDS = 0.25
#: Row ids listed by one statement.
LISTED = 500
#: Sessions listed of one database at most, the newest first.
SESSIONS_LIMIT = 100_000
#: How often a database that changes under an immutable connection is opened anew.
_CHANGES = 3
_BUSY_CODES = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}

_unlisted: ContextVar[dict[Path, str] | None] = ContextVar("unlisted", default=None)

Value = str | int | float | bytes | None
Row = tuple[Value, ...]


class Foreign:
    """A connection to another program's database that only reads. Use it as a context."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection: sqlite3.Connection | None = None
        #: What the file looked like when it was taken to be unchanging; None where it was not.
        self._unchanging: tuple[int, ...] | None = None
        self._columns: dict[str, set[str]] = {}

    def __enter__(self) -> Self:
        """Open it. Raises ``TranscriptGone`` and ``TranscriptError``."""
        self._open()
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def ask(self, statement: str, values: tuple[Value, ...] = ()) -> list[Row]:
        """All rows that ``statement`` gives; it bounds them itself.

        Raises ``TranscriptBusy`` where the agent holds the database too long, ``TranscriptError``
        for what is no database or not the expected tables, ``sqlite3.DataError`` for a value over
        ``LINE_LIMIT_BYTES``.
        """
        for _ in range(_CHANGES):
            rows = self._asked(statement, values)
            if self._unchanging is None or self._unchanging == _identity(self.path):
                return rows
            self.__exit__()
            self._open()
        raise self._busy()

    def columns(self, table: str) -> set[str]:
        """The columns of ``table``, none where there is no such table."""
        if table not in self._columns:
            rows = self.ask("SELECT name FROM pragma_table_info(?)", (table,))
            self._columns[table] = {str(name) for (name,) in rows}
        return self._columns[table]

    def _asked(self, statement: str, values: tuple[Value, ...]) -> list[Row]:
        assert self._connection is not None
        try:
            return self._connection.execute(statement, values).fetchall()
        except sqlite3.DataError:
            raise
        except sqlite3.Error as error:
            if self._unchanging is not None and self._unchanging != _identity(self.path):
                return []  # it changed meanwhile, so this says nothing of it
            raise self._named(error) from error

    def _open(self) -> None:
        if stat_file(self.path) is None:
            raise TranscriptGone(
                f"the database {self.path} is not there any more",
                hint="what was ingested before is kept",
            )
        self._unchanging = _identity(self.path)
        name = quote(str(self.path))
        options = "mode=ro&immutable=1" if self._unchanging else "mode=ro&readonly_shm=1"
        try:
            self._connection = _connect(f"file:{name}?{options}")
        except sqlite3.Error as error:
            unchanged = self._unchanging and self._unchanging == _identity(self.path)
            if unchanged or _is_busy(error):
                raise self._named(error) from error
            # Its agent came back just now; or the index beside the log is missing, and only a
            # connection that may make it can read.
            self._unchanging = None
            self._open_plainly(name)

    def _open_plainly(self, name: str) -> None:
        try:
            self._connection = _connect(f"file:{name}?mode=ro")
        except sqlite3.Error as error:
            raise self._named(error) from error

    def _named(self, error: sqlite3.Error) -> TranscriptError:
        if _is_busy(error):
            return self._busy()
        return TranscriptError(
            f"the database {self.path} cannot be read: {error}",
            hint="its agent may be newer than memoryd knows; other agents are read on",
        )

    def _busy(self) -> TranscriptBusy:
        return TranscriptBusy(
            f"the database {self.path} is in use", hint="it is read when its agent lets go of it"
        )


def _is_busy(error: sqlite3.Error) -> bool:
    """The primary result code is the low byte (sqlite.org/rescode.html)."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _BUSY_CODES


def _connect(uri: str) -> sqlite3.Connection:
    connection = sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None)
    try:
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LINE_LIMIT_BYTES)
        connection.text_factory = _text
        connection.execute("PRAGMA query_only=1")
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    except BaseException:  # passed on: the agent's database must not stay open
        connection.close()
        raise
    return connection


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _identity(path: Path) -> tuple[int, ...] | None:
    """What a WAL database that nobody has open looks like; None for any other.

    Whoever opens one that is in WAL mode makes its ``-wal`` file first, and removes it last.
    """
    found = stat_file(path)
    if found is None or Path(f"{path}-wal").exists():
        return None
    if not _is_wal(path, found.st_dev, found.st_ino):
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size


@lru_cache(maxsize=64)
def _is_wal(path: Path, device: int, inode: int) -> bool:
    """Whether the header says that the database is in WAL mode (sqlite.org/fileformat.html).

    Looked at once a file: closing any descriptor of it drops the locks this process has on it.
    """
    try:
        with path.open("rb") as file:
            return file.read(20)[18:] == b"\2\2"
    except OSError:
        return False


class Table(Protocol):
    """How one agent's messages lie in its database."""

    def ids(self, database: Foreign, session: str, after: int, cutoff: int) -> list[int]:
        """Up to ``LISTED`` row ids of the session's messages over ``after``, ascending."""
        ...

    def end(self, database: Foreign, session: str) -> int:
        """The row id of the session's last message that is whole, 0 where there is none."""
        ...

    def item(self, database: Foreign, session: str, row: int) -> bytes | None:
        """The message of ``row`` as JSON; None where it is too long, ``null`` where it is gone."""
        ...

    def identity(self, database: Foreign, session: str, row: int) -> str:
        """What tells the message of ``row`` from any that may come to have its row id."""
        ...

    def active_ms(self, database: Foreign, session: str) -> int:
        """When the session was last written to, 0 where that is not known."""
        ...


class Rows:
    """How a transcript in a database is read. See ``Source``."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def open(self, path: Path, session: str) -> RowReader:
        """The rows of ``session``."""
        return RowReader(Foreign(path), self._table, session)

    def end(self, path: Path, session: str) -> int:
        """The row id of its last whole message. Raises what ``open`` raises."""
        with self.open(path, session) as opened:
            return opened.end()

    def look(self, path: Path, session: str) -> Look | None:
        """When it was last active, and its last row; None where that cannot be said now."""
        try:
            with Foreign(path) as database:
                end = self._table.end(database, session)
                return Look(self._table.active_ms(database, session), end)
        except (TranscriptError, sqlite3.DataError):
            return None


class RowReader:
    """One session's rows in an open database. See ``Opened``."""

    def __init__(self, database: Foreign, table: Table, session: str) -> None:
        self._database, self._table, self._session = database, table, session

    def __enter__(self) -> Self:
        """Open the database."""
        self._database.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self._database.__exit__()

    def end(self) -> int:
        """The row id of the last whole message."""
        return self._table.end(self._database, self._session)

    def read(self, position: int, cutoff: int | None) -> Iterator[Item]:
        """The rows after ``position`` up to ``cutoff``, one at a time."""
        end = self.end()
        end = end if cutoff is None else min(cutoff, end)
        while rows := self._table.ids(self._database, self._session, position, end):
            for row in rows:
                yield row, self._item(row)
            position = rows[-1]

    def _item(self, row: int) -> bytes | None:
        with _too_long() as failed:
            item = self._table.item(self._database, self._session, row)
        if failed or item is None or len(item) > LINE_LIMIT_BYTES:
            return None
        return None if is_bomb(item) else item

    def head(self, data: bytes) -> str:
        """None: the last row tells enough."""
        return ""

    def tail(self, data: bytes | None, end: int) -> str:
        """The mark of what the last row is known by, not of its words: those may still change."""
        return mark_of(self._table.identity(self._database, self._session, end).encode())

    def holds(self, position: int, head: str, tail: str) -> bool:
        """Whether the row at ``position`` is still the message it was."""
        return not tail or tail == self.tail(None, position)


def listed(path: Path, sessions: Callable[[Foreign], Iterable[Found]]) -> list[Found]:
    """The sessions that a database lists; none where there is no database or it cannot be read."""
    if stat_file(path) is None:
        return []
    try:
        with Foreign(path) as database:
            return list(sessions(database))
    except (TranscriptError, sqlite3.DataError) as error:
        code = error.code if isinstance(error, TranscriptError) else "transcript.unreadable"
        logger().warning("sessions.unlisted", file=path.name, reason=code)
        told = _unlisted.get()
        if told is not None:
            told[path] = error.message if isinstance(error, TranscriptError) else str(error)
        return []


@contextmanager
def unlisted() -> Iterator[dict[Path, str]]:
    """The databases that could not be listed inside this context come to stand in it, with why."""
    told: dict[Path, str] = {}
    token = _unlisted.set(told)
    try:
        yield told
    finally:
        _unlisted.reset(token)


@contextmanager
def _too_long() -> Iterator[list[bool]]:
    """What is yielded is not empty afterwards where a value was longer than may be held."""
    failed: list[bool] = []
    try:
        yield failed
    except sqlite3.DataError:
        failed.append(True)
