"""What every change of a job is made of: the compare-and-set, the fence, the attempt's log line.

Each part of the ledger (``ledger.py`` names them) builds on this one. The right to change a running
job is ``(id, attempt)``: ``_fenced`` begins its transaction with a statement that matches no other
attempt, and says ``LeaseLost`` where it matched none. Here too is what more than one part does to
other jobs on its way: an extract takes over what another was asked for, a job is called off.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from memoryd.jobs import statements as sql
from memoryd.jobs.database import Database
from memoryd.jobs.job import Job, job_from_row
from memoryd.memory.clock import Clock
from memoryd.memory.errors import LeaseLost

#: A ``run_at`` further ahead than this is a clock that stepped.
RUN_HORIZON_MS = 25 * 3600 * 1000


class Changes:
    """What all parts of the ledger share; ``Ledger`` sets what they are made of."""

    db: Database
    home: str
    clock: Clock
    #: How long a claim or a heartbeat gives a job to its attempt.
    lease_ms: int

    def _won(self, text: str, **values: object) -> bool:
        """Run one compare-and-set; whether it changed a row."""
        return self.db.change(text, **values) > 0

    def _times(self) -> dict[str, int]:
        now = self.clock.now_ms()
        return {
            "now": now,
            "lease_horizon": now + self.lease_ms,
            "run_horizon": now + RUN_HORIZON_MS,
        }

    @contextmanager
    def _fenced(
        self, text: str, job: Job, *, waits: bool = False, **values: object
    ) -> Iterator[None]:
        """One transaction that begins with a fenced change of ``job``. Raises ``LeaseLost``.

        ``waits``: the change makes the job pending.
        """
        with self.db.writing():
            if waits:
                self._absorb(job, self.clock.now_ms())
            if not self._won(text, id=job.id, attempt=job.attempt, **values):
                raise LeaseLost(f"attempt {job.attempt} of job {job.id} lost its lease")
            yield

    def _end_attempt(self, job: Job, ending: str, detail: str, now: int) -> None:
        """Write the log's line of an attempt, with ``job`` as it was while it ran."""
        self.db.change(
            sql.END_ATTEMPT,
            now=now,
            ending=ending,
            detail=detail or None,
            id=job.id,
            attempt=job.attempt,
            owner=job.lease_owner,
            started_at=job.started_at,
        )

    def _absorb(self, job: Job, now: int) -> None:
        """Before an extract waits again: take over what another one waits for, one a session."""
        if job.kind != "extract":
            return
        newer = self.db.rows(sql.ABSORB, id=job.id, agent=job.agent, session=job.session, now=now)
        for absorbed, cutoff, trigger, reason, payload in newer:
            # Else nobody who may not be called off would be left to settle it.
            self.db.change(sql.ABSORB_PLAN, id=job.id, absorbed=absorbed)
            self.db.change(
                sql.GROW,
                id=job.id,
                cutoff=cutoff,
                trigger=trigger,
                reason=reason,
                payload=payload,
            )

    def _cancel(self, job_id: str, code: str, now: int) -> bool:
        """Call a job off, in the caller's transaction; False where it cannot be any more."""
        at_work = self.db.rows(sql.AT_WORK, id=job_id)
        if not self._won(sql.CANCEL, id=job_id, code=code, now=now):
            return False
        for job in map(job_from_row, at_work):
            self._end_attempt(job, "cancelled", "", now)
        return True
