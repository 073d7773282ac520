"""A session of the archive, and how far mining it has come."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, get_type_hints

from memoryd.memory.log import logger

Row = TypeVar("Row")

Stage = Literal["gone", "excluded", "mined", "queued", "set-aside", "young", "old", "waiting"]
#: Every stage and what it says, in the order in which they are shown.
STAGES: dict[Stage, str] = {
    "waiting": "to be read when it is its turn",
    "queued": "a job was made and is not through",
    "mined": "read to its end",
    "set-aside": "its job failed or was called off: left until it changes, or `backfill reset`",
    "young": "still for less than min_idle_hours",
    "old": "still for more than max_age_days",
    "excluded": "excluded, by a person, the configuration or its project's",
    "gone": "its agent deleted it before it was read",
}


@dataclass(frozen=True)
class Seen:
    """One session as discovery saw it. Times are wall milliseconds.

    ``size`` is the bytes of its own file, 0 where it has none; ``at_most`` a position that its end
    cannot exceed.
    """

    agent: str
    session: str
    transcript: str
    cwd: str
    project: str | None
    kind: str
    fingerprint: str
    size: int
    at_most: int
    active_at: int


@dataclass(frozen=True)
class Known:
    """What discovery compares with: the transcript as the ledger has it."""

    transcript: str
    fingerprint: str | None
    active_at: int
    seen_at: int
    cwd: str


@dataclass(frozen=True)
class Archived:
    """A session of the archive, and the job that was made for it last, if that is still there."""

    agent: str
    session: str
    transcript: str
    cwd: str
    project: str | None
    fingerprint: str | None
    size: int
    at_most: int
    active_at: int
    excluded: str | None
    made_fingerprint: str | None
    mined_fingerprint: str | None
    job_id: str | None = None
    job_status: str | None = None
    job_code: str | None = None

    @property
    def name(self) -> str:
        """As people write it."""
        return f"{self.agent}/{self.session}"


@dataclass(frozen=True)
class Read:
    """A session of which something was read: its cursor, and whether it is as it was mined."""

    agent: str
    session: str
    transcript: str
    cwd: str
    last_cutoff: int
    at_most: int
    seq: int
    is_as_mined: int


def well_formed(kind: type[Row], rows: Iterable[tuple[Any, ...]]) -> list[Row]:
    """The rows as ``kind``, a dataclass; those that hold what none of ours writes are left out.

    A file can be edited by hand or rot: one such row must not keep the others from being looked at.
    """
    types = tuple(get_type_hints(kind).values())
    found, left = [], 0
    for row in rows:
        if all(map(isinstance, row, types)):
            found.append(kind(*row))
        else:
            left += 1
    if left:
        logger().warning("rollout.unreadable", rows=left)
    return found


def row_of(seen: Seen) -> Archived:
    """A session that was seen and is in no ledger yet, as the archive's."""
    at = (seen.fingerprint, seen.size, seen.at_most, seen.active_at)
    whose = (seen.agent, seen.session, seen.transcript, seen.cwd, seen.project)
    return Archived(*whose, *at, None, None, None)


@dataclass(frozen=True)
class Limits:
    """Which sessions of the archive may be read now. ``excluded`` is asked about a directory."""

    #: The agents that are read.
    agents: frozenset[str]
    now_ms: int
    min_idle_ms: int
    #: 0 for no limit.
    max_age_ms: int
    excluded: Callable[[str], bool]


def stage(row: Archived, limits: Limits) -> Stage:
    """How far mining this session has come."""
    if row.fingerprint is None:
        return "mined" if row.mined_fingerprint is not None else "gone"
    if row.mined_fingerprint == row.fingerprint:
        return "mined"
    if row.job_status in ("pending", "running"):
        return "queued"
    allowed = row.agent in limits.agents and row.excluded is None
    if not allowed or limits.excluded(row.cwd):
        return "excluded"
    if row.made_fingerprint == row.fingerprint:
        return "set-aside"
    still_ms = limits.now_ms - row.active_at
    if still_ms < limits.min_idle_ms:
        return "young"
    return "old" if 0 < limits.max_age_ms < still_ms else "waiting"


def counts(rows: Sequence[Archived], limits: Limits) -> dict[str, dict[Stage, int]]:
    """How many sessions of each agent have come how far."""
    found: dict[str, dict[Stage, int]] = {}
    for row in rows:
        of_agent = found.setdefault(row.agent, dict.fromkeys(STAGES, 0))
        of_agent[stage(row, limits)] += 1
    return found
