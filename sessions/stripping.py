"""Letting go of words: what was said leaves the session history, and is known again all the same.

A message that is *stripped* keeps its row: ``seq``, id, role, time and project, so that cursors,
turns and copies stay what they were. Its text and directory are empty, and ``said`` is a digest of
the text, by which a fork or a resumed session that repeats it is recognised. Nothing that strips
ever gives a row its words back.

| what                     | strips                                                            |
|--------------------------|-------------------------------------------------------------------|
| ``forget``               | all of a session; nothing comes in again, whoever reads it        |
| ``forget_copies``        | what sessions that go on from it, and were read first, keep of it |
| ``up_to``, ``said_in``   | what is old, or was said where nothing may be kept                |
| ``keep_nothing``         | what was distilled; what waits is dropped and read again later    |
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass

from memoryd.sessions import schema
from memoryd.sessions.database import Database
from memoryd.sessions.index import unindex

#: Messages that one transaction strips at most: others get their turn in between.
BATCH_MESSAGES = 500
_DIGEST_BYTES = 16
_NO_END = 2**63 - 1

#: A message by its row id, and its text.
Row = tuple[int, str]


def digest(text: str) -> bytes:
    """What stands for the words of a message once they are gone: the first half of a sha256."""
    return hashlib.sha256(text.encode()).digest()[:_DIGEST_BYTES]


def strip(cursor: sqlite3.Cursor, rows: Iterable[Row]) -> int:
    """Strip these messages in the caller's transaction; how many."""
    found = list(rows)
    unindex(cursor, [row for row, _ in found])
    cursor.executemany(schema.STRIP, [(digest(text), row) for row, text in found])
    return len(found)


@dataclass(frozen=True)
class Named:
    """A session by agent and id, with the number of its row."""

    number: int
    agent: str
    session: str


class Stripper:
    """Strips the session history behind ``database``. Raises ``HistoryError``."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def forget(self, agent: str, session: str) -> int:
        """Strip the whole session, and have nothing said in it kept from now on; how many parts.

        Also of a session that was never read.
        """
        with self._database.transaction() as cursor:
            cursor.execute(schema.FORGET, (agent, session))
            number = cursor.execute(schema.NUMBER, (agent, session)).fetchone()[0]
            cursor.execute(schema.DROP_CITATIONS, (number,))
        stripped = self._batches(schema.KEPT_OF, (number, _NO_END, None))
        self._leave_places(number)
        return stripped

    def forget_copies(self, agent: str, session: str) -> int:
        """Strip what other sessions keep of a forgotten one, as far as it was read; how many parts.

        Only those that go on from it: what it repeats of an older session is that one's.
        """
        with self._database.reading() as cursor:
            number = cursor.execute(schema.NUMBER, (agent, session)).fetchone()[0]
        return self._batches(schema.KEPT_ELSEWHERE, (number,))

    def up_to(self, session: Named, seq: int, before_ms: int | None = None) -> int:
        """Strip what has at most that ``seq``, or was taken back, and was said before then.

        None for ``before_ms``: whenever. How many parts.
        """
        stripped = self._batches(schema.KEPT_OF, (session.number, seq, before_ms))
        if stripped:
            self._leave_places(session.number)
        return stripped

    def said_in(self, session: Named, cwd: str) -> int:
        """Strip what was said in the session in a directory; how many parts."""
        stripped = self._batches(schema.KEPT_IN, (session.number, cwd))
        self._leave_places(session.number)
        return stripped

    def keep_nothing(self, agent: str, session: str, cursor_seq: int) -> int:
        """Keep no words of the session; how many parts went.

        What was distilled (up to ``cursor_seq``) is stripped. What still waits is dropped, and the
        transcript read again from its beginning by the next job. Whoever calls holds the session's
        serial key, or nobody works on it.
        """
        with self._database.transaction() as cursor:
            found = cursor.execute(schema.NUMBER, (agent, session)).fetchone()
            if found is None:
                return 0
            number = found[0]
            waits = [row for (row,) in cursor.execute(schema.WAITS, (number, cursor_seq))]
            if waits:
                unindex(cursor, waits)
                cursor.executemany(schema.DROP_MESSAGE, [(row,) for row in waits])
                cursor.execute(schema.DROP_SAVED, (number, cursor_seq))
                cursor.execute(schema.BEGIN_ANEW, (number,))
        stripped = self._batches(schema.KEPT_OF, (number, _NO_END, None))
        self._leave_places(number)
        return len(waits) + stripped

    def old(self, before_ms: int) -> list[Named]:
        """The sessions that keep words said before then."""
        return self._named(schema.OLD, (before_ms, before_ms))

    def keeping(self) -> list[Named]:
        """All sessions that keep any words."""
        return self._named(schema.KEEPING, ())

    def places(self) -> list[tuple[Named, str]]:
        """In which directories the words were said that are kept, by session."""
        with self._database.reading() as cursor:
            rows = cursor.execute(schema.PLACES).fetchall()
        return [(Named(*row[:3]), row[3]) for row in rows]

    def settle(self) -> bool:
        """Have nothing stripped stay readable in the write-ahead log.

        False where another process was in the way for too long; the next checkpoint does it.
        """
        with self._database.reading() as cursor:
            busy, *_ = cursor.execute("pragma wal_checkpoint(truncate)").fetchone()
        return not busy

    def _leave_places(self, number: int) -> None:
        with self._database.transaction() as cursor:
            cursor.execute(schema.LEAVE_PLACES, (number,))

    def _batches(self, statement: str, values: tuple[object, ...]) -> int:
        stripped = 0
        while True:
            with self._database.transaction() as cursor:
                rows = cursor.execute(statement, (*values, BATCH_MESSAGES)).fetchall()
                stripped += strip(cursor, rows)
            if len(rows) < BATCH_MESSAGES:
                return stripped

    def _named(self, statement: str, values: tuple[object, ...]) -> list[Named]:
        with self._database.reading() as cursor:
            return [Named(*row) for row in cursor.execute(statement, values).fetchall()]
