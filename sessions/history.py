"""The session history, ``sessions.sqlite``: what was said, redacted, in order, once.

Authority: the transcripts say what was said; this file says what ``seq`` each message has and how
far each transcript was read. Messages, their ``seq`` and the position that covers them commit in
one transaction, so that a crash repeats reading and never a message. ``seq`` only grows and is
never given twice, so that a cursor elsewhere can point into a session for ever.

| when                             | then                                                      |
|----------------------------------|-----------------------------------------------------------|
| two ingest one session at once   | the later transaction finds the position moved, changes   |
|                                  | nothing, and its reader goes on from the new position     |
| a transcript was rewritten       | it is read again from 0; what is known is only met again  |
| the power fails after a commit   | what a cursor passed was synced before; the rest may be   |
|                                  | gone, and the same bytes give the same ``seq`` again      |
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec

from memoryd.memory.clock import Clock
from memoryd.memory.seams import before, reach
from memoryd.sessions import schema
from memoryd.sessions.database import Database
from memoryd.sessions.index import Index
from memoryd.sessions.recording import Recording
from memoryd.sessions.stored import (
    ActiveSession,
    Batch,
    HistoryCounts,
    Progress,
    Recorded,
    StoredCitation,
    StoredMessage,
    StoredSession,
)

_NO_END = 2**63 - 1


class History:
    """The session history at ``path``. One object serves all threads; see ``Database``.

    All methods raise ``HistoryError`` where the file cannot be used.
    """

    def __init__(self, path: Path, clock: Clock) -> None:
        self._database = Database(path)
        self._clock = clock
        #: What of it can be searched.
        self.index = Index(self._database, clock)

    def open(self) -> None:
        """Create the file (0600) and its tables where missing, and check that it can be used."""
        self._database.open()

    @contextmanager
    def looking(self) -> Iterator[History]:
        """Opened for reading alone, and closed afterwards: the disk may be full or read-only.

        One that an older memoryd wrote is migrated all the same.
        """
        self._database.look()
        try:
            yield self
        finally:
            self.close()

    def close(self) -> None:
        """Close the calling thread's connection; harmless when there is none."""
        self._database.close()

    def __enter__(self) -> History:
        self.open()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def database(self) -> Database:
        """The file, for what lists or strips it in ways of its own."""
        return self._database

    def progress(self, agent: str, session: str) -> Progress | None:
        """How far the session was ingested, None when never."""
        with self._database.reading() as cursor:
            row = cursor.execute(schema.PROGRESS, (agent, session)).fetchone()
        if row is None:
            return None
        _, position, reading, head, tail, state, bad_lines, skipped, _, tools, _ = row
        totals = (json.loads(skipped), json.loads(tools))
        return Progress(position, reading, head, tail, state.encode(), bad_lines, *totals)

    def record(
        self,
        agent: str,
        session: str,
        transcript: Path,
        expected: Progress | None,
        batch: Batch,
        *,
        seq_after: int = 0,
    ) -> Recorded | None:
        """Commit ``batch`` if the session still stands where ``expected`` says; else None.

        ``expected`` is what ``progress`` gave, None for a session never seen. ``seq_after`` is a
        ``seq`` that a cursor holds: new ones are higher, also where this file is younger, and what
        was said up to it stands as it is.
        Copies found are counted in the batch's tally, which is stored with it.
        """
        guard = None if expected is None else (expected.position, expected.reading)
        before("messages.committed")
        with self._database.transaction() as cursor:
            row = cursor.execute(schema.PROGRESS, (agent, session)).fetchone()
            if guard != (None if row is None else (row[1], row[2])):
                return None
            if row is None:
                cursor.execute(schema.BEGIN_SESSION, (agent, session))
                row = cursor.execute(schema.PROGRESS, (agent, session)).fetchone()
            last_seq = max(row[8], seq_after)
            now_ms = self._clock.now_ms()
            keeping = (seq_after, bool(row[10]))
            done = Recording(cursor, agent, row[0], last_seq, batch, now_ms, *keeping).run()
            self._move(cursor, row[0], transcript, done, batch)
        reach("messages.committed")
        return done

    def _move(
        self,
        cursor: sqlite3.Cursor,
        session_id: int,
        transcript: Path,
        done: Recorded,
        batch: Batch,
    ) -> None:
        if done.copied:
            batch.tally.add("copied", done.copied)
        state, now_ms = batch.state, self._clock.now_ms()
        # What says no time was said before it was read, whatever clock wrote it.
        active = max(batch.last_active_ms or 0, min(batch.written_ms, now_ms)) or None
        values = (
            *(state.kind, state.parent, state.forked_from),
            os.fsencode(transcript).decode("utf-8", "replace"),
            *(batch.position, batch.reading, batch.head, batch.tail, done.last_seq),
            *(batch.bad_lines, json.dumps(batch.tally.by_reason)),
            *(state.version, json.dumps(batch.tools.by_tool)),
            *(msgspec.json.encode(state).decode(), active, active, now_ms),
        )
        cursor.execute(schema.MOVE, (*values, session_id))

    def sync(self) -> None:
        """Have all that was recorded outlive a power cut; called before a cursor is to pass it.

        Else the messages would be numbered anew, after the cursor, and read again.
        """
        self._database.sync()

    def messages(
        self, agent: str, session: str, after_seq: int, limit: int, *, cutoff: int | None = None
    ) -> list[StoredMessage]:
        """At most ``limit`` live messages of the session after ``after_seq``, ordered by seq.

        Those whose words are kept no longer are left out.

        ``cutoff`` leaves out what was said after that byte of the transcript.
        """
        last = _NO_END if cutoff is None else cutoff
        # Where the transcript was read anew, what it no longer holds has no place in it.
        only = "and (message.line_end <= ? or message.reading < session.reading)"
        return self._messages(only, (agent, session, after_seq, _NO_END, last, limit))

    def _messages(self, only: str, values: tuple[object, ...]) -> list[StoredMessage]:
        with self._database.reading() as cursor:
            rows = cursor.execute(schema.MESSAGES.format(only=only), values).fetchall()
        return [StoredMessage(*row) for row in rows]

    def last_seq(self, agent: str, session: str) -> int:
        """The highest ``seq`` the session ever gave, 0 when it gave none."""
        with self._database.reading() as cursor:
            row = cursor.execute(schema.PROGRESS, (agent, session)).fetchone()
        return int(row[8]) if row else 0

    def last_seqs(self) -> dict[tuple[str, str], int]:
        """The same of every session, by its agent and id."""
        with self._database.reading() as cursor:
            rows = cursor.execute("select agent, session, last_seq from session").fetchall()
        return {(agent, session): last for agent, session, last in rows}

    def number_after(self, agent: str, session: str, seq: int) -> None:
        """Never give the session's messages a ``seq`` up to this one: a cursor passed it."""
        with self._database.transaction() as cursor:
            cursor.execute(schema.NUMBER_AFTER, (agent, session, seq))

    def renew(self) -> bool:
        """Begin anew where the file was deleted or replaced under us; whether it was.

        Other threads, which wrote on into a file without a name, do so from their next use on.
        """
        return self._database.renew()

    def last_saved(self, agent: str, session: str, *, cutoff: int | None = None) -> int:
        """The ``seq`` after which the agent itself last saved or deleted memory; 0 for never.

        ``cutoff`` leaves out what it did after that byte of the transcript.
        """
        return self._number(schema.LAST_SAVED, agent, session, cutoff)

    def runs(self, agent: str, session: str, *, cutoff: int | None = None) -> int:
        """How often a person spoke in the session, up to byte ``cutoff`` of its transcript."""
        return self._number(schema.RUNS, agent, session, cutoff)

    def _number(self, statement: str, agent: str, session: str, cutoff: int | None) -> int:
        last = _NO_END if cutoff is None else cutoff
        with self._database.reading() as cursor:
            row = cursor.execute(statement, (agent, session, last)).fetchone()
        return int(row[0] or 0)

    def citations(self, agent: str, session: str, limit: int) -> list[StoredCitation]:
        """At most ``limit`` of what the assistant cited and nobody has settled, oldest first."""
        with self._database.reading() as cursor:
            rows = cursor.execute(schema.CITATIONS, (agent, session, limit)).fetchall()
        return [StoredCitation(row[0], tuple(json.loads(row[1])), row[2]) for row in rows]

    def settle_citations(self, agent: str, session: str, last: int) -> None:
        """Forget the session's citations up to number ``last``: they were credited."""
        with self._database.transaction() as cursor:
            cursor.execute(schema.CREDITED, (last, agent, session))

    def session(self, agent: str, session: str) -> StoredSession | None:
        """The session as far as it was ingested, None when never."""
        found = self._sessions("where agent = ? and session = ?", (agent, session))
        return found[0] if found else None

    def sessions(self, limit: int, agent: str | None = None) -> list[StoredSession]:
        """At most ``limit`` sessions, of one agent or of all, the last active first."""
        ordered = "order by last_active_ms desc, id desc limit ?"
        if agent is None:
            return self._sessions(ordered, (limit,))
        return self._sessions(f"where agent = ? {ordered}", (agent, limit))

    def _sessions(self, which: str, values: tuple[object, ...]) -> list[StoredSession]:
        with self._database.reading() as cursor:
            rows = cursor.execute(f"{schema.SESSION} {which}", values).fetchall()
            return [_stored_session(cursor, row) for row in rows]

    def forgotten(self) -> list[tuple[str, str]]:
        """The sessions that a person had forgotten: agent and id."""
        with self._database.reading() as cursor:
            rows = cursor.execute(schema.FORGOTTEN).fetchall()
        return [(str(agent), str(session)) for agent, session in rows]

    def active_since(self, since_ms: int, turns: int) -> dict[str, list[ActiveSession]]:
        """By project, the root sessions read after ``since_ms`` with ``turns`` runs in it.

        The last active first.
        """
        with self._database.reading() as cursor:
            rows = cursor.execute(schema.ACTIVE, (since_ms, turns)).fetchall()
        found: dict[str, list[ActiveSession]] = {}
        for project, *session in rows:
            found.setdefault(project, []).append(ActiveSession(*session))
        return found

    def project_use(self) -> dict[str, tuple[int, int | None]]:
        """By project, how many sessions worked in it and when a message last was (ms)."""
        with self._database.reading() as cursor:
            rows = cursor.execute(schema.PROJECT_USE).fetchall()
        return {project: (sessions, last) for project, sessions, last in rows}

    def directories(self, project: str) -> list[str]:
        """The working directories in which the messages of a project were said."""
        with self._database.reading() as cursor:
            rows = cursor.execute(schema.DIRECTORIES, (project,)).fetchall()
        return [cwd for (cwd,) in rows]

    def messages_in(self, project: str) -> int:
        """How many messages were said in a project: what ``repoint_project`` would change."""
        with self._database.reading() as cursor:
            return int(cursor.execute(schema.MESSAGES_IN, (project,)).fetchone()[0])

    def repoint_project(self, old: str, new: str, *, cwd: str | None = None) -> int:
        """Have what was said in the project ``old`` (in ``cwd``) belong to ``new``; how many
        messages."""
        with self._database.transaction() as cursor:
            return int(cursor.execute(schema.REPOINT, (new, old, cwd, cwd)).rowcount)

    def place(self, agent: str, session: str, cwd: str, project: str) -> int:
        """Have what the session said in no directory that was known be said in ``cwd``, which
        belongs to ``project``; how many messages."""
        with self._database.transaction() as cursor:
            row = cursor.execute(schema.NUMBER, (agent, session)).fetchone()
            if row is None:
                return 0
            moved = int(cursor.execute(schema.SAY_WHERE, (cwd, project, row[0])).rowcount)
            if moved:
                cursor.execute(schema.PLACE, (row[0], cwd))
                cursor.execute(schema.LEAVE_PLACES, (row[0],))
        return moved

    def newest_said_ms(self, project: str) -> int:
        """When the newest message of the project that is kept was said (ms); 0 where none is."""
        with self._database.reading() as cursor:
            return cursor.execute(schema.NEWEST, (project,)).fetchone()[0] or 0

    def counts(self) -> HistoryCounts:
        """How much is kept, for ``status``."""
        with self._database.reading() as cursor:
            rows = cursor.execute(schema.COUNTS).fetchall()
            messages, by_people = cursor.execute(schema.COUNT_MESSAGES).fetchone()
        return HistoryCounts(
            sessions=sum(row[1] for row in rows),
            root_sessions=sum(row[2] for row in rows),
            messages=messages,
            user_messages=by_people or 0,
            bad_lines=sum(row[3] for row in rows),
            by_agent={row[0]: row[1] for row in rows},
        )


def _stored_session(cursor: sqlite3.Cursor, row: tuple[Any, ...]) -> StoredSession:
    session_id, *names, position, bad_lines, skipped, last_active_ms, last_seq = row[:12]
    version, tools, forgotten = row[12:]
    messages, by_person = cursor.execute(schema.TOTALS, (session_id,)).fetchone()
    projects = cursor.execute(schema.PROJECTS, (session_id,)).fetchall()
    agent, session, kind, parent, forked_from, transcript = names
    return StoredSession(
        agent=agent,
        session=session,
        kind=kind,
        parent=parent,
        forked_from=forked_from,
        transcript=transcript,
        position=position,
        messages=messages or 0,
        user_messages=by_person or 0,
        bad_lines=bad_lines,
        skipped=json.loads(skipped),
        last_active_ms=last_active_ms,
        last_seq=last_seq,
        projects=tuple(project for (project,) in projects),
        version=version,
        tools=json.loads(tools),
        forgotten=bool(forgotten),
    )
