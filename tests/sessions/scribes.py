"""Writers of transcripts: one conversation, in the form and place each agent gives it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import zstandard
from said import claude, codex, rollout

#: When the first message of a conversation is said, and how long after it the next.
STARTED_MS = 1_767_603_600_000
STEP_MS = 1000


@dataclass(frozen=True)
class Said:
    """One message of a conversation. A ``role`` that is neither side's is an unknown type."""

    role: str
    text: str
    number: int = 0

    @property
    def id(self) -> str:
        """The agent's own id of it."""
        return f"m{self.number:04}"

    @property
    def at_ms(self) -> int:
        """When it was said."""
        return STARTED_MS + self.number * STEP_MS

    @property
    def at(self) -> str:
        """The same as RFC 3339."""
        return datetime.fromtimestamp(self.at_ms / 1000, UTC).isoformat().replace("+00:00", "Z")


@dataclass(frozen=True)
class Ran(Said):
    """A tool that the assistant ran: its call, with a secret among its arguments, and its end."""

    tool: str = "Bash"
    failed: bool = False

    @property
    def call(self) -> str:
        """The id of the call."""
        return f"call_{self.number}"


def ran(number: int, *, failed: bool = False, tool: str = "Bash") -> Ran:
    """A run of a tool."""
    return Ran("tool", "", number, tool, failed)


#: What a tool was given and what it put out: neither is ever kept.
GIVEN, PUT_OUT = {"command": "quokka"}, "wombat } wombat"


def talk(*said: tuple[str, str]) -> list[Said]:
    """A conversation, numbered."""
    return [Said(role, text, number) for number, (role, text) in enumerate(said)]


def line(value: Any) -> bytes:
    """One line of JSON."""
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"


class Scribe:
    """Writes one agent's transcripts below ``home``, which stands for the person's."""

    agent = ""
    #: Whether the transcript is a file of lines that grows at its end.
    appended = True
    #: Whether messages have times, and whether the medium is a database.
    timed, database = True, False
    #: Whether all that was said is in the one file.
    whole = True
    #: The agent's version, where its form has a place for it, and how the end of a run that went
    #: well and of one that failed is read; None where tools are not told of.
    version = ""
    ends: tuple[str, str] | None = ("ok", "failed")
    sessions = (
        "0198aaaa-0000-7000-8000-000000000001",
        "0198aaaa-0000-7000-8000-000000000002",
        "0198aaaa-0000-7000-8000-000000000003",
    )

    def __init__(self, home: Path) -> None:
        self.home = home
        self.cwd = str(home / "demo")

    @property
    def session(self) -> str:
        """The session that tests are about."""
        return self.sessions[0]

    @property
    def environ(self) -> dict[str, str]:
        """An environment with this home."""
        return {"HOME": str(self.home)}

    def path(self, session: str) -> Path:
        """Where the session's transcript lies."""
        raise NotImplementedError

    def write(self, said: Sequence[Said], session: str = "", *, parent: str = "") -> Path:
        """Make the transcript hold just ``said``; with a parent it is a sub-agent's."""
        session = session or self.session
        path = self.path(session) if not parent else self.child_path(session, parent)
        path.parent.mkdir(parents=True, exist_ok=True)
        data = b"".join([*self.head(session, parent), *(self.line(each) for each in said)])
        self.put(path, data)
        return path

    def put(self, path: Path, data: bytes) -> None:
        """Store the lines."""
        path.write_bytes(data)

    def child_path(self, session: str, parent: str) -> Path:
        """Where a sub-agent's transcript lies."""
        return self.path(session)

    def head(self, session: str, parent: str) -> list[bytes]:
        """Lines before what was said."""
        return []

    def line(self, said: Said) -> bytes:
        """The line of one message."""
        raise NotImplementedError


