"""Claude Code's transcripts: ``projects/<encoded cwd>/<session>.jsonl`` in its own folder.

One JSON object a line; the set of types is open and unknown ones are skipped. A response is spread
over several lines, one content block each, every line with a ``uuid`` that lasts through forks and
resumes. Most lines of type user are tool results or injected; what a person said is a user line
that is not meta, not a compact summary, not a side chain, and has text and no tool result. The
answer to a question the assistant asked (AskUserQuestion) arrives as a tool result and is the
person's.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import msgspec

from memoryd.sessions.adapter import (
    ASKED_LIMIT,
    BAD,
    BLANK,
    NOTHING,
    Found,
    Message,
    Parsed,
    State,
    ToolRun,
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
from memoryd.sessions.injected import without_injected
from memoryd.sessions.lines import Lines
from memoryd.sessions.own_tool import awaited, note_call, take_result

_ASK = "AskUserQuestion"
_ANSWERED = re.compile(r'"([^"]+)"="([^"]*)"')


class _Block(msgspec.Struct, gc=False):
    type: str = ""
    text: str | None = None
    id: str | None = None
    name: str | None = None
    input: msgspec.Raw = NOTHING
    tool_use_id: str | None = None
    is_error: bool | None = None


class _Said(msgspec.Struct, gc=False):
    role: str = ""
    content: str | list[_Block] | None = None


class _Line(msgspec.Struct, gc=False):
    type: str = ""
    uuid: str | None = None
    timestamp: str | float | None = None
    cwd: str | None = None
    version: str | None = None
    sessionId: str | None = None
    isSidechain: bool | None = None
    isMeta: bool | None = None
    isCompactSummary: bool | None = None
    isApiErrorMessage: bool | None = None
    message: _Said | None = None


_decoder = msgspec.json.Decoder(_Line)
#: What most lines are.
_RESULT = "user.tool-result"
_TOOL_RESULT = skip(_RESULT)
#: How such a line's message begins as Claude Code writes it. Unescaped quotes stand only between
#: keys and values, so no text that somebody said can look like this.
_RESULT_HEAD = re.compile(
    rb'"message":\{"role":"user","content":\[\{"'
    rb'(?:tool_use_id":"([^"\\]{1,200})","type":"tool_result","content":|type":"tool_result")'
)
_HEAD_BYTES = 1024
_CALL, _FAILED = b'"tool_use_id":"', b'"is_error":true'
_BACKSLASH = ord("\\")
#: How the fields of a result end behind what the tool put out, and how far before that they stand.
_FIELDS_END = (b'"', b'"is_error":true', b'"is_error":false')
_FIELDS_BYTES = 260
#: Braces looked at in what a tool put out before the line is decoded after all.
_BRACES = 8
_LINE_ENDS = (b"}\n", b"}\r\n")
#: Types of lines that hold nothing anybody said.
_PASSED_OVER = types_in(
    """
    system attachment progress file-history-snapshot queue-operation summary last-prompt ai-title
    custom-title agent-name agent-color agent-setting mode permission-mode pr-link tag
    task-summary worktree-state content-replacement
    """
)


class ClaudeCode(Lines):
    """Reads Claude Code's transcripts. Keeps nothing; see ``Adapter`` for the contract."""

    name = "claude-code"
    passed_over = _PASSED_OVER

    def roots(self, environ: Mapping[str, str]) -> tuple[Path, ...]:
        """``projects`` in ``$CLAUDE_CONFIG_DIR``, else in ``~/.claude``."""
        chosen = environ.get("CLAUDE_CONFIG_DIR") or Path(environ.get("HOME") or "~") / ".claude"
        return (Path(chosen).expanduser() / "projects",)

    def discover(self, environ: Mapping[str, str]) -> Iterator[Found]:
        """Each ``<session>.jsonl`` of each project; a sub-agent's (``agent-*``) is no root."""
        for root in self.roots(environ):
            for folder, below, names in os.walk(root):
                if Path(folder) != root:
                    below.clear()
                for name in sorted(names):
                    path = Path(folder) / name
                    session = name.removesuffix(".jsonl")
                    if session != name and not name.startswith("agent-") and path.is_file():
                        yield Found(session, path)

    def session_of(self, path: Path) -> str:
        """The name of the file."""
        return path.stem

    def start(self, session: str, path: Path) -> State:
        """A sub-agent's file is a child of the session in whose folder it lies."""
        if not path.name.startswith("agent-"):
            return State(session=session)
        inside = path.parent.name == "subagents"
        parent = path.parent.parent.name if inside else ""
        return State(session=session, kind="child", parent=parent, begun=inside)

    def parse(self, line: bytes, state: State) -> Parsed:
        """What ``line`` says: at most one message, two for an answered question."""
        # Nine tenths of the lines: one written just like this need not be decoded.
        plain = state.begun and not state.asked and line.endswith(_LINE_ENDS)
        head = _RESULT_HEAD.search(line, 0, _HEAD_BYTES) if plain else None
        if head and not (state.saving and awaited(state, line)):
            found = _plain_result(line, head, state) if state.calls else _TOOL_RESULT
            if found is not None:
                return found
        try:
            decoded = _decoder.decode(line)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            if not line.strip(b" \t\r\n"):
                return BLANK
            raw = second_chance(line)
            if raw is None:
                return BAD
            decoded = _lenient(raw)
        if decoded.type == "user" or decoded.type == "assistant":
            return _conversation(decoded, line, state)
        return skip(decoded.type or "untyped")


