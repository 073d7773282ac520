"""The queue in figures: how many jobs are where and why, and what was done of late.

Every statement counts in an index alone, or looks only at what is not finished.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from memoryd.jobs.breaker import Breaker
from memoryd.jobs.database import Database
from memoryd.jobs.job import KINDS
from memoryd.jobs.ledger import RUN_HORIZON_MS
from memoryd.jobs.rows import made

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS

_SHOWN = (
    "case when wait_reason is not null then 'waiting'"
    " when failures > 0 then 'retrying' else 'pending' end"
)

#: Jobs by kind and the status a person sees (``Job.shown_status``).
_BY_KIND = f"""
select kind, {_SHOWN}, count(*) from job where status = 'pending' group by 1, 2
union all select kind, 'running', count(*) from job where status = 'running' group by 1
"""

#: The finished ones by status: how many in all, and of each kind. (Grouped by kind, each row would
#: be sorted.)
_OF_EACH = ", ".join(f"count(case when kind = '{kind}' then 1 end)" for kind in KINDS)
_FINISHED = f"""
select status, count(*), {_OF_EACH}
from job where status in ('completed', 'failed', 'cancelled') and finished_at is not null
group by status
"""
#: And of kinds that this version does not know.
_FINISHED_STRANGE = f"""
select kind, count(*) from job where status = :status and finished_at is not null
    and kind not in ({", ".join(f"'{kind}'" for kind in KINDS)}) group by 1
"""

_WAITS = """
select wait_reason, count(*), min(run_at), max(run_at) from job
where status = 'pending' and wait_reason is not null group by 1 order by 2 desc, 1
"""

#: The oldest of each status that does not last. The archive's may wait for days.
_OLDEST = """
select id, kind, created_at, failures > 0 from job
where status = 'pending' and wait_reason is null and kind <> 'backfill'
order by created_at, id limit 1
"""
_OLDEST_WAITING = """
select id, kind, created_at from job where status = 'pending' and wait_reason is not null
order by created_at, id limit 1
"""
_OLDEST_RUNNING = """
select id, kind, started_at from job where status = 'running' order by started_at, id limit 1
"""

#: Statuses are named so that the index answers alone.
_ENDED = """
select status, count(*) from job
where finished_at is not null and status in ('completed', 'failed', 'cancelled')
    and finished_at > :since and finished_at <= :now
group by 1
"""

#: Of jobs that ended since then, or that are open and were tried before: no other can have one.
_ATTEMPTS = """
select ending, count(*), sum(calls), sum(input_tokens), sum(output_tokens) from attempt_log
where ended_at > :since and ended_at <= :now and job_id in (
    select id from job
        where status in ('completed', 'failed', 'cancelled') and finished_at > :since
    union all select id from job where status = 'pending' and attempt > 0
    union all select id from job where status = 'running')
group by 1
"""

#: What a worker would take now, were one free: the head of the order, under the guards of a claim.
_CLAIMABLE = """
select id, run_at, updated_at, crashes from job
where status = 'pending' and kind in ('finalize', 'extract', 'consolidate')
    and (run_at <= :now or run_at > :run_horizon) and not exists (select 1 from job other
        where other.status = 'running' and other.serial_key = job.serial_key)
order by priority, run_at, id limit 1
"""

#: When an attempt last began or ended.
_LAST_MOVE = """
select max(at) from (
    select max(started_at) as at from job where status = 'running'
    union all select max(finished_at) from job where status = 'completed' and finished_at > 0
    union all select max(finished_at) from job where status = 'failed' and finished_at > 0
    union all select max(finished_at) from job where status = 'cancelled' and finished_at > 0
    union all select max(ended_at) from attempt_log where job_id in (
        select id from job where status = 'pending' and attempt > 0)) as moves
