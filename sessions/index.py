"""The full-text index of the session history: what is in it, what is not yet, and what must go.

Authority: the table ``message`` says what was said; the index follows it and can be made anew.

``full_text`` is an FTS5 table without contents over the tokens of ``sessions/tokens.py``. Its row
numbers, the places, grow with the time at which something was said, not with the time at which it
was read, so that "the newest first" is the order of the table. ``indexed`` says which message
stands at a place; ``unindexed`` which messages stand nowhere yet: triggers of ``message`` fill it.
A message's agent, session and project are tokens too, so that a search within them is as fast;
projects by number (``scope``), because one may become part of another.

| when                              | then                                                      |
|-----------------------------------|-----------------------------------------------------------|
| ingestion commits                 | its messages are in ``unindexed``, at no more cost        |
| ``catch_up`` commits a batch      | it is in ``full_text`` and ``indexed`` and no more in     |
|                                   | ``unindexed``; a crash before leaves it as it was         |
| two catch up at once              | each batch holds the write lock from its first moment     |
| a row changes or goes             | triggers move what it said to ``departed``, out of which  |
|                                   | the next ``catch_up`` takes it out of ``full_text``       |
| a message's words must go now     | ``unindex`` first, then the row: nothing of them departs  |
| words were taken out              | ``purge`` rewrites the index; until then they may be      |
|                                   | readable in the file, though nothing finds them. What     |
|                                   | departed goes first                                       |
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from memoryd.memory.clock import Clock
from memoryd.memory.errors import HistoryError
from memoryd.memory.seams import reach
from memoryd.sessions.database import Database
from memoryd.sessions.tokens import VERSION, index_tokens

#: What one transaction indexes at most: it holds the write lock for about a tenth of a second.
BATCH_MESSAGES = 1_000
BATCH_CHARACTERS = 250_000
#: How many pages of the index one transaction of ``purge`` rewrites.
PURGE_PAGES = 500

#: A place is a time in milliseconds and, in its lower bits, what tells equal times apart.
PLACE_BITS = 21
_LAST_MS = (1 << 42) - 1

_Stored = TypeVar("_Stored", bound=tuple[Any, ...])

_NOTHING, _ASKED, _BEGUN = 0, 1, 2

#: ``=`` begins the tokens that no text can hold. Row sizes are not kept: nothing asks FTS5 to rank.
_CREATE = """
    create virtual table full_text using fts5 (
        words, parts, content = '', columnsize = 0, tokenize = "ascii tokenchars '.+#='"
    )
"""
_CONFIGURE = "insert into full_text (full_text, rank) values ('automerge', 8)"

_WAITING = """
    select message.id, message.text, message.project, session.id, session.agent,
           coalesce(message.at_ms, session.last_active_ms, session.ingested_ms)
    from unindexed cross join message on message.id = unindexed.message_id
    cross join session on session.id = message.session_id
    order by unindexed.message_id limit ?
"""

_DEPARTED = "select place, text, agent, session_id, scope from departed limit ?"

_STANDING = """
    select indexed.place, indexed.scope, message.id, message.text, session.id, session.agent
    from indexed cross join message on message.id = indexed.message_id
    cross join session on session.id = message.session_id where indexed.message_id = ?
"""

_CURRENT = """
    select version, exists (select 1 from unindexed), exists (select 1 from departed)
    from text_index
"""


def never() -> bool:
    """Nothing asks to stop."""
    return False


class Index:
    """The index in an open ``database``. Raises ``HistoryError`` where the file cannot be used."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def waiting(self) -> int:
        """How many messages are not indexed yet."""
        with self._database.reading() as cursor:
            return int(cursor.execute("select count(*) from unindexed").fetchone()[0])

    def catch_up(self, stop: Callable[[], bool] = never) -> int:
        """Index what is not indexed yet, in bounded transactions, until ``stop``; how many.

        What departed from the tables is taken out of the index on the way.

        At least one batch is indexed, whatever ``stop`` says.
        """
        done = 0
        while not self._is_current():
            with self._database.transaction() as cursor:
                done += _index_batch(cursor, self._clock.now_ms())
                reach("index.batch")
            if stop():
                break
        return done

    def is_made(self) -> bool:
        """Whether anything was ever indexed, as tokens are made now."""
        with self._database.reading() as cursor:
            return _version(cursor) == VERSION

    def purge(self, stop: Callable[[], bool] = never) -> bool:
        """See ``purge``, of this database."""
        return purge(self._database, stop)

    def _is_current(self) -> bool:
        with self._database.reading() as cursor:
            row = cursor.execute(_CURRENT).fetchone()
        return tuple(row) == (VERSION, 0, 0)