def _plain_result(line: bytes, head: re.Match[bytes], state: State) -> Parsed | None:
    """What a line comes to that ends a tool's run, by its few small fields; ``head`` begins them.

    None where it must be decoded: it may hold several results, or its output many braces.
    """
    begin, call = head.end(), head[1]
    at = line.find(b"}", begin)
    ending = line[at - 4 : at + 3]
    if ending != b"alse}]}" and (ending[3:] != b'"}]}' or ending[2] == _BACKSLASH):
        at = _end_of_fields(line, begin, at)
        if not at:
            return None
    failed = line.endswith(_FAILED, begin, at)
    if call is None:  # the other fields stand before the output or behind it
        fields = line[begin : min(at, begin + _FIELDS_BYTES)]
        fields += line[max(begin, at - _FIELDS_BYTES) : at]
        call = fields.partition(_CALL)[2].partition(b'"')[0]
        failed = _FAILED in fields
    tool = state.calls.pop(call.decode("latin-1"), "")
    return tool_end(tool, "failed" if failed else "ok", _RESULT) if tool else _TOOL_RESULT


def _end_of_fields(line: bytes, head: int, at: int) -> int:
    """Where the one result of a line ends, from the brace ``at`` on; 0 where that is not seen.

    A quote in what a tool put out is escaped, so that no brace in it follows a field.
    """
    for _ in range(_BRACES):
        if line[at - 2] != _BACKSLASH and line.endswith(_FIELDS_END, head, at):
            return at if line.startswith(b"}]}", at) else 0
        at = line.find(b"}", at + 1)
    return 0


def _conversation(line: _Line, raw: bytes, state: State) -> Parsed:
    if line.isSidechain or not state.begun:
        _note_kind(line, state)
    if line.cwd and line.cwd != state.cwd:
        state.cwd = as_path(line.cwd)
    if line.version != state.version:
        note_version(state, line.version)
    if line.isSidechain:
        return skip("sidechain")
    if line.message is None or (line.message.role or line.type) != line.type:
        return skip(f"{line.type}.malformed")
    if line.type == "assistant":
        return _assistant(line, line.message, state)
    if line.isMeta:
        return skip("user.meta")
    if line.isCompactSummary:
        return skip("user.compact")
    return _user(line, line.message, raw, state)


def _note_kind(line: _Line, state: State) -> None:
    """A session that begins on another's side chain is its child until a main line follows."""
    owner = line.sessionId
    if not line.isSidechain:
        if state.kind == "child" and not state.begun:
            state.kind, state.parent = "root", ""
    elif not state.begun and owner and owner != state.session:
        state.kind, state.parent = "child", as_id(owner)
        return
    state.begun = True


def _assistant(line: _Line, said: _Said, state: State) -> Parsed:
    _note_calls(said, state)
    if line.isApiErrorMessage:
        return skip("assistant.api-error")
    text = _paragraphs(_texts(said))
    return _one(line, state, text) if text else skip("assistant.no-text")


def _note_calls(said: _Said, state: State) -> None:
    """Remember the calls whose results are to come, with what those of some will matter for."""
    for block in _blocks(said):
        if block.type != "tool_use" or not as_id(block.id):
            continue
        begin_call(state, as_id(block.id), block.name or "")
        if block.name == _ASK:
            state.asked = [*state.asked, as_id(block.id)][-ASKED_LIMIT:]
        else:
            note_call(state, as_id(block.id), block.name or "", bytes(block.input))


def _user(line: _Line, said: _Said, raw: bytes, state: State) -> Parsed:
    for block in _blocks(said):
        if block.type == "tool_result":
            return _results(line, said, raw, state)
    texts = _texts(said)
    if not texts:
        return skip("user.no-text")
    genuine = _paragraphs(without_injected(text) for text in texts)
    return _one(line, state, genuine) if genuine else skip("user.injected")


