"""Builders for the ledger's tests: a ledger on a real file, a job in any state, a plan."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from memoryd.jobs.job import COLUMNS, KINDS, Job, serial_key
from memoryd.jobs.ledger import Enqueued, Ledger
from memoryd.memory.clock import Clock
from memoryd.memory.ids import uuid7
from memoryd.memory.plan import Operation, Plan, SliceRange

AGENT = "claude-code"
HOME = "00000000-0000-4000-8000-000000000000"
LEASE_SECONDS = 300


def open_ledger(folder: Path, clock: Clock, **options: int) -> Ledger:
    """The ledger in ``folder``, opened; called again it stands for another process."""
    options = {"lease_seconds": LEASE_SECONDS, **options}
    return Ledger(folder / "memoryd.sqlite", HOME, clock, **options).open()


def enqueue(ledger: Ledger, session: str = "s1", kind: str = "finalize", **changes: object) -> Job:
    """The job that a request for ``session`` leads to."""
    made = request(ledger, session, kind, **changes).job
    assert made is not None
    return made


def request(
    ledger: Ledger, session: str = "s1", kind: str = "finalize", **changes: object
) -> Enqueued:
    """What the ledger answers to a request for ``session``."""
    asked = {
        "cutoff": 100,
        "transcript": f"/transcripts/{session}.jsonl",
        "cwd": "/code",
        "trigger": "hook",
        "reason": "end",
        **changes,
    }
    return ledger.enqueue(kind, AGENT, session, **asked)  # type: ignore[arg-type]


def make_job(ledger: Ledger, session: str = "s1", **overrides: object) -> Job:
    """Insert a row in any state; what a state needs (a lease, an end) is filled in."""
    now = ledger.clock.now_ms()
    kind = KINDS.get(str(overrides.get("kind")), KINDS["finalize"])
    row: dict[str, object] = dict.fromkeys(Job._fields)
    row.update(
        id=uuid7(now),
        home=HOME,
        kind=kind.name,
        serial_key=serial_key(AGENT, session),
        agent=AGENT,
        session=session,
        trigger="hook",
        reason="end",
        cutoff=100,
        payload="{}",
        priority=kind.priority,
        status="pending",
        run_at=now,
        attempt=0,
        failures=0,
        crashes=0,
        max_failures=kind.max_failures,
        snoozes=0,
        created_at=now,
        updated_at=now,
    )
    if overrides.get("status") == "running":
        row.update(attempt=1, lease_owner="builder", lease_expires_at=now + ledger.lease_ms)
    if overrides.get("status") in ("completed", "failed", "cancelled"):
        row.update(attempt=1, finished_at=now)
    row.update(overrides)
    names = ", ".join(f":{name}" for name in row)
    with ledger.db.writing():
        ledger.db.change(f"insert into job ({COLUMNS}) values ({names})", **row)
    return ledger.records.job(str(row["id"]))


def claim(ledger: Ledger, owner: str = "worker") -> Job:
    """The next ready job, which there must be."""
    job = ledger.claim(owner)
    assert job is not None, "nothing was ready"
    return job


def again(ledger: Ledger, job: Job) -> Job:
    """The job's row as it is now."""
    return ledger.records.job(job.id)


def part_of(job: Job, first: int = 1, last: int = 10) -> SliceRange:
    """A slice of the job's session."""
    return SliceRange(job.agent, job.session, first, last)


def plan_of(job: Job, first: int = 1, last: int = 10) -> Plan:
    """A plan with one operation for a slice of the job's session."""
    operation = Operation(
        store="-code",
        path="user/tabs.md",
        before=None,
        after="a" * 64,
        content="tabs\n",
        line="Tabs, not spaces.",
        candidate="c1",
    )
    return Plan(job.id, part_of(job, first, last), "rules", (operation,))


@dataclass(frozen=True)
class Span:
    """One piece of evidence, shaped like ``EvidenceSpan``."""

    message_id: str
    seq: int
    span: str


@dataclass(frozen=True)
class MadeCandidate:
    """A candidate, shaped like ``memoryd.memory.policy.Candidate``."""

    id: str = "c1"
    statement: str = "Prefers tabs."
    category: str = "preference"
    explicitness: str = "explicit"
    sensitivity: str = "none"
    confidence: float = 0.9
    evidence: tuple[Span, ...] = (Span("m1", 3, "I prefer tabs"),)
    decision: str = "apply"
    reason: str = "explicit"
    detail: str = "said so"
    risk: str = "low"
    store: str | None = "-code"
    path: str | None = "user/tabs.md"
    draft: str | None = None


def record(ledger: Ledger, job: Job, candidates: Iterable[MadeCandidate] = ()) -> Plan:
    """Record a plan for the job's first ten messages."""
    plan = plan_of(job)
    ledger.record_plan(job, plan, candidates)  # type: ignore[arg-type]
    return plan
