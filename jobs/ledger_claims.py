"""Claims: who works a job, for how long, and what becomes of it when its worker dies.

``claim`` gives a job and a lease to one worker, ``heartbeat`` extends the lease, ``rescue`` takes
back what nobody extended and counts a crash. A claim that follows no other first rescues what
expired, so that no job waits for a tick. The last two methods say when there can be something to
claim.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterable, Mapping

from memoryd.jobs import retry
from memoryd.jobs import statements as sql
from memoryd.jobs.job import KINDS, Job, job_from_row
from memoryd.jobs.ledger_changes import Changes
from memoryd.jobs.records import Records
from memoryd.memory import seams

#: Of jobs whose lease ran out, returned in one transaction: others wait for it.
RESCUE_BATCH = 500
#: A worker looks again after so long at what is due and was not taken.
OVERDUE_MS = 1000
#: More jobs than ever run at once.
NO_LIMIT = 1 << 31


class Claims(Changes):
    """Take jobs up, keep them, and take them back from the dead."""

    records: Records
    alive: Callable[[], Iterable[Job]]
    #: Attempts that this process has given up for dead.
    rescued: int
    #: By thread: whether its last claim took a job.
    _mine: threading.local

    def claim(self, owner: str, *, only: str | None = None, room: int = NO_LIMIT) -> Job | None:
        """Take the next ready job (or just ``only``); None when there is none to take.

        A backfill is taken only while fewer than ``room`` jobs run in the home.
        """
        which: Mapping[str, object] = {} if only is None else {"id": only}
        text, asked = (sql.CLAIM_THIS, which) if which else (sql.CLAIM, {"room": room})
        # While one job follows another there is no need to ask first.
        if not which and getattr(self._mine, "took_one", False):
            job = self._take(owner, text, asked)
            if job is not None:
                return job
            self._mine.took_one = False
        look = sql.THIS_DUE if which else sql.ANY_DUE
        due, over = self.db.rows(look, **self._times(), **which)[0]
        if not due and (which or not over):
            return None
        # Those whose leases ran out, and that nobody returned yet, hold the others back.
        job, expired = None, RESCUE_BATCH
        while job is None and expired >= RESCUE_BATCH:
            expired = self._rescue_batch()[0] if over else 0
            job = self._take(owner, text, asked)
        self._mine.took_one = job is not None
        return job

    def _take(self, owner: str, text: str, which: Mapping[str, object]) -> Job | None:
        """One claim: a statement, and a transaction of its own."""
        times = self._times()
        lease = times["now"] + self.lease_ms
        seams.before("job.claimed")
        try:
            rows = self.db.alone(text, **times, **which, owner=owner, lease_expires_at=lease)
        except sqlite3.IntegrityError:
            # The unique index on running serial keys: another process was faster.
            return None
        seams.reach("job.claimed")
        return job_from_row(rows[0]) if rows else None

    def heartbeat(self, job: Job) -> bool:
        """Extend the lease of this attempt. False: it was lost."""
        with self.db.writing():
            return self._renew(job, self.clock.now_ms())

    def _renew(self, job: Job, now: int) -> bool:
        lease = now + self.lease_ms
        return self._won(
            sql.HEARTBEAT, id=job.id, attempt=job.attempt, lease_expires_at=lease, now=now
        )

    def rescue(self, *, everything: bool = False) -> int:
        """Return the jobs whose lease ran out; how many.

        ``everything`` takes every running row: right only for the process that holds the home's
        lock and has claimed nothing yet, because then nobody else can be working.
        """
        which = {"all": int(everything), "batch": RESCUE_BATCH}
        rescued = 0
        while self.db.rows(sql.EXPIRED, **self._times(), **which):
            seen, returned = self._rescue_batch(everything=everything)
            rescued += returned
            if seen < RESCUE_BATCH or not returned:
                break
        self._sort_by_version()
        return rescued

    def _sort_by_version(self) -> None:
        """Have jobs of a kind that only a newer version knows say so, and those known no more."""
        if self.db.rows(sql.UNKNOWN_KIND) or self.records.waiting().get("kind.unknown"):
            now = self.clock.now_ms()
            with self.db.writing():
                self.db.change(sql.WAIT_FOR_VERSION, now=now)
                self.db.change(sql.KNOWN_KIND, now=now)

    def _rescue_batch(self, *, everything: bool = False) -> tuple[int, int]:
        """One batch, a transaction: how many were found, and how many of them returned."""
        seams.before("job.rescued")
        with self.db.writing():
            # The time is read with the write lock held: a lease given while this process waited
            # for the lock would look too far ahead on an earlier reading.
            found = self._rescue(self._times(), everything=everything)
        seams.reach("job.rescued")
        return found

    def _rescue(self, times: dict[str, int], *, everything: bool) -> tuple[int, int]:
        which = {"all": int(everything), "batch": RESCUE_BATCH}
        rows = self.db.rows(sql.EXPIRED, **times, **which)
        if not rows:
            return 0, 0
        ours = {(job.id, job.attempt) for job in self.alive()}
        returned = 0
        for job in map(job_from_row, rows):
            if (job.id, job.attempt) in ours:
                self._renew(job, times["now"])
            else:
                returned += self._take_back(job, times["now"])
        return len(rows), returned

    def _take_back(self, job: Job, now: int) -> bool:
        """Count a crash of the attempt that holds ``job``; False when it is not held any more.

        One of a kind that this version does not know is no crash here: it just waits.
        """
        if job.kind not in KINDS:
            given = self._won(sql.RELEASE, id=job.id, attempt=job.attempt, now=now)
            if given:
                self._end_attempt(job, "released", "", now)
            return given
        decision = retry.after_crash(job, now)
        if decision.status == "pending":
            self._absorb(job, now)
        won = self._won(
            sql.RESCUE,
            id=job.id,
            attempt=job.attempt,
            seen_lease=job.lease_expires_at,
            status=decision.status,
            run_at=decision.run_at,
            detail="its process died, or stood still for longer than its lease",
            finished_at=now if decision.status == "failed" else None,
            now=now,
        )
        if won:
            self._end_attempt(job, "crashed", "", now)
            self.rescued += 1
        return won

    def next_due_ms(self) -> int | None:
        """When something can next happen by itself: a ``run_at`` or a lease's end. None: never.

        What is due already and could be claimed was missed, or becomes due in this moment: that is
        soon, and not at once, so that one which no claim gets is not asked for without a pause.
        """
        times = self._times()
        if self.db.rows(sql.CLAIMABLE, **times):
            return times["now"] + OVERDUE_MS
        rows = self.db.rows(sql.NEXT_DUE, **times)
        return None if rows[0][0] is None else int(rows[0][0])

    def idle(self) -> bool:
        """Whether no job runs and none is due."""
        return not self.db.rows(sql.ANY_BUSY, **self._times())