class ClaudeCodeScribe(Scribe):
    """Claude Code."""

    agent = "claude-code"
    version = "2.1.230"

    def path(self, session: str) -> Path:
        return self.home / ".claude/projects/-demo" / f"{session}.jsonl"

    def child_path(self, session: str, parent: str) -> Path:
        return self.home / ".claude/projects/-demo" / parent / f"subagents/agent-{session}.jsonl"

    def line(self, said: Said) -> bytes:
        more = {"timestamp": said.at, "cwd": self.cwd, "version": self.version}
        if isinstance(said, Ran):
            call = {"type": "tool_use", "id": said.call, "name": said.tool, "input": GIVEN}
            end = {"tool_use_id": said.call, "type": "tool_result", "content": PUT_OUT}
            end["is_error"] = said.failed  # type: ignore[assignment]
            return claude("assistant", [call], f"{said.id}c", **more) + claude(
                "user", [end], said.id, **more
            )
        return claude(said.role, said.text, said.id, **more)


class CodexScribe(Scribe):
    """Codex."""

    agent = "codex"
    version = "0.150.0"

    def path(self, session: str) -> Path:
        name = f"rollout-2026-01-05T09-00-00-{session}.jsonl"
        return self.home / ".codex/sessions/2026/01/05" / name

    def head(self, session: str, parent: str) -> list[bytes]:
        more = {"source": {"subagent": {"thread_spawn": {"parent_thread_id": parent}}}}
        about = {"id": session, "cwd": self.cwd, "cli_version": self.version}
        meta = {**about, **(more if parent else {})}
        return [rollout("session_meta", meta)]

    def line(self, said: Said) -> bytes:
        if isinstance(said, Ran):
            call = {"type": "function_call", "call_id": said.call, "name": said.tool}
            output = f"Process exited with code {int(said.failed)}\nOutput:\n{PUT_OUT}"
            end = {"type": "function_call_output", "call_id": said.call, "output": output}
            called = rollout("response_item", {**call, "arguments": json.dumps(GIVEN)}, said.at)
            return called + rollout("response_item", end, said.at)
        return codex(said.role, said.text, said.at)


class CodexZstdScribe(CodexScribe):
    """Codex, archived and compressed."""

    appended = False

    def path(self, session: str) -> Path:
        name = f"rollout-2026-01-05T09-00-00-{session}.jsonl.zst"
        return self.home / ".codex/archived_sessions" / name

    def put(self, path: Path, data: bytes) -> None:
        path.write_bytes(zstandard.compress(data))


class CopilotScribe(Scribe):
    """Copilot CLI."""

    agent = "copilot-cli"
    version = "0.0.380"

    def path(self, session: str) -> Path:
        return self.home / ".copilot/session-state" / session / "events.jsonl"

    def head(self, session: str, parent: str) -> list[bytes]:
        data = {"sessionId": session, "copilotVersion": self.version, "context": {"cwd": self.cwd}}
        return [line({"type": "session.start", "id": "e", "data": data})]

    def line(self, said: Said) -> bytes:
        if isinstance(said, Ran):
            call = {"toolCallId": said.call, "toolName": said.tool, "arguments": GIVEN}
            end = {"toolCallId": said.call, "success": not said.failed, "result": PUT_OUT}
            begun = line({"type": "tool.execution_start", "id": f"{said.id}c", "data": call})
            return begun + line({"type": "tool.execution_complete", "id": said.id, "data": end})
        event = {"type": f"{said.role}.message", "id": said.id, "timestamp": said.at}
        return line({**event, "parentId": None, "data": {"content": said.text}})


class CursorScribe(Scribe):
    """Cursor."""

    agent = "cursor"
    timed = False
    ends = ("unknown", "unknown")

    def path(self, session: str) -> Path:
        name = "".join(letter if letter.isalnum() else "-" for letter in self.cwd).strip("-")
        while "--" in name:
            name = name.replace("--", "-")
        return (
            self.home
            / ".cursor/projects"
            / name
            / "agent-transcripts"
            / session
            / (f"{session}.jsonl")
        )

    def child_path(self, session: str, parent: str) -> Path:
        return self.path(parent).parent / "subagents" / f"{session}.jsonl"

    def line(self, said: Said) -> bytes:
        if isinstance(said, Ran):
            call = {"type": "tool_use", "name": said.tool, "input": GIVEN}
            return line({"role": "assistant", "message": {"content": [call]}})
        text = f"<user_query>\n{said.text}\n</user_query>" if said.role == "user" else said.text
        return line({"role": said.role, "message": {"content": [{"type": "text", "text": text}]}})


