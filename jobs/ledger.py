"""The ledger: what must happen, what happened, and who may say so.

Authority. One SQLite file is the only truth about jobs. huey, the socket and file events may ring,
and may be lost; nothing here depends on them. Whoever changes a job goes through this class, and
each change is one compare-and-set from ``statements.py`` that reports whether it won.

The life of a job. ``enqueue`` inserts it pending; it is durable when the call returns. ``claim``
makes it running: attempt + 1, a lease, one owner. While it runs, ``heartbeat`` extends the lease.
A session's job goes slice by slice: ``begin_slice``, then ``record_plan`` (what the slice is to
become, once, before any file is touched), then, after the files are committed, ``advance`` moves
the cursor past the slice and clears the plan, and with the last slice ends the job. ``snooze``
puts it off at no cost, ``fail`` counts a failure, ``release`` gives it back, ``cancel`` calls it
off. ``rescue`` returns jobs whose lease ran out and counts a crash.

The fence. ``(id, attempt)`` with status running is the right to change a job. An attempt that lost
its lease matches no row: it is told ``LeaseLost`` and must stop. The cursor is fenced a second
time: it moves only from where the slice began, so two jobs of one session cannot both account for
the same words.

One at a time. A unique index lets one job run per serial key. A claim first rescues what expired;
a unique violation means that another process was faster. A job that crashed runs alone: it waits at
the head of the order, and holds the others back, until nothing else runs.

Never in the way. A backfill is claimed only while fewer than ``room`` jobs run, so that a worker
stays free, and given back (``release``) after a slice where better work waits.

One extract waits per session. An extract that goes back to pending while a newer one waits takes
over what that one was asked for; the newer one ends cancelled, ``job.merged``.

Time. Everything written down is wall milliseconds; a lease that ends further ahead than any lease
is given for, or a ``run_at`` further than 25 hours ahead, is a clock that stepped, and counts as
past. Durations are measured elsewhere, on the monotonic clock.

| a process dies after | what stands | what happens next |
|---|---|---|
| enqueue | a pending row | the next worker claims it |
| claim, heartbeat, begin_slice | running until the lease ends | rescue: pending, failures + 1 |
| record_plan | the plan beside it | the next claim of the serial key applies it, no model call |
| advance | the cursor moved, the plan gone | nothing to repair |
"""

from __future__ import annotations

import json
import random
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memoryd.jobs import candidates as candidates_kept
from memoryd.jobs import retry
from memoryd.jobs import statements as sql
from memoryd.jobs.archive import Archive
from memoryd.jobs.archived import Archived
from memoryd.jobs.breaker import Breakers
from memoryd.jobs.budget import Budget
from memoryd.jobs.consolidations import Consolidations
from memoryd.jobs.daily_runs import DailyRuns
from memoryd.jobs.database import Database
from memoryd.jobs.envelope import known_place, path_is_secret, session_is_secret
from memoryd.jobs.events import Events
from memoryd.jobs.job import (
    KINDS,
    TEXT_CHARACTERS,
    Job,
    Kind,
    check_code,
    is_keepable,
    job_from_row,
    new_job,
    serial_key,
    store_key,
)
from memoryd.jobs.records import Records
from memoryd.jobs.retention import Retention, Which
from memoryd.jobs.usage import Usage
from memoryd.memory import seams
from memoryd.memory.clock import Clock
from memoryd.memory.errors import LeaseLost, PlanUnreadable, UsageError
from memoryd.memory.ids import uuid7
from memoryd.memory.plan import Plan, SliceRange
from memoryd.memory.text import clip

if TYPE_CHECKING:
    from memoryd.memory.policy import Candidate

#: A ``run_at`` further ahead than this is a clock that stepped.
RUN_HORIZON_MS = 25 * 3600 * 1000
#: Nothing is put off for longer, so that what was meant never looks like a stepped clock.
LONGEST_WAIT_MS = 24 * 3600 * 1000
DETAIL_CHARACTERS = 500
PAYLOAD_CHARACTERS = 4096
#: Of jobs whose lease ran out, returned in one transaction: others wait for it.
RESCUE_BATCH = 500
#: A worker looks again after so long at what is due and was not taken.
OVERDUE_MS = 1000
#: More jobs than ever run at once.
NO_LIMIT = 1 << 31
#: How a backfill ends that left words to be read, once its settings are others.
_LEFT = frozenset({"extraction.off", "curation.manual"})
#: The same, and where there was nothing to read.
_UNREAD = _LEFT | {"transcript.gone"}


@dataclass(frozen=True)
class Enqueued:
    """What became of a request: the job, and whether this call made it.

    ``job`` is None when the session is excluded; ``excluded`` then says why, as a code.
    """

    job: Job | None
    created: bool
    excluded: str = ""


