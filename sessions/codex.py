"""Codex's transcripts: ``rollout-<local time>-<thread>.jsonl`` under its ``sessions`` folder.

Old ones are compressed and have ``.zst`` after their name.

Each line is ``{timestamp, type, payload}``. What was said is a ``response_item`` of type message;
the ``event_msg`` lines repeat it and are dropped. Messages have no lasting ids. The working
directory is in ``turn_context`` and ``session_meta``. A thread that was forked or spawned begins
with its own ``session_meta`` and may then repeat another's, with that one's messages.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import msgspec

from memoryd.memory.errors import TranscriptError
from memoryd.memory.facts import Role
from memoryd.sessions.adapter import (
    BAD,
    BLANK,
    NOTHING,
    Found,
    Message,
    Parsed,
    SessionKind,
    State,
    ToolEnd,
    as_id,
    as_path,
    as_raw,
    as_text,
    as_time,
    begin_call,
    end_call,
    is_object,
    note_version,
    second_chance,
    skip,
    tool_end,
    types_in,
)
from memoryd.sessions.compressed import Compressed
from memoryd.sessions.injected import without_injected
from memoryd.sessions.lines import Lines, stat_file
from memoryd.sessions.loose import Media
from memoryd.sessions.own_tool import awaited, note_call, take_result, tells_failure
from memoryd.sessions.source import Source

#: Turns one roll-back may take back; a larger number is no number of turns.
ROLLED_BACK_LIMIT = 100_000

_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
#: ``<thread>`` alone, or ``<thread>_<rollout>`` after a revert: the thread is the session.
_FILE_NAME = re.compile(rf"rollout-.*?({_UUID})(?:_{_UUID})?\.jsonl(?:\.zst)?")
_TEXT_TYPES = {"input_text", "output_text", "text"}
_INTERNAL = {"memory_consolidation", "guardian_review", "review", "compact"}
_FIRST_LINE_BYTES = 64 * 1024
_CHILD_SOURCES = ("subagent", "sub_agent")


class _Item(msgspec.Struct, gc=False):
    type: str = ""
    text: str | None = None


class _Payload(msgspec.Struct, gc=False):
    type: str | None = None
    role: str | None = None
    content: str | list[_Item] | None = None
    cwd: str | None = None
    cli_version: str | None = None
    id: str | None = None
    source: msgspec.Raw = NOTHING
    thread_source: str | None = None
    parent_thread_id: str | None = None
    forked_from_id: str | None = None
    num_turns: int | None = None
    name: str | None = None
    call_id: str | None = None
    arguments: msgspec.Raw = NOTHING
    action: msgspec.Raw = NOTHING
    output: msgspec.Raw = NOTHING


class _Line(msgspec.Struct, gc=False):
    type: str = ""
    timestamp: str | float | None = None
    payload: _Payload | None = None


_decoder = msgspec.json.Decoder(_Line)

#: What most bytes are, and how such a line begins as Codex writes it. Unescaped quotes stand only
#: between keys and values, so no text that somebody said can look like this.
_TOOL_OUTPUT = skip("function_call_output")
_OUTPUT_HEAD = b'"type":"response_item","payload":{"type":"function_call_output"'
_HEAD_BYTES = 256
_CALL = re.compile(rb'"call_id":"([^"\\]{1,200})"')
#: What Codex itself writes of a run: before the output, or after it, where older ones had it.
_EXIT_BEFORE = re.compile(rb"xit(?:ed with)? code:? (-?[0-9]{1,6})")
_EXIT_AFTER = re.compile(rb'exit_code\\?": ?(-?[0-9]{1,6})')
_OUTPUT = b'"output":'
_BEFORE_BYTES, _AFTER_BYTES = 256, 160
_ERRORS = (b'"tool call error', b'"tool call failed', b'"unsupported call')
_CALLS = {"function_call", "custom_tool_call", "local_shell_call"}
_OUTPUTS = {"function_call_output", "custom_tool_call_output"}
#: Items and events that hold nothing anybody said.
_PASSED_OVER = types_in(
    """
    session_meta turn_context compacted world_state token_usage_record retained_context
    security_risk_score realtime_item inter_agent_communication inter_agent_communication_metadata
    reasoning agent_message local_shell_call function_call function_call_output custom_tool_call
    custom_tool_call_output tool_search_call tool_search_output web_search_call
    image_generation_call ghost_snapshot compaction message.system message.developer user_message
    agent_reasoning token_count task_started turn_started task_complete turn_complete turn_aborted
    context_compacted thread_rolled_back entered_review_mode exited_review_mode undo_completed
    item_completed mcp_tool_call_end exec_command_end patch_apply_end web_search_end
    thread_name_updated agent_reasoning_raw_content
    """
)


class Codex(Media):
    """Reads Codex's transcripts. Keeps nothing; see ``Adapter`` for the contract."""

    name = "codex"
    passed_over = _PASSED_OVER

    def __init__(self) -> None:
        self._plain, self._compressed = Lines(), Compressed()

    def source_of(self, path: Path) -> Source:
        """A compressed rollout where the name says so."""
        return self._compressed if path.suffix == ".zst" else self._plain

    def roots(self, environ: Mapping[str, str]) -> tuple[Path, ...]:
        """``sessions`` and ``archived_sessions`` in ``$CODEX_HOME``, else in ``~/.codex``."""
        chosen = environ.get("CODEX_HOME") or Path(environ.get("HOME") or "~") / ".codex"
        folder = Path(chosen).expanduser()
        return (folder / "sessions", folder / "archived_sessions")

    def discover(self, environ: Mapping[str, str]) -> Iterator[Found]:
        """Each thread's newest rollout; one not archived comes before one that is."""
        seen: set[str] = set()
        for root in self.roots(environ):
            for path in _rollouts(root):
                session = _session(path.name)
                if session not in seen:
                    seen.add(session)
                    if self._begins_as_root(session, path):
                        yield Found(session, path)

    def _begins_as_root(self, session: str, path: Path) -> bool:
        found = stat_file(path)
        if found is None:
            return False
        # A first line that is not whole yet says nothing; one that is does not change.
        seen = (found.st_dev, found.st_ino, min(found.st_size, _FIRST_LINE_BYTES))
        return _first_kind(self, session, path, seen) == "root"

    def session_of(self, path: Path) -> str:
        """The thread at the end of a rollout's name, else the whole name."""
        return _session(path.name) or path.stem

    def start(self, session: str, path: Path) -> State:
        """A root until a ``session_meta`` of its own says otherwise."""
        return State(session=session)

    def parse(self, line: bytes, state: State) -> Parsed:
        """What ``line`` says: at most one message, or turns taken back."""
        plain = line.endswith((b"}\n", b"}\r\n")) and line.find(_OUTPUT_HEAD, 0, _HEAD_BYTES) > 0
        if plain and not (state.saving and awaited(state, line)):
            return _plain_output(line, state)
        try:
            decoded = _decoder.decode(line)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            if not line.strip(b" \t\r\n"):
                return BLANK
            raw = second_chance(line)
            if raw is None:
                return BAD
            decoded = _lenient(raw)
        if decoded.payload is None:
            return skip(decoded.type or "untyped")
        return _line(decoded, decoded.payload, state)


