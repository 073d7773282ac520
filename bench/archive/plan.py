"""What the archive is to hold: every session with its agent, place, size, dates and statements.

All of it follows from the seed, before anything is written.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from facts import Fact, fact
from formats import Session

DAY_MS = 24 * 3600 * 1000
#: How the 3,000 sessions are spread over the six agents.
AGENTS = {
    "claude-code": 35,
    "codex": 25,
    "gemini-cli": 12,
    "opencode": 12,
    "qwen-code": 8,
    "cursor": 8,
}
#: Some ways in which an agent keeps sessions, and how many of a hundred are kept so.
KEPT = {"codex": (("zst", 30), ("archived zst", 15), ("archived", 10)),
        "gemini-cli": (("document", 33),)}  # fmt: skip
#: The largest sessions: whose, kept how, and their share of all bytes (60 MB of 2 GB are 0.03).
LARGEST = (
    ("claude-code", "", 0.036),
    ("codex", "zst", 0.030),
    ("opencode", "", 0.029),
    ("gemini-cli", "document", 0.018),
)
_SMALLEST = 2_500
_CHILDREN, _FORKS, _MOVES, _BELOW = 0.05, 0.03, 0.03, 0.10
#: No fork copies a session larger than this.
_FORKED_LIMIT = 500_000
_PROJECTS = 40
_NAMES = ("alder", "birch", "cedar", "dogwood", "elm", "fir", "gingko", "hazel", "ivy", "juniper")
_SUFFIXES = ("", "-api", "-web", "-tools")


@dataclass(frozen=True)
class Place:
    """A directory that people work in."""

    path: str
    git: bool


@dataclass
class Planned:
    """One session to be: ``said`` are its statements, each with the directory it is said in."""

    session: Session
    place: Place
    size: int
    said: tuple[Fact, ...]
    #: Statements that are no person's, or another agent's: they must not be remembered.
    traps: tuple[Fact, ...] = ()
    #: Where the work goes on after its middle; empty where it stays.
    moved: Place | None = None
    origin: Planned | None = None
    faulty: bool = False

    @property
    def kind(self) -> str:
        """child, fork or root."""
        return "child" if self.session.parent else "fork" if self.origin else "root"


@dataclass(frozen=True)
class Archive:
    """All that is to be written."""

    places: list[Place]
    sessions: list[Planned]


@dataclass
class _Chance:
    seed: int
    root: Path
    until_ms: int
    random: random.Random = field(init=False)
    facts: int = 0

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)

    def happens(self, share: float) -> bool:
        return self.random.random() < share

    def fact(self) -> Fact:
        self.facts += 1
        return fact(self.facts)

    def session(self) -> str:
        return str(uuid.UUID(int=self.random.getrandbits(128), version=4))


def plan(person: Path, *, sessions: int, size: int, seed: int, until: datetime) -> Archive:
    """An archive of so many root sessions and about ``size`` bytes below the home ``person``.

    A twentieth as many children come beside them. ``until`` is the end of the year it is of.
    """
    until_ms = int(until.astimezone(UTC).timestamp() * 1000)
    chance = _Chance(seed, person, until_ms)
    places = _places(person, min(_PROJECTS, max(4, sessions // 6)))
    roots = list(_roots(chance, places, _sizes(chance, sessions, size)))
    for at in range(max(1, int(sessions * _FORKS))):
        _make_fork(chance, roots, len(roots) - 1 - at)
    children = [_child(chance, chance.random.choice(roots)) for _ in range(max(1, sessions // 20))]
    return Archive(places, [*roots, *filter(None, children)])


def _places(person: Path, count: int) -> list[Place]:
    names = [f"{name}{suffix}" for suffix in _SUFFIXES for name in _NAMES][:count]
    return [Place(str(person / "code" / name), at % 2 == 0) for at, name in enumerate(names)]


def _sizes(chance: _Chance, sessions: int, size: int) -> list[int]:
    """Log-normal, the largest by hand so that there are some whatever the seed."""
    largest = [int(size * share) for *_, share in LARGEST][: sessions // 4]
    drawn = [chance.random.lognormvariate(0, 2.0) for _ in range(sessions - len(largest))]
    left, limit = size - sum(largest), size * 0.015
    for _ in range(5):
        scale = left / sum(drawn)
        drawn = [min(max(each * scale, _SMALLEST), limit) for each in drawn]
    return [*largest, *map(int, drawn)]


def _roots(chance: _Chance, places: list[Place], sizes: list[int]) -> Iterator[Planned]:
    agents, shares = list(AGENTS), list(AGENTS.values())
    weights = [1 / (at + 3) for at in range(len(places))]
    for at, size in enumerate(sizes):
        agent = chance.random.choices(agents, shares)[0]
        kept = _kept(chance, agent)
        if at < len(LARGEST):
            agent, kept, _ = LARGEST[at]
        place = chance.random.choices(places, weights)[0]
        yield _root(chance, agent, kept, places, place, size)


def _root(
    chance: _Chance, agent: str, kept: str, places: list[Place], place: Place, size: int
) -> Planned:
    cwd, moved = place.path, None
    if agent not in {"cursor", "gemini-cli"}:
        if place.git and chance.happens(_BELOW):
            cwd += "/src"
        elif chance.happens(_MOVES):
            moved = chance.random.choice([each for each in places if each != place])
    begun = chance.until_ms - 5 * DAY_MS - int(chance.random.random() * 360 * DAY_MS)
    session = Session(agent, chance.session(), cwd, begun, kept=kept)
    if agent == "opencode":
        session.id = f"ses_{session.id.replace('-', '')[:20]}"
    said = tuple(chance.fact() for _ in range(chance.random.choices((1, 2, 3), (5, 3, 2))[0]))
    traps = (chance.fact(),) if chance.happens(0.05) else ()
    lines = agent != "opencode" and kept != "document"
    return Planned(session, place, size, said, traps, moved, None, lines and chance.happens(0.02))


def _kept(chance: _Chance, agent: str) -> str:
    drawn = chance.random.random() * 100
    for kept, share in KEPT.get(agent, ()):
        if drawn < share:
            return kept
        drawn -= share
    return ""


def _make_fork(chance: _Chance, roots: list[Planned], at: int) -> None:
    """Have the session at ``at`` begin with a copy of another's first half."""
    fork = roots[at]
    agent = fork.session.agent
    origins = [
        each
        for each in roots
        if agent in {"claude-code", "codex", "qwen-code"}
        and each.session.agent == agent
        and each is not fork
        and each.size < _FORKED_LIMIT
        and each.origin is None
        and each.moved is None
        and len(each.said) < 3
    ]
    if not origins:
        return
    origin = chance.random.choice(origins)
    session = fork.session
    session.forked_from, session.cwd = origin.session.id, origin.session.cwd
    session.begun_ms = origin.session.begun_ms + DAY_MS
    fork.origin, fork.place, fork.moved = origin, origin.place, None
    # More than three in one piece of a session are for a person to decide on.
    fork.said = fork.said[:1]


def _child(chance: _Chance, parent: Planned) -> Planned | None:
    """A sub-agent's session: its parent said to it what looks like a person's word."""
    of = parent.session
    if of.agent == "qwen-code":
        return None
    name = chance.session()
    if of.agent == "opencode":
        name = f"ses_{name.replace('-', '')[:20]}"
    session = Session(of.agent, name, of.cwd, of.begun_ms + 60_000, of.id, kept=of.kept)
    size = int(chance.random.lognormvariate(10, 1))
    return Planned(session, parent.place, size, (), (chance.fact(),))
