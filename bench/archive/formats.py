"""The six agents' transcripts, line by line as each agent writes them, and where each keeps them.

A ``Form`` turns what happens in a session into the bytes its agent would append. Tool output comes
as JSON already (``Output.text``), so that gigabytes are written without being escaped anew.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Said:
    """Words of the person or the assistant; ``role`` is user or assistant."""

    role: str
    text: str
    id: str
    at_ms: int
    cwd: str


@dataclass(frozen=True)
class Output:
    """A tool call and what it printed; ``text`` is the inside of a JSON string."""

    text: bytes
    id: str
    at_ms: int
    cwd: str


Item = Said | Output


@dataclass
class Session:
    """One session as it is written; a child has a ``parent``, a fork an origin."""

    agent: str
    id: str
    cwd: str
    begun_ms: int
    parent: str = ""
    forked_from: str = ""
    #: How its agent keeps it, where it has more than one way: zst, archived, document.
    kept: str = ""


def line(value: Any) -> bytes:
    """One line of JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def at(moment_ms: int) -> str:
    """A time as the agents write it."""
    moment = datetime.fromtimestamp(moment_ms / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


#: What stands in for the bytes of a tool's output while a line is made.
_HOLE = "@@output@@"


def _filled(value: Any, text: bytes) -> bytes:
    before, _, after = line(value).partition(_HOLE.encode())
    return b"".join((before, text, after))


class Form:
    """How one agent writes a session to a file of lines."""

    def path(self, home: Path, session: Session) -> Path:
        """Where the session's file lies below the person's home."""
        raise NotImplementedError

    def head(self, session: Session) -> Iterator[bytes]:
        """What stands before anything was said."""
        return iter(())

    def said(self, said: Said, session: Session) -> Iterator[bytes]:
        """What is appended for words."""
        raise NotImplementedError

    def output(self, output: Output, session: Session) -> Iterator[bytes]:
        """What is appended for a tool's call and output."""
        raise NotImplementedError


class ClaudeCode(Form):
    """Claude Code: a line a content block, tool output in lines of type user."""

    def path(self, home: Path, session: Session) -> Path:
        folder = home / ".claude/projects" / _dashed(session.cwd)
        if session.parent:
            return folder / session.parent / "subagents" / f"agent-{session.id}.jsonl"
        return folder / f"{session.id}.jsonl"

    def head(self, session: Session) -> Iterator[bytes]:
        yield line({"type": "summary", "summary": "Work", "leafUuid": session.id})

    def said(self, said: Said, session: Session) -> Iterator[bytes]:
        content: Any = said.text
        if said.role == "assistant":
            content = [{"type": "text", "text": said.text}]
        yield line(self._record(said.role, content, said, session))

    def output(self, output: Output, session: Session) -> Iterator[bytes]:
        call = f"toolu_{output.id[:8]}"
        use = {"type": "tool_use", "id": call, "name": "Bash", "input": {"command": "make test"}}
        calling = replace(output, id=f"{output.id[:-12]}{output.id[:12].replace('-', '0')}")
        yield line(self._record("assistant", [use], calling, session))
        result = {"tool_use_id": call, "type": "tool_result", "content": _HOLE}
        yield _filled(self._record("user", [result], output, session), output.text)

    def _record(self, role: str, content: Any, item: Item, session: Session) -> dict[str, Any]:
        return {
            "parentUuid": None,
            "isSidechain": bool(session.parent),
            "userType": "external",
            "cwd": item.cwd,
            "sessionId": session.parent or session.id,
            "version": "2.1.230",
            "gitBranch": "main",
            "type": role,
            "message": {"role": role, "content": content},
            "uuid": item.id,
            "timestamp": at(item.at_ms),
        }


class Codex(Form):
    """Codex: rollouts; what was said stands in a response_item and again in an event_msg."""

    def path(self, home: Path, session: Session) -> Path:
        begun = datetime.fromtimestamp(session.begun_ms / 1000, UTC)
        name = f"rollout-{begun:%Y-%m-%dT%H-%M-%S}-{session.id}.jsonl"
        if "zst" in session.kept:
            name += ".zst"
        if "archived" in session.kept:
            return home / ".codex/archived_sessions" / name
        return home / ".codex/sessions" / f"{begun:%Y/%m/%d}" / name

    def head(self, session: Session) -> Iterator[bytes]:
        meta: dict[str, Any] = {"id": session.id, "cwd": session.cwd, "originator": "codex_cli_rs"}
        if session.parent:
            meta["source"] = {"subagent": {"thread_spawn": {"parent_thread_id": session.parent}}}
        if session.forked_from:
            meta["forked_from_id"] = session.forked_from
        yield line(self._record("session_meta", meta, session.begun_ms))
        if session.forked_from:
            copied = {"id": session.forked_from, "cwd": session.cwd}
            yield line(self._record("session_meta", copied, session.begun_ms))

    def said(self, said: Said, session: Session) -> Iterator[bytes]:
        if said.role == "user":
            turn = {"cwd": said.cwd, "approval_policy": "on-request", "model": "gpt-5-codex"}
            yield line(self._record("turn_context", turn, said.at_ms))
        kind = "input_text" if said.role == "user" else "output_text"
        content = [{"type": kind, "text": said.text}]
        message = {"type": "message", "role": said.role, "content": content}
        yield line(self._record("response_item", message, said.at_ms))
        event = {"type": "user_message" if said.role == "user" else "agent_message"}
        yield line(self._record("event_msg", {**event, "message": said.text}, said.at_ms))

    def output(self, output: Output, session: Session) -> Iterator[bytes]:
        call = f"call_{output.id[:8]}"
        asked = {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": call}
        yield line(self._record("response_item", asked, output.at_ms))
        printed = {"type": "function_call_output", "call_id": call, "output": _HOLE}
        yield _filled(self._record("response_item", printed, output.at_ms), output.text)

    def _record(self, kind: str, payload: Any, moment_ms: int) -> dict[str, Any]:
        return {"timestamp": at(moment_ms), "type": kind, "payload": payload}


class Gemini(Form):
    """Gemini CLI: a line a message, tool output inside the message that called the tool."""

    def path(self, home: Path, session: Session) -> Path:
        begun = datetime.fromtimestamp(session.begun_ms / 1000, UTC)
        chats = home / ".gemini/tmp" / Path(session.cwd).name / "chats"
        ending = ".json" if session.kept == "document" else ".jsonl"
        if session.parent:
            return chats / session.parent / f"{session.id}{ending}"
        return chats / f"session-{begun:%Y-%m-%dT%H-%M}-{session.id[-12:]}{ending}"

    def head(self, session: Session) -> Iterator[bytes]:
        kind = "subagent" if session.parent else "main"
        meta = {"sessionId": session.id, "projectHash": "0", "kind": kind}
        yield line({**meta, "startTime": at(session.begun_ms)})

    def said(self, said: Said, session: Session) -> Iterator[bytes]:
        kind = "user" if said.role == "user" else "gemini"
        content: Any = [{"text": said.text}] if kind == "user" else said.text
        message = {"id": said.id, "timestamp": at(said.at_ms), "type": kind, "content": content}
        yield line(message)

    def output(self, output: Output, session: Session) -> Iterator[bytes]:
        message = {"id": output.id, "timestamp": at(output.at_ms), "type": "gemini", "content": ""}
        yield line(message)  # and again, under its id, when the tool has ended
        answer = [{"functionResponse": {"response": {"output": _HOLE}}}]
        call = {"id": f"run-{output.id[:8]}", "name": "run_shell_command", "args": {}}
        done = {**call, "status": "success", "result": answer}
        yield _filled({**message, "toolCalls": [done]}, output.text)


class QwenCode(Form):
    """Qwen Code: a record a line, with messages as Gemini's API has them."""

    def path(self, home: Path, session: Session) -> Path:
        return home / ".qwen/projects" / _dashed(session.cwd) / "chats" / f"{session.id}.jsonl"

    def said(self, said: Said, session: Session) -> Iterator[bytes]:
        yield line(self._record(said.role, [{"text": said.text}], said, session))

    def output(self, output: Output, session: Session) -> Iterator[bytes]:
        answer = {"id": f"call_{output.id[:8]}", "name": "shell", "response": {"output": _HOLE}}
        record = self._record("tool_result", [{"functionResponse": answer}], output, session)
        yield _filled(record, output.text)

    def _record(self, kind: str, parts: Any, item: Item, session: Session) -> dict[str, Any]:
        return {
            "uuid": item.id,
            "sessionId": session.id,
            "timestamp": at(item.at_ms),
            "type": kind,
            "cwd": item.cwd,
            "version": "0.9.0",
            "message": {"role": "model" if kind == "assistant" else "user", "parts": parts},
        }


class Cursor(Form):
    """Cursor: neither times nor ids; what was typed stands in a block of its own."""

    def path(self, home: Path, session: Session) -> Path:
        name = re.sub(r"[^A-Za-z0-9]+", "-", session.cwd).strip("-")
        folder = home / ".cursor/projects" / name / "agent-transcripts"
        if session.parent:
            return folder / session.parent / "subagents" / f"{session.id}.jsonl"
        return folder / session.id / f"{session.id}.jsonl"

    def said(self, said: Said, session: Session) -> Iterator[bytes]:
        text = said.text
        if said.role == "user":
            text = f"<user_query>\n{text}\n</user_query>"
        content = [{"type": "text", "text": text}]
        yield line({"role": said.role, "message": {"content": content}})

    def output(self, output: Output, session: Session) -> Iterator[bytes]:
        use = {"type": "tool_use", "name": "Write", "input": {"path": "a.txt", "contents": _HOLE}}
        yield _filled({"role": "assistant", "message": {"content": [use]}}, output.text)


class OpenCode:
    """OpenCode: a message is a row, and so is each of its parts."""

    tables = """
        CREATE TABLE session (id TEXT PRIMARY KEY, project_id TEXT, parent_id TEXT,
            directory TEXT NOT NULL, title TEXT, time_created INTEGER, time_updated INTEGER);
        CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT NOT NULL,
            time_created INTEGER, time_updated INTEGER, data TEXT NOT NULL);
        CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT NOT NULL, session_id TEXT NOT NULL,
            time_created INTEGER, time_updated INTEGER, data TEXT NOT NULL);
        CREATE INDEX message_session_idx ON message (session_id);
        CREATE INDEX part_message_idx ON part (message_id);
    """

    def parts(self, item: Item) -> list[bytes]:
        """The parts of the message that ``item`` becomes."""
        if isinstance(item, Said):
            return [line({"type": "step-start"}), line({"type": "text", "text": item.text})]
        tool = {"status": "completed", "input": {"command": "make test"}, "output": _HOLE}
        call = {"type": "tool", "callID": f"call_{item.id[:8]}", "tool": "bash", "state": tool}
        return [_filled(call, item.text)]

    def info(self, item: Item) -> bytes:
        """What is said of that message."""
        role = item.role if isinstance(item, Said) else "assistant"
        time = {"created": item.at_ms, "completed": item.at_ms}
        return line({"role": role, "time": time, "path": {"cwd": item.cwd}})


FORMS: dict[str, Form] = {
    "claude-code": ClaudeCode(),
    "codex": Codex(),
    "gemini-cli": Gemini(),
    "qwen-code": QwenCode(),
    "cursor": Cursor(),
}


def _dashed(path: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in path)
