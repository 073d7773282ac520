"""What every agent's transcript reader gives, whatever the agent writes.

An adapter says where transcripts are and how they are read (``source.py``), and turns one item, a
line in most of them, into messages, or says why there are none. It keeps what must survive from
line to line in a ``State``, which is small, JSON, and committed together with the position, so that
reading can stop and go on anywhere.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Literal, Protocol, TypeGuard

import msgspec

from memoryd.memory.facts import Role
from memoryd.memory.text import without_surrogates
from memoryd.sessions.source import Source

SessionKind = Literal["root", "child", "internal"]
#: How a tool's run ended; unknown where the agent does not write it down in few bytes.
ToolEnd = Literal["ok", "failed", "unknown"]
#: One run of a tool, by the tool's name, that came to its end.
ToolRun = tuple[str, ToolEnd]

#: Longest id or path taken from a transcript; what is longer is not one.
ID_CHARACTERS = 200
PATH_CHARACTERS = 4096
#: Questions whose answers are still to come, remembered at most.
ASKED_LIMIT = 16
#: Tool calls whose results are still to come, remembered at most.
CALLS_LIMIT = 32
#: Latest year a time in a transcript may name; later ones count as not said.
_LAST_MS = 253_402_300_799_000
#: No digits or capitals: a type that is really a token must not reach the database.
_TYPE_NAME = re.compile(r"[a-z][a-z_.-]{0,39}")
#: Words and short numbers: the random letters of a token are no name of a tool.
_TOOL_NAME = re.compile(r"(?!.{65})[A-Za-z](?:[A-Za-z_.:/-]|[0-9]{1,3}(?![0-9]))*")
#: Numbers, then a few short pieces: ``2.1.230``, ``v0.5.0-nightly.20260105.ab12cd34``.
_VERSION = re.compile(r"v?[0-9]{1,5}(?:\.[0-9]{1,8}){1,3}(?:[-+.][0-9A-Za-z]{1,10}){0,4}")
#: Ids no token is written like: hexadecimal as in UUIDs, short ones, and those of tool calls.
_PLAIN_ID = re.compile(
    r"[0-9a-fA-F-]{1,80}|[\w.:+@-]{1,12}|(?:toolu|call|msg|fc)_[0-9A-Za-z]{1,60}"
)
#: What a tool, a type or a version is called that cannot be told.
OTHER = "other"


@dataclass(frozen=True, slots=True)
class Message:
    """One thing a person or the assistant said.

    ``text`` holds no lone surrogate; ``id`` is the agent's own and lasting one, empty where it
    gives none; ``at_ms`` wall time, None where the agent did not say; ``cwd`` the agent's working
    directory then, empty if unknown.
    """

    role: Role
    text: str
    id: str = ""
    at_ms: int | None = None
    cwd: str = ""


@dataclass(frozen=True, slots=True)
class Parsed:
    """What one line came to.

    ``messages`` in the order they were said; ``skipped`` names why a well-formed line gave none;
    ``bad`` says the line is not what the agent writes; ``rolled_back`` is how many of the last user
    turns the person took back; ``saved`` are the agent's calls that saved or deleted our memory;
    ``tools`` the tools that ended here, in order, without what they were given or gave.
    """

    messages: tuple[Message, ...] = ()
    skipped: str = ""
    bad: bool = False
    rolled_back: int = 0
    saved: tuple[str, ...] = ()
    tools: tuple[ToolRun, ...] = ()


class State(msgspec.Struct, omit_defaults=True):
    """What a reader carries from line to line, and from one ingestion to the next.

    ``kind`` is what the session was seen to be, ``parent`` and ``forked_from`` the sessions it came
    from; ``cwd`` the last one said; ``asked`` the ids of questions put to the person; ``saving``
    those of calls to save memory whose results are to come (``own_tool.py``); ``begun`` that
    ``kind`` was decided; ``copied_seq`` up to which ``seq`` of the session ``copied_from``, one of
    those it was forked from, this one was found to repeat it, -1 once it no longer does; ``turns``
    the ids of the last user turns, where an agent names one of them when the person takes turns
    back; ``first`` whose the first words were, empty before any: no adapter sets it, ingestion does
    (``keeping.py``). ``version`` is the agent's own as it was last said; ``calls`` are the tools,
    by call, whose results are to come, and ``ended`` the calls last counted, where an agent may
    tell of one twice.
    """

    session: str = ""
    kind: SessionKind = "root"
    parent: str = ""
    forked_from: str = ""
    cwd: str = ""
    asked: list[str] = msgspec.field(default_factory=list)
    saving: list[str] = msgspec.field(default_factory=list)
    begun: bool = False
    copied_seq: int = 0
    copied_from: str = ""
    turns: list[str] = msgspec.field(default_factory=list)
    first: Literal["", "person", "own"] = ""
    version: str = ""
    calls: dict[str, str] = msgspec.field(default_factory=dict)
    ended: list[str] = msgspec.field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Found:
    """A session's transcript, discovered; ``active_ms`` where the listing told, else None."""

    session: str
    path: Path
    active_ms: int | None = None


