"""What happened that an agent may tell its person: kept with ids, so that a listener can go on.

An event is made in the transaction that records what it tells of: it is there exactly once, or the
thing did not happen. The newest ``KEPT`` stay.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from memoryd.jobs.database import Database
from memoryd.jobs.job import Job
from memoryd.memory.notes import ARCHIVE
from memoryd.memory.plan import SliceRange

KEPT = 1_000

_ADD = """
insert into event (at, kind, body) values (:at, :kind, :body)
"""
_PRUNE = """
delete from event where id <= (select max(id) from event) - :kept
"""
_WRITTEN = """
select store, path from candidate
where state in ('applied', 'appended') and agent = :agent and session = :session
    and first = :first and last = :last and store is not null and path is not null
order by ordinal
"""


@dataclass(frozen=True)
class Event:
    """One event: its id, which only grows, when it was (ms), its kind, and what it tells."""

    id: int
    at: int
    kind: str
    body: dict[str, Any]


class Events:
    """The table ``event`` of one ledger."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def saved(self, job: Job, part: SliceRange, now: int) -> None:
        """``memory.saved``: the notes that a slice or a consolidation wrote; none, no event.

        Called when its candidates are settled, in the caller's transaction.
        """
        rows = self._db.rows(
            _WRITTEN, agent=part.agent, session=part.session, first=part.first, last=part.last
        )
        notes = dict.fromkeys(
            (str(store), str(path).removesuffix(".md"))
            for store, path in rows
            if not str(path).startswith(f"{ARCHIVE}/")
        )
        if notes:
            told = [{"project": store, "note": note} for store, note in notes]
            body = {"job": job.id, "agent": job.agent, "session": job.session, "notes": told}
            self._add("memory.saved", body, now)

    def _add(self, kind: str, body: dict[str, Any], now: int) -> None:
        self._db.change(_ADD, at=now, kind=kind, body=json.dumps(body, ensure_ascii=False))
        self._db.change(_PRUNE, kept=KEPT)

    def after(self, identifier: int, limit: int = KEPT) -> list[Event]:
        """At most ``limit`` events later than ``identifier``, the oldest first (0: all)."""
        rows = self._db.rows(
            "select id, at, kind, body from event where id > :after order by id limit :limit",
            after=identifier,
            limit=limit,
        )
        return [Event(int(i), int(at), str(kind), json.loads(body)) for i, at, kind, body in rows]

    def last_id(self) -> int:
        """The id of the newest event, 0 where there was none."""
        return int(self._db.rows("select coalesce(max(id), 0) from event")[0][0])
