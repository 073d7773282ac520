"""What the session history hands out, and what ingestion hands to it."""

from __future__ import annotations

from dataclasses import dataclass, field

from memoryd.memory.facts import Role
from memoryd.sessions.adapter import SessionKind, State, Tally, ToolTally


@dataclass(frozen=True)
class StoredMessage:
    """One message, or one part of a long one, as it was kept: redacted, with its ``seq``.

    ``id`` is the agent's own or one derived from what was said; the parts of a long message after
    the first add ``#2``, ``#3``, ... ``kind`` is the session's.
    """

    seq: int
    id: str
    role: Role
    text: str
    at_ms: int | None
    cwd: str
    project: str
    kind: SessionKind


@dataclass(frozen=True)
class StoredSession:
    """One session as far as it was ingested.

    ``position`` is in bytes of the transcript; ``messages`` and ``user_messages`` count live
    messages, a long one once; ``skipped`` counts what gave no message, by reason, ``tools`` how
    each tool's runs ended. ``version`` is the agent's own; no words of a ``forgotten`` one are
    kept.
    """

    agent: str
    session: str
    kind: SessionKind
    parent: str
    forked_from: str
    transcript: str
    position: int
    messages: int
    user_messages: int
    bad_lines: int
    skipped: dict[str, int]
    last_active_ms: int | None
    last_seq: int
    projects: tuple[str, ...]
    version: str = ""
    tools: dict[str, dict[str, int]] = field(default_factory=dict)
    forgotten: bool = False


@dataclass(frozen=True)
class ActiveSession:
    """A session in which a person worked on a project.

    ``last_active_ms`` is when something was last said, ``read_ms`` when it was last read (ms).
    """

    agent: str
    session: str
    last_active_ms: int
    read_ms: int


@dataclass(frozen=True)
class HistoryCounts:
    """How much the session history holds; ``by_agent`` counts sessions."""

    sessions: int
    root_sessions: int
    messages: int
    user_messages: int
    bad_lines: int
    by_agent: dict[str, int]


@dataclass(frozen=True)
class Progress:
    """How far a session was ingested: what the next ingestion goes on from.

    ``head`` and ``tail`` are the marks of what was read (``sessions/lines.py``), ``state`` the
    adapter's as JSON; a session never seen has the defaults.
    """

    position: int = 0
    reading: int = 1
    head: str = ""
    tail: str = ""
    state: bytes = b""
    bad_lines: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    tools: dict[str, dict[str, int]] = field(default_factory=dict)


@dataclass(frozen=True)
class Keep:
    """A message to keep, redacted, resolved to its project and cut into ``parts``.

    ``line_end`` is the byte of the transcript at which the line that said it ends.
    """

    role: Role
    parts: tuple[str, ...]
    id: str
    at_ms: int | None
    cwd: str
    project: str
    line_end: int = 0


@dataclass(frozen=True)
class RollBack:
    """The last ``turns`` user turns were taken back."""

    turns: int


@dataclass(frozen=True)
class Saved:
    """The agent itself saved or deleted memory here, by a tool call of this id."""

    call: str
    line_end: int


@dataclass(frozen=True)
class Cited:
    """Notes (``type/name``) that the assistant said shaped its answer of ``at_ms``."""

    notes: tuple[str, ...]
    at_ms: int | None


Event = Keep | RollBack | Saved | Cited


@dataclass(frozen=True)
class StoredCitation:
    """What the assistant cited at one point of a session; ``number`` only grows."""

    number: int
    notes: tuple[str, ...]
    at_ms: int | None


@dataclass(frozen=True)
class Batch:
    """What one transaction records: what was said, in order, and how far the transcript was read.

    ``tally``, ``tools`` and ``bad_lines`` are the totals of this reading of the transcript.
    ``written_ms`` is when that was last written to, where a message says no time; 0 else.
    """

    events: tuple[Event, ...]
    position: int
    reading: int
    head: str
    tail: str
    state: State
    tally: Tally
    bad_lines: int
    last_active_ms: int | None
    tools: ToolTally = field(default_factory=ToolTally)
    written_ms: int = 0


@dataclass
class Recorded:
    """What a batch added: messages (a long one counts once) and the ``seq`` they got."""

    messages: int = 0
    user_messages: int = 0
    copied: int = 0
    first_seq: int = 0
    last_seq: int = 0
