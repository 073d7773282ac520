"""What the readers of agents with loosely known formats share: any JSON object, looked at by key.

Slower than a typed decoder, and right where a format is undocumented or changes: a field of another
type counts as not there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from memoryd.memory.facts import Role
from memoryd.sessions.adapter import (
    BAD,
    BLANK,
    Message,
    Parsed,
    State,
    ToolEnd,
    as_id,
    as_path,
    as_text,
    as_time,
    begin_call,
    end_call,
    is_object,
    second_chance,
    skip,
    tool_name,
)
from memoryd.sessions.injected import without_injected
from memoryd.sessions.own_tool import note_call, take_result
from memoryd.sessions.source import Look, Opened, Source

#: Turns whose ids are remembered, so that the person can take them back by naming one.
TURNS_LIMIT = 256
#: Calls remembered as counted, where an agent may tell of one again.
ENDED_LIMIT = 64
#: Kinds of content that are words.
_WORDS = {"", "text", "input_text", "output_text"}

Object = dict[str, object]


class Loose:
    """Reads items that are JSON objects; what one says is for ``understand`` to tell.

    ``slim``, where an agent has one, decodes only what ``understand`` looks at: most of a
    transcript are tools' outputs, which need not become values. An item it does not fit is decoded
    whole.
    """

    slim: msgspec.json.Decoder[Any] | None = None

    def parse(self, line: bytes, state: State) -> Parsed:
        """What ``line`` says. See ``Adapter``."""
        value = self._slimly(line) or decoded(line)
        return value if isinstance(value, Parsed) else self.understand(value, state)

    def _slimly(self, line: bytes) -> Object | None:
        if self.slim is None:
            return None
        try:
            found: Object = msgspec.to_builtins(self.slim.decode(line))
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return None
        return found

    def understand(self, item: Object, state: State) -> Parsed:
        """What one item says. Changes ``state``."""
        raise NotImplementedError


class Media:
    """A source that keeps its transcripts in more than one way: ``source_of`` tells which."""

    def source_of(self, path: Path) -> Source:
        """How the transcript at ``path`` is read."""
        raise NotImplementedError

    def open(self, path: Path, session: str) -> Opened:
        """See ``Source``."""
        return self.source_of(path).open(path, session)

    def end(self, path: Path, session: str) -> int:
        """See ``Source``."""
        return self.source_of(path).end(path, session)

    def look(self, path: Path, session: str) -> Look | None:
        """See ``Source``."""
        return self.source_of(path).look(path, session)


def decoded(line: bytes) -> Object | Parsed:
    """The object on ``line``, or what a line without one comes to."""
    try:
        value: object = msgspec.json.decode(line)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        if not line.strip(b" \t\r\n"):
            return BLANK
        value = second_chance(line)
    return value if is_object(value) else BAD


def object_in(data: bytes | str) -> Object:
    """The JSON object that ``data`` is, an empty one where it is none."""
    value = decoded(data.encode("utf-8", "replace") if isinstance(data, str) else data)
    return {} if isinstance(value, Parsed) else value


def json_in(text: object) -> object:
    """What the JSON in a text says; None where it is none."""
    try:
        value: object = msgspec.json.decode(as_text(text))
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    return value


def below(item: Object, *keys: str) -> Object:
    """The object under ``keys``, one inside the other; an empty one where there is none."""
    for key in keys:
        value = item.get(key)
        item = value if is_object(value) else {}
    return item


def objects(value: object) -> Iterator[Object]:
    """The objects in a list; none where it is no list."""
    if isinstance(value, list):
        yield from (each for each in value if is_object(each))


def words(content: object) -> list[str]:
    """The texts of a message: a string, a part, or a list of them; thoughts are nobody's words."""
    parts = content if isinstance(content, list) else [content]
    return [text for text in map(_words, parts) if text.strip()]


def _words(part: object) -> str:
    if not is_object(part):
        return as_text(part)
    if part.get("thought") or as_text(part.get("type")) not in _WORDS:
        return ""
    return as_text(part.get("text"))


def spoken(
    role: Role, texts: Iterable[str], state: State, *, known_as: object = "", at: object = None
) -> Parsed:
    """The message of ``texts``, without what the agent put into the person's mouth.

    ``known_as`` is the agent's lasting id of it, ``at`` its time in any form ``as_time`` reads.
    """
    found = list(texts)
    if not found:
        return skip(f"{role}.no-text")
    genuine = [without_injected(text) for text in found] if role == "user" else found
    text = "\n\n".join(part.strip() for part in genuine if part.strip())
    if not text:
        return skip(f"{role}.injected")
    known = as_id(as_text(known_as))
    if role == "user" and known and known not in state.turns:
        state.turns = [*state.turns, known][-TURNS_LIMIT:]
    return Parsed((Message(role, text, known, as_time(at), state.cwd),))


def rewound(state: State, turn: str, reason: str) -> Parsed:
    """The person took back the turn of that id and all after it."""
    if turn not in state.turns:
        return skip(reason)
    at = state.turns.index(turn)
    count = len(state.turns) - at
    state.turns = state.turns[:at]
    return Parsed(rolled_back=count, skipped=reason)


def note_cwd(state: State, value: object) -> None:
    """Take the working directory that an item names, if it names one."""
    said = as_text(value)
    if said:
        state.cwd = as_path(said)


def called(state: State, call: object, tool: object, arguments: object) -> None:
    """Remember a tool call; what it is given only where it is to save memory (``own_tool.py``)."""
    begin_call(state, as_id(as_text(call)), as_text(tool))
    try:
        given = msgspec.json.encode(arguments)
    except (ValueError, RecursionError, TypeError):
        return
    note_call(state, as_id(as_text(call)), as_text(tool), given)


def ended(state: State, call: object, parsed: Parsed, how: ToolEnd, tool: object = "") -> Parsed:
    """``parsed``, with the tool whose result this is, and the call when it saved our memory.

    ``tool`` is its name where the result says it again. Only what says that it ended well, or says
    nothing of it, can have saved memory.
    """
    known = as_id(as_text(call))
    saved = take_result(state, known, failed=how == "failed")
    name = end_call(state, known) or (tool_name(as_text(tool)) if tool else "")
    tools = (*parsed.tools, (name, how)) if name else parsed.tools
    return replace(parsed, saved=parsed.saved + saved, tools=tools)


def ended_once(state: State, call: object, parsed: Parsed, how: ToolEnd) -> Parsed:
    """The same for an agent that writes a message again, and its tools with it."""
    known = as_id(as_text(call))
    if known and known in state.ended:
        state.calls.pop(known, None)
        return parsed
    state.ended = [*state.ended, known][-ENDED_LIMIT:]
    return ended(state, call, parsed, how)


def by_success(value: object) -> ToolEnd:
    """How a run ended that says true or false of it."""
    if value is True:
        return "ok"
    return "failed" if value is False else "unknown"


def folder(environ: Mapping[str, str], variable: str, *default: str) -> Path:
    """The folder that ``variable`` names, else ``default`` below the person's home."""
    chosen = environ.get(variable) or Path(environ.get("HOME") or "~", *default)
    return Path(chosen).expanduser()


def names_in(path: Path) -> list[str]:
    """The names in a folder, sorted; none where it cannot be read."""
    try:
        return sorted(entry.name for entry in path.iterdir())
    except (OSError, ValueError):
        return []
