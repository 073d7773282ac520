"""Builders for transcripts: one line each, in the format the agents really write."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memoryd.sessions.adapter import Parsed
from memoryd.sessions.agents import adapter_for
from memoryd.sessions.history import History
from memoryd.sessions.ingest import Ingested, ingest

AT = "2026-01-05T09:00:00.000Z"


def claude(role: str, content: Any, uuid: str = "u1", **more: Any) -> bytes:
    """A conversation line of Claude Code."""
    line = {
        "type": role,
        "uuid": uuid,
        "sessionId": "s1",
        "cwd": "/home/u/demo",
        "timestamp": AT,
        "isSidechain": False,
        "message": {"role": role, "content": content},
        **more,
    }
    return json.dumps(line, separators=(",", ":")).encode() + b"\n"


def codex(role: str, text: str, at: str = AT) -> bytes:
    """A message of a Codex rollout."""
    kind = "input_text" if role == "user" else "output_text"
    content = [{"type": kind, "text": text}]
    return rollout("response_item", {"type": "message", "role": role, "content": content}, at)


def rollout(kind: str, payload: Any, at: str = AT) -> bytes:
    """Any line of a Codex rollout."""
    line = {"timestamp": at, "type": kind, "payload": payload}
    return json.dumps(line, separators=(",", ":")).encode() + b"\n"


def rolled_back(turns: int) -> bytes:
    """The person took back their last turns."""
    return rollout("event_msg", {"type": "thread_rolled_back", "num_turns": turns})


@dataclass
class Reader:
    """Ingests one agent's transcripts into a history, as a job does."""

    history: History
    folder: Path
    agent: str = "claude-code"

    def write(self, *lines: bytes, name: str = "s1") -> Path:
        """Make the transcript of session ``name`` hold just ``lines``."""
        path = self.folder / f"{name}.jsonl"
        path.write_bytes(b"".join(lines))
        return path

    def read(
        self,
        session: str = "s1",
        cutoff: int | None = None,
        excluded: str = "none",
        recorded: Callable[[], object] = object,
    ) -> Ingested:
        """Ingest the session's transcript."""
        path = self.folder / f"{session}.jsonl"
        return ingest(
            self.history,
            adapter_for(self.agent),
            self.agent,
            session,
            path,
            cutoff,
            resolver=lambda cwd: f"key:{cwd}",
            exclude=lambda cwd: cwd == excluded,
            recorded=recorded,
        )

    def texts(self, session: str = "s1") -> list[str]:
        """The words kept of the session."""
        return [m.text for m in self.history.messages(self.agent, session, 0, 10_000)]

    def seqs(self, session: str = "s1") -> list[int]:
        """The seqs of what was kept."""
        return [m.seq for m in self.history.messages(self.agent, session, 0, 10_000)]


def parse(agent: str, *lines: bytes) -> list[Parsed]:
    """What each line came to, in one session."""
    adapter = adapter_for(agent)
    state = adapter.start("s1", Path("s1.jsonl"))
    return [adapter.parse(line, state) for line in lines]
