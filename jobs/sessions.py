"""What the ledger knows of one session: its jobs, what came of it, and the words of it it holds."""

from __future__ import annotations

import json
from dataclasses import dataclass

from memoryd.jobs.job import COLUMNS, Job, job_from_row
from memoryd.jobs.ledger import Ledger

_OPEN = """
    select 1 from job where agent = :agent and session = :session
    and status in ('pending', 'running') limit 1
"""
_JOBS = f"""
    select {COLUMNS} from job where agent = :agent and session = :session
    order by id desc limit :limit
"""
_NOTES = """
    select store, path, max(state) from candidate
    where agent = :agent and session = :session and store is not null and path is not null
      and state in ('applied', 'appended') group by store, path order by store, path
"""
_PLAN = "select job_id from plan where agent = :agent and session = :session limit 1"
#: What a candidate still tells without words: that there was one, and which note it went into.
_SCRUB_CANDIDATES = """
    update candidate set statement = '', evidence = '[]', detail = '', draft = null,
        state = case when state = 'pending' then 'ignored' else state end,
        reason = case when state = 'pending' then 'forgotten' else reason end
    where agent = :agent and session = :session
"""
#: What a provider answered with an error may quote what it was asked.
_SCRUB_JOBS = """
    update job set error_detail = null, payload = '{}'
    where agent = :agent and session = :session
"""
_SCRUB_ATTEMPTS = """
    update attempt_log set detail = null where job_id in (
        select id from job where agent = :agent and session = :session)
"""


@dataclass(frozen=True)
class Written:
    """A note that holds what a session said: its store by key, and its path there."""

    store: str
    path: str


def has_open_job(ledger: Ledger, agent: str, session: str) -> bool:
    """Whether a job of the session waits or runs."""
    return bool(ledger.db.rows(_OPEN, agent=agent, session=session))


def jobs_of(ledger: Ledger, agent: str, session: str, limit: int) -> list[Job]:
    """At most ``limit`` jobs made for the session, the newest first."""
    rows = ledger.db.rows(_JOBS, agent=agent, session=session, limit=limit)
    return [job_from_row(row) for row in rows]


def notes_of(ledger: Ledger, agent: str, session: str) -> list[Written]:
    """Where in the stores what the session said was written; the notes may be gone by now."""
    rows = ledger.db.rows(_NOTES, agent=agent, session=session)
    return [Written(str(store), str(path)) for store, path, _ in rows]


def planned_by(ledger: Ledger, agent: str, session: str) -> str | None:
    """The job whose plan for the session is not written yet; None where none stands."""
    rows = ledger.db.rows(_PLAN, agent=agent, session=session)
    return str(rows[0][0]) if rows else None


def scrub(ledger: Ledger, agent: str, session: str) -> None:
    """Take the session's words out of the ledger: facts, evidence, proposals, errors, events.

    That there was a candidate stays, and which note it went into; one in review is settled.
    """
    which = {"agent": agent, "session": session}
    ledger.db.rows("pragma secure_delete = 1")
    with ledger.db.writing(durable=True):
        for statement in (_SCRUB_CANDIDATES, _SCRUB_ATTEMPTS, _SCRUB_JOBS):
            ledger.db.change(statement, **which)
        told_of = "select id, body from event where instr(body, :session) > 0"
        for number, body in ledger.db.rows(told_of, session=session):
            told = json.loads(body)
            if (told.get("agent"), told.get("session")) == (agent, session):
                ledger.db.change("delete from event where id = :id", id=number)
