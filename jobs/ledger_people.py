"""People: what a person may do to jobs, whoever works them.

Cancel wins until a plan is recorded. ``retry`` gives a failed or cancelled job another life, and
with ``skip`` moves the cursor past the slice that it failed on. The rest is tidying up: finished
rows past retention go, candidates that a person forgot no longer wait.
"""

from __future__ import annotations

from collections.abc import Iterable

from memoryd.jobs import candidates as candidates_kept
from memoryd.jobs import statements as sql
from memoryd.jobs.job import Job
from memoryd.jobs.ledger_slices import Slices
from memoryd.jobs.retention import Retention, Which
from memoryd.memory.errors import PlanUnreadable, UsageError
from memoryd.memory.plan import SliceRange


class People(Slices):
    """Call jobs off, begin them again, be rid of them."""

    retention: Retention

    def cancel(self, job: Job) -> bool:
        """Call the job off. False: it is finished, or its plan stands and is being written."""
        with self.db.writing(durable=True):
            return self._cancel(job.id, "job.cancelled", self.clock.now_ms())

    def retry(self, job: Job, *, skip: bool = False) -> bool:
        """Make a failed or cancelled job pending again; False when it is neither.

        ``skip`` first moves the cursor past the slice the job failed on: that of the plan that
        stands for its session, which is dropped with its candidates, else the job's own. Raises
        ``UsageError`` where another job is at work on it just now.
        """
        now = self.clock.now_ms()
        with self.db.writing(durable=True):
            if not self.db.rows(sql.ENDED_BADLY, id=job.id):
                return False
            if skip:
                self.require_unworked(job)
            part = self._failing_slice(job) if skip else None
            self._absorb(job, now)
            self.db.change(sql.RETRY, id=job.id, now=now)
            if part is None:
                return True
            if not part.agent or self.cursor(job.agent, job.session) == part.first - 1:
                if part.agent:
                    self._move_cursor(part, now)
                self.db.change("delete from plan where serial_key = :key", key=job.serial_key)
                candidates_kept.skip(self.db, part)
            return True

    def require_unworked(self, job: Job) -> None:
        """Raise ``UsageError`` while a job of the same serial key runs: it may write the plan."""
        if self.db.rows(sql.WORKED, serial_key=job.serial_key):
            raise UsageError(
                "another job is at work on the same session or store",
                hint="try again when `memoryd list` shows it finished",
            )

    def _failing_slice(self, job: Job) -> SliceRange | None:
        try:
            plan = self.standing_plan(job)
        except PlanUnreadable:
            return self._named_slice(job)
        if plan is not None:
            return plan.scope
        rows = self.db.rows(
            "select slice_first, slice_last from job where id = :id and slice_first is not null",
            id=job.id,
        )
        return SliceRange(job.agent, job.session, *rows[0]) if rows else None

    def _named_slice(self, job: Job) -> SliceRange:
        """The slice that the row of an unreadable plan names; nobody's where it cannot be."""
        named = "select first, last from plan where serial_key = :serial_key"
        first, last = self.db.rows(named, serial_key=job.serial_key)[0]
        begins = first == self.cursor(job.agent, job.session) + 1
        if job.agent and begins and isinstance(last, int) and last >= first:
            return SliceRange(job.agent, job.session, first, last)
        return SliceRange("", job.id, 0, 0)

    def prune(self, keep: int) -> int:
        """Delete all but the newest ``keep`` completed and cancelled jobs; how many went."""
        return sum(self.retention.prune(Which(keep=keep)).values())

    def forget_candidates(self, identifiers: Iterable[str]) -> int:
        """Settle candidates in review as forgotten by a person; how many still waited."""
        with self.db.writing(durable=True):
            return candidates_kept.forget(self.db, identifiers)