@lru_cache(maxsize=16_384)
def _first_kind(adapter: Codex, session: str, path: Path, _seen: object) -> SessionKind:
    """What the first line says the session is; a root where it says nothing."""
    state = adapter.start(session, path)
    try:
        with adapter.open(path, session) as opened:
            for _, line in opened.read(0, None):
                adapter.parse(line or b"", state)
                break
    except TranscriptError:
        return "root"  # whoever reads it will say what is wrong
    return state.kind


def _rollouts(root: Path) -> Iterator[Path]:
    """The rollout files under ``root``, newest first: names and folders begin with the date.

    A plain file comes before a compressed one of the same name.
    """
    for folder, below, names in os.walk(root):
        below.sort(reverse=True)
        for name in sorted(names, key=_age, reverse=True):
            path = Path(folder) / name
            if _session(name) and path.is_file():
                yield path


def _age(name: str) -> tuple[str, bool]:
    plain = name.removesuffix(".zst")
    return plain, plain == name


def _session(name: str) -> str:
    match = _FILE_NAME.fullmatch(name)
    return match[1] if match else ""


def _line(line: _Line, payload: _Payload, state: State) -> Parsed:
    if line.type == "response_item":
        return _item(line, payload, state)
    if line.type == "event_msg":
        return _event(payload)
    if line.type == "session_meta":
        _note_meta(payload, state)
    elif line.type == "turn_context" and payload.cwd:
        state.cwd = as_path(payload.cwd)
    return skip(line.type or "untyped")