class FreeCodeScribe(Scribe):
    """FreeCode."""

    agent = "freecode"
    ends = ("unknown", "unknown")

    def path(self, session: str) -> Path:
        return self.home / ".freecode/sessions/demo" / session / "messages.jsonl"

    def child_path(self, session: str, parent: str) -> Path:
        return self.path(f"subagent-{session}")

    def write(self, said: Sequence[Said], session: str = "", *, parent: str = "") -> Path:
        path = super().write(said, session, parent=parent)
        meta = {"id": path.parent.name, "projectPath": self.cwd, "status": "active"}
        (path.parent / "meta.json").write_text(json.dumps(meta))
        return path

    def line(self, said: Said) -> bytes:
        role, parts = said.role, [{"type": "text", "content": said.text}]
        if isinstance(said, Ran):
            tool: Any = {"name": said.tool, "args": GIVEN}
            role, parts = "assistant", [{"type": "tool", "tool": tool, "result": PUT_OUT}]
        return line({"id": said.id, "role": role, "parts": parts, "timestamp": said.at_ms})


class GeminiScribe(Scribe):
    """Gemini CLI, a line a message."""

    agent = "gemini-cli"

    def path(self, session: str) -> Path:
        name = f"session-2026-01-05T09-00-{session[-8:]}.jsonl"
        return self.home / ".gemini/tmp/demo/chats" / name

    def child_path(self, session: str, parent: str) -> Path:
        return self.home / ".gemini/tmp/demo/chats" / parent / f"{session}.jsonl"

    def write(self, said: Sequence[Said], session: str = "", *, parent: str = "") -> Path:
        path = super().write(said, session, parent=parent)
        (self.home / ".gemini/tmp/demo/.project_root").write_text(self.cwd)
        return path

    def head(self, session: str, parent: str) -> list[bytes]:
        kind = "subagent" if parent else "main"
        return [line({"sessionId": session, "projectHash": "h", "kind": kind})]

    def message(self, said: Said) -> dict[str, Any]:
        """One message as it stands in a line or in the list."""
        if isinstance(said, Ran):
            status = "error" if said.failed else "success"
            call = {"id": said.call, "name": said.tool, "args": GIVEN, "status": status}
            about = {"id": said.id, "timestamp": said.at, "type": "gemini", "content": ""}
            return {**about, "toolCalls": [{**call, "result": PUT_OUT}]}
        kind = "gemini" if said.role == "assistant" else said.role
        content = said.text if kind == "gemini" else [{"text": said.text}]
        return {"id": said.id, "timestamp": said.at, "type": kind, "content": content}

    def line(self, said: Said) -> bytes:
        return line(self.message(said))


class GeminiDocumentScribe(GeminiScribe):
    """Gemini CLI's older document."""

    appended = False

    def path(self, session: str) -> Path:
        return super().path(session).with_suffix(".json")

    def child_path(self, session: str, parent: str) -> Path:
        return super().child_path(session, parent).with_suffix(".json")

    def put(self, path: Path, data: bytes) -> None:
        head, *messages = map(json.loads, data.splitlines())
        path.write_text(json.dumps({**head, "messages": messages}, indent=2))


class GenericScribe(Scribe):
    """Any agent that writes our format."""

    agent = "generic"
    version = "1.4.0"

    def path(self, session: str) -> Path:
        return self.home / ".memoryd/transcripts/mine" / f"{session}.jsonl"

    def head(self, session: str, parent: str) -> list[bytes]:
        kind = "child" if parent else "root"
        about = {"type": "session", "kind": kind, "parent": parent, "cwd": self.cwd}
        return [line({**about, "version": self.version})]

    def line(self, said: Said) -> bytes:
        if isinstance(said, Ran):
            call = {"type": "tool", "id": said.call, "name": said.tool, "input": GIVEN}
            end = {"type": "tool_result", "id": said.call, "ok": not said.failed}
            return line(call) + line(end)
        message = {"type": "message", "role": said.role, "text": said.text}
        return line({**message, "id": said.id, "time": said.at})