def purge(database: Database, stop: Callable[[], bool] = never) -> bool:
    """Rewrite the index where words were taken out of it, so that none stays readable.

    In bounded transactions, until ``stop``; whether nothing is left to do. What the file held
    before may still lie in its write-ahead log until that is checkpointed, which is done at the end
    where no other reader stands in the way. Words that departed from the tables are taken out of
    the index before. Raises ``HistoryError``.
    """
    while _has_departed(database):
        with database.transaction() as cursor:
            _let_go(cursor)
        if stop():
            return False
    with database.reading() as cursor:
        if _purge_state(cursor) == _NOTHING:
            return True
    while True:
        with database.transaction() as cursor:
            done = _purge_some(cursor)
        if done or stop():
            break
    if done:
        with database.reading() as cursor:
            cursor.execute("pragma wal_checkpoint(truncate)").fetchall()
    return done


def _has_departed(database: Database) -> bool:
    with database.reading() as cursor:
        return bool(cursor.execute("select exists (select 1 from departed)").fetchone()[0])


def unindex(cursor: sqlite3.Cursor, message_ids: Iterable[int]) -> int:
    """Take messages out of the index in the caller's transaction; how many stood in it.

    ``message_ids`` are the ids of their rows, which must still hold the words that were indexed:
    call this before they are stripped or deleted. They are not found from the commit on, and not
    indexed again; see ``Index.purge`` for when their words leave the file. Raises
    ``sqlite3.Error``.
    """
    rows: list[tuple[int, str, str]] = []
    ids = list(message_ids)
    for message_id in ids:
        for place, scope, _, text, session_id, agent in cursor.execute(_STANDING, (message_id,)):
            rows.append((place, *_tokens(text, agent, session_id, scope)))
    if rows:
        _take_out(cursor, rows)
    gone = [(message_id,) for message_id in ids]
    cursor.executemany("delete from indexed where message_id = ?", gone)
    cursor.executemany("delete from unindexed where message_id = ?", gone)
    return len(rows)


def _take_out(cursor: sqlite3.Cursor, rows: list[tuple[int, str, str]]) -> None:
    """Delete rows from the index: it must be given just what it was given when they went in."""
    if _version(cursor) != VERSION:
        return  # it is made anew before anybody looks into it
    rows.sort()
    cursor.executemany(
        "insert into full_text (full_text, rowid, words, parts) values ('delete', ?, ?, ?)", rows
    )
    cursor.execute("update text_index set purge = ?", (_ASKED,))


def scope_token(number: int) -> str:
    """The token of the project with this number."""
    return f"=p{number}"


def session_token(session_id: int) -> str:
    """The token of the session with this row id."""
    return f"=s{session_id}"


def agent_token(agent: str) -> str:
    """The token of an agent, whatever its name holds."""
    return f"=a{agent.encode().hex()}"


def first_place(at_ms: int) -> int:
    """The first place of what was said at ``at_ms``."""
    return min(max(at_ms, 0), _LAST_MS) << PLACE_BITS


def _version(cursor: sqlite3.Cursor) -> int:
    return int(cursor.execute("select version from text_index").fetchone()[0])


def _purge_state(cursor: sqlite3.Cursor) -> int:
    return int(cursor.execute("select purge from text_index").fetchone()[0])


