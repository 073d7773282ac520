"""Messages as agents keep them in SQLite: a row each, or a row each and one for every part."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from memoryd.sessions.adapter import as_time
from memoryd.sessions.lines import LINE_LIMIT_BYTES
from memoryd.sessions.rows import LISTED, Foreign, Row, Value


class SessionTable:
    """A table with a row a message and the session's id in ``session_id``. See ``Table``.

    An item is an object of those of ``columns`` that the table has; ``known`` are the columns a row
    is known by, ``time`` the one that says when it was written.
    """

    def __init__(self, table: str, columns: Sequence[str], known: Sequence[str], time: str) -> None:
        self._table, self._columns, self._known, self._time = table, columns, known, time

    def ids(self, database: Foreign, session: str, after: int, cutoff: int) -> list[int]:
        """See ``Table``."""
        rows = database.ask(
            f"SELECT rowid FROM {self._table} WHERE session_id = ?"
            f" AND rowid > ? AND rowid <= ? ORDER BY rowid LIMIT {LISTED}",
            (session, after, cutoff),
        )
        return [_number(row) for row in rows]

    def end(self, database: Foreign, session: str) -> int:
        """The last row."""
        statement = f"SELECT max(rowid) FROM {self._table} WHERE session_id = ?"
        return _number(database.ask(statement, (session,))[0])

    def item(self, database: Foreign, session: str, row: int) -> bytes | None:
        """The row as an object."""
        names = [name for name in self._columns if name in database.columns(self._table)]
        for found in self._row(database, session, row, names):
            return encoded(dict(zip(names, map(plain, found), strict=True)))
        return b"null"

    def identity(self, database: Foreign, session: str, row: int) -> str:
        """What stands in the columns a row is known by."""
        names = [name for name in self._known if name in database.columns(self._table)]
        return repr(self._row(database, session, row, names))

    def active_ms(self, database: Foreign, session: str) -> int:
        """When the last row was written."""
        statement = f"SELECT max({self._time}) FROM {self._table} WHERE session_id = ?"
        return as_time(database.ask(statement, (session,))[0][0]) or 0

    def _row(self, database: Foreign, session: str, row: int, names: Sequence[str]) -> list[Row]:
        chosen = ", ".join(names) or "rowid"
        return database.ask(
            f"SELECT {chosen} FROM {self._table} WHERE rowid = ? AND session_id = ?",
            (row, session),
        )


class PartedTable:
    """OpenCode's ``message`` and ``part``: what a message says lies in the parts. See ``Table``.

    An item is ``{"id", "info", "parts"}``. The newest message is whole once its assistant is done.
    """

    def ids(self, database: Foreign, session: str, after: int, cutoff: int) -> list[int]:
        """See ``Table``."""
        rows = database.ask(
            "SELECT rowid FROM message WHERE session_id = ? AND rowid > ? AND rowid <= ?"
            f" ORDER BY rowid LIMIT {LISTED}",
            (session, after, cutoff),
        )
        return [_number(row) for row in rows]

    def end(self, database: Foreign, session: str) -> int:
        """The last message, or the one before where that one is still being written."""
        rows = database.ask(
            "SELECT rowid FROM message WHERE session_id = ? ORDER BY rowid DESC LIMIT 2", (session,)
        )
        numbers = [*map(_number, rows), 0]
        if not rows:
            return 0
        (data,) = database.ask("SELECT data FROM message WHERE rowid = ?", (numbers[0],))[:1] or [
            (None,)
        ]
        return numbers[0] if is_whole(raw(data[0])) else numbers[1]

    def item(self, database: Foreign, session: str, row: int) -> bytes | None:
        """The message with its parts, in the order of their ids."""
        for known_as, data in database.ask(
            "SELECT id, data FROM message WHERE rowid = ? AND session_id = ?", (row, session)
        ):
            ids = database.ask(
                "SELECT rowid FROM part WHERE message_id = ? ORDER BY id", (known_as,)
            )
            parts, size = [], 0
            for part in ids:
                for (said,) in database.ask("SELECT data FROM part WHERE rowid = ?", part):
                    parts.append(raw(said))
                    size += len(parts[-1])
                if size > LINE_LIMIT_BYTES:
                    return None
            return encoded({"id": plain(known_as), "info": raw(data), "parts": parts})
        return b"null"

    def identity(self, database: Foreign, session: str, row: int) -> str:
        """The message's id."""
        statement = "SELECT id FROM message WHERE rowid = ? AND session_id = ?"
        return repr(database.ask(statement, (row, session)))

    def active_ms(self, database: Foreign, session: str) -> int:
        """When the session was updated."""
        rows = database.ask("SELECT time_updated FROM session WHERE id = ?", (session,))
        return (as_time(rows[0][0]) if rows else None) or 0


class _Time(msgspec.Struct):
    completed: float | None = None


class _Info(msgspec.Struct):
    role: str = ""
    time: _Time | None = None
    error: msgspec.Raw | None = None


def is_whole(info: bytes) -> bool:
    """Whether OpenCode's message is done: an assistant's has a time of completion or an error."""
    try:
        found = msgspec.json.decode(info, type=_Info)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return True  # whatever it is, it does not change any more as far as anybody can tell
    done = found.error is not None or (found.time is not None and found.time.completed is not None)
    return found.role != "assistant" or done


def raw(value: Value) -> msgspec.Raw:
    """JSON that a column holds; ``null`` where it holds none."""
    data = value.encode() if isinstance(value, str) else value
    if not isinstance(data, bytes):
        return msgspec.Raw(b"null")
    try:
        msgspec.json.decode(data)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return msgspec.Raw(b"null")
    return msgspec.Raw(data)


def plain(value: Value) -> Value:
    """A column's value as JSON can hold it."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def encoded(value: object) -> bytes:
    """``value`` as JSON."""
    return msgspec.json.encode(value)


def _number(row: Row) -> int:
    return row[0] if isinstance(row[0], int) else 0
