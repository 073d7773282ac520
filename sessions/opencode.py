"""OpenCode's transcripts: ``opencode.db``, older ones a folder of small JSON files.

In both a session has messages and a message has parts; what was said are parts of type text that
are neither synthetic nor ignored. Older files lie in ``storage/session/<project>/<session>.json``,
``storage/message/<session>/<message>.json`` and ``storage/part/<message>/<part>.json``; their ids
ascend. A session with a parent is a sub-agent's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from memoryd.memory.errors import TranscriptError, TranscriptGone
from memoryd.memory.facts import Role
from memoryd.sessions.adapter import (
    Found,
    Parsed,
    State,
    ToolEnd,
    as_id,
    as_text,
    as_time,
    note_version,
    skip,
)
from memoryd.sessions.documents import ItemList, read_document
from memoryd.sessions.lines import LINE_LIMIT_BYTES, stat_file
from memoryd.sessions.loose import (
    Loose,
    Media,
    Object,
    below,
    called,
    ended,
    folder,
    names_in,
    note_cwd,
    object_in,
    objects,
    spoken,
    words,
)
from memoryd.sessions.rows import SESSIONS_LIMIT, Foreign, Row, Rows, listed
from memoryd.sessions.source import Look, Opened, Source
from memoryd.sessions.tables import PartedTable, encoded, is_whole, raw

_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant"}
_ENDS: dict[str, ToolEnd] = {"completed": "ok", "error": "failed"}


class OpenCode(Loose, Media):
    """Reads OpenCode's sessions. Keeps nothing; see ``Adapter`` for the contract."""

    name = "opencode"
    passed_over = frozenset({"system"})

    def __init__(self) -> None:
        self._rows, self._files = Rows(PartedTable()), _Files()

    def roots(self, environ: Mapping[str, str]) -> tuple[Path, ...]:
        """``opencode`` in ``$XDG_DATA_HOME``, else in ``~/.local/share``."""
        return (folder(environ, "XDG_DATA_HOME", ".local", "share") / "opencode",)

    def discover(self, environ: Mapping[str, str]) -> Iterator[Found]:
        """Each root session of the database, then those only the older files have."""
        seen: set[str] = set()
        for root in self.roots(environ):
            for found in [*listed(root / "opencode.db", _listed), *_older(root / "storage")]:
                if found.session not in seen:
                    seen.add(found.session)
                    yield found

    def session_of(self, path: Path) -> str:
        """The name of a session's own file; a database holds many."""
        return path.stem if path.suffix == ".json" else ""

    def start(self, session: str, path: Path) -> State:
        """What the session's row or file says."""
        if path.suffix == ".json":
            info = object_in(read_document(path))
            return _state(session, info.get("parentID"), info.get("directory"), info.get("version"))
        with Foreign(path) as database:
            for _, parent, directory, _, version in _sessions(database, "WHERE id = ?", session):
                return _state(session, parent, directory, version)
        return State(session=session)

    def source_of(self, path: Path) -> Source:
        """The older files where the path is that of a session's."""
        return self._files if path.suffix == ".json" else self._rows

    def understand(self, item: Object, state: State) -> Parsed:
        """At most one message."""
        info = below(item, "info")
        role = as_text(info.get("role"))
        note_cwd(state, below(info, "path").get("cwd"))
        if role not in _ROLES:
            return skip(role or "untyped")
        if info.get("summary") is True:
            return skip(f"{role}.compact")
        texts = [text for part in objects(item.get("parts")) for text in _said(part)]
        at = below(info, "time").get("created")
        parsed = spoken(_ROLES[role], texts, state, known_as=item.get("id"), at=at)
        return _tools(item, state, parsed)


def _said(part: Object) -> list[str]:
    hidden = part.get("synthetic") is True or part.get("ignored") is True
    return words(part) if part.get("type") == "text" and not hidden else []