class Adapter(Source, Protocol):
    """One agent's way of keeping transcripts. Stateless: what it must remember is in ``State``."""

    @property
    def name(self) -> str:
        """The agent's name, as the hook and the command line give it."""
        ...

    def roots(self, environ: Mapping[str, str]) -> tuple[Path, ...]:
        """The folders its transcripts are under; they need not exist."""
        ...

    def discover(self, environ: Mapping[str, str]) -> Iterator[Found]:
        """Every root session's transcript, each session once; unreadable folders are left out."""
        ...

    def session_of(self, path: Path) -> str:
        """The session a transcript is named by; the stem of the file name where it is not."""
        ...

    def start(self, session: str, path: Path) -> State:
        """The state before the first line of ``session``'s transcript at ``path``."""
        ...

    def parse(self, line: bytes, state: State) -> Parsed:
        """What ``line`` says. Changes ``state``; never raises for anything a line may hold."""
        ...

    @property
    def passed_over(self) -> frozenset[str]:
        """The types of lines that this reader knows and leaves out; see ``is_known``."""
        ...


def types_in(text: str) -> frozenset[str]:
    """The names of types in a text, white space between them."""
    return frozenset(text.split())


#: Why a line of a known type gives no message, whichever agent wrote it.
_KNOWN_REASONS = types_in(
    """
    child internal sidechain excluded no-directory copied own-call own-block too-long rewind
    rollback tool tool_result tool-result session metadata user.injected user.no-text user.meta
    user.compact user.unanswered user.tool-result user.synthetic assistant.no-text
    assistant.injected assistant.compact assistant.synthetic assistant.api-error
    """
)


def is_known(adapter: Adapter, reason: str) -> bool:
    """Whether what is skipped for ``reason`` is left out on purpose, and is no unknown type."""
    return reason in _KNOWN_REASONS or reason in adapter.passed_over


#: Of those, what anybody may call a line of theirs: no sign that it is this agent's.
_COMMON_REASONS = types_in("session metadata tool tool_result rewind rollback")


def is_own(adapter: Adapter, reason: str) -> bool:
    """Whether a line that is skipped for ``reason`` is a sign that ``adapter``'s agent wrote it."""
    return reason in adapter.passed_over or (
        reason in _KNOWN_REASONS and reason not in _COMMON_REASONS
    )


def is_strange(adapter: Adapter, skipped: Mapping[str, int], bad_lines: int) -> bool:
    """Whether lines were passed over that are no line of the agent's, and none that is.

    Right only where nothing else was made of them: no message, no tool, nothing taken back. What
    anybody's transcript begins with says neither.
    """
    unknown = bad_lines or not all(is_known(adapter, reason) for reason in skipped)
    return bool(unknown) and not any(is_own(adapter, reason) for reason in skipped)


#: What a field left as JSON holds when it is not there.
NOTHING = msgspec.Raw(b"null")

BAD = Parsed(bad=True)
BLANK = Parsed()


@lru_cache(maxsize=256)
def skip(reason: str) -> Parsed:
    """A well-formed line that gives no message, counted under ``reason``."""
    return Parsed(skipped=type_name(reason))


def type_name(name: str) -> str:
    """``name`` if it can be the type of a line, else ``other``: counts must stay few and short."""
    return name if _TYPE_NAME.fullmatch(name) else OTHER


@lru_cache(maxsize=512)
def tool_name(name: str) -> str:
    """``name`` if it can be a tool's, else ``other``: no secret may stand among the counts."""
    if not _TOOL_NAME.fullmatch(name) or _is_secret(name):
        return OTHER
    return name


@lru_cache(maxsize=256)
def tool_end(tool: str, end: ToolEnd, reason: str) -> Parsed:
    """A line of type ``reason`` that tells how a run of ``tool`` ended and nothing else.

    Of a tool that is not known it tells nothing.
    """
    return Parsed(skipped=type_name(reason), tools=((tool_name(tool), end),) if tool else ())


