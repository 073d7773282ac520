"""Copilot CLI's transcripts: ``session-state/<session>/events.jsonl``, older ``<session>.jsonl``.

Each line is an event ``{id, timestamp, parentId, type, data, ephemeral?}``. What was said are
``user.message`` and ``assistant.message``; those with a ``parentToolCallId`` are a sub-agent's. The
working directory comes with ``session.start``, ``session.resume`` and the file ``workspace.yaml``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from memoryd.memory.facts import Role
from memoryd.sessions.adapter import (
    Found,
    Parsed,
    State,
    as_id,
    as_text,
    begin_call,
    note_version,
    skip,
    types_in,
)
from memoryd.sessions.documents import read_head
from memoryd.sessions.lines import Lines, stat_file
from memoryd.sessions.loose import (
    Loose,
    Object,
    below,
    by_success,
    called,
    ended,
    folder,
    names_in,
    note_cwd,
    objects,
    spoken,
    words,
)

_EVENTS = "events.jsonl"
_ROLES: dict[str, Role] = {"user.message": "user", "assistant.message": "assistant"}
_PASSED_OVER = types_in(
    """
    session.start session.resume session.shutdown session.info session.error session.truncation
    session.model_change session.compaction_start session.compaction_complete
    session.import_legacy session.mode_changed session.title_changed session.usage_info
    session.context_changed session.idle assistant.turn_start assistant.turn_end
    assistant.reasoning assistant.usage assistant.intent tool.execution_start
    tool.execution_complete tool.execution_progress tool.execution_partial_result
    tool.user_requested subagent.started subagent.completed subagent.failed subagent.selected
    hook.start hook.end system.message abort user.message assistant.message
    """
)
_CWD = re.compile(r"^cwd:\s*[\"']?(/.*?)[\"']?\s*$", re.MULTILINE)


class CopilotCli(Loose, Lines):
    """Reads Copilot CLI's transcripts. Keeps nothing; see ``Adapter`` for the contract."""

    name = "copilot-cli"
    passed_over = _PASSED_OVER

    def roots(self, environ: Mapping[str, str]) -> tuple[Path, ...]:
        """``session-state`` in ``$COPILOT_HOME``, else in ``~/.copilot``."""
        return (folder(environ, "COPILOT_HOME", ".copilot") / "session-state",)

    def discover(self, environ: Mapping[str, str]) -> Iterator[Found]:
        """Each session's events, in a folder of their own or in one file."""
        seen: set[str] = set()
        for root in self.roots(environ):
            for name in names_in(root):
                path = root / name if name.endswith(".jsonl") else root / name / _EVENTS
                session = self.session_of(path)
                if session not in seen and stat_file(path):
                    seen.add(session)
                    yield Found(session, path)

    def session_of(self, path: Path) -> str:
        """The folder of its events, or the name of the file."""
        return path.parent.name if path.name == _EVENTS else path.stem

    def start(self, session: str, path: Path) -> State:
        """A root; sub-agents speak inside their parent's events."""
        state = State(session=session)
        if path.name == _EVENTS:
            text = read_head(path.parent / "workspace.yaml").decode("utf-8", "replace")
            found = _CWD.search(text)
            note_cwd(state, found[1] if found else "")
        return state

    def understand(self, item: Object, state: State) -> Parsed:
        """At most one message."""
        kind, data = as_text(item.get("type")), below(item, "data")
        if kind.startswith("session."):
            note_cwd(state, below(data, "context").get("cwd"))
            note_version(state, data.get("copilotVersion"))
        if kind == "tool.execution_start":
            begin_call(state, as_id(as_text(data.get("toolCallId"))), as_text(data.get("toolName")))
        if kind == "tool.execution_complete":
            how = by_success(data.get("success"))
            return ended(state, data.get("toolCallId"), skip(kind), how)
        role = _ROLES.get(kind)
        if role is None or item.get("ephemeral") is True:
            return skip(kind or "untyped")
        if data.get("parentToolCallId"):
            return skip("sidechain")
        if role == "user" and as_text(data.get("source")) not in {"", "user"}:
            return skip("user.injected")
        for call in objects(data.get("toolRequests")):
            called(state, call.get("toolCallId"), call.get("name"), call.get("arguments"))
        said = (item.get("id"), item.get("timestamp"))
        return spoken(role, words(data.get("content")), state, known_as=said[0], at=said[1])
