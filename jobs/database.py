"""The SQLite file under the ledger: connections, transactions, durability, refusals.

peewee owns the connection (one a thread) and the transactions; every statement is text.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memoryd.jobs import lost_log, schema
from memoryd.memory import database_files
from memoryd.memory.errors import (
    LedgerDamaged,
    LedgerError,
    LedgerMissing,
    LedgerNetworked,
)
from memoryd.memory.files import make_database_file

if TYPE_CHECKING:
    from peewee import SqliteDatabase

BUSY_TIMEOUT_SECONDS = 5
#: The log file is cut back to this size whenever it is checkpointed.
WAL_BYTES = 16 * 1024 * 1024
#: A page in the log, with its header (https://sqlite.org/fileformat2.html, 4.1); pages have the
#: size that is SQLite's own choice.
FRAME_BYTES = 4096 + 24
_RESTORE = (
    "stop memoryd, then `memoryd doctor --fix`: it keeps the file under another name and makes a"
    " whole one of it and the newest backup"
)
_TRY_LATER = "it is tried again tomorrow"
_TRY_AGAIN = f"another program has held it for over {BUSY_TIMEOUT_SECONDS} s; try again"
_NETWORK_FILE_SYSTEMS = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "fuse.sshfs", "fuse.s3fs"}
)


class Database:
    """One open SQLite file in WAL mode."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._name = str(path)
        self._open: SqliteDatabase | None = None
        #: This thread's connection once it is open (asking peewee for it costs as much as a read),
        #: and whether what it writes is on disk at once.
        self._mine = threading.local()
        #: The file that was opened.
        self._file = (0, 0)

    def open(self, now_ms: int, *, check: bool = False) -> None:
        """Open the file, make or migrate its tables; ``check`` also runs ``quick_check``.

        Raises ``LedgerError``: ``LedgerDamaged``, ``LedgerMissing``, ``LedgerNewer`` or
        ``LedgerNetworked``, or the system refuses.
        """
        from peewee import DatabaseError, SqliteDatabase

        _refuse_network_file_system(self.path.resolve().parent)
        self._require_place()
        self._open = SqliteDatabase(
            database_files.address(self.path),
            uri=True,
            timeout=BUSY_TIMEOUT_SECONDS,
            pragmas={
                # Counts in a file without tables only: what becomes free can be given back.
                "auto_vacuum": "incremental",
                "journal_mode": "wal",
                "synchronous": "normal",
                "journal_size_limit": WAL_BYTES,
                # The pages that every job writes are copied back, and synced, once in a while only:
                # when the log is as long as it may stay.
                "wal_autocheckpoint": WAL_BYTES // FRAME_BYTES,
            },
        )
        try:
            if check:
                self.require_whole()
            schema.migrate(self._open, self.path.parent / "backups", now_ms)
            lost_log.tell(self.path, self._open)
        except LedgerError:
            self.close()
            raise
        except DatabaseError as error:
            self.close()
            raise self._unusable(error) from error
        except OSError as error:
            self.close()
            raise self._refused(error) from error

    def look(self) -> bool:
        """Open the file for reading alone; False where it must be made, migrated or told first.

        Nothing is written, so a full or read-only disk is no hindrance. Raises ``LedgerError``.
        """
        from peewee import DatabaseError, SqliteDatabase

        try:
            if database_files.is_empty(self.path):
                return False
            if wrong := database_files.out_of_place(self.path):
                raise LedgerDamaged(f"the ledger cannot be used: {wrong}", hint=_RESTORE)
            if lost_log.is_untold(self.path):
                return False
            self._open = SqliteDatabase(
                database_files.reading_address(self.path), uri=True, timeout=BUSY_TIMEOUT_SECONDS
            )
            if schema.is_current(self._open):
                return True
        except OSError as error:
            hint = database_files.refused_todo(self.path)
            raise LedgerError(self._said(str(error.strerror)), hint=hint) from error
        except (DatabaseError, sqlite3.Error) as error:
            self.close()
            raise self._unusable(error) from error
        self.close()
        return False

    def _require_place(self) -> None:
        """See that a ledger can be where it should: a plain file, made where there never was one.

        SQLite would begin anew in an empty file, and nobody would know that there was more.
        """
        try:
            if wrong := database_files.out_of_place(self.path):
                raise LedgerDamaged(f"the ledger cannot be used: {wrong}", hint=_RESTORE)
            if database_files.is_empty(self.path) and self._was_there():
                raise LedgerMissing(
                    f"the ledger {self.path} is gone or empty, and there are backups of it",
                    hint="`memoryd doctor --fix` puts the newest one in its place",
                )
            lost_log.notice(self.path)
            # Made here for its mode; an existing file keeps what it has.
            make_database_file(self.path)
            self._file = self._standing()
        except OSError as error:
            raise self._refused(error) from error

    def _refused(self, error: OSError) -> LedgerError:
        return LedgerError(
            f"the ledger {self.path} cannot be opened: {error.strerror}",
            hint=database_files.refused_todo(self.path),
        )

    def _was_there(self) -> bool:
        """Whether there was a ledger: a copy of it, or what was put aside of it, is there."""
        aside = database_files.asides(self.path)
        return bool(aside or schema.copies(self.path.parent / "backups"))

    def _standing(self) -> tuple[int, int]:
        """The file that has the ledger's name now."""
        found = os.stat(self._name)  # noqa: PTH116 - each durable write asks
        return found.st_dev, found.st_ino

    def _require_same(self) -> None:
        """Raise ``LedgerMissing`` where another file has the ledger's name by now.

        What was written is in one that was put aside, and may not have been read there any more.
        """
        try:
            if self._standing() == self._file:
                return
        except OSError:
            pass  # none has: as much as another
        raise LedgerMissing(
            f"the ledger {self.path} was replaced meanwhile", hint="nothing was promised; try again"
        )

    def close(self) -> None:
        """Close this thread's connection; harmless when there is none."""
        self._mine.connection = None
        if self._open is not None and not self._open.is_closed():
            self._open.close()

    @property
    def _connection(self) -> SqliteDatabase:
        if self._open is None:
            raise LedgerError("the ledger is not open")
        return self._open

    def _connected(self) -> sqlite3.Connection:
        """This thread's connection. Raises ``LedgerError``: the file or its folder may be gone."""
        connection: sqlite3.Connection | None = getattr(self._mine, "connection", None)
        return connection if connection is not None else self._connect()

    def _connect(self) -> sqlite3.Connection:
        from peewee import DatabaseError

        try:
            connection: sqlite3.Connection = self._connection.connection()
        except DatabaseError as error:
            raise self._unusable(error) from error
        self._mine.connection = connection
        self._mine.durable = False
        return connection

    def rows(self, text: str, **values: object) -> list[tuple[Any, ...]]:
        """All rows of one statement (all of them: a half-read ``returning`` keeps the lock)."""
        cursor = self._execute(text, values)
        try:
            return list(cursor.fetchall())
        except sqlite3.IntegrityError:
            raise
        except sqlite3.Error as error:  # a disk may fail between two rows
            raise self._unusable(error) from error

    def change(self, text: str, **values: object) -> int:
        """Run one statement; how many rows it changed."""
        return int(self._execute(text, values).rowcount)

    def alone(self, text: str, **values: object) -> list[tuple[Any, ...]]:
        """All rows of one statement that changes something, as a transaction of its own.

        Inside another one it is a part of that. Raises ``LedgerError`` as ``writing`` does.
        """
        connection = self._connected()
        if not connection.in_transaction:
            self._set_level(connection, durable=False)
        return self.rows(text, **values)

    def to_the_end(self, text: str) -> None:
        """Run one statement that works a step at a time and has no rows; outside a transaction.

        ``execute`` would take its first step only. Raises ``LedgerError``.
        """
        try:
            self._connected().executescript(text)
        except sqlite3.Error as error:
            raise self._unusable(error) from error

    def _execute(self, text: str, values: dict[str, object]) -> sqlite3.Cursor:
        """Run one statement. Raises ``LedgerError`` for what is no broken constraint.

        On peewee's connection, past its cursors: those cost as much as a short statement.
        """
        try:
            return self._connected().execute(text, values)
        except sqlite3.IntegrityError:
            raise
        except sqlite3.Error as error:
            raise self._unusable(error) from error

    @contextmanager
    def writing(self, *, durable: bool = False) -> Iterator[None]:
        """One write transaction; ``durable`` has it on disk when the block ends.

        Inside another one it is a part of that, which alone decides on durability. Raises
        ``LedgerError`` when another process keeps the write lock, the disk is full, or, durable,
        the file is not the ledger any more: what is to be kept must be where it is looked for.
        """
        connection = self._connected()
        if connection.in_transaction:
            yield
            return
        try:
            self._set_level(connection, durable=durable)
            try:
                # Text on peewee's connection: its own transaction costs a fifth of an enqueue.
                connection.execute("begin immediate")
                yield
                connection.execute("commit")
            except BaseException:  # passed on: the transaction must not stay open
                if connection.in_transaction:  # a full disk may have rolled it back already
                    connection.execute("rollback")
                raise
            if durable:
                self._require_same()
        except sqlite3.IntegrityError:
            raise
        except sqlite3.Error as error:
            raise self._unusable(error) from error

    def _set_level(self, connection: sqlite3.Connection, *, durable: bool) -> None:
        """Have what is written from now on be on disk at once, or not; it stays so meanwhile."""
        if self._mine.durable != durable:
            connection.execute(f"pragma synchronous = {'full' if durable else 'normal'}")
            self._mine.durable = durable

    def require_whole(self) -> None:
        """Raise ``LedgerDamaged`` where ``quick_check`` finds a fault; it reads the whole file."""
        found = str(self.rows("pragma quick_check(1)")[0][0])
        if found != "ok":
            raise LedgerDamaged(self._said(found), hint=_RESTORE)

    def copy_into(self, path: Path, seconds: float) -> None:
        """Write a copy of the whole ledger to ``path``, where nothing is; readers go on meanwhile.

        Raises ``LedgerDamaged`` where there is no whole one, and ``LedgerError`` where it takes
        longer than ``seconds`` or cannot be written.
        """
        ends = time.monotonic() + seconds
        connection = self._connected()
        connection.set_progress_handler(lambda: time.monotonic() > ends, 100_000)
        try:
            self.require_whole()
            self.rows("vacuum into :path", path=str(path))
        finally:
            connection.set_progress_handler(None, 0)

    def _unusable(self, error: Exception) -> LedgerError:
        text = str(error)
        if "locked" in text:
            return LedgerError(self._said(text), hint=_TRY_AGAIN)
        if "interrupted" in text:
            return LedgerError(self._said("it took too long"), hint=_TRY_LATER)
        if database_files.is_refusal(text):
            return LedgerError(self._said(text), hint=database_files.refused_todo(self.path))
        return LedgerDamaged(self._said(text), hint=_RESTORE)

    def _said(self, text: str) -> str:
        return f"the ledger {self.path} cannot be used: {database_files.one_line(text)}"


def _refuse_network_file_system(folder: Path) -> None:
    """SQLite's log needs shared memory, which network file systems do not give."""
    kind = _file_system(str(folder.resolve()))
    if kind in _NETWORK_FILE_SYSTEMS:
        raise LedgerNetworked(
            f"the home {folder} lies on a network file system ({kind})",
            hint="put it on a local disk: memoryd --home, or $MEMORYD_HOME",
        )


def _file_system(folder: str) -> str:
    """The type of the file system ``folder`` is on; empty where the system does not say."""
    try:
        table = Path("/proc/self/mounts").read_text(errors="replace")
    except OSError:
        return ""
    best, kind = "", ""
    for line in table.splitlines():
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        mount = fields[1].replace("\\040", " ")
        within = folder == mount or folder.startswith(mount.rstrip("/") + "/")
        if within and len(mount) >= len(best):
            best, kind = mount, fields[2]
    return kind