def _tools(item: Object, state: State, parsed: Parsed) -> Parsed:
    for part in objects(item.get("parts")):
        if part.get("type") == "tool":
            tool = below(part, "state")
            called(state, part.get("callID"), part.get("tool"), tool.get("input"))
            end = _ENDS.get(as_text(tool.get("status")), "failed")  # cut off while it ran
            parsed = ended(state, part.get("callID"), parsed, end)
    return parsed


def _state(session: str, parent: object, directory: object, version: object) -> State:
    state = State(session=session, parent=as_id(as_text(parent)))
    if parent:
        state.kind = "child"
    note_cwd(state, directory)
    note_version(state, version)
    return state


def _listed(database: Foreign) -> Iterator[Found]:
    which = "WHERE parent_id IS NULL ORDER BY time_updated DESC LIMIT ?"
    for session, _, _, updated, _ in _sessions(database, which, SESSIONS_LIMIT):
        known = as_id(as_text(session))
        if known:
            yield Found(known, database.path, as_time(updated) or 0)


def _sessions(database: Foreign, which: str, value: str | int) -> list[Row]:
    version = "version" if "version" in database.columns("session") else "NULL"
    columns = f"id, parent_id, directory, time_updated, {version}"
    return database.ask(f"SELECT {columns} FROM session {which}", (value,))


# -- the older files -----------------------------------------------------------------------------


def _older(storage: Path) -> Iterator[Found]:
    for project in names_in(storage / "session"):
        for name in names_in(storage / "session" / project):
            path = storage / "session" / project / name
            if path.suffix == ".json" and stat_file(path) and _is_root(path):
                yield Found(path.stem, path)


def _is_root(path: Path) -> bool:
    try:
        return not object_in(read_document(path)).get("parentID")
    except (TranscriptError, OSError):
        return False


class _Files:
    """How a session in small files is read. See ``Source``; ``path`` is the session's own file."""

    def open(self, path: Path, session: str) -> Opened:
        """The messages there are now, each read when it is asked for."""
        if stat_file(path) is None:
            raise TranscriptGone(
                f"the session {path} is not there any more",
                hint="what was ingested before is kept",
            )
        return ItemList(_Messages(path.parents[2], session))

    def end(self, path: Path, session: str) -> int:
        """How many messages are whole. Raises what ``open`` raises."""
        return self.open(path, session).end()

    def look(self, path: Path, session: str) -> Look | None:
        """When a message was added last, and how many there are."""
        found = stat_file(path)
        if found is None:
            return None
        messages = path.parents[2] / "message" / session
        try:
            changed = messages.stat().st_mtime_ns
        except (OSError, ValueError):
            changed = 0  # nothing was said yet
        return Look(max(found.st_mtime_ns, changed) // 1_000_000, len(_names(messages)))


class _Messages(Sequence[bytes | None]):
    """The messages of a session, in the order of their ids; one still being written is left off."""

    def __init__(self, storage: Path, session: str) -> None:
        self._storage = storage
        self._folder = storage / "message" / session
        self._names = _names(self._folder)
        if self._names and not is_whole(_json(self._folder / self._names[-1])):
            self._names.pop()

    def __len__(self) -> int:
        return len(self._names)

    def __getitem__(self, at: int) -> bytes | None:  # type: ignore[override]
        known_as = self._names[at].removesuffix(".json")
        parts, size = [], 0
        folder = self._storage / "part" / known_as
        for name in _names(folder):
            part = _json(folder / name)
            size += len(part)
            if size > LINE_LIMIT_BYTES:
                return None
            parts.append(part)
        info = _json(self._folder / self._names[at])
        return encoded({"id": known_as, "info": info, "parts": parts})


def _names(folder: Path) -> list[str]:
    return [name for name in names_in(folder) if name.endswith(".json")]


def _json(path: Path) -> msgspec.Raw:
    try:
        return raw(read_document(path))
    except (TranscriptError, OSError):
        return raw(None)
