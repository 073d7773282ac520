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

Where what is. The statements are in ``statements.py``. ``Ledger`` inherits its parts, here in the
order of a job's life; each is a ``Changes``, slices also end attempts, people also move cursors:

| file | class | what |
|---|---|---|
| ``ledger_changes.py`` | ``Changes`` | what all share: compare-and-set, fence, attempt log |
| ``ledger_refusals.py`` | | what no row can hold |
| ``ledger_requests.py`` | ``Requests`` | enqueue, exclude |
| ``ledger_claims.py`` | ``Claims`` | claim, heartbeat, rescue; when something is due |
| ``ledger_attempts.py`` | ``Attempts`` | how one ends: snooze, release, fail, complete, throttle |
| ``ledger_slices.py`` | ``Slices`` | begin a slice, record its plan, advance the cursor |
| ``ledger_people.py`` | ``People`` | cancel, retry, prune, forget |
"""

from __future__ import annotations

import random
import threading
from pathlib import Path

from memoryd.jobs.archive import Archive
from memoryd.jobs.breaker import Breakers
from memoryd.jobs.budget import Budget
from memoryd.jobs.consolidations import Consolidations
from memoryd.jobs.daily_runs import DailyRuns
from memoryd.jobs.database import Database
from memoryd.jobs.events import Events
from memoryd.jobs.ledger_attempts import Attempts
from memoryd.jobs.ledger_changes import RUN_HORIZON_MS
from memoryd.jobs.ledger_claims import Claims
from memoryd.jobs.ledger_people import People
from memoryd.jobs.ledger_requests import Enqueued, Requests
from memoryd.jobs.ledger_slices import Slices
from memoryd.jobs.records import Records
from memoryd.jobs.retention import Retention
from memoryd.jobs.usage import Usage
from memoryd.memory.clock import Clock

__all__ = ["RUN_HORIZON_MS", "Enqueued", "Ledger"]


class Ledger(People, Slices, Attempts, Claims, Requests):
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
        self.alive = tuple
        self.rescued = 0
        self._rng = random.Random()
        self._mine = threading.local()

    def open(self, *, check: bool = False) -> Ledger:
        """Open the file, make or migrate its tables. Raises ``LedgerError`` (``Database.open``)."""
        self.db.open(self.clock.now_ms(), check=check)
        return self

    def close(self) -> None:
        """Close this thread's connection; harmless when there is none."""
        self.db.close()
