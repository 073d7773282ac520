"""What a search is asked for and what it answers."""

from __future__ import annotations

from dataclasses import dataclass, field

from memoryd.memory.facts import Role
from memoryd.sessions.adapter import SessionKind


@dataclass(frozen=True)
class Query:
    """What is looked for, and where.

    ``project`` is a key; ``since_ms`` and ``until_ms`` bound when it was said, the first included,
    the second not; ``without`` is a session to leave out. None means any.
    """

    text: str
    project: str | None = None
    agent: str | None = None
    session: str | None = None
    role: Role | None = None
    kind: SessionKind | None = None
    since_ms: int | None = None
    until_ms: int | None = None
    without: str | None = None
    limit: int = 20


@dataclass(frozen=True)
class Hit:
    """A message that was found.

    ``excerpt`` is what of it stands around the words, on one line; ``share`` how much of what was
    looked for it has, from 0 to 1: a rare word is more of it than a common one.
    """

    agent: str
    session: str
    kind: SessionKind
    seq: int
    role: Role
    at_ms: int | None
    cwd: str
    project: str
    excerpt: str
    share: float
    #: When it was said as far as is known: else its session's last activity, or first reading.
    about_ms: int = field(repr=False)
    #: Row ids, for those who look further.
    message_id: int = field(repr=False)
    session_id: int = field(repr=False)


@dataclass(frozen=True)
class Answer:
    """What a search found.

    ``words`` are those looked for; ``all_words`` says that each hit has all of them, else the hits
    have most; ``capped`` that more than ``RANKED`` have them, of which the newest were ranked;
    ``waiting`` counts messages that could not be looked at, because they are not indexed yet.
    """

    hits: tuple[Hit, ...]
    words: tuple[str, ...]
    all_words: bool
    capped: bool
    waiting: int


@dataclass(frozen=True)
class Near:
    """A message beside a hit, or the hit."""

    seq: int
    role: Role
    text: str
    cwd: str
    project: str