"""


@dataclass(frozen=True)
class Waits:
    """Why jobs wait: the code, how many, and until when the first and the last of them (ms)."""

    reason: str
    jobs: int
    first_at: int
    last_at: int


@dataclass(frozen=True)
class Oldest:
    """The oldest job of a status, as it is shown: since when it waits, or is worked on (ms)."""

    status: str
    job: str
    kind: str
    since: int


@dataclass(frozen=True)
class Done:
    """What was done in the last ``hours``: jobs by status, attempts by ending, calls and tokens."""

    hours: int
    jobs: dict[str, int]
    attempts: dict[str, int]
    calls: int
    input_tokens: int
    output_tokens: int


@dataclass(frozen=True)
class Spending:
    """What was booked with one provider today; ``cost`` in millionths of its currency."""

    provider: str
    calls: int
    tokens: int
    cost: int


class Figures:
    """Counts over one ledger. Changes nothing."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def by_kind(self) -> dict[str, dict[str, int]]:
        """Kind -> shown status -> how many jobs; only what there is."""
        found: dict[str, dict[str, int]] = {}
        for kind, status, count in self._db.rows(_BY_KIND):
            found.setdefault(str(kind), {})[str(status)] = int(count)
        for status, every, *counts in self._db.rows(_FINISHED):
            kinds: dict[Any, int] = dict(zip(KINDS, counts, strict=True))
            if sum(counts) < every:
                kinds |= dict(self._db.rows(_FINISHED_STRANGE, status=status))
            for kind, count in kinds.items():
                if count:
                    found.setdefault(str(kind), {})[str(status)] = int(count)
        return found

    def waits(self) -> list[Waits]:
        """Why jobs wait, the most frequent reason first."""
        return made(Waits, self._db.rows(_WAITS))

    def oldest(self) -> list[Oldest]:
        """The oldest pending (or retrying), waiting and running job, where there is one."""
        statements = {"waiting": _OLDEST_WAITING, "running": _OLDEST_RUNNING}
        pending = [
            Oldest("retrying" if again else "pending", *row)
            for *row, again in self._db.rows(_OLDEST)
        ]
        return pending + [
            Oldest(status, *row)
            for status, text in statements.items()
            for row in self._db.rows(text)
        ]

    def done(self, now: int, hours: int) -> Done:
        """What was done in the ``hours`` before ``now`` (wall milliseconds)."""
        span = {"now": now, "since": now - hours * HOUR_MS}
        attempts = self._db.rows(_ATTEMPTS, **span)
        return Done(
            hours,
            {str(status): int(count) for status, count in self._db.rows(_ENDED, **span)},
            {str(row[0]): int(row[1]) for row in attempts},
            *(sum(int(row[column]) for row in attempts) for column in (2, 3, 4)),
        )

    def spending(self, day: str) -> list[Spending]:
        """What was booked on a local date, by provider."""
        rows = self._db.rows(
            "select provider, calls, tokens, cost from budget where day = :day order by provider",
            day=day,
        )
        return made(Spending, rows)

    def breakers(self) -> list[Breaker]:
        """The breaker of every provider that is not simply asked."""
        rows = self._db.rows(
            "select provider, state, strikes, until, reason, detail, since from breaker"
            " order by provider"
        )
        return made(Breaker, rows)

    def unclaimed_since(self, now: int) -> tuple[str, int] | None:
        """The job that a free worker would take, and since when nothing kept one from it (ms).

        Since it is due and as it is, and since an attempt last began or ended anywhere: a worker
        that moves takes the head of the order. None: there is no such job, or it crashed before
        and waits for the others to end. Backfill has rules of its own.
        """
        rows = self._db.rows(_CLAIMABLE, now=now, run_horizon=now + RUN_HORIZON_MS)
        if not rows:
            return None
        identifier, run_at, updated_at, crashes = rows[0]
        if self._runs_alone() or (crashes and self._runs()):
            return None
        due = run_at if run_at <= now else 0
        moved = self._db.rows(_LAST_MOVE)[0][0] or 0
        return str(identifier), max(due, updated_at, int(moved))

    def waiting_for_a_worker(self, now: int) -> tuple[int, int]:
        """How many jobs are due that nobody took, and since when the first of them is (ms)."""
        rows = self._db.rows(
            "select count(*), coalesce(min(run_at), 0) from job where status = 'pending'"
            " and kind in ('finalize', 'extract', 'consolidate') and run_at <= :now",
            now=now,
        )
        return int(rows[0][0]), int(rows[0][1])

    def is_working(self, now: int) -> bool:
        """Whether an attempt runs whose lease has not run out."""
        return bool(
            self._db.rows(
                "select 1 from job where status = 'running' and lease_expires_at > :now limit 1",
                now=now,
            )
        )

    def running(self) -> int:
        """How many jobs are worked on, as far as the rows say: also by a process that died."""
        return int(self._db.rows("select count(*) from job where status = 'running'")[0][0])

    def _runs(self) -> bool:
        return bool(self._db.rows("select 1 from job where status = 'running' limit 1"))

    def _runs_alone(self) -> bool:
        return bool(
            self._db.rows("select 1 from job where status = 'running' and crashes > 0 limit 1")
        )


def in_all(by_kind: Iterable[dict[str, int]]) -> dict[str, int]:
    """Jobs by shown status, over all kinds."""
    total: dict[str, int] = {}
    for counts in by_kind:
        for status, count in counts.items():
            total[status] = total.get(status, 0) + count
    return total
