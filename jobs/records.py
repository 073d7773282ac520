"""Reading the ledger: what ``list``, ``show`` and ``status`` say. Nothing here changes a row."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from memoryd.jobs.database import Database
from memoryd.jobs.filters import Filter
from memoryd.jobs.job import COLUMNS, Job, is_keepable
from memoryd.jobs.rows import made
from memoryd.memory.errors import PlanUnreadable, UsageError
from memoryd.memory.plan import Plan
from memoryd.memory.text import clip


@dataclass(frozen=True)
class Rollout:
    """What the ledger knows of one session's transcript, kept past the jobs that read it."""

    agent: str
    session: str
    transcript: str
    cwd: str
    #: How far the furthest finalize was to read; the sweep makes one for what is longer.
    last_cutoff: int
    excluded: str | None
    throttled: int
    #: Extracts that asked a provider which costs.
    extracts: int
    seen_at: int


@dataclass(frozen=True)
class Attempt:
    """One line of a job's attempt log. ``ending`` is None while it runs."""

    attempt: int
    owner: str
    started_at: int
    ended_at: int | None
    ending: str | None
    detail: str | None
    calls: int
    input_tokens: int
    output_tokens: int


@dataclass(frozen=True)
class KeptCandidate:
    """A candidate as it is kept: a fact after policy, and what became of it."""

    id: str
    job_id: str
    statement: str
    category: str
    confidence: float
    evidence: tuple[tuple[str, int, str], ...]
    decision: str
    reason: str
    detail: str
    #: What became of it (``candidates.py``).
    state: str
    store: str | None
    path: str | None


#: What may be typed for a job: the whole id, or an ending of it.
_ID_ENDING = re.compile(r"[0-9a-fA-F-]{1,36}")


#: An attempt at work has a line once it has asked a provider; one with an end is of another claim.
_ATTEMPTS = """
select attempt, owner, started_at, ended_at, ending, detail, calls, input_tokens, output_tokens
from attempt_log where job_id = :id and not exists (select 1 from job
    where job.id = :id and job.status = 'running' and job.attempt = attempt_log.attempt)
union all
select job.attempt, coalesce(job.lease_owner, ''), coalesce(job.started_at, job.updated_at),
    null, null, null, coalesce(calls, 0), coalesce(input_tokens, 0), coalesce(output_tokens, 0)
from job left join attempt_log as log
    on log.job_id = job.id and log.attempt = job.attempt and log.ended_at is null
where job.id = :id and job.status = 'running'
order by 1
"""
_CANDIDATE = (
    "id, job_id, statement, category, confidence, evidence, decision, reason, detail, state,"
    " store, path"
)


