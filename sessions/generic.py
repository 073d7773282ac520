"""Transcripts of any other agent, in a format that it can write: ``docs/transcripts.md``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from memoryd.memory.facts import Role
from memoryd.sessions.adapter import (
    Found,
    Parsed,
    SessionKind,
    State,
    as_id,
    as_text,
    note_version,
    skip,
)
from memoryd.sessions.documents import read_head
from memoryd.sessions.lines import Lines, stat_file
from memoryd.sessions.loose import (
    Loose,
    Object,
    by_success,
    called,
    decoded,
    ended,
    folder,
    names_in,
    note_cwd,
    spoken,
    words,
)

#: Turns one line may take back.
ROLLED_BACK_LIMIT = 100_000
_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant"}
_KINDS: dict[str, SessionKind] = {"root": "root", "child": "child", "internal": "internal"}


class Generic(Loose, Lines):
    """Reads the documented format. Keeps nothing; see ``Adapter`` for the contract."""

    name = "generic"
    passed_over = frozenset({"session", "tool", "tool_result", "rollback"})

    def roots(self, environ: Mapping[str, str]) -> tuple[Path, ...]:
        """``transcripts`` in memoryd's own home."""
        return (folder(environ, "MEMORYD_HOME", ".memoryd") / "transcripts",)

    def discover(self, environ: Mapping[str, str]) -> Iterator[Found]:
        """Each ``<session>.jsonl`` there and in the folders there that is a root's."""
        seen: set[str] = set()
        for root in self.roots(environ):
            for path in _files(root):
                if path.stem not in seen and self.start(path.stem, path).kind == "root":
                    seen.add(path.stem)
                    yield Found(path.stem, path)

    def session_of(self, path: Path) -> str:
        """The name of the file."""
        return path.stem

    def start(self, session: str, path: Path) -> State:
        """What the first line says of the session, if it does."""
        state = State(session=session)
        first = decoded(read_head(path).partition(b"\n")[0])
        if not isinstance(first, Parsed) and first.get("type") == "session":
            _note_session(first, state)
        return state

    def understand(self, item: Object, state: State) -> Parsed:
        """At most one message, or turns taken back."""
        kind = as_text(item.get("type"))
        note_cwd(state, item.get("cwd"))
        role = _ROLES.get(as_text(item.get("role")))
        if kind == "message" and role:
            texts = words(item.get("text"))
            return spoken(role, texts, state, known_as=item.get("id"), at=item.get("time"))
        if kind == "message":
            return skip(f"message.{as_text(item.get('role')) or 'no-role'}")
        if kind == "rollback":
            return _rolled_back(item.get("turns"))
        if kind == "tool":
            called(state, item.get("id"), item.get("name"), item.get("input"))
        elif kind == "tool_result":
            how = by_success(item.get("ok"))
            return ended(state, item.get("id"), skip(kind), how, item.get("name"))
        elif kind == "session":
            _note_session(item, state)
        return skip(kind or "untyped")


def _rolled_back(turns: object) -> Parsed:
    if not isinstance(turns, int) or not 0 < turns <= ROLLED_BACK_LIMIT:
        return skip("rollback")
    return Parsed(rolled_back=turns, skipped="rollback")


def _note_session(item: Object, state: State) -> None:
    state.kind = _KINDS.get(as_text(item.get("kind")), "root")
    state.parent = as_id(as_text(item.get("parent")))
    state.forked_from = as_id(as_text(item.get("forked_from")))
    note_version(state, item.get("version"))


def _files(root: Path) -> Iterator[Path]:
    for name in names_in(root):
        inside = [root / name / below for below in names_in(root / name)]
        for path in [root / name, *inside]:
            if path.suffix == ".jsonl" and stat_file(path):
                yield path
