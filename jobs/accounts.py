"""What one attempt did, read back from the ledger at its end: for its line in the log, and counts.

Codes, counts and times only: never a statement, a path or a detail, which may quote what was said.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from memoryd.jobs.database import Database
from memoryd.jobs.job import Job
from memoryd.jobs.ledger import Ledger

#: How an attempt may end, as ``attempt_log.ending`` and the log say it. ``lost`` and ``throttled``
#: stand in the log alone: the one ended under another attempt's name, the other left no row.
ENDINGS: Mapping[str, str] = {
    "completed": "the job is done",
    "snoozed": "the job waits, at no cost",
    "failed": "a failure of the job's own",
    "released": "given back at no cost: better work, or a stop",
    "cancelled": "called off while it ran",
    "crashed": "its process died, or stood still past its lease",
    "lost": "another attempt has the job",
    "throttled": "it was too soon for this extract",
}

#: States of a candidate that changed a file.
_WRITTEN = frozenset({"applied", "appended"})

_FACTS = """
select decision, state, count(*) from candidate
where job_id = :id and created_at >= :since group by 1, 2
"""
_NOTES = """
select count(distinct store || '/' || path) from candidate
where job_id = :id and created_at >= :since and state in ('applied', 'appended')
"""
_ATTEMPT = """
select ending, detail, calls, input_tokens, output_tokens, started_at from attempt_log
where job_id = :id and attempt = :attempt
"""


@dataclass(frozen=True)
class Account:
    """One attempt, from its claim to its end. ``seconds`` are monotonic, ``wait_until`` wall ms."""

    kind: str
    #: How it ended (``ENDINGS``), the code of that, and how its job stands now.
    ending: str
    code: str | None
    status: str
    seconds: float
    slices: int = 0
    #: Messages that were distilled: how far the session's cursor moved.
    messages: int = 0
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    #: Facts by what the policy decided, and files that they changed.
    facts: dict[str, int] = field(default_factory=dict)
    notes: int = 0
    failures: int = 0
    #: When the job is due again, for one that is pending.
    wait_until: int | None = None

    def for_log(self) -> dict[str, object]:
        """Its values but for the kind, which the line has already; nothing that is empty."""
        values = {name: value for name, value in vars(self).items() if name != "kind"}
        return {name: value for name, value in values.items() if value not in (None, {})}


def account(
    ledger: Ledger, job: Job, *, lost: bool, seconds: float, slices: int, cursor: int
) -> Account:
    """What the attempt at ``job`` did that has just ended, ``cursor`` where it began.

    ``lost``: it was told that it has lost its lease. Raises ``LedgerError``.
    """
    rows = ledger.db.rows(_ATTEMPT, id=job.id, attempt=job.attempt)
    now = ledger.records.find(job.id)
    if not rows or now is None:
        ending = "lost" if lost else "throttled"
        return Account(job.kind, ending, None, ending, seconds, slices)
    ending, code, calls, read, written, since = rows[0]
    facts, notes = _facts(ledger.db, job, since)
    return Account(
        kind=job.kind,
        ending="lost" if lost else ending or "lost",
        code=code,
        status=now.shown_status,
        seconds=seconds,
        slices=slices,
        messages=max(0, ledger.cursor(job.agent, job.session) - cursor) if job.session else 0,
        calls=calls,
        input_tokens=read,
        output_tokens=written,
        facts=facts,
        notes=notes,
        failures=now.failures,
        wait_until=now.run_at if now.status == "pending" else None,
    )


def _facts(db: Database, job: Job, since: int) -> tuple[dict[str, int], int]:
    """Facts of this attempt by decision, and how many files they changed."""
    decided: dict[str, int] = {}
    wrote = False
    for decision, state, count in db.rows(_FACTS, id=job.id, since=since):
        decided[decision] = decided.get(decision, 0) + count
        wrote = wrote or state in _WRITTEN
    notes = int(db.rows(_NOTES, id=job.id, since=since)[0][0]) if wrote else 0
    return decided, notes