def _index_batch(cursor: sqlite3.Cursor, now_ms: int) -> int:
    """Index the next messages, in the order of their places; how many."""
    if _version(cursor) != VERSION:
        _make_anew(cursor)
    if _let_go(cursor):
        return 0
    waiting = cursor.execute(_WAITING, (BATCH_MESSAGES,)).fetchall()
    scopes: dict[str, int] = {}
    places: dict[int, tuple[int, int]] = {}
    rows: list[tuple[int, str, str]] = []
    for message_id, text, project, session_id, agent, at_ms in _bounded(waiting):
        scope = scopes.get(project)
        if scope is None:
            scope = scopes[project] = _scope(cursor, project)
        place = _place(message_id, min(at_ms, now_ms))
        while place in places or _is_taken(cursor, place):
            place += 1
        places[place] = (message_id, scope)
        rows.append((place, *_tokens(text, agent, session_id, scope)))
    # FTS5 writes a segment of its own for each row that does not follow the one before.
    rows.sort()
    cursor.executemany("insert into full_text (rowid, words, parts) values (?, ?, ?)", rows)
    stand = ((place, *message) for place, message in sorted(places.items()))
    cursor.executemany("insert into indexed (place, message_id, scope) values (?, ?, ?)", stand)
    done = ((message_id,) for message_id, _ in places.values())
    cursor.executemany("delete from unindexed where message_id = ?", done)
    return len(rows)


def _let_go(cursor: sqlite3.Cursor) -> bool:
    """Take out what departed, so much of it as a batch may be; whether there was any."""
    found = list(_bounded(cursor.execute(_DEPARTED, (BATCH_MESSAGES,)).fetchall()))
    rows = [
        (place, *_tokens(text, agent, session_id, scope))
        for place, text, agent, session_id, scope in found
    ]
    if rows:
        _take_out(cursor, rows)
        gone = ((place,) for place, *_ in rows)
        cursor.executemany("delete from departed where place = ?", gone)
    return bool(rows)


def _bounded(rows: list[_Stored]) -> Iterator[_Stored]:
    """The first of ``rows``, whose second columns are texts, up to the characters of a batch."""
    characters = 0
    for row in rows:
        yield row
        characters += len(row[1])
        if characters > BATCH_CHARACTERS:
            return


def _make_anew(cursor: sqlite3.Cursor) -> None:
    """Begin with an empty index that everything waits for."""
    if not cursor.execute("select 1 from pragma_module_list where name = 'fts5'").fetchone():
        raise HistoryError(
            "the SQLite of this Python has no full-text search (FTS5)",
            hint="run memoryd with a Python that has it; the session history itself is kept",
        )
    cursor.execute("drop table if exists full_text")
    cursor.execute(_CREATE)
    cursor.execute(_CONFIGURE)
    cursor.execute("delete from indexed")
    cursor.execute("delete from scope")
    cursor.execute("delete from departed")
    cursor.execute("insert or ignore into unindexed select id from message where text <> ''")
    cursor.execute("update text_index set version = ?, purge = ?", (VERSION, _NOTHING))


def _scope(cursor: sqlite3.Cursor, project: str) -> int:
    """The number of a project, a new one where it has none."""
    row = cursor.execute("select min(number) from scope where project = ?", (project,)).fetchone()
    if row[0] is not None:
        return int(row[0])
    number = cursor.execute("select coalesce(max(number), 0) + 1 from scope").fetchone()[0]
    cursor.execute("insert into scope (project, number) values (?, ?)", (project, number))
    return int(number)


def _place(message_id: int, at_ms: int) -> int:
    return first_place(at_ms) | (message_id & ((1 << PLACE_BITS) - 1))


def _is_taken(cursor: sqlite3.Cursor, place: int) -> bool:
    found = cursor.execute("select 1 from indexed where place = ?", (place,)).fetchone()
    return found is not None


def _tokens(text: str, agent: str, session_id: int, scope: int) -> tuple[str, str]:
    words, parts = index_tokens(text)
    about = f"{agent_token(agent)} {session_token(session_id)} {scope_token(scope)}"
    return words, f"{parts} {about}" if parts else about


def _purge_some(cursor: sqlite3.Cursor) -> bool:
    """Rewrite some pages of the index; whether all of it was.

    FTS5's ``merge`` with a negative number begins to make one segment of all, with a positive one
    it goes on; the words of rows taken out are left behind on the way. It changes less than two
    rows when there is nothing left to do (sqlite.org/fts5.html, "The merge command").
    """
    asked = _purge_state(cursor)
    if asked == _NOTHING or _version(cursor) != VERSION:
        return True
    pages = -PURGE_PAGES if asked == _ASKED else PURGE_PAGES
    before = cursor.connection.total_changes
    cursor.execute("insert into full_text (full_text, rank) values ('merge', ?)", (pages,))
    done = asked == _BEGUN and cursor.connection.total_changes - before < 2
    cursor.execute("update text_index set purge = ?", (_NOTHING if done else _BEGUN,))
    return done