def _item(line: _Line, payload: _Payload, state: State) -> Parsed:
    if payload.type != "message":
        return _call(payload, state)
    texts = _texts(payload)
    if payload.role == "user":
        genuine = [said for said in map(without_injected, texts) if said]
        return _message("user", genuine, line, state, "injected" if texts else "no-text")
    if payload.role == "assistant":
        return _message("assistant", texts, line, state, "no-text")
    return skip(f"message.{payload.role or 'no-role'}")


def _call(payload: _Payload, state: State) -> Parsed:
    """A tool call or its result: nobody said it, but it may have saved memory."""
    kind = payload.type or "response_item"
    call = as_id(payload.call_id)
    if kind in _CALLS:
        begin_call(state, call, payload.name or kind.removesuffix("_call"))
    if kind == "function_call":
        note_call(state, call, payload.name or "", bytes(payload.arguments))
    elif kind == "local_shell_call":
        note_call(state, call, "", bytes(payload.action))
    elif kind in _OUTPUTS:
        ended = tool_end(end_call(state, call), _end_of(bytes(payload.output)), kind)
        if call in state.saving:
            saved = take_result(state, call, failed=tells_failure(bytes(payload.output)))
            return replace(ended, saved=saved)
        return ended
    return skip(kind)


def _plain_output(line: bytes, state: State) -> Parsed:
    """What a line comes to that holds the output of a call, by its few small fields."""
    found = _CALL.search(line, 0, _HEAD_BYTES) if state.calls else None
    tool = end_call(state, found[1].decode("latin-1")) if found else ""
    return tool_end(tool, _end_of(line), "function_call_output") if tool else _TOOL_OUTPUT


def _end_of(line: bytes) -> ToolEnd:
    """How a run ended, as the beginning and the end of ``line``, or of an output alone, tell.

    What the tool put out is not read.
    """
    at = line.find(_OUTPUT, 0, _HEAD_BYTES)
    begin = at + len(_OUTPUT) if at >= 0 else 0
    at = line.find(b"xit", begin, begin + _BEFORE_BYTES)
    found = _EXIT_BEFORE.match(line, at) if at >= 0 else None
    if found is None:
        at = line.find(b"exit_code", -_AFTER_BYTES)
        found = _EXIT_AFTER.match(line, at) if at >= 0 else None
    if found is not None:
        return "ok" if int(found[1]) == 0 else "failed"
    return "failed" if line.startswith(_ERRORS, begin) else "unknown"


def _message(role: Role, texts: list[str], line: _Line, state: State, empty: str) -> Parsed:
    if not texts:
        return skip(f"{role}.{empty}")
    text = "\n\n".join(said.strip() for said in texts)
    said = Message(role=role, text=text, at_ms=as_time(line.timestamp), cwd=state.cwd)
    return Parsed((said,))


def _texts(payload: _Payload) -> list[str]:
    if isinstance(payload.content, str):
        return [payload.content] if payload.content.strip() else []
    return [
        item.text
        for item in payload.content or []
        if item.type in _TEXT_TYPES and item.text and item.text.strip()
    ]


