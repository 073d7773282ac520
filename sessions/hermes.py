"""Hermes' transcripts: the tables ``sessions`` and ``messages`` of ``state.db``.

A session that was compressed ends and goes on in a child of it; any other session with a parent is
a sub-agent's. Messages that are rewritten get new row ids, so they are known by their
time and words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from memoryd.memory.facts import Role
from memoryd.sessions.adapter import Found, Parsed, State, ToolEnd, as_id, as_text, as_time, skip
from memoryd.sessions.loose import (
    Loose,
    Object,
    below,
    called,
    ended,
    folder,
    json_in,
    note_cwd,
    objects,
    spoken,
    words,
)
from memoryd.sessions.own_tool import tells_failure
from memoryd.sessions.rows import SESSIONS_LIMIT, Foreign, Row, Rows, listed
from memoryd.sessions.tables import SessionTable

_COLUMNS = ("role", "content", "tool_calls", "tool_call_id", "tool_name", "timestamp")
_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant"}
#: How a session ends that a child of it goes on with.
_GOES_ON = "compress"
_INTERNAL = {"cron"}
#: What stands before the JSON of a message that has parts.
_PARTS = "\0json:"


class Hermes(Loose, Rows):
    """Reads Hermes' database. Keeps nothing; see ``Adapter`` for the contract."""

    name = "hermes"
    passed_over = frozenset({"system", "tool"})

    def __init__(self) -> None:
        super().__init__(SessionTable("messages", _COLUMNS, ("role", "timestamp"), "timestamp"))

    def roots(self, environ: Mapping[str, str]) -> tuple[Path, ...]:
        """``$HERMES_HOME``, else ``~/.hermes``."""
        return (folder(environ, "HERMES_HOME", ".hermes"),)

    def discover(self, environ: Mapping[str, str]) -> Iterator[Found]:
        """Each session of the database that is a root, the newest first."""
        for root in self.roots(environ):
            yield from listed(root / "state.db", _listed)

    def session_of(self, path: Path) -> str:
        """None: one file holds many."""
        return ""

    def start(self, session: str, path: Path) -> State:
        """What the session's row says."""
        with Foreign(path) as database:
            for row in _sessions(database, "WHERE s.id = ?", session):
                return _state(row)
        return State(session=session)

    def understand(self, item: Object, state: State) -> Parsed:
        """At most one message."""
        role = as_text(item.get("role"))
        if role == "tool":
            parsed = skip("tool")
            failed = tells_failure(as_text(item.get("content")).encode())
            how: ToolEnd = "failed" if failed else "unknown"
            return ended(state, item.get("tool_call_id"), parsed, how, item.get("tool_name"))
        if role not in _ROLES:
            return skip(role or "untyped")
        for call in objects(json_in(item.get("tool_calls"))):
            made = below(call, "function")
            called(state, call.get("id"), made.get("name"), made.get("arguments"))
        return spoken(_ROLES[role], _texts(item.get("content")), state, at=item.get("timestamp"))


def _texts(content: object) -> list[str]:
    """The words of a message; one with parts is written as JSON behind a mark."""
    text = as_text(content)
    return words(json_in(text.removeprefix(_PARTS)) if text.startswith(_PARTS) else text)


def _listed(database: Foreign) -> Iterator[Found]:
    for row in _sessions(database, "ORDER BY 6 DESC LIMIT ?", SESSIONS_LIMIT):
        state = _state(row)
        if state.session and state.kind == "root":
            yield Found(state.session, database.path, as_time(row[5]) or 0)


def _sessions(database: Foreign, which: str, value: str | int) -> list[Row]:
    """Id, parent, how the parent ended, source, working directory and last activity of each."""
    cwd = "s.cwd" if "cwd" in database.columns("sessions") else "NULL"
    return database.ask(
        f"SELECT s.id, s.parent_session_id, p.end_reason, s.source, {cwd},"
        " coalesce((SELECT max(timestamp) FROM messages WHERE session_id = s.id), s.started_at)"
        f" FROM sessions s LEFT JOIN sessions p ON p.id = s.parent_session_id {which}",
        (value,),
    )


def _state(row: Row) -> State:
    session, parent, end_reason, source, cwd, _ = row
    state = State(session=as_id(as_text(session)))
    note_cwd(state, cwd)
    if as_text(source) in _INTERNAL:
        state.kind = "internal"
    elif parent and as_text(end_reason).startswith(_GOES_ON):
        state.forked_from = as_id(as_text(parent))
    elif parent:
        state.kind, state.parent = "child", as_id(as_text(parent))
    return state
