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

One at a time. A unique index lets one job run per serial key. A claim first rescues the expired
rows of its key; a unique violation means that another process was faster.

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
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from memoryd.jobs import retry
from memoryd.jobs import statements as sql
from memoryd.jobs.breaker import Breakers
from memoryd.jobs.budget import Budget
from memoryd.jobs.database import Database
from memoryd.jobs.job import KINDS, Job, check_code, job_from_row, serial_key
from memoryd.jobs.records import Records
from memoryd.memory import seams
from memoryd.memory.clock import Clock
from memoryd.memory.errors import LeaseLost
from memoryd.memory.ids import uuid7
from memoryd.memory.plan import Plan, SliceRange
from memoryd.memory.text import clip

if TYPE_CHECKING:
    from memoryd.memory.policy import Candidate

#: A ``run_at`` further ahead than this is a clock that stepped.
RUN_HORIZON_MS = 25 * 3600 * 1000
DETAIL_CHARACTERS = 500
PRUNE_BATCH = 1000


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

    ``records`` reads it, ``budget`` counts the day's calls, ``breakers`` says whom not to ask.
    """

    def __init__(self, path: Path, home: str, clock: Clock, *, lease_seconds: int = 300) -> None:
        self.home = home
        self.clock = clock
        self.lease_ms = lease_seconds * 1000
        self.db = Database(path)
        self.records = Records(self.db)
        self.budget = Budget(self.db, clock)
        self.breakers = Breakers(self.db, clock)
        self._rng = random.Random()

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
        an extract that is still pending reads further instead of being doubled.
        """
        properties = KINDS[kind]
        now = self.clock.now_ms()
        values = {
            "id": uuid7(now),
            "home": self.home,
            "kind": kind,
            "idempotency_key": f"{kind}:{agent}/{session}@{cutoff}",
            "serial_key": serial_key(agent, session),
            "agent": agent,
            "session": session,
            "trigger": check_code(trigger),
            "reason": reason,
            "cutoff": cutoff,
            "payload": json.dumps(dict(payload or {}), sort_keys=True),
            "priority": properties.priority,
            "max_failures": properties.max_failures,
            "now": now,
        }
        with self.db.writing(durable=True):
            excluded = self._see_rollout(agent, session, transcript, cwd, cutoff, now)
            if excluded is not None:
                return Enqueued(None, False, excluded)
            if kind == "extract":
                values.pop("idempotency_key")
                job = job_from_row(self.db.rows(sql.INSERT_EXTRACT, **values)[0])
                return Enqueued(job, job.id == values["id"])
            rows = self.db.rows(sql.INSERT, **values)
            if rows:
                return Enqueued(job_from_row(rows[0]), True)
            return Enqueued(self.records.by_key(str(values["idempotency_key"])), False)

    def _see_rollout(
        self, agent: str, session: str, transcript: str, cwd: str, cutoff: int, now: int
    ) -> str | None:
        """Remember the transcript; the exclusion code comes back where the session has one."""
        rows = self.db.rows(
            """
            insert into rollout (agent, session, transcript, cwd, last_cutoff, seen_at)
            values (:agent, :session, :transcript, :cwd, :cutoff, :now)
            on conflict (agent, session) do update set
                transcript = case when excluded.transcript = '' then rollout.transcript
                    else excluded.transcript end,
                cwd = case when excluded.cwd = '' then rollout.cwd else excluded.cwd end,
                last_cutoff = max(rollout.last_cutoff, excluded.last_cutoff),
                seen_at = excluded.seen_at
            returning excluded
            """,
            agent=agent,
            session=session,
            transcript=transcript,
            cwd=cwd,
            cutoff=cutoff,
            now=now,
        )
        return None if rows[0][0] is None else str(rows[0][0])

    def exclude(self, agent: str, session: str, code: str) -> int:
        """Never distil this session; its pending jobs are cancelled. How many were comes back."""
        now = self.clock.now_ms()
        with self.db.writing(durable=True):
            self._see_rollout(agent, session, "", "", 0, now)
            self.db.change(
                "update rollout set excluded = :code where agent = :agent and session = :session",
                code=check_code(code),
                agent=agent,
                session=session,
            )
            pending = self.db.rows(
                "select id from job where agent = :agent and session = :session"
                " and status = 'pending'",
                agent=agent,
                session=session,
            )
            return sum(self._won(sql.CANCEL, id=row[0], code=code, now=now) for row in pending)

    # -- claim, heartbeat, rescue ----------------------------------------------------------------

    def claim(self, owner: str, *, only: str | None = None) -> Job | None:
        """Take the next ready job (or just ``only``); None when there is none to take."""
        from peewee import IntegrityError

        times = self._times()
        ready = {**times, "id": only} if only else times
        query = sql.THIS_READY if only else sql.NEXT_READY
        if not self.db.rows(query, **ready):
            return None
        try:
            with self.db.writing():
                head = self.db.rows(query, **ready)
                if not head:
                    return None
                self._rescue(serial=str(head[0][1]))
                rows = self.db.rows(
                    sql.CLAIM,
                    **times,
                    id=head[0][0],
                    owner=owner,
                    lease_expires_at=times["now"] + self.lease_ms,
                )
                if not rows:
                    return None
                job = job_from_row(rows[0])
                self.db.change(
                    "insert into attempt_log (job_id, attempt, owner, started_at)"
                    " values (:id, :attempt, :owner, :now)",
                    id=job.id,
                    attempt=job.attempt,
                    owner=owner,
                    now=times["now"],
                )
                return job
        except IntegrityError:
            # The unique index on running serial keys: another process was faster.
            return None

    def heartbeat(self, job: Job) -> bool:
        """Extend the lease of this attempt. False: it was lost."""
        now = self.clock.now_ms()
        with self.db.writing():
            return self._won(
                sql.HEARTBEAT,
                id=job.id,
                attempt=job.attempt,
                lease_expires_at=now + self.lease_ms,
                now=now,
            )

    def rescue(self, *, everything: bool = False) -> int:
        """Return the jobs whose lease ran out; how many.

        ``everything`` takes every running row: right only for the process that holds the home's
        lock and has claimed nothing yet, because then nobody else can be working.
        """
        if not self.db.rows("select 1 from job where status = 'running' limit 1"):
            return 0
        with self.db.writing():
            return self._rescue(everything=everything)

    def _rescue(self, *, everything: bool = False, serial: str | None = None) -> int:
        times = self._times()
        rows = self.db.rows(
            sql.EXPIRED,
            all=int(everything),
            serial_key=serial,
            now=times["now"],
            lease_horizon=times["lease_horizon"],
        )
        returned = 0
        for job in map(job_from_row, rows):
            decision = retry.after_crash(job, times["now"])
            won = self._won(
                sql.RESCUE,
                id=job.id,
                attempt=job.attempt,
                seen_lease=job.lease_expires_at,
                status=decision.status,
                run_at=decision.run_at,
                detail="the attempt's lease ran out: its process died or stood still",
                finished_at=times["now"] if decision.status == "failed" else None,
                now=times["now"],
            )
            if won:
                self._end_attempt(job, "crashed", "", times["now"])
                returned += 1
        return returned

    # -- how an attempt ends ---------------------------------------------------------------------

    def snooze(self, job: Job, until_ms: int, reason: str, detail: str = "") -> None:
        """Put the job off until ``until_ms`` at no cost. Raises ``LeaseLost``."""
        now = self.clock.now_ms()
        with self._fenced(
            sql.SNOOZE,
            job,
            run_at=until_ms,
            reason=check_code(reason),
            detail=clip(detail, DETAIL_CHARACTERS) or None,
            now=now,
        ):
            self._end_attempt(job, "snoozed", reason, now)

    def release(self, job: Job) -> None:
        """Give the job back at no cost: a drain ran out of time. Raises ``LeaseLost``."""
        now = self.clock.now_ms()
        with self._fenced(sql.RELEASE, job, now=now):
            self._end_attempt(job, "released", "", now)

    def fail(self, job: Job, code: str, detail: str, *, base_seconds: int = 15) -> str:
        """Count a failure; the job's new status (pending or failed). Raises ``LeaseLost``."""
        now = self.clock.now_ms()
        decision = retry.after_failure(job, now, self._rng, base_seconds)
        with self._fenced(
            sql.FAIL,
            job,
            status=decision.status,
            code=check_code(code),
            detail=clip(detail, DETAIL_CHARACTERS),
            run_at=decision.run_at,
            finished_at=now if decision.status == "failed" else None,
            now=now,
        ):
            self._end_attempt(job, "failed", code, now)
        return decision.status

    def complete(self, job: Job, outcome: str) -> None:
        """End the job without moving the cursor. Raises ``LeaseLost``."""
        now = self.clock.now_ms()
        with self._fenced(sql.COMPLETE, job, outcome=check_code(outcome), now=now):
            self._end_attempt(job, "completed", outcome, now)

    def throttle(self, job: Job) -> None:
        """Count a throttled extract in the session's row and drop the job. Raises ``LeaseLost``."""
        with self._fenced(sql.FORGET, job):
            self.db.change("delete from attempt_log where job_id = :id", id=job.id)
            self.db.change(
                "update rollout set throttled = throttled + 1"
                " where agent = :agent and session = :session",
                agent=job.agent,
                session=job.session,
            )

    @contextmanager
    def _fenced(self, text: str, job: Job, **values: object) -> Iterator[None]:
        """One transaction that begins with a fenced change of ``job``. Raises ``LeaseLost``."""
        with self.db.writing():
            if not self._won(text, id=job.id, attempt=job.attempt, **values):
                raise LeaseLost(f"attempt {job.attempt} of job {job.id} lost its lease")
            yield

    def _end_attempt(self, job: Job, ending: str, detail: str, now: int) -> None:
        self.db.change(
            "update attempt_log set ended_at = :now, ending = :ending, detail = :detail"
            " where job_id = :id and attempt = :attempt",
            now=now,
            ending=ending,
            detail=detail or None,
            id=job.id,
            attempt=job.attempt,
        )

    def count_call(self, job: Job, input_tokens: int, output_tokens: int) -> None:
        """Add one provider call to the attempt's log line."""
        with self.db.writing():
            self.db.change(
                "update attempt_log set calls = calls + 1, input_tokens = input_tokens + :input,"
                " output_tokens = output_tokens + :output"
                " where job_id = :id and attempt = :attempt",
                input=input_tokens,
                output=output_tokens,
                id=job.id,
                attempt=job.attempt,
            )

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
        with self._fenced(sql.BEGIN_SLICE, job, first=first, last=last, project=project, now=now):
            pass

    def standing_plan(self, job: Job) -> Plan | None:
        """The plan recorded for the job's serial key, whichever job left it."""
        rows = self.db.rows(
            "select plan from plan where serial_key = :serial_key", serial_key=job.serial_key
        )
        return Plan.from_json(str(rows[0][0])) if rows else None

    def record_plan(self, job: Job, plan: Plan, candidates: Iterable[Candidate]) -> None:
        """Keep what the slice is to become, with its candidates; on disk when this returns.

        Guard: the fence, no other plan of the serial key, and the cursor still before the slice.
        Raises ``LeaseLost`` when any of them does not hold.
        """
        from peewee import IntegrityError

        now = self.clock.now_ms()
        part = plan.slice
        try:
            with self.db.writing(durable=True):
                # The guard of begin_slice again, in the transaction that keeps the plan.
                fence = {"id": job.id, "attempt": job.attempt}
                held = self.db.rows(
                    "select 1 from job where id = :id and attempt = :attempt"
                    " and status = 'running'",
                    **fence,
                )
                if not held or self.cursor(part.agent, part.session) != part.first - 1:
                    raise LeaseLost(f"slice {part} is not job {job.id}'s any more")
                self.db.change(
                    "insert into plan (serial_key, job_id, attempt, agent, session, first, last,"
                    " plan, recorded_at) values (:serial_key, :id, :attempt, :agent, :session,"
                    " :first, :last, :plan, :now)",
                    **fence,
                    serial_key=job.serial_key,
                    agent=part.agent,
                    session=part.session,
                    first=part.first,
                    last=part.last,
                    plan=plan.to_json(),
                    now=now,
                )
                for ordinal, candidate in enumerate(candidates):
                    self._keep_candidate(job, part, ordinal, candidate, now)
        except IntegrityError as error:
            raise LeaseLost(f"another plan stands for {job.serial_key}") from error
        seams.reach("plan.recorded")

    def _keep_candidate(
        self, job: Job, part: SliceRange, ordinal: int, candidate: Candidate, now: int
    ) -> None:
        states = {"apply": "planned", "review": "pending", "ignore": "ignored"}
        self.db.change(
            "insert into candidate (id, job_id, agent, session, first, last, ordinal, statement,"
            " category, explicitness, sensitivity, confidence, evidence, risk, decision, reason,"
            " detail, state, store, path, created_at)"
            " values (:id, :job, :agent, :session, :first, :last, :ordinal, :statement, :category,"
            " :explicitness, :sensitivity, :confidence, :evidence, :risk, :decision, :reason,"
            " :detail, :state, :store, :path, :now)",
            id=candidate.id,
            job=job.id,
            agent=part.agent,
            session=part.session,
            first=part.first,
            last=part.last,
            ordinal=ordinal,
            statement=candidate.statement,
            category=candidate.category,
            explicitness=candidate.explicitness,
            sensitivity=candidate.sensitivity,
            confidence=candidate.confidence,
            evidence=json.dumps(
                [[span.message_id, span.seq, span.span] for span in candidate.evidence],
                ensure_ascii=False,
            ),
            risk=candidate.risk,
            decision=candidate.decision,
            reason=check_code(candidate.reason),
            detail=clip(candidate.detail, DETAIL_CHARACTERS),
            state=states[candidate.decision],
            store=candidate.store,
            path=candidate.path,
            now=now,
        )

    def advance(
        self,
        job: Job,
        part: SliceRange,
        *,
        outcome: str | None = None,
        changed: Iterable[str] = (),
        appended: Iterable[str] = (),
    ) -> None:
        """Move the cursor past the slice and clear its plan; with ``outcome`` also end the job.

        ``changed`` and ``appended`` are ids of candidates that met a person's edit. One
        transaction; raises ``LeaseLost`` when the fence or the cursor no longer match, and then
        nothing is recorded.
        """
        now = self.clock.now_ms()
        ending = sql.COMPLETE if outcome is not None else sql.PROGRESS
        values = {"outcome": check_code(outcome)} if outcome is not None else {}
        with self._fenced(ending, job, now=now, **values):
            self._move_cursor(part, now)
            self.db.change(
                "delete from plan where serial_key = :serial_key and first = :first",
                serial_key=job.serial_key,
                first=part.first,
            )
            self._settle_candidates(part, set(changed), set(appended))
            if outcome is not None:
                self._end_attempt(job, "completed", outcome, now)
        seams.reach("cursor.advanced")

    def _move_cursor(self, part: SliceRange, now: int) -> None:
        where = {"agent": part.agent, "session": part.session, "now": now}
        self.db.change(
            "insert into cursor (agent, session, seq, updated_at)"
            " values (:agent, :session, 0, :now) on conflict (agent, session) do nothing",
            **where,
        )
        if not self._won(sql.MOVE_CURSOR, **where, last=part.last, before=part.first - 1):
            raise LeaseLost(f"the cursor is not before slice {part} any more")

    def _settle_candidates(self, part: SliceRange, changed: set[str], appended: set[str]) -> None:
        where = {
            "agent": part.agent,
            "session": part.session,
            "first": part.first,
            "last": part.last,
        }
        planned = self.db.rows(
            "select id from candidate where agent = :agent and session = :session"
            " and first = :first and last = :last and state = 'planned'",
            **where,
        )
        for (identifier,) in planned:
            state = "changed" if identifier in changed else "applied"
            state = "appended" if identifier in appended else state
            self.db.change(
                "update candidate set state = :state where id = :id", state=state, id=identifier
            )

    # -- people ----------------------------------------------------------------------------------

    def cancel(self, job: Job) -> bool:
        """Call the job off. False: it is finished, or its plan stands and is being written."""
        now = self.clock.now_ms()
        with self.db.writing(durable=True):
            won = self._won(sql.CANCEL, id=job.id, code="job.cancelled", now=now)
            if won and job.status == "running":
                self._end_attempt(job, "cancelled", "", now)
            return won

    def retry(self, job: Job, *, skip: bool = False) -> bool:
        """Make a failed or cancelled job pending again; False when it is neither.

        ``skip`` first moves the cursor past the slice the job failed on.
        """
        now = self.clock.now_ms()
        with self.db.writing(durable=True):
            if not self._won(sql.RETRY, id=job.id, now=now):
                return False
            if skip and job.slice_first is not None and job.slice_last is not None:
                part = SliceRange(job.agent, job.session, job.slice_first, job.slice_last)
                if self.cursor(job.agent, job.session) == part.first - 1:
                    self._move_cursor(part, now)
            return True

    def prune(self, keep: int) -> int:
        """Delete all but the newest ``keep`` completed and cancelled jobs; how many went."""
        pruned = 0
        while True:
            with self.db.writing():
                rows = self.db.rows(sql.PRUNE, keep=keep, batch=PRUNE_BATCH)
                for (identifier,) in rows:
                    self.db.change("delete from attempt_log where job_id = :id", id=identifier)
            pruned += len(rows)
            if len(rows) < PRUNE_BATCH:
                return pruned

    # -- what is next ---------------------------------------------------------------------------

    def next_due_ms(self) -> int | None:
        """When something can next happen by itself: a ``run_at`` or a lease's end. None: never."""
        rows = self.db.rows(
            "select min(due) from (select min(run_at) as due from job where status = 'pending'"
            " and run_at > :now union all"
            " select min(lease_expires_at) from job where status = 'running') as soon",
            now=self.clock.now_ms(),
        )
        return None if rows[0][0] is None else int(rows[0][0])

    def idle(self) -> bool:
        """Whether no job runs and none is ready now."""
        times = self._times()
        running = self.db.rows("select 1 from job where status = 'running' limit 1")
        return not running and not self.db.rows(sql.NEXT_READY, **times)
