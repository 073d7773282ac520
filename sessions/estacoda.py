"""EstaCoda's transcripts: the tables ``sessions`` and ``messages`` of ``sessions.sqlite``.

A session with a parent is a delegated worker's, or goes on with one that was compacted: its
metadata tells which. The working directory is ``workspaceRoot`` of the metadata.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from memoryd.memory.facts import Role
from memoryd.sessions.adapter import Found, Parsed, State, as_id, as_text, as_time, skip
from memoryd.sessions.loose import Loose, Object, folder, note_cwd, object_in, spoken
from memoryd.sessions.rows import SESSIONS_LIMIT, Foreign, Row, Rows, listed
from memoryd.sessions.tables import SessionTable

_COLUMNS = ("id", "role", "content", "created_at")
_ROLES: dict[str, Role] = {"user": "user", "agent": "assistant"}


class EstaCoda(Loose, Rows):
    """Reads EstaCoda's database. Keeps nothing; see ``Adapter`` for the contract."""

    name = "estacoda"
    passed_over = frozenset({"system"})

    def __init__(self) -> None:
        super().__init__(SessionTable("messages", _COLUMNS, ("id",), "created_at"))

    def roots(self, environ: Mapping[str, str]) -> tuple[Path, ...]:
        """``.estacoda`` in ``$ESTACODA_HOME``, else in the person's home."""
        return (folder(environ, "ESTACODA_HOME") / ".estacoda",)

    def discover(self, environ: Mapping[str, str]) -> Iterator[Found]:
        """Each session of the database that is a root, the newest first."""
        for root in self.roots(environ):
            yield from listed(root / "sessions.sqlite", _listed)

    def session_of(self, path: Path) -> str:
        """None: one file holds many."""
        return ""

    def start(self, session: str, path: Path) -> State:
        """What the session's row says."""
        with Foreign(path) as database:
            for row in _sessions(database, "WHERE id = ?", session):
                return _state(row)
        return State(session=session)

    def understand(self, item: Object, state: State) -> Parsed:
        """At most one message."""
        role = as_text(item.get("role"))
        if role not in _ROLES:
            return skip(role or "untyped")
        texts = [as_text(item.get("content"))]
        said = (item.get("id"), item.get("created_at"))
        return spoken(_ROLES[role], filter(str.strip, texts), state, known_as=said[0], at=said[1])


def _listed(database: Foreign) -> Iterator[Found]:
    for row in _sessions(database, "ORDER BY updated_at DESC LIMIT ?", SESSIONS_LIMIT):
        state = _state(row)
        if state.session and state.kind == "root":
            yield Found(state.session, database.path, as_time(row[3]) or 0)


def _sessions(database: Foreign, which: str, value: str | int) -> list[Row]:
    columns = "id, parent_session_id, metadata_json, updated_at"
    return database.ask(f"SELECT {columns} FROM sessions {which}", (value,))


def _state(row: Row) -> State:
    metadata = object_in(as_text(row[2]))
    state = State(session=as_id(as_text(row[0])))
    note_cwd(state, metadata.get("workspaceRoot"))
    parent = as_id(as_text(row[1]))
    before = as_id(as_text(metadata.get("compactedFromSessionId")))
    if before and metadata.get("kind") != "delegated-child":
        state.forked_from = before
    elif row[1] or metadata.get("kind") == "delegated-child":
        state.kind, state.parent = "child", parent
    return state