class OpenClawScribe(Scribe):
    """OpenClaw."""

    agent = "openclaw"

    def path(self, session: str) -> Path:
        return self.home / ".openclaw/agents/main/sessions" / f"{session}.jsonl"

    def write(self, said: Sequence[Said], session: str = "", *, parent: str = "") -> Path:
        path = super().write(said, session, parent=parent)
        if parent:
            entries = {f"agent:main:subagent:{session}": {"sessionId": session}}
            (path.parent / "sessions.json").write_text(json.dumps(entries))
        return path

    def head(self, session: str, parent: str) -> list[bytes]:
        return [line({"type": "session", "id": session, "cwd": self.cwd})]

    def line(self, said: Said) -> bytes:
        if isinstance(said, Ran):
            part = {"type": "toolCall", "id": said.call, "name": said.tool, "arguments": GIVEN}
            called = {"role": "assistant", "content": [part]}
            end = {"role": "toolResult", "toolCallId": said.call, "toolName": said.tool}
            end |= {"isError": said.failed, "content": PUT_OUT}  # type: ignore[dict-item]
            entry = {"type": "message", "id": said.id, "timestamp": said.at}
            return line({**entry, "id": f"{said.id}c", "message": called}) + line(
                {**entry, "message": end}
            )
        message = {"role": said.role, "content": [{"type": "text", "text": said.text}]}
        entry = {"type": "message", "id": said.id, "parentId": None, "timestamp": said.at}
        return line({**entry, "message": message})


class QwenScribe(Scribe):
    """Qwen Code; its sub-agents have no transcript of their own."""

    agent = "qwen-code"
    version = "0.6.1"

    def path(self, session: str) -> Path:
        return self.home / ".qwen/projects/demo/chats" / f"{session}.jsonl"

    def line(self, said: Said) -> bytes:
        role = "model" if said.role == "assistant" else said.role
        record = {"uuid": said.id, "type": said.role, "timestamp": said.at, "cwd": self.cwd}
        record["version"] = self.version
        if isinstance(said, Ran):
            call = {"functionCall": {"id": said.call, "name": said.tool, "args": GIVEN}}
            told = {"error" if said.failed else "output": PUT_OUT}
            end = {"functionResponse": {"id": said.call, "name": said.tool, "response": told}}
            begun = {**record, "uuid": f"{said.id}c", "type": "assistant"}
            over = {**record, "type": "tool_result", "message": {"role": "user", "parts": [end]}}
            return line({**begun, "message": {"role": "model", "parts": [call]}}) + line(over)
        return line({**record, "message": {"role": role, "parts": [{"text": said.text}]}})


class DatabaseScribe(Scribe):
    """What agents with a database share: one file, a row a session and rows of messages."""

    appended, database = False, True
    file = ""
    tables = ""

    def path(self, session: str) -> Path:
        return self.home / self.file

    def connect(self) -> sqlite3.Connection:
        """The agent's own connection, in WAL mode."""
        path = self.home / self.file
        path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute("PRAGMA journal_mode=wal")
        connection.executescript(self.tables)
        return connection

    def write(self, said: Sequence[Said], session: str = "", *, parent: str = "") -> Path:
        with closing(self.connect()) as connection:
            self.fill(connection, said, session or self.session, parent)
        return self.home / self.file

    def fill(
        self, connection: sqlite3.Connection, said: Sequence[Said], session: str, parent: str
    ) -> None:
        """Replace the session's rows."""
        raise NotImplementedError


