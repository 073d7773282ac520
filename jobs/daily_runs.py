"""What runs once per local date, and on which dates it did.

The day is the person's calendar date, of 23, 24 or 25 hours. Work is due where the ledger knows no
run on today's date: after a restart and after a sleep alike, however long either took. A run that
failed, or whose process died, is not noted and is due again.

Clocks move. One that went back, and a time zone further west, show a date that is over already:
nothing is due before a later one begins. A date written while the clock was far ahead does not
count once it is right again: one that was noted more than a day in the future, and one after which
the dates before it were still to come.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from memoryd.jobs.database import Database
from memoryd.jobs.rows import made
from memoryd.memory.clock import Clock, local_date

DAY_MS = 24 * 3600 * 1000
#: Dates kept of each name: a clock that went to another year and back, within a year, finds those
#: it had.
KEPT = 400
#: A clock that is set back for a moment, to a date on which nothing ran, takes back no date: of
#: those that came after, only the last days count.
LATELY_MS = 7 * DAY_MS

#: Noted anew each time, so that the order of the rows is that of the runs.
_TAKE_BACK = "delete from daily_run where name = :name and day = :day"
_RAN = "insert into daily_run (name, day, at) values (:name, :day, :at)"
_FORGET = """
delete from daily_run where name = :name and id not in
    (select id from daily_run where name = :name order by id desc limit :kept)
"""
_STANDS = """
select 1 from daily_run ran where name = :name
    and (day = :today or (day > :today and at <= :horizon))
    and not exists (select 1 from daily_run later where later.name = :name
        and later.id > ran.id and later.day < ran.day and later.at > :lately) limit 1
"""
_LAST = """
select name, day, at from daily_run
    where id in (select max(id) from daily_run group by name) order by name
"""


@dataclass(frozen=True)
class DailyRun:
    """When work last ran: its name, the local date it counted for, and when it began (wall ms)."""

    name: str
    day: str
    at: int


class DailyRuns:
    """The table ``daily_run`` of one ledger."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock

    def due(self, name: str) -> bool:
        """Whether ``name`` has not run on today's local date, nor on one that is yet to come."""
        now = self._clock.now_ms()
        standing = self._db.rows(
            _STANDS,
            name=name,
            today=local_date(now),
            horizon=now + DAY_MS,
            lately=now - LATELY_MS,
        )
        return not standing

    def ran(self, name: str, at_ms: int | None = None) -> None:
        """``name`` ran, for the date on which it began: at ``at_ms`` (wall), now when None."""
        at = self._clock.now_ms() if at_ms is None else at_ms
        with self._db.writing():
            self._db.change(_TAKE_BACK, name=name, day=local_date(at))
            self._db.change(_RAN, name=name, day=local_date(at), at=at)
            self._db.change(_FORGET, name=name, kept=KEPT)

    def once(self, name: str, do: Callable[[], object]) -> bool:
        """``do`` it where it is due; whether it was. What it raises is passed on: not noted.

        It counts for the date on which it began, also where midnight passes meanwhile.
        """
        if not self.due(name):
            return False
        began = self._clock.now_ms()
        do()
        self.ran(name, began)
        return True

    def all(self) -> list[DailyRun]:
        """The last run of each name, by name."""
        return made(DailyRun, self._db.rows(_LAST))
