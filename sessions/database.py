"""The file behind the session history: its connection, its tables and its transactions."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memoryd.memory import database_files, last_ran
from memoryd.memory.errors import HistoryDamaged, HistoryError, HistoryNewer
from memoryd.memory.files import FILE_MODE, make_database_file, make_directory
from memoryd.sessions import schema

if TYPE_CHECKING:
    from peewee import SqliteDatabase

BUSY_TIMEOUT_SECONDS = 5
#: What a write-ahead log is cut back to after a checkpoint.
WAL_LIMIT_BYTES = 64 * 1024 * 1024

#: After how many pages of 4 KiB the log is copied into the file, with its syncs.
WAL_PAGES = 4000

#: What a connection keeps of the file in memory; SQLite's own default.
CACHE_KIB = 2_000

_PRAGMAS = (
    ("journal_mode", "wal"),
    ("synchronous", "normal"),
    ("foreign_keys", 1),
    ("wal_autocheckpoint", WAL_PAGES),
    ("journal_size_limit", WAL_LIMIT_BYTES),
    # What the person has forgotten must not stay readable in free pages.
    ("secure_delete", 1),
)
_REBUILD = (
    "stop memoryd, then `memoryd doctor --fix`: it keeps the file under another name, and what the"
    " transcripts still say is read again"
)


class Database:
    """One SQLite file; each thread has a connection of its own, from its first use to ``close``."""

    def __init__(self, path: Path, cache_kib: int = CACHE_KIB) -> None:
        self.path = path
        self._pragmas = (*_PRAGMAS, ("cache_size", -cache_kib))
        self._peewee: SqliteDatabase | None = None
        #: Which file it is, whatever is under its name later.
        self._file: tuple[int, int] | None = None

    def open(self) -> None:
        """Create the file (0600) and its tables where missing, and check that it can be used.

        Raises ``HistoryError`` for a newer schema, a file that is no database, and where the system
        refuses.
        """
        from peewee import SqliteDatabase

        try:
            make_directory(self.path.parent)
            if wrong := database_files.out_of_place(self.path):
                raise HistoryDamaged(f"the session history cannot be used: {wrong}", hint=_REBUILD)
            make_database_file(self.path)
            self.path.chmod(FILE_MODE)
        except OSError as error:
            raise HistoryError(
                f"the session history {self.path} cannot be opened: {error.strerror}",
                hint=database_files.refused_todo(self.path),
            ) from error
        self._peewee = SqliteDatabase(
            database_files.address(self.path),
            uri=True,
            pragmas=self._pragmas,
            timeout=BUSY_TIMEOUT_SECONDS,
        )
        self._file = self._named_file()
        try:
            # A write lock only where there is something to write: a reader must not wait for those
            # who record.
            with self.reading() as cursor:
                current = _version(cursor) == schema.SCHEMA_VERSION
            if not current:
                with self.transaction() as cursor:
                    self._prepare_tables(cursor)
        except BaseException:  # passed on: the file must not stay open
            self.close()
            raise

    def look(self) -> None:
        """Open the file for reading alone, or as ``open`` does where its tables are not as they
        should be. Raises ``HistoryError``.
        """
        from peewee import SqliteDatabase

        try:
            address = database_files.reading_address(self.path)
        except (sqlite3.Error, OSError) as error:
            raise self._unusable(str(error)) from error
        self._peewee = SqliteDatabase(address, uri=True, timeout=BUSY_TIMEOUT_SECONDS)
        try:
            with self.reading() as cursor:
                current = _version(cursor) == schema.SCHEMA_VERSION
        except BaseException:  # passed on: the file must not stay open
            self.close()
            raise
        if not current:
            self.close()
            self.open()

    def close(self) -> None:
        """Close this thread's connection; harmless when there is none."""
        if self._peewee is not None and not self._peewee.is_closed():
            self._peewee.close()

    def sync(self) -> None:
        """Have every commit so far on the disk. Raises ``HistoryError``.

        Commits go to the log, which SQLite itself syncs before it copies it into the file
        (sqlite.org/wal.html). No lock of SQLite's is on the log, so that closing it drops none.
        """
        try:
            descriptor = os.open(f"{self.path}-wal", os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return  # all of it was copied
        except OSError as error:
            raise self._unsynced(error) from error
        try:
            os.fsync(descriptor)
        except OSError as error:
            raise self._unsynced(error) from error
        finally:
            os.close(descriptor)

    def _unsynced(self, error: OSError) -> HistoryError:
        return HistoryError(
            f"the session history {self.path} cannot be synced: {error.strerror}",
            hint="see that the disk has room and is sound; `memoryd doctor` looks it over",
        )

    def renew(self) -> bool:
        """Open what is under the path now, where that is another file or none; whether it was.

        SQLite leaves a write-ahead log alone whose file was moved: the old one harms nothing.
        """
        # Where the folder is gone too the home was removed: nothing is to be made there.
        if self._named_file() == self._file or not self.path.parent.is_dir():
            return False
        self.close()
        self.open()
        return True

    def _named_file(self) -> tuple[int, int] | None:
        try:
            found = self.path.stat()
        except FileNotFoundError:
            return None
        except OSError:
            return self._file  # it cannot be told
        return found.st_dev, found.st_ino

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Cursor]:
        """A cursor in a transaction that holds the write lock from its first moment.

        It commits at the end and rolls back on any exception. Raises ``HistoryError`` for the
        database's own.
        """
        with self._named_errors():
            opened = self._opened()  # once: another thread may ``renew`` meanwhile
            with opened.atomic("IMMEDIATE"):
                yield opened.cursor()

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Cursor]:
        """A cursor for questions. Raises ``HistoryError`` for the database's own."""
        with self._named_errors():
            yield self._opened().cursor()

    def _opened(self) -> Any:  # peewee has no types
        if self._peewee is None:
            raise HistoryError(f"the session history {self.path} is not open", hint=_REBUILD)
        return self._peewee

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        from peewee import PeeweeException

        try:
            yield
        except (sqlite3.Error, PeeweeException) as error:
            raise self._unusable(str(error)) from error

    def _unusable(self, text: str) -> HistoryError:
        said = f"the session history {self.path} cannot be used: {database_files.one_line(text)}"
        if "locked" in text:
            return HistoryError(said, hint="another process holds it; try again")
        if database_files.is_refusal(text):
            return HistoryError(said, hint=database_files.refused_todo(self.path))
        if database_files.is_damage(text):
            return HistoryDamaged(said, hint=_REBUILD)
        return HistoryError(said, hint=_REBUILD)

    def check(self) -> None:
        """Run ``quick_check``, which reads the whole file. Raises ``HistoryError``."""
        with self.reading() as cursor:
            found = str(cursor.execute("pragma quick_check(1)").fetchone()[0])
        if found != "ok":
            said = f"the session history {self.path} is damaged: {database_files.one_line(found)}"
            raise HistoryDamaged(said, hint=_REBUILD)

    def _prepare_tables(self, cursor: sqlite3.Cursor) -> None:
        found = _version(cursor)
        if found > schema.SCHEMA_VERSION:
            known = last_ran.as_words(self.path.parent)
            raise HistoryNewer(
                f"the session history {self.path} was written by a newer memoryd "
                f"(schema {found}, this one knows {schema.SCHEMA_VERSION})",
                hint=f"upgrade memoryd{known}; nothing was changed",
            )
        for step in schema.MIGRATIONS[found:]:
            for statement in step:
                cursor.execute(statement)
        if found < schema.SCHEMA_VERSION:
            cursor.execute(f"pragma user_version = {schema.SCHEMA_VERSION}")


def _version(cursor: sqlite3.Cursor) -> int:
    return int(cursor.execute("pragma user_version").fetchone()[0])