class Records:
    """Queries on one ledger."""

    def __init__(self, db: Database) -> None:
        self.db = db

    def job(self, identifier: str) -> Job:
        """The job with this id or with the only id that ends so. Raises ``UsageError``."""
        if not _ID_ENDING.fullmatch(identifier):
            raise _unknown(identifier)
        exact = self.find(identifier.lower())
        if exact is not None:
            return exact
        found = self.ending(identifier)
        if not found:
            raise _unknown(identifier)
        if len(found) > 1:
            raise UsageError(
                f"more than one job has an id that ends with {identifier!r}",
                hint="type more of it; `memoryd list --json` shows whole ids",
            )
        return found[0]

    def ending(self, identifier: str) -> list[Job]:
        """At most two jobs whose ids end so; none for what cannot be an ending."""
        if not _ID_ENDING.fullmatch(identifier):
            return []
        rows = self.db.rows(
            # The ids alone are an index: of a million rows none is looked at.
            f"select {COLUMNS} from job where id in"
            " (select id from job where id like :ending limit 2)",
            ending="%" + identifier.lower(),
        )
        return made(Job, rows)

    def wrote(self, job_id: str) -> bool:
        """Whether anything of the job reached a store."""
        return bool(
            self.db.rows(
                "select 1 from candidate where job_id = :id and state in"
                " ('planned', 'applied', 'appended', 'changed') limit 1",
                id=job_id,
            )
        )

    def find(self, identifier: str) -> Job | None:
        """The job with exactly this id; None when it was pruned or never was."""
        rows = self.db.rows(f"select {COLUMNS} from job where id = :id", id=identifier)
        return next(iter(made(Job, rows)), None)

    def by_key(self, key: str) -> Job | None:
        """The job with this idempotency key; None when it was pruned or never was."""
        rows = self.db.rows(f"select {COLUMNS} from job where idempotency_key = :key", key=key)
        return next(iter(made(Job, rows)), None)

    def jobs(
        self, *, status: str | None = None, kind: str | None = None, limit: int = 50
    ) -> list[Job]:
        """The newest jobs first (an id begins with the time it was made), at most ``limit``."""
        return self.matching(Filter(status=status, kind=kind), limit)

    def matching(self, wanted: Filter, limit: int) -> list[Job]:
        """The newest jobs first that are as ``wanted``, at most ``limit``."""
        clauses, values = wanted.clauses()
        if not is_keepable(*(value for value in values.values() if isinstance(value, str))):
            return []  # no row holds what is no text
        where = f" where {' and '.join(clauses)}" if clauses else ""
        rows = self.db.rows(
            f"select {COLUMNS} from job{where} order by {wanted.order()} limit :limit",
            **values,
            limit=limit,
        )
        return made(Job, rows)

    def attempts(self, job: Job) -> list[Attempt]:
        """The job's attempt log, oldest first; that of an attempt at work has no end yet."""
        return made(Attempt, self.db.rows(_ATTEMPTS, id=job.id))

    def has_asked(self, job: Job) -> bool:
        """Whether any attempt at the job has asked a provider that costs."""
        return bool(
            self.db.rows("select 1 from attempt_log where job_id = :id and calls > 0", id=job.id)
        )

    def candidates(self, job_id: str) -> list[KeptCandidate]:
        """What the job's slices gave, in the order of the slices."""
        rows = self.db.rows(
            f"select {_CANDIDATE} from candidate where job_id = :id order by first, ordinal",
            id=job_id,
        )
        return [_kept(row) for row in rows]

    def in_review(self, store: str) -> list[KeptCandidate]:
        """The candidates of a store that wait for a person, the oldest first."""
        rows = self.db.rows(
            f"select {_CANDIDATE} from candidate where store = :store and state = 'pending'"
            " order by created_at, id",
            store=store,
        )
        return [_kept(row) for row in rows]

    def evidence(self, store: str, path: str) -> list[tuple[str, str]]:
        """(message id, span) of everything that was written into a note of a store."""
        rows = self.db.rows(
            "select evidence from candidate where store = :store and path = :path",
            store=store,
            path=path,
        )
        return [
            (str(message), str(span)) for row in rows for message, _, span in json.loads(row[0])
        ]

    def spans(self, candidate: str) -> list[tuple[str, str]]:
        """(message id, span) of what one candidate stands on."""
        rows = self.db.rows("select evidence from candidate where id = :id", id=candidate)
        return [
            (str(message), str(span)) for row in rows for message, _, span in json.loads(row[0])
        ]

    def statement(self, candidate: str) -> str:
        """What one candidate says; "" where it is not known."""
        rows = self.db.rows("select statement from candidate where id = :id", id=candidate)
        return str(rows[0][0]) if rows else ""

    def drafts(self, store: str) -> set[str]:
        """What the candidates of a store would write that wait for a person, or were rejected."""
        rows = self.db.rows(
            "select draft from candidate where store = :store and draft is not null"
            " and state in ('pending', 'rejected')",
            store=store,
        )
        return {str(row[0]) for row in rows}

    def rollout(self, agent: str, session: str) -> Rollout | None:
        """What is known of the session's transcript."""
        rows = self.db.rows(
            "select agent, session, transcript, cwd, last_cutoff, excluded, throttled,"
            " extracts, seen_at from rollout where agent = :agent and session = :session",
            agent=agent,
            session=session,
        )
        return Rollout(*rows[0]) if rows else None

    def active_at(self, agent: str, session: str) -> int:
        """When the session's transcript last grew, as discovery saw it (ms); 0 where it did not."""
        rows = self.db.rows(
            "select active_at from rollout where agent = :agent and session = :session",
            agent=agent,
            session=session,
        )
        return int(rows[0][0]) if rows else 0

    def rollouts(self) -> list[Rollout]:
        """All sessions that any job was made for, or that are excluded."""
        rows = self.db.rows(
            "select agent, session, transcript, cwd, last_cutoff, excluded, throttled,"
            " extracts, seen_at from rollout order by seen_at"
        )
        return made(Rollout, rows)

    def counts(self) -> dict[str, int]:
        """Jobs by the status a person sees (``Job.shown_status``)."""
        rows = self.db.rows(
            "select case when status <> 'pending' then status"
            " when wait_reason is not null then 'waiting'"
            " when failures > 0 then 'retrying' else 'pending' end, count(*)"
            " from job group by 1"
        )
        return {str(name): int(count) for name, count in rows}

    def throttled(self) -> int:
        """How many extracts were throttled, over all sessions."""
        return int(self.db.rows("select coalesce(sum(throttled), 0) from rollout")[0][0])

    def count_in_review(self) -> int:
        """How many candidates wait for a person's word."""
        rows = self.db.rows(
            "select count(*) from candidate where state = 'pending' and store is not null"
        )
        return int(rows[0][0])

    def waiting(self) -> dict[str, int]:
        """Snoozed jobs by the reason they wait for."""
        rows = self.db.rows(
            "select wait_reason, count(*) from job where status = 'pending'"
            " and wait_reason is not null group by 1"
        )
        return {str(reason): int(count) for reason, count in rows}

    def oldest_pending(self) -> int | None:
        """When the oldest job that still waits was made (ms); the archive's may wait for days."""
        rows = self.db.rows(
            "select min(created_at) from job where status = 'pending' and kind <> 'backfill'"
        )
        return None if rows[0][0] is None else int(rows[0][0])

    def standing_files(self, store: str) -> dict[str, set[str | None]]:
        """What standing plans leave in a store: path to sha256 (None: no file)."""
        found: dict[str, set[str | None]] = {}
        for plan in self._plans():
            for operation in plan.operations:
                if operation.store == store:
                    found.setdefault(operation.path, set()).add(operation.after)
        return found

    def planned_contents(self) -> set[str]:
        """sha256 of every file a standing plan leaves: those are never a person's edit."""
        return {
            operation.after
            for plan in self._plans()
            for operation in plan.operations
            if operation.after is not None
        }

    def unreadable_plans(self) -> list[str]:
        """The ids of the jobs whose standing plans cannot be read."""
        return [str(job) for job, plan in self.standing() if plan is None]

    def _plans(self) -> Iterator[Plan]:
        """Every standing plan that can be read: one that cannot is its own serial key's alone."""
        return (plan for _, plan in self.standing() if plan is not None)

    def standing(self) -> Iterator[tuple[str, Plan | None]]:
        """Every standing plan, by the job that made it; None in place of one that is none."""
        for job, text in self.db.rows("select job_id, plan from plan"):
            try:
                yield job, Plan.from_json(str(text))
            except PlanUnreadable:
                yield job, None


def _unknown(identifier: str) -> UsageError:
    return UsageError(
        f"no job has an id that ends with {clip(identifier, 60)!a}",
        hint="`memoryd list` shows the jobs and their ids",
    )


def _kept(row: tuple[Any, ...]) -> KeptCandidate:
    return KeptCandidate(
        id=row[0],
        job_id=row[1],
        statement=row[2],
        category=row[3],
        confidence=row[4],
        evidence=tuple(
            (str(message), int(seq), str(span)) for message, seq, span in json.loads(row[5])
        ),
        decision=row[6],
        reason=row[7],
        detail=row[8],
        state=row[9],
        store=row[10],
        path=row[11],
    )
