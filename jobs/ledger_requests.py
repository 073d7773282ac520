"""Requests: how a job comes to be, and whose sessions never have one.

The promise is given here. What is asked for is on disk when the call returns (``_enqueuing``), and
asking twice makes one job: a row is known by its idempotency key, and an extract that waits already
reads further instead. A request also tells the archive of the session, whose row says whether it is
excluded; that row outlives every job.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from memoryd.jobs import statements as sql
from memoryd.jobs.archive import Archive
from memoryd.jobs.archived import Archived
from memoryd.jobs.envelope import known_place
from memoryd.jobs.job import Job, Kind, check_code, job_from_row, new_job, serial_key, store_key
from memoryd.jobs.ledger_attempts import LEFT
from memoryd.jobs.ledger_changes import Changes
from memoryd.jobs.ledger_refusals import (
    checked_kind,
    require_session,
    require_transcript,
    small_json,
)
from memoryd.jobs.records import Records
from memoryd.memory import seams
from memoryd.memory.ids import uuid7

#: How a backfill ends that read nothing: it left the words, or there were none to read.
_UNREAD = LEFT | {"transcript.gone"}


@dataclass(frozen=True)
class Enqueued:
    """What became of a request: the job, and whether this call made it.

    ``job`` is None when the session is excluded; ``excluded`` then says why, as a code.
    """

    job: Job | None
    created: bool
    excluded: str = ""


class Requests(Changes):
    """Make jobs: for a session, for a store, for a session of the archive; or never again."""

    records: Records
    archive: Archive

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
        properties = checked_kind(kind, "session", cutoff, (agent, session, transcript, cwd))
        require_session(session)
        require_transcript(transcript)
        cwd = known_place(cwd)
        now = self.clock.now_ms()
        values = self._row(kind, properties, now, trigger, reason) | {
            "idempotency_key": f"{kind}:{agent}/{session}@{cutoff}",
            "serial_key": serial_key(agent, session),
            "agent": agent,
            "session": session,
            "cutoff": cutoff,
            "payload": small_json(payload) if payload else "{}",
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
        properties = checked_kind(kind, "store", 0, (store, key))
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
        properties = checked_kind(
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
        require_session(session)
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
