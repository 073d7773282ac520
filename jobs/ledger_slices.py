"""Slices: the way of a running job through its session or store, one plan after another.

``begin_slice`` says what is read, ``record_plan`` keeps what it is to become before any file is
touched, ``advance`` moves the cursor past it once the files are committed. A plan outlives the
attempt that made it: the next claim of the serial key settles it (``standing_plan``). The cursor is
the second fence: it moves only from where the slice began.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from memoryd.jobs import candidates as candidates_kept
from memoryd.jobs import statements as sql
from memoryd.jobs.consolidations import Consolidations
from memoryd.jobs.events import Events
from memoryd.jobs.job import Job, check_code
from memoryd.jobs.ledger_attempts import Attempts
from memoryd.memory import seams
from memoryd.memory.errors import CursorUnreadable, LeaseLost
from memoryd.memory.plan import Plan, SliceRange

if TYPE_CHECKING:
    from memoryd.memory.policy import Candidate


class Slices(Attempts):
    """Cursors and plans. The advance past the last slice also ends the attempt."""

    events: Events
    consolidations: Consolidations

    def cursor(self, agent: str, session: str) -> int:
        """The last message of the session that was distilled, by ``seq``; 0 when none was.

        Raises ``CursorUnreadable`` where the row, which no code of ours wrote so, does not say.
        """
        rows = self.db.rows(
            "select seq from cursor where agent = :agent and session = :session",
            agent=agent,
            session=session,
        )
        if not rows:
            return 0
        if not isinstance(rows[0][0], int):
            raise CursorUnreadable(
                f"how far session {session} of {agent} was distilled cannot be read in the ledger",
                hint="`memoryd doctor --fix` sets that row aside",
            )
        return int(rows[0][0])

    def begin_slice(self, job: Job, first: int, last: int, project: str | None) -> None:
        """Note which messages are being read. Raises ``LeaseLost``."""
        now = self.clock.now_ms()
        seams.before("slice.begun")
        with self._fenced(sql.BEGIN_SLICE, job, first=first, last=last, project=project, now=now):
            pass
        seams.reach("slice.begun")

    def standing_plan(self, job: Job) -> Plan | None:
        """The plan recorded for the job's serial key, whichever job left it.

        Raises ``PlanUnreadable``.
        """
        rows = self.db.rows(
            "select plan from plan where serial_key = :serial_key", serial_key=job.serial_key
        )
        return Plan.from_json(str(rows[0][0])) if rows else None

    def record_plan(self, job: Job, plan: Plan, candidates: Iterable[Candidate]) -> None:
        """Keep what the slice is to become, with its candidates; on disk when this returns.

        Guard: the fence, no other plan of the serial key, and the cursor still before the slice.
        Raises ``LeaseLost`` when any of them does not hold.
        """
        now = self.clock.now_ms()
        part = plan.scope
        fence = {"id": job.id, "attempt": job.attempt}
        seams.before("plan.recorded")
        with self.db.writing(durable=True):
            held = self.db.rows(sql.HELD, **fence)
            begins = plan.slice is None or self.cursor(part.agent, part.session) == part.first - 1
            if not held or not begins:
                raise LeaseLost(f"slice {part} is not job {job.id}'s any more")
            kept = self._won(
                sql.KEEP_PLAN,
                **fence,
                serial_key=job.serial_key,
                agent=part.agent,
                session=part.session,
                first=part.first,
                last=part.last,
                plan=plan.to_json(),
                now=now,
            )
            if not kept:
                raise LeaseLost(f"another plan stands for {job.serial_key}")
            candidates_kept.keep(self.db, job.id, part, candidates, now)
        seams.reach("plan.recorded")

    def advance(
        self,
        job: Job,
        part: SliceRange,
        *,
        outcome: str | None = None,
        **fates: Iterable[str],
    ) -> None:
        """Move the cursor past the slice and clear its plan; with ``outcome`` also end the job.

        ``fates`` are the ids of candidates that were not simply applied, by what became of them
        (``candidates.FATES``). One transaction; raises ``LeaseLost`` when the fence or the cursor
        no longer match, and then nothing is recorded.
        """
        now = self.clock.now_ms()
        ending = sql.COMPLETE if outcome is not None else sql.PROGRESS
        seams.before("cursor.advanced")
        with self._fenced(ending, job, now=now, outcome=outcome and check_code(outcome)):
            self._move_cursor(part, now)
            planned = self._won(
                "delete from plan where serial_key = :serial_key and first = :first",
                serial_key=job.serial_key,
                first=part.first,
            )
            if planned:  # what has no plan has no candidates that wait for it, and wrote nothing
                candidates_kept.settle(self.db, part, fates)
                self.events.saved(job, part, now)
            if outcome is not None:
                self._completed(job, outcome, now)
        seams.reach("cursor.advanced")

    def finish_plan(
        self,
        job: Job,
        plan: Plan,
        **fates: Iterable[str],
    ) -> None:
        """Clear the applied plan of a store; the job goes on.

        ``fates`` as in ``advance``. One transaction; raises ``LeaseLost`` when the fence no longer
        matches, and then nothing is recorded.
        """
        now = self.clock.now_ms()
        seams.before("plan.finished")
        with self._fenced(sql.PROGRESS, job, now=now):
            self.db.change(
                "delete from plan where serial_key = :serial_key and job_id = :planned",
                serial_key=job.serial_key,
                planned=plan.job,
            )
            candidates_kept.settle(self.db, plan.scope, fates)
            self.events.saved(job, plan.scope, now)
        seams.reach("plan.finished")

    def drop_plan(self, job: Job, written: int) -> None:
        """Drop the plan of the job's serial key, which cannot be read, with what waits of it.

        ``written`` is the last message that the stores' histories have something of: the cursor
        goes past what was written, and the rest is read again. Raises ``LeaseLost``.
        """
        now = self.clock.now_ms()
        with self._fenced(sql.PROGRESS, job, now=now):
            cursor = self.cursor(job.agent, job.session)
            whose = {"serial_key": job.serial_key, "agent": job.agent, "session": job.session}
            if job.agent and written > cursor:
                part = SliceRange(job.agent, job.session, cursor + 1, written)
                self._move_cursor(part, now)
                self.db.change(sql.WRITTEN_AS_PLANNED, **whose, last=written)
            self.db.change(sql.DROP_CANDIDATES, **whose, cursor=max(cursor, written))
            self.db.change("delete from plan where serial_key = :key", key=job.serial_key)

    def complete_store(self, job: Job, outcome: str, *, empty: bool) -> None:
        """End the consolidation of a store, ``empty`` where it changed nothing.

        The next one is due counted from when this one began. Raises ``LeaseLost``.
        """
        now = self.clock.now_ms()
        seams.before("job.completed")
        with self._fenced(sql.COMPLETE, job, outcome=check_code(outcome), now=now):
            began = job.started_at or now
            self.consolidations.ran(job.project or "", began, outcome, empty=empty)
            self._end_attempt(job, "completed", outcome, now)
        seams.reach("job.completed")

    def _move_cursor(self, part: SliceRange, now: int) -> None:
        before = part.first - 1
        values = {"agent": part.agent, "session": part.session, "last": part.last, "now": now}
        moved = part.last >= before and (
            self._won(sql.MOVE_CURSOR, before=before, **values)
            if before
            else self._won(sql.SET_CURSOR, **values)
        )
        if not moved:
            raise LeaseLost(f"the cursor is not before slice {part} any more")
