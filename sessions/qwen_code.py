"""Qwen Code's transcripts: ``projects/<project>/chats/<session>.jsonl``.

Each line is a record ``{uuid, sessionId, timestamp, type, subtype?, provenance?, cwd, message}``
with ``message`` as Gemini's API has it: a role and parts. A record with a subtype was written by
the program itself, but for what the person said in the middle of a turn. Copies keep their
``uuid``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from memoryd.memory.facts import Role
from memoryd.sessions.adapter import (
    Found,
    Parsed,
    State,
    ToolEnd,
    as_text,
    note_version,
    skip,
    types_in,
)
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
    objects,
    spoken,
    words,
)

_FILE_NAME = re.compile(r"([0-9a-fA-F-]{32,36})\.jsonl")
_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant"}
_PASSED_OVER = types_in(
    """
    system system.chat_compression system.slash_command system.ui_telemetry system.at_command
    system.notification system.custom_title system.file_history_snapshot system.rewind
    system.attribution_snapshot
    """
)
_SAID_BY = {"", "real_user", "assistant_output"}
_SAID_AS = {"", "mid_turn_user_message"}


class _Response(msgspec.Struct, omit_defaults=True, gc=False):
    error: Any = msgspec.UNSET


class _Answer(msgspec.Struct, omit_defaults=True, gc=False):
    id: Any = msgspec.UNSET
    name: Any = msgspec.UNSET
    response: _Response | msgspec.UnsetType = msgspec.UNSET


class _Part(msgspec.Struct, omit_defaults=True, gc=False):
    functionResponse: _Answer | msgspec.UnsetType = msgspec.UNSET


class _Message(msgspec.Struct, omit_defaults=True):
    parts: list[_Part] | msgspec.UnsetType = msgspec.UNSET


class _Status(msgspec.Struct, omit_defaults=True):
    status: Any = msgspec.UNSET


class _Slim(msgspec.Struct, omit_defaults=True):
    """What is looked at of a record that holds what a tool gave; the output is passed over."""

    type: Any = msgspec.UNSET
    cwd: Any = msgspec.UNSET
    version: Any = msgspec.UNSET
    toolCallResult: _Status | msgspec.UnsetType = msgspec.UNSET
    message: _Message | msgspec.UnsetType = msgspec.UNSET


_slim = msgspec.json.Decoder(_Slim)
_RESULT = b'"tool_result"'
_HEAD_BYTES = 1024


class QwenCode(Loose, Lines):
    """Reads Qwen Code's transcripts. Keeps nothing; see ``Adapter`` for the contract."""

    name = "qwen-code"
    passed_over = _PASSED_OVER

    def roots(self, environ: Mapping[str, str]) -> tuple[Path, ...]:
        """``~/.qwen/projects``."""
        return (folder(environ, "", ".qwen", "projects"),)

    def discover(self, environ: Mapping[str, str]) -> Iterator[Found]:
        """Each session of each project."""
        seen: set[str] = set()
        for root in self.roots(environ):
            for project in names_in(root):
                chats = root / project / "chats"
                for name in names_in(chats):
                    match = _FILE_NAME.fullmatch(name)
                    if match and match[1] not in seen and stat_file(chats / name):
                        seen.add(match[1])
                        yield Found(match[1], chats / name)

    def session_of(self, path: Path) -> str:
        """The name of the file."""
        return path.stem

    def start(self, session: str, path: Path) -> State:
        """A root: sub-agents have no transcript among the chats."""
        return State(session=session)

    def parse(self, line: bytes, state: State) -> Parsed:
        """What ``line`` says. See ``Adapter``."""
        if line.find(_RESULT, 0, _HEAD_BYTES) > 0:
            try:
                found = _slim.decode(line)
            except (msgspec.MsgspecError, ValueError, RecursionError):
                return super().parse(line, state)
            if found.type == "tool_result":
                return self.understand(msgspec.to_builtins(found), state)
        return super().parse(line, state)

    def understand(self, item: Object, state: State) -> Parsed:
        """At most one message."""
        note_cwd(state, item.get("cwd"))
        note_version(state, item.get("version"))
        kind, subtype = as_text(item.get("type")), as_text(item.get("subtype"))
        message = below(item, "message")
        if kind == "tool_result":
            return _result(item, message, state)
        role = _ROLES.get(kind)
        if role is None or subtype not in _SAID_AS:
            return skip(".".join(filter(None, (kind, subtype))) or "untyped")
        if as_text(item.get("provenance")) not in _SAID_BY:
            return skip(f"{role}.injected")
        for part in objects(message.get("parts")):
            call = below(part, "functionCall")
            called(state, call.get("id"), call.get("name"), call.get("args"))
        texts = words(message.get("parts"))
        return spoken(role, texts, state, known_as=item.get("uuid"), at=item.get("timestamp"))


def _result(item: Object, message: Object, state: State) -> Parsed:
    parsed = skip("tool_result")
    failed = as_text(below(item, "toolCallResult").get("status")) in {"error", "cancelled"}
    for part in objects(message.get("parts")):
        answer = below(part, "functionResponse")
        if answer:
            wrong = failed or "error" in below(answer, "response")
            how: ToolEnd = "failed" if wrong else "ok"
            parsed = ended(state, answer.get("id"), parsed, how, answer.get("name"))
    return parsed