class HermesScribe(DatabaseScribe):
    """Hermes."""

    agent = "hermes"
    ends = ("unknown", "failed")
    file = ".hermes/state.db"
    tables = """
        CREATE TABLE IF NOT EXISTS sessions (id TEXT PRIMARY KEY, source TEXT NOT NULL, model TEXT,
            cwd TEXT, parent_session_id TEXT, started_at REAL NOT NULL, ended_at REAL,
            end_reason TEXT, title TEXT);
        CREATE TABLE IF NOT EXISTS messages (id INTEGER PRIMARY KEY AUTOINCREMENT,
            session_id TEXT NOT NULL, role TEXT NOT NULL, content TEXT, tool_call_id TEXT,
            tool_calls TEXT, tool_name TEXT, timestamp REAL NOT NULL, finish_reason TEXT);
        CREATE INDEX IF NOT EXISTS by_session ON messages (session_id, timestamp);
    """

    def fill(
        self, connection: sqlite3.Connection, said: Sequence[Said], session: str, parent: str
    ) -> None:
        stored = "SELECT role, content FROM messages WHERE session_id = ? ORDER BY id"
        old = connection.execute(stored, (session,)).fetchall()
        rows = [row for each in said for row in self._rows(session, each)]
        if old == [row[1:3] for row in rows[: len(old)]]:
            rows = rows[len(old) :]
        else:
            connection.execute("DELETE FROM messages WHERE session_id = ?", (session,))
        connection.execute(
            "REPLACE INTO sessions (id, source, cwd, parent_session_id, started_at)"
            " VALUES (?, 'cli', ?, ?, ?)",
            (session, self.cwd, parent or None, STARTED_MS / 1000),
        )
        connection.executemany(
            "INSERT INTO messages (session_id, role, content, timestamp, tool_calls, tool_call_id)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            rows,
        )

    def _rows(self, session: str, said: Said) -> list[tuple[Any, ...]]:
        at = said.at_ms / 1000
        if not isinstance(said, Ran):
            return [(session, said.role, said.text, at, None, None)]
        made = {"name": said.tool, "arguments": json.dumps(GIVEN)}
        calls = json.dumps([{"id": said.call, "type": "function", "function": made}])
        told = json.dumps({"output": PUT_OUT, "success": False} if said.failed else PUT_OUT)
        return [
            (session, "assistant", "", at, calls, None),
            (session, "tool", told, at, None, said.call),
        ]


class EstaCodaScribe(DatabaseScribe):
    """EstaCoda."""

    agent = "estacoda"
    ends = None
    file = ".estacoda/sessions.sqlite"
    tables = """
        CREATE TABLE IF NOT EXISTS sessions (id TEXT PRIMARY KEY, profile_id TEXT NOT NULL DEFAULT
            'default', title TEXT, created_at TEXT NOT NULL, updated_at TEXT NOT NULL,
            parent_session_id TEXT, ended_at TEXT, end_reason TEXT, metadata_json TEXT);
        CREATE TABLE IF NOT EXISTS messages (id TEXT PRIMARY KEY, session_id TEXT NOT NULL,
            role TEXT NOT NULL, content TEXT NOT NULL, created_at TEXT NOT NULL, channel TEXT,
            metadata_json TEXT);
        CREATE INDEX IF NOT EXISTS by_session ON messages (session_id, created_at);
    """

    def fill(
        self, connection: sqlite3.Connection, said: Sequence[Said], session: str, parent: str
    ) -> None:
        metadata = {"workspaceRoot": self.cwd, **({"kind": "delegated-child"} if parent else {})}
        last = said[-1].at if said else ""
        connection.execute("DELETE FROM messages WHERE session_id = ?", (session,))
        connection.execute(
            "REPLACE INTO sessions (id, created_at, updated_at, parent_session_id, metadata_json)"
            " VALUES (?, ?, ?, ?, ?)",
            (session, last, last, parent or None, json.dumps(metadata)),
        )
        roles = {"assistant": "agent"}
        connection.executemany(
            "INSERT INTO messages (id, session_id, role, content, created_at)"
            " VALUES (?, ?, ?, ?, ?)",
            [
                (
                    f"{session}{each.id}",
                    session,
                    roles.get(each.role, each.role),
                    each.text,
                    each.at,
                )
                for each in said
            ],
        )