class Ledger:
    """The ledger of one home. Use from any thread; each thread has a connection of its own.

    ``records`` reads it, ``retention`` says what goes from it, ``budget`` counts the day's calls,
    ``breakers`` says whom not to ask, ``consolidations`` when each store was last consolidated,
    ``daily_runs`` what ran on which date, ``usage`` counts what notes were shown and cited,
    ``archive`` knows every session that was found.
    ``alive``, where the process sets it, names the attempts it is working on now: a rescue renews
    those (a laptop that slept looks like a lease that ran out) instead of taking them away.
    """

    def __init__(self, path: Path, home: str, clock: Clock, *, lease_seconds: int = 300) -> None:
        self.home = home
        self.clock = clock
        self.lease_ms = lease_seconds * 1000
        self.db = Database(path)
        self.records = Records(self.db)
        self.retention = Retention(self.db)
        self.budget = Budget(self.db, clock)
        self.breakers = Breakers(self.db, clock)
        self.consolidations = Consolidations(self.db)
        self.daily_runs = DailyRuns(self.db, clock)
        self.events = Events(self.db)
        self.usage = Usage(self.db, clock)
        self.archive = Archive(self.db, clock)
        self.alive: Callable[[], Iterable[Job]] = tuple
        #: Attempts that this process has given up for dead.
        self.rescued = 0
        self._rng = random.Random()
        #: By thread: whether its last claim took a job.
        self._mine = threading.local()

    def open(self, *, check: bool = False) -> Ledger:
        """Open the file, make or migrate its tables. Raises ``LedgerError`` (``Database.open``)."""
        self.db.open(self.clock.now_ms(), check=check)
        return self

    def close(self) -> None:
        """Close this thread's connection; harmless when there is none."""
        self.db.close()

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

    # -- enqueue ---------------------------------------------------------------------------------

    def enqueue(
        self,
        kind: str,
        agent: str,
        session: str,
        *,
        cutoff: int,
        transcript: str,
        cwd: str,
        trigger: str,
        reason: str = "",
        payload: Mapping[str, object] | None = None,
    ) -> Enqueued:
        """Make a job for a session up to ``cutoff`` bytes; on disk when this returns.

        A finalize is known by (agent, session, cutoff), so the same end told twice makes one job;
        an extract that is still pending reads further instead of being doubled. Raises
        ``UsageError`` for what a row cannot hold.
        """
        properties = _checked_kind(kind, "session", cutoff, (agent, session, transcript, cwd))
        _require_session(session)
        _require_transcript(transcript)
        cwd = known_place(cwd)
        now = self.clock.now_ms()
        values = self._row(kind, properties, now, trigger, reason) | {
            "idempotency_key": f"{kind}:{agent}/{session}@{cutoff}",
            "serial_key": serial_key(agent, session),
            "agent": agent,
            "session": session,
            "cutoff": cutoff,
            "payload": _small_json(payload) if payload else "{}",
        }
        with self._enqueuing():
            # An extract may be throttled and leave the words: only what reads to the end counts.
            ended = 0 if kind == "extract" else cutoff
            excluded = self._see_rollout(
                agent,
                session,
                transcript,
                cwd,
                ended,
                now,
                hook_at=now if trigger == "hook" else 0,
                hook_end_at=now if trigger == "hook" and kind == "finalize" else 0,
                sweep_at=now if trigger == "sweep" else 0,
            )
            if excluded is not None:
                return Enqueued(None, False, excluded)
            if kind == "extract":
                values["idempotency_key"] = None
                job = job_from_row(self.db.rows(sql.INSERT_EXTRACT, **values)[0])
                return Enqueued(job, job.id == values["id"])
            if self._won(sql.INSERT, **values):
                return Enqueued(new_job(values), True)
            again = self._won(
                sql.REOPEN,
                key=values["idempotency_key"],
                trigger=trigger,
                reason=values["reason"],
                asked=int(trigger == "cli"),
                now=now,
            )
            return Enqueued(self.records.by_key(str(values["idempotency_key"])), again)

    def enqueue_store(
        self, kind: str, store: str, *, key: str, trigger: str, reason: str = ""
    ) -> Enqueued:
        """Make a job for the store of a project; on disk when this returns.

        ``key`` is what it is known by (a date, a uuid): the same one twice makes one job. Raises
        ``UsageError`` for what a row cannot hold.
        """
        properties = _checked_kind(kind, "store", 0, (store, key))
        now = self.clock.now_ms()
        values = self._row(kind, properties, now, trigger, reason) | {
            "idempotency_key": f"{kind}:{store}@{key}",
            "serial_key": store_key(store),
            "project": store,
        }
        with self._enqueuing():
            if self._won(sql.INSERT, **values):
                return Enqueued(new_job(values), True)
            return Enqueued(self.records.by_key(str(values["idempotency_key"])), False)

    def enqueue_backfill(
        self, row: Archived, *, cutoff: int, per_day: int, turn: int = 0
    ) -> Job | None:
        """Make a job for a session of the archive as it was found; on disk when this returns.

        ``turn`` orders those that are made within a millisecond: an id begins with its time.
        None: one was made for it as it is, it changed or was excluded meanwhile, or the day has
        had its ``per_day`` sessions. Raises ``UsageError`` for what a row cannot hold.
        """
        whose = (row.agent, row.session)
        properties = _checked_kind(
            "backfill", "archived session", cutoff, (*whose, row.transcript, row.cwd)
        )
        now = self.clock.now_ms()
        values = self._row("backfill", properties, now, "archive") | {
            "id": uuid7(now + turn),
            "idempotency_key": f"backfill:{row.agent}/{row.session}#{row.fingerprint}",
            "serial_key": serial_key(*whose),
            "agent": row.agent,
            "session": row.session,
            "cutoff": cutoff,
        }
        key = str(values["idempotency_key"])
        with self._enqueuing():
            if self.archive.made_today() >= per_day or not self._won(
                sql.MAKE_BACKFILL, agent=row.agent, session=row.session, fingerprint=row.fingerprint
            ):
                return None
            if self._won(sql.INSERT, **values):
                self.archive.count_made()
                return new_job(values)
            # What looks again as it did when it was read costs the day nothing.
            ended = self.records.by_key(key)
            if ended is None or ended.status != "completed" or ended.outcome_code in _UNREAD:
                self.archive.count_made()
            self._won(sql.REOPEN_BACKFILL, key=key, cutoff=cutoff, now=now)
            return self.records.by_key(key)

    def _row(
        self, kind: str, properties: Kind, now: int, trigger: str, reason: str = ""
    ) -> dict[str, Any]:
        """What the row of any new job begins with; what it is about is added."""
        return {
            "id": uuid7(now),
            "home": self.home,
            "kind": kind,
            "project": None,
            "agent": "",
            "session": "",
            "trigger": check_code(trigger),
            "reason": reason and check_code(reason),
            "cutoff": 0,
            "payload": "{}",
            "priority": properties.priority,
            "max_failures": properties.max_failures,
            "now": now,
        }

    @contextmanager
    def _enqueuing(self) -> Iterator[None]:
        """The transaction of a request: what is promised in it is on disk when it ends."""
        seams.before("job.enqueued")
        with self.db.writing(durable=True):
            yield
        seams.reach("job.enqueued")

    def _see_rollout(
        self,
        agent: str,
        session: str,
        transcript: str,
        cwd: str,
        cutoff: int,
        now: int,
        *,
        hook_at: int = 0,
        hook_end_at: int = 0,
        sweep_at: int = 0,
    ) -> str | None:
        """Remember the transcript; the exclusion code comes back where the session has one.

        The last three are when who told of it: a hook of anything, a hook of an end, the sweep.
        """
        rows = self.db.rows(
            sql.SEE_ROLLOUT,
            agent=agent,
            session=session,
            transcript=transcript,
            cwd=cwd,
            cutoff=cutoff,
            now=now,
            hook_at=hook_at,
            hook_end_at=hook_end_at,
            sweep_at=sweep_at,
        )
        return None if rows[0][0] is None else str(rows[0][0])

    def exclude(self, agent: str, session: str, code: str) -> int:
        """Never distil this session; how many of its jobs were cancelled comes back.

        A running one too, unless its plan stands: what it reads at this moment is not written.
        """
        _require_session(session)
        now = self.clock.now_ms()
        with self.db.writing(durable=True):
            self._see_rollout(agent, session, "", "", 0, now)
            self.db.change(
                sql.EXCLUDE,
                code=check_code(code),
                agent=agent,
                session=session,
            )
            open_jobs = self.db.rows(
                "select id from job where agent = :agent and session = :session"
                " and status in ('pending', 'running')",
                agent=agent,
                session=session,
            )
            return sum(self._cancel(str(row[0]), code, now) for row in open_jobs)

    # -- claim, heartbeat, rescue ----------------------------------------------------------------

    def claim(self, owner: str, *, only: str | None = None, room: int = NO_LIMIT) -> Job | None:
        """Take the next ready job (or just ``only``); None when there is none to take.

        A backfill is taken only while fewer than ``room`` jobs run in the home.
        """
        which: Mapping[str, object] = {} if only is None else {"id": only}
        text, asked = (sql.CLAIM_THIS, which) if which else (sql.CLAIM, {"room": room})
        # While one job follows another there is no need to ask first.
        if not which and getattr(self._mine, "took_one", False):
            job, _ = self._take(owner, text, asked, over=False)
            if job is not None:
                return job
            self._mine.took_one = False
        due, over = self.db.rows(sql.THIS_DUE if which else sql.ANY_DUE, **self._times(), **which)[
            0
        ]
        if not due and (which or not over):
            return None
        job, expired = self._take(owner, text, asked, over=bool(over))
        while job is None and expired >= RESCUE_BATCH:
            # Those whose leases ran out, and that nobody returned yet, hold the others back.
            job, expired = self._take(owner, text, asked, over=True)
        self._mine.took_one = job is not None
        return job

    def _take(
        self, owner: str, text: str, which: Mapping[str, object], *, over: bool
    ) -> tuple[Job | None, int]:
        """One claim, after a batch of rescues where leases are ``over``; how many of those."""
        expired = 0
        seams.before("job.claimed")
        try:
            with self.db.writing():
                # Read here, with the write lock held: a lease given while this process waited
                # for the lock would look too far ahead on an earlier reading.
                times = self._times()
                if over:
                    expired, _ = self._rescue(times)
                lease = times["now"] + self.lease_ms
                rows = self.db.rows(text, **times, **which, owner=owner, lease_expires_at=lease)
        except sqlite3.IntegrityError:
            # The unique index on running serial keys: another process was faster.
            return None, 0
        seams.reach("job.claimed")
        return job_from_row(rows[0]) if rows else None, expired

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
            seams.before("job.rescued")
            with self.db.writing():
                seen, returned = self._rescue(self._times(), everything=everything)
            seams.reach("job.rescued")
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

    def _rescue(self, times: dict[str, int], *, everything: bool = False) -> tuple[int, int]:
        """One batch: how many were found, and how many of them returned."""
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
            detail="the attempt's lease ran out: its process died or stood still",
            finished_at=now if decision.status == "failed" else None,
            now=now,
        )
        if won:
            self._end_attempt(job, "crashed", "", now)
            self.rescued += 1
        return won

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

    # -- how an attempt ends ---------------------------------------------------------------------

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
        if job.kind == "backfill" and outcome not in _LEFT:
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

    # -- slices ----------------------------------------------------------------------------------

    def cursor(self, agent: str, session: str) -> int:
        """The last message of the session that was distilled, by ``seq``; 0 when none was."""
        rows = self.db.rows(
            "select seq from cursor where agent = :agent and session = :session",
            agent=agent,
            session=session,
        )
        return int(rows[0][0]) if rows else 0

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

    # -- people ----------------------------------------------------------------------------------

    def cancel(self, job: Job) -> bool:
        """Call the job off. False: it is finished, or its plan stands and is being written."""
        with self.db.writing(durable=True):
            return self._cancel(job.id, "job.cancelled", self.clock.now_ms())

    def _cancel(self, job_id: str, code: str, now: int) -> bool:
        at_work = self.db.rows(sql.AT_WORK, id=job_id)
        if not self._won(sql.CANCEL, id=job_id, code=code, now=now):
            return False
        for job in map(job_from_row, at_work):
            self._end_attempt(job, "cancelled", "", now)
        return True

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

    # -- what is next ---------------------------------------------------------------------------

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


