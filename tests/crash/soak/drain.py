"""The end of a soak: nothing strikes any more, and everything that waits gets its time."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from memoryd.jobs.discovery import discover
from memoryd.jobs.keeper import LeaseKeeper
from memoryd.jobs.stores import take_in_edits
from memoryd.jobs.sweep import finalize_idle, take_in_envelopes
from memoryd.jobs.tidying import tidy
from memoryd.jobs.worker import Worker
from memoryd.jobs.workplace import Workplace
from memoryd.memory.errors import HELD_CODES
from memoryd.memory.store import Store
from soak.clock import SteppedClock
from soak.places import Places
from soak.processes import opened, prepare

_DAY = 24 * 3600
#: More rounds than anything takes until it is at rest.
_ROUNDS = 3000

_WATCH_RETRIES = """
create table watched_retry (job text, failures integer, crashes integer);
create trigger watched_retry_made after update of status on job
    when old.status in ('failed', 'cancelled', 'completed') and new.status = 'pending' begin
    insert into watched_retry values (old.id, old.failures, old.crashes);
end;
"""


def watch_retries(places: Places) -> None:
    """Have the ledger keep which jobs were asked for again, with what they had failed before."""
    with closing(sqlite3.connect(places.home.ledger)) as database:
        database.executescript(_WATCH_RETRIES)


def drain(places: Places) -> None:
    """Be the next daemon, and let the clock jump to whatever is due until nothing is."""
    prepare(places)
    place, clock = opened(places), SteppedClock(places.clock)
    keeper = LeaseKeeper(place.ledger, clock, 1)
    worker = Worker(lambda: place, keeper)
    keeper.start()
    place.ledger.rescue(everything=True)
    place.ledger.breakers.resume(place.config.provider.name)
    place.ledger.wake(*HELD_CODES)
    clock.step(3 * 3600)  # what was touched a moment ago is still by then
    for _ in range(_ROUNDS):
        take_in_envelopes(place)
        discover(place.home, place.ledger, place.config, place.environ)
        finalize_idle(place)
        worker.work_ready()
        due = place.ledger.next_due_ms()
        if due is not None:
            clock.step(max(0, due - clock.now_ms()) / 1000 + 0.01)
        elif not _retry(place) and place.ledger.idle():
            break
    else:
        raise AssertionError("it never comes to rest")
    take_in_edits(place, [store.key for store in Store.all(place.home) if not store.is_profile])
    clock.step(2 * _DAY)
    tidy(place)
    keeper.stop()
    place.close()


def _retry(place: Workplace) -> int:
    """Ask again for what was killed too often, as a person would; how many."""
    failed = place.ledger.records.jobs(status="failed", limit=100_000)
    crashed = [job for job in failed if job.error_code == "attempt.crashed"]
    return sum(place.ledger.retry(job) for job in crashed)
