"""Attempts: how one ends, and what that means for its job.

At no cost: ``snooze`` (something else is in the way, with a reason and a time) and ``release``. At
the cost of a failure: ``fail``. For good: ``complete``, or ``throttle``, which leaves no row. Each
is one fenced change, and all but the last write the attempt's log line in it; ``count_call`` adds
to that line while the attempt runs. A crash, which nobody tells, is found by ``Claims.rescue``.
"""

from __future__ import annotations

import random

from memoryd.jobs import retry
from memoryd.jobs import statements as sql
from memoryd.jobs.job import Job, check_code
from memoryd.jobs.ledger_changes import RUN_HORIZON_MS, Changes
from memoryd.memory import seams
from memoryd.memory.text import clip

#: Nothing is put off for longer, so that what was meant never looks like a stepped clock.
LONGEST_WAIT_MS = 24 * 3600 * 1000
DETAIL_CHARACTERS = 500
#: How a backfill ends that left words to be read, once its settings are others.
LEFT = frozenset({"extraction.off", "curation.manual"})


class Attempts(Changes):
    """End attempts, and wake what was put off."""

    #: The jitter of retries.
    _rng: random.Random

    def snooze(self, job: Job, until_ms: int, reason: str, detail: str = "") -> None:
        """Put the job off until ``until_ms``, a day at most, at no cost. Raises ``LeaseLost``."""
        now = self.clock.now_ms()
        seams.before("job.snoozed")
        with self._fenced(
            sql.SNOOZE,
            job,
            waits=True,
            run_at=min(until_ms, now + LONGEST_WAIT_MS),
            reason=check_code(reason),
            detail=clip(detail, DETAIL_CHARACTERS) or None,
            now=now,
        ):
            self._end_attempt(job, "snoozed", reason, now)
        seams.reach("job.snoozed")

    def wake(self, *reasons: str) -> int:
        """What the snoozed jobs with these reasons waited for has come: how many run now."""
        now = self.clock.now_ms()
        with self.db.writing():
            return sum(self.db.change(sql.WAKE_WAITING, reason=one, now=now) for one in reasons)

    def better_waits(self, job: Job, workers: int) -> bool:
        """Whether a job of higher priority is due that ``job`` stands in the way of.

        It does where the other is of the same session, where all ``workers`` of the home work, or
        where ``job`` runs alone because it crashed.
        """
        about = {
            "priority": job.priority,
            "serial_key": job.serial_key,
            "workers": workers,
            "crashes": job.crashes,
        }
        now = self.clock.now_ms()
        run_horizon = now + RUN_HORIZON_MS
        return bool(self.db.rows(sql.BETTER_WAITS, now=now, run_horizon=run_horizon, **about))

    def release(self, job: Job) -> None:
        """Give the job back at no cost: a drain ran out of time, or better work waits.

        Raises ``LeaseLost``.
        """
        now = self.clock.now_ms()
        seams.before("job.released")
        with self._fenced(sql.RELEASE, job, waits=True, now=now):
            self._end_attempt(job, "released", "", now)
        seams.reach("job.released")

    def fail(
        self, job: Job, code: str, detail: str, *, base_seconds: int = 15, again: bool = True
    ) -> str:
        """Count a failure; the job's new status (pending or failed). Raises ``LeaseLost``.

        Not ``again``: only a person can change what it failed for, so it is not tried by itself.
        """
        now = self.clock.now_ms()
        seams.before("job.failed")
        decision = retry.after_failure(job, now, self._rng, base_seconds)
        if not again:
            decision = retry.Decision("failed", now)
        with self._fenced(
            sql.FAIL,
            job,
            waits=decision.status == "pending",
            status=decision.status,
            code=check_code(code),
            detail=clip(detail, DETAIL_CHARACTERS),
            run_at=decision.run_at,
            finished_at=now if decision.status == "failed" else None,
            now=now,
        ):
            self._end_attempt(job, "failed", code, now)
        seams.reach("job.failed")
        return decision.status

    def complete(self, job: Job, outcome: str) -> None:
        """End the job without moving the cursor. Raises ``LeaseLost``."""
        now = self.clock.now_ms()
        seams.before("job.completed")
        with self._fenced(sql.COMPLETE, job, outcome=check_code(outcome), now=now):
            self._completed(job, outcome, now)
        seams.reach("job.completed")

    def _completed(self, job: Job, outcome: str, now: int) -> None:
        """What goes with the end of a session's job, in the transaction that ends it."""
        whose = {"agent": job.agent, "session": job.session}
        if outcome == "transcript.gone":
            # Nothing of it was read: should it come back, the sweep asks again.
            self.db.change(sql.UNREAD, **whose)
        if job.kind == "backfill" and outcome not in LEFT:
            self.db.change(sql.UNMAKE if outcome == "transcript.gone" else sql.MINED, **whose)
        self._end_attempt(job, "completed", outcome, now)

    def throttle(self, job: Job) -> None:
        """Count a throttled extract in the session's row and drop the job. Raises ``LeaseLost``."""
        seams.before("job.throttled")
        with self._fenced(sql.FORGET, job):
            self.db.change("delete from attempt_log where job_id = :id", id=job.id)
            self.db.change(
                "update rollout set throttled = throttled + 1"
                " where agent = :agent and session = :session",
                agent=job.agent,
                session=job.session,
            )
        seams.reach("job.throttled")

    def count_call(self, job: Job, input_tokens: int, output_tokens: int) -> None:
        """Add one provider call to the attempt's own log line.

        The first of an extract, over all its attempts, counts in its session's row too: that is
        what bounds them. Not fenced: an attempt that lost its lease has spent the call all the
        same.
        """
        seams.before("call.counted")
        with self.db.writing():
            self.db.change(
                sql.COUNT_CALL,
                input=input_tokens,
                output=output_tokens,
                id=job.id,
                attempt=job.attempt,
                owner=job.lease_owner,
                started_at=job.started_at,
                now=self.clock.now_ms(),
            )
            if job.kind == "extract":
                self.db.change(sql.COUNT_EXTRACT, id=job.id, agent=job.agent, session=job.session)
        seams.reach("call.counted")