def _event(payload: _Payload) -> Parsed:
    if payload.type != "thread_rolled_back":
        return skip(payload.type or "event_msg")
    turns = payload.num_turns or 0
    if not 0 < turns <= ROLLED_BACK_LIMIT:
        return skip("thread_rolled_back")
    return Parsed(rolled_back=turns, skipped="thread_rolled_back")


def _note_meta(payload: _Payload, state: State) -> None:
    """Take what a ``session_meta`` says of this session, not one repeated from another."""
    own = not state.begun or as_id(payload.id) == state.session
    state.begun = True
    if payload.cwd and (own or not state.cwd):
        state.cwd = as_path(payload.cwd)
    if not own:
        return
    note_version(state, payload.cli_version)
    kind, parent = _kind(payload)
    if kind != "root":
        state.kind, state.parent = kind, parent or state.parent
    elif as_id(payload.forked_from_id):
        state.forked_from = as_id(payload.forked_from_id)


def _kind(payload: _Payload) -> tuple[SessionKind, str]:
    """What kind of session a meta line describes, and its parent.

    Codex has written ``source`` as a string, as an object keyed subagent, and as sub_agent; newer
    versions say ``thread_source``. Any of them is enough.
    """
    spawned, role = _source(payload.source)
    parent = as_id(payload.parent_thread_id)
    if is_object(spawned):
        parent = parent or as_id(as_text(spawned.get("parent_thread_id")))
    if _INTERNAL & {role, payload.thread_source}:
        return "internal", parent
    child = role or parent or payload.parent_thread_id or payload.thread_source in _CHILD_SOURCES
    return ("child" if child else "root"), parent


def _source(raw: msgspec.Raw) -> tuple[object, str]:
    """Details and role of the sub-agent that ``source`` tells of; role empty where of none."""
    try:
        source: object = msgspec.json.decode(raw)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None, ""
    if isinstance(source, str):
        return None, source if source in {*_CHILD_SOURCES, *_INTERNAL} else ""
    if not is_object(source):
        return None, ""
    for key in _CHILD_SOURCES:
        if key in source:
            return _subagent(source[key])
    return None, ""


def _subagent(value: object) -> tuple[object, str]:
    if is_object(value):
        role = next(iter(value), "subagent")
        return value.get(role), role
    return None, as_text(value) or "subagent"


def _lenient(raw: dict[str, object]) -> _Line:
    """The line with what cannot be of use left out: wrong types become their defaults."""
    payload, timestamp = raw.get("payload"), raw.get("timestamp")
    return _Line(
        type=as_text(raw.get("type")),
        timestamp=timestamp if isinstance(timestamp, str | int | float) else None,
        payload=_lenient_payload(payload) if is_object(payload) else None,
    )


def _lenient_payload(payload: dict[str, object]) -> _Payload:
    turns = payload.get("num_turns")
    return _Payload(
        type=as_text(payload.get("type")),
        role=as_text(payload.get("role")),
        content=_lenient_content(payload.get("content")),
        cwd=as_text(payload.get("cwd")),
        cli_version=as_text(payload.get("cli_version")),
        id=as_text(payload.get("id")),
        source=as_raw(payload.get("source")),
        thread_source=as_text(payload.get("thread_source")),
        parent_thread_id=as_text(payload.get("parent_thread_id")),
        forked_from_id=as_text(payload.get("forked_from_id")),
        num_turns=turns if isinstance(turns, int) else None,
        name=as_text(payload.get("name")),
        call_id=as_text(payload.get("call_id")),
        arguments=as_raw(payload.get("arguments")),
        action=as_raw(payload.get("action")),
        output=as_raw(payload.get("output")),
    )


def _lenient_content(content: object) -> str | list[_Item]:
    if not isinstance(content, list):
        return as_text(content)
    return [
        _Item(as_text(item.get("type")), as_text(item.get("text")))
        if is_object(item)
        else _Item("text", as_text(item))
        for item in content
    ]
