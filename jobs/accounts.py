"""What one attempt did, read back from the ledger at its end: for its line in the log, and counts.

Codes, counts and times only: never a statement, a path or a detail, which may quote what was said.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from memoryd.jobs.job import Job
from memoryd.jobs.ledger import Ledger
from memoryd.memory.errors import CursorUnreadable

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

_FACTS = "select decision, count(*) from candidate where job_id = :id group by 1"
_NOTES = """
select count(distinct store || '/' || path) from candidate
where job_id = :id and state in ('applied', 'appended')
"""
_ATTEMPT = """
select ending, detail, calls, input_tokens, output_tokens from attempt_log
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


@dataclass(frozen=True)
class Begun:
    """How things stood when an attempt began: the session's cursor, and what its job had done."""

    cursor: int = 0
    facts: Counter[str] = field(default_factory=Counter)
    notes: int = 0


def begun(ledger: Ledger, job: Job) -> Begun:
    """How things stand for ``job`` now. Raises ``LedgerError``."""
    return Begun(_cursor(ledger, job), *(_done(ledger, job) if job.attempt > 1 else ()))


def account(
    ledger: Ledger, job: Job, since: Begun, *, lost: bool, seconds: float, slices: int
) -> Account:
    """What the attempt at ``job`` did ``since`` it began; it has just ended.

    ``lost``: it was told that it has lost its lease. Raises ``LedgerError``.
    """
    rows = ledger.db.rows(_ATTEMPT, id=job.id, attempt=job.attempt)
    now = ledger.records.find(job.id)
    if now is None:
        ending = "lost" if lost else "throttled"
        return Account(job.kind, ending, None, ending, seconds, slices)
    ending, code, calls, read, written = rows[0] if rows else (None, None, 0, 0, 0)
    facts, notes = _done(ledger, job)
    return Account(
        kind=job.kind,
        ending="lost" if lost else ending or "lost",
        code=code,
        status=now.shown_status,
        seconds=seconds,
        slices=slices,
        messages=max(0, _cursor(ledger, job) - since.cursor),
        calls=calls,
        input_tokens=read,
        output_tokens=written,
        facts=dict(facts - since.facts),
        notes=max(0, notes - since.notes),
        failures=now.failures,
        wait_until=now.run_at if now.status == "pending" else None,
    )


def _done(ledger: Ledger, job: Job) -> tuple[Counter[str], int]:
    """Facts of the job by decision, and how many files they changed."""
    facts = Counter({str(decision): int(n) for decision, n in ledger.db.rows(_FACTS, id=job.id)})
    return facts, int(ledger.db.rows(_NOTES, id=job.id)[0][0]) if facts else 0


def _cursor(ledger: Ledger, job: Job) -> int:
    try:
        return ledger.cursor(job.agent, job.session) if job.session else 0
    except CursorUnreadable:
        return 0  # then the job got nowhere