def _results(line: _Line, said: _Said, raw: bytes, state: State) -> Parsed:
    """Results of tools: more is said only of questions to the person and of memory saved."""
    saved: tuple[str, ...] = ()
    tools: tuple[ToolRun, ...] = ()
    for block in _blocks(said):
        if block.type == "tool_result":
            failed = block.is_error is True
            saved += take_result(state, block.tool_use_id, failed=failed)
            tool = end_call(state, block.tool_use_id)
            tools += ((tool, "failed" if failed else "ok"),) if tool else ()
    parsed = _answers(line, said, raw, state) if state.asked else _TOOL_RESULT
    return replace(parsed, saved=saved, tools=tools)


def _answers(line: _Line, said: _Said, raw: bytes, state: State) -> Parsed:
    """The person's answers, after the assistant's questions, where a result is that of a question.

    Only a result of a call we saw the assistant make counts: any other tool could write the same
    words. The two keep their roles, so that nobody is held to have said the question.
    """
    results = {block.tool_use_id for block in _blocks(said)}
    if results.isdisjoint(state.asked):
        return _TOOL_RESULT
    state.asked = [asked for asked in state.asked if asked not in results]
    pairs = _answered(second_chance(raw) or {})
    questions = "\n".join(question for question, _ in pairs if question)
    answers = "\n".join(answer for _, answer in pairs if answer)
    if not answers:
        return skip("user.unanswered")
    question = _message(line, state, questions, role="assistant", suffix=":question")
    answer = _message(line, state, answers)
    return Parsed((question, answer) if questions else (answer,))


def _answered(line: dict[str, object]) -> list[tuple[str, str]]:
    """Question and answer of each, from the structured result, else from the text of the result."""
    result = line.get("toolUseResult")
    answers = result.get("answers") if is_object(result) else None
    if is_object(answers):
        return [(as_text(question), _answer(answer)) for question, answer in answers.items()]
    return [
        (question, answer)
        for text in _result_texts(line)
        for question, answer in _ANSWERED.findall(text)
    ]


def _answer(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(as_text(choice) for choice in value if as_text(choice))
    return as_text(value).strip()


def _result_texts(line: dict[str, object]) -> Iterator[str]:
    message = line.get("message")
    content = message.get("content") if is_object(message) else None
    for block in content if isinstance(content, list) else []:
        if not is_object(block) or block.get("is_error") is True:
            continue
        inner = block.get("content")
        for part in inner if isinstance(inner, list) else [inner]:
            yield as_text(part.get("text") if is_object(part) else part)


def _one(line: _Line, state: State, text: str) -> Parsed:
    return Parsed((_message(line, state, text),))


def _message(line: _Line, state: State, text: str, *, role: str = "", suffix: str = "") -> Message:
    own = as_id(line.uuid)
    return Message(
        role="user" if (role or line.type) == "user" else "assistant",
        text=text,
        id=own + suffix if own else "",
        at_ms=as_time(line.timestamp),
        cwd=state.cwd,
    )


def _blocks(said: _Said) -> list[_Block]:
    return said.content if isinstance(said.content, list) else []


def _texts(said: _Said) -> list[str]:
    """The texts of a message that are not blank; a string is one."""
    if isinstance(said.content, str):
        return [said.content] if said.content.strip() else []
    return [b.text for b in _blocks(said) if b.type == "text" and b.text and b.text.strip()]


def _paragraphs(texts: Iterable[str]) -> str:
    return "\n\n".join(text.strip() for text in texts if text.strip())


def _lenient(raw: dict[str, object]) -> _Line:
    """The line with what cannot be of use left out: wrong types become their defaults."""
    message, timestamp = raw.get("message"), raw.get("timestamp")
    return _Line(
        type=as_text(raw.get("type")),
        uuid=as_text(raw.get("uuid")),
        timestamp=timestamp if isinstance(timestamp, str | int | float) else None,
        cwd=as_text(raw.get("cwd")),
        version=as_text(raw.get("version")),
        sessionId=as_text(raw.get("sessionId")),
        isSidechain=bool(raw.get("isSidechain")),
        isMeta=bool(raw.get("isMeta")),
        isCompactSummary=bool(raw.get("isCompactSummary")),
        isApiErrorMessage=bool(raw.get("isApiErrorMessage")),
        message=_lenient_said(message) if is_object(message) else None,
    )


def _lenient_said(message: dict[str, object]) -> _Said:
    content = message.get("content")
    if isinstance(content, list):
        return _Said(as_text(message.get("role")), [_lenient_block(block) for block in content])
    return _Said(as_text(message.get("role")), as_text(content))


def _lenient_block(block: object) -> _Block:
    if not is_object(block):
        return _Block("text", as_text(block))
    return _Block(
        type=as_text(block.get("type")),
        text=as_text(block.get("text")),
        id=as_text(block.get("id")),
        name=as_text(block.get("name")),
        input=as_raw(block.get("input")),
        tool_use_id=as_text(block.get("tool_use_id")),
        is_error=block.get("is_error") is True,
    )
