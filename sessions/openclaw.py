"""OpenClaw's transcripts: ``agents/<agent>/sessions/<session>.jsonl``, or ``.jsonl.reset.<time>``.

A header ``{type: session, id, cwd, parentSession?}``, then entries ``{type, id, timestamp, ...}``
of which ``message`` is what was said. Which session is whose stands in ``sessions.json``: its keys
name sub-agents and scheduled runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from memoryd.memory.errors import TranscriptError
from memoryd.memory.facts import Role
from memoryd.sessions.adapter import (
    Found,
    Parsed,
    SessionKind,
    State,
    ToolEnd,
    as_id,
    as_text,
    skip,
    types_in,
)
from memoryd.sessions.documents import read_document
from memoryd.sessions.lines import Lines, stat_file
from memoryd.sessions.loose import (
    Loose,
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

_FILE_NAME = re.compile(r"([^.]+)\.jsonl(?:\.reset\..+)?")
_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant"}
_PASSED_OVER = types_in(
    """
    custom custom_message compaction branch_summary model_change thinking_level_change label
    session_info message.system
    """
)
#: Parts of a session's key that say it is not a person's conversation.
_KINDS: dict[str, SessionKind] = {"subagent": "child", "cron": "internal", "heartbeat": "internal"}


class OpenClaw(Loose, Lines):
    """Reads OpenClaw's transcripts. Keeps nothing; see ``Adapter`` for the contract."""

    name = "openclaw"
    passed_over = _PASSED_OVER

    def roots(self, environ: Mapping[str, str]) -> tuple[Path, ...]:
        """``~/.openclaw/agents``."""
        return (folder(environ, "", ".openclaw", "agents"),)

    def discover(self, environ: Mapping[str, str]) -> Iterator[Found]:
        """Each session of each agent that is a person's; the file in use before one put away."""
        for root in self.roots(environ):
            for agent in names_in(root):
                yield from _sessions(root / agent / "sessions")

    def session_of(self, path: Path) -> str:
        """The name of the file up to its first dot."""
        return path.name.partition(".")[0]

    def start(self, session: str, path: Path) -> State:
        """What the key of the session in ``sessions.json`` says it is."""
        return State(session=session, kind=_kinds(path.parent).get(session, "root"))

    def understand(self, item: Object, state: State) -> Parsed:
        """At most one message."""
        kind = as_text(item.get("type"))
        if kind == "session":
            note_cwd(state, item.get("cwd"))
            parent = as_id(Path(as_text(item.get("parentSession"))).name.partition(".")[0])
            state.forked_from = "" if parent == state.session else parent
        if kind != "message":
            return skip(kind or "untyped")
        message = below(item, "message")
        role = as_text(message.get("role"))
        if role == "toolResult":
            how: ToolEnd = "failed" if message.get("isError") is True else "ok"
            tool = message.get("toolName")
            return ended(state, message.get("toolCallId"), skip("tool-result"), how, tool)
        if role not in _ROLES:
            return skip(f"message.{role or 'no-role'}")
        for part in objects(message.get("content")):
            if part.get("type") == "toolCall":
                called(state, part.get("id"), part.get("name"), part.get("arguments"))
        said = (item.get("id"), item.get("timestamp"))
        texts = words(message.get("content"))
        return spoken(_ROLES[role], texts, state, known_as=said[0], at=said[1])


def _sessions(folder: Path) -> Iterator[Found]:
    kinds = _kinds(folder)
    seen: set[str] = set()
    for name in names_in(folder):  # the shorter name, the file in use, sorts first
        match = _FILE_NAME.fullmatch(name)
        if match is None or match[1] in seen or not stat_file(folder / name):
            continue
        seen.add(match[1])
        if kinds.get(match[1], "root") == "root":
            yield Found(match[1], folder / name)


def _kinds(folder: Path) -> dict[str, SessionKind]:
    """What ``sessions.json`` says of the sessions that are no person's."""
    try:
        entries = object_in(read_document(folder / "sessions.json"))
    except (TranscriptError, OSError):
        return {}
    kinds: dict[str, SessionKind] = {}
    for key, entry in entries.items():
        session = as_text(below({"entry": entry}, "entry").get("sessionId"))
        for part in key.split(":"):
            if part in _KINDS and session:
                kinds[session] = _KINDS[part]
    return kinds