def note_version(state: State, version: object) -> None:
    """Take the agent's own version that a line names, if it names one."""
    if isinstance(version, str) and version != state.version and _VERSION.fullmatch(version):
        state.version = version


def begin_call(state: State, call: str, tool: str) -> None:
    """Remember which tool a call is of, until its result comes."""
    if call:
        state.calls[call] = tool_name(tool)
        if len(state.calls) > CALLS_LIMIT:
            del state.calls[next(iter(state.calls))]


def end_call(state: State, call: str | None) -> str:
    """Which tool the call that came to its end was of; empty where it was not seen to begin."""
    return state.calls.pop(call or "", "")


def second_chance(line: bytes) -> dict[str, object] | None:
    """The object on a line that the strict decoder refused, or None where there is none.

    Accepts a byte order mark, padding with NUL, invalid UTF-8 and control characters in strings;
    lone surrogates are replaced. Nesting too deep for the decoder is None too.
    """
    try:
        text = line.decode("utf-8-sig", "replace").strip("\0 \t\r\n\ufeff")
        value = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None
    return value if is_object(value) else None


def is_object(value: object) -> TypeGuard[dict[str, object]]:
    """Whether ``value`` is a JSON object."""
    return isinstance(value, dict)


def as_raw(value: object) -> msgspec.Raw:
    """A value of ``second_chance`` as JSON again; ``null`` where it cannot be written."""
    try:
        return msgspec.Raw(msgspec.json.encode(value))
    except (ValueError, RecursionError):
        return NOTHING


def as_text(value: object) -> str:
    """A value of ``second_chance`` where a string belongs: numbers as written, else empty.

    Lone surrogates, which the strict decoder refuses and this one lets through, are replaced.
    """
    if isinstance(value, str):
        return without_surrogates(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            return str(value)
        except ValueError:  # more digits than Python will print
            return ""
    return ""


def as_id(text: str | None) -> str:
    """``text`` as an id, empty where it is too long to be one or looks like a secret."""
    if not text or len(text) > ID_CHARACTERS:
        return ""
    return text if _PLAIN_ID.fullmatch(text) or not _is_secret(text) else ""


def as_path(text: str) -> str:
    """``text`` as a path, empty where it cannot be one or holds a secret."""
    if len(text) > PATH_CHARACTERS or "\0" in text:
        return ""
    return "" if text and _is_secret(text) else text


@lru_cache(maxsize=512)
def _is_secret(text: str) -> bool:
    from memoryd.memory.scanner import has_secret

    return has_secret(text)


def as_time(value: object) -> int | None:
    """RFC 3339 text, or seconds or milliseconds since the epoch, as milliseconds; else None.

    A time without a zone is UTC. A number over 10^11 is milliseconds (10^11 s is the year 5138).
    """
    try:
        if isinstance(value, str):
            return _bounded(_text_ms(value))
        if isinstance(value, int | float) and not isinstance(value, bool):
            return _bounded(value if value > 1e11 else value * 1000)
    except (ValueError, OverflowError):
        return None
    return None


def _text_ms(value: str) -> float:
    said = datetime.fromisoformat(value)
    if said.tzinfo is None:
        said = datetime.fromisoformat(f"{value}+00:00")
    return round(said.timestamp() * 1000)


def _bounded(milliseconds: float) -> int | None:
    return int(milliseconds) if 0 <= milliseconds <= _LAST_MS else None


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts by reason, with a bound on how many reasons there can be."""

    by_reason: dict[str, int] = field(default_factory=dict)

    #: Distinct reasons kept; the rest are counted together as ``other``.
    LIMIT = 64

    def add(self, reason: str, count: int = 1) -> None:
        """Count ``reason``."""
        counts = self.by_reason
        if reason not in counts and len(counts) >= self.LIMIT:
            reason = "other"
        counts[reason] = counts.get(reason, 0) + count

    def add_all(self, other: Tally) -> None:
        """Count all that ``other`` counted."""
        for reason, count in other.by_reason.items():
            self.add(reason, count)


@dataclass(frozen=True, slots=True)
class ToolTally:
    """How often each tool ended how; few names, the rest are counted together as ``other``."""

    by_tool: dict[str, dict[str, int]] = field(default_factory=dict)

    def add_all(self, runs: Mapping[ToolRun, int]) -> None:
        """Count these runs."""
        for (tool, end), count in runs.items():
            known = tool in self.by_tool or len(self.by_tool) < Tally.LIMIT
            ends = self.by_tool.setdefault(tool if known else OTHER, {})
            ends[end] = ends.get(end, 0) + count