class OpenCodeScribe(DatabaseScribe):
    """OpenCode."""

    agent = "opencode"
    version = "1.18.3"
    file = ".local/share/opencode/opencode.db"
    sessions = ("ses_1", "ses_2", "ses_3")
    tables = """
        CREATE TABLE IF NOT EXISTS session (id TEXT PRIMARY KEY, project_id TEXT, parent_id TEXT,
            directory TEXT NOT NULL, title TEXT, version TEXT, time_created INTEGER,
            time_updated INTEGER);
        CREATE TABLE IF NOT EXISTS message (id TEXT PRIMARY KEY, session_id TEXT NOT NULL,
            time_created INTEGER, time_updated INTEGER, data TEXT NOT NULL);
        CREATE TABLE IF NOT EXISTS part (id TEXT PRIMARY KEY, message_id TEXT NOT NULL,
            session_id TEXT NOT NULL, time_created INTEGER, time_updated INTEGER,
            data TEXT NOT NULL);
        CREATE INDEX IF NOT EXISTS by_session ON message (session_id);
        CREATE INDEX IF NOT EXISTS by_message ON part (message_id);
    """

    @staticmethod
    def info(said: Said) -> dict[str, Any]:
        """What is said of a message."""
        role = "assistant" if isinstance(said, Ran) else said.role
        return {"role": role, "time": {"created": said.at_ms, "completed": said.at_ms}}

    @staticmethod
    def part(said: Said) -> dict[str, Any]:
        """What was said, or which tool ran."""
        if not isinstance(said, Ran):
            return {"type": "text", "text": said.text}
        status = "error" if said.failed else "completed"
        state = {"status": status, "input": GIVEN, "output": PUT_OUT}
        return {"type": "tool", "callID": said.call, "tool": said.tool, "state": state}

    def fill(
        self, connection: sqlite3.Connection, said: Sequence[Said], session: str, parent: str
    ) -> None:
        for table in ("message", "part"):
            connection.execute(f"DELETE FROM {table} WHERE session_id = ?", (session,))
        last = said[-1].at_ms if said else 0
        connection.execute(
            "REPLACE INTO session (id, parent_id, directory, version, time_created, time_updated)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            (session, parent or None, self.cwd, self.version, last, last),
        )
        for each in said:
            known_as, at = f"msg_{session}{each.id}", each.at_ms
            row = (known_as, session, at, at, json.dumps(self.info(each)))
            connection.execute("INSERT INTO message VALUES (?, ?, ?, ?, ?)", row)
            parts = [{"type": "step-start"}, self.part(each)]
            for number, part in enumerate(parts):
                row = (f"prt_{known_as}{number}", known_as, session, at, at, json.dumps(part))
                connection.execute("INSERT INTO part VALUES (?, ?, ?, ?, ?, ?)", row)


class OpenCodeFilesScribe(OpenCodeScribe):
    """OpenCode's older files."""

    database, whole = False, False

    def path(self, session: str) -> Path:
        return self.storage / "session/proj" / f"{session}.json"

    @property
    def storage(self) -> Path:
        """Where all the files lie."""
        return self.home / ".local/share/opencode/storage"

    def write(self, said: Sequence[Said], session: str = "", *, parent: str = "") -> Path:
        session = session or self.session
        info = {"id": session, "directory": self.cwd, **({"parentID": parent} if parent else {})}
        info["version"] = self.version
        self._put(self.path(session), info)
        for old in (self.storage / "message" / session).glob("*"):
            old.unlink()
        for each in said:
            known_as = f"msg_{session}{each.id}"
            self._put(self.storage / "message" / session / f"{known_as}.json", self.info(each))
            self._put(self.storage / "part" / known_as / "prt_1.json", self.part(each))
        return self.path(session)

    def _put(self, path: Path, value: Any) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value))


SCRIBES: dict[str, type[Scribe]] = {
    "claude-code": ClaudeCodeScribe,
    "codex": CodexScribe,
    "codex zstd": CodexZstdScribe,
    "copilot-cli": CopilotScribe,
    "cursor": CursorScribe,
    "estacoda": EstaCodaScribe,
    "freecode": FreeCodeScribe,
    "gemini-cli": GeminiScribe,
    "gemini-cli document": GeminiDocumentScribe,
    "generic": GenericScribe,
    "hermes": HermesScribe,
    "openclaw": OpenClawScribe,
    "opencode": OpenCodeScribe,
    "opencode files": OpenCodeFilesScribe,
    "qwen-code": QwenScribe,
}