def _require_session(session: str) -> None:
    if session_is_secret(session):
        raise UsageError(
            "the session is named by a secret, which is never kept",
            hint="name it with --session by something else",
        )


def _require_transcript(path: str) -> None:
    if path_is_secret(path):
        raise UsageError(
            "the transcript's path holds a secret, which is never kept",
            hint="rename the folder or the file it is in",
        )


def _checked_kind(kind: str, about: str, cutoff: int, texts: tuple[str, ...]) -> Kind:
    """The properties of ``kind``. Raises ``UsageError`` for a request that no row can hold."""
    properties = KINDS.get(kind)
    if properties is None or properties.about != about:
        kinds = [name for name, known in KINDS.items() if known.about == about]
        raise UsageError(
            f"there is no kind of job about a {about} {clip(kind, 40)!r}",
            hint=f"one of: {', '.join(kinds)}",
        )
    if not 0 <= cutoff < 1 << 63:
        raise UsageError(f"a cutoff is a number of bytes, not {clip(str(cutoff), 40)}")
    for text in texts:
        if not is_keepable(text):
            raise UsageError(
                f"{clip(ascii(text), 60)} cannot be kept in the ledger",
                hint=f"names and paths are valid UTF-8, at most {TEXT_CHARACTERS} characters",
            )
    return properties


def _small_json(payload: Mapping[str, object]) -> str:
    text = json.dumps(dict(payload), sort_keys=True)
    if len(text) > PAYLOAD_CHARACTERS:
        raise UsageError(f"a payload has at most {PAYLOAD_CHARACTERS} characters of JSON")
    return text
