"""``run --once``: one sweep, work off what is ready, and leave."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

from memoryd.daemon.client import Client
from memoryd.daemon.lifecycle import end_left_programs, lock_home
from memoryd.jobs.backups import back_up_daily
from memoryd.jobs.daily import check_stores
from memoryd.jobs.discovery import discover
from memoryd.jobs.indexing import index_some
from memoryd.jobs.keeper import LeaseKeeper
from memoryd.jobs.letting_go import let_go
from memoryd.jobs.rebuilding import rebuild
from memoryd.jobs.sweep import finalize_idle, take_in_envelopes
from memoryd.jobs.tidying import tidy
from memoryd.jobs.usage import follow_edits
from memoryd.jobs.worker import Worker
from memoryd.jobs.workplace import Workplace, open_workplace
from memoryd.memory.clock import Clock, SystemClock
from memoryd.memory.config import Config
from memoryd.memory.edits import commit_person_edits
from memoryd.memory.errors import HELD_CODES, HomeLocked, StoreError
from memoryd.memory.home import Home
from memoryd.memory.log import logger
from memoryd.memory.store import Store

#: How long a running daemon is given to come to rest.
WAIT_SECONDS = 3600.0


@dataclass(frozen=True)
class Worked:
    """What a run did. ``by`` is ``self`` or ``daemon`` (then the attempts are its own)."""

    by: str
    attempts: int
    rested: bool


def run_once(
    home: Home,
    config: Config,
    environ: Mapping[str, str],
    *,
    clock: Clock | None = None,
    only: str | None = None,
) -> Worked:
    """Take the home's lock, sweep, work what is ready (or just job ``only``), and let go.

    Where a daemon holds the lock it is rung and waited for. Raises ``HomeLocked`` when the holder
    does not answer, and what opening a home raises.
    """
    try:
        lock = lock_home(home)
    except HomeLocked as error:
        return _by_daemon(home, environ, only, error)
    with lock, _leaving_on_sigterm():
        end_left_programs(home)
        # One worker, this thread: a backfill makes way for whatever else is due.
        alone = replace(config, queue=replace(config.queue, workers=1))
        place = open_workplace(home, alone, clock or SystemClock(), environ, check=True)
        try:
            return Worked("self", _work(place, only), True)
        finally:
            place.close()


@contextmanager
def _leaving_on_sigterm() -> Iterator[None]:
    """SIGTERM ends the run as Ctrl-C does, so that the job in hand is given back at no cost."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may say what a signal does
        return

    def leave(number: int, frame: object) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _by_daemon(
    home: Home, environ: Mapping[str, str], only: str | None, locked: HomeLocked
) -> Worked:
    client = Client(home.socket(environ))
    rested = client.wait(only, WAIT_SECONDS) if client.ring() else None
    if rested is None:
        raise HomeLocked(
            f"process {locked.pid} works {home.root} and does not answer",
            hint="`memoryd status` shows what it does, `memoryd doctor` whether it stands still;"
            " what was asked for stays in the queue",
            pid=locked.pid,
        )
    return Worked("daemon", 0, rested)


def _work(place: Workplace, only: str | None) -> int:
    ledger = place.ledger
    ledger.rescue(everything=True)
    ledger.breakers.resume(place.config.provider.name)
    ledger.wake(*HELD_CODES, "budget.too-small")
    take_in_envelopes(place)
    if only is None:
        discover(place.home, ledger, place.config, place.environ)
        rebuild(place)
    finalize_idle(place)
    keeper = LeaseKeeper(ledger, place.clock, place.config.queue.heartbeat_seconds)
    keeper.start()
    try:
        worker = Worker(lambda: place, keeper)
        attempts = int(worker.work_one(only)) if only else worker.work_ready()
        if only is None and check_stores(place):
            attempts += worker.work_ready()
    finally:
        keeper.stop()
    if only is None:
        _commit_edits(place)
        tidy(place)
        back_up_daily(ledger, place.home.backups)
        let_go(place)
        index_some(place)
    return attempts


def _commit_edits(place: Workplace) -> None:
    planned = place.ledger.records.planned_contents()
    for store in Store.all(place.home):
        if store.is_profile:
            continue
        try:
            edits = commit_person_edits(
                store,
                now_ms=place.clock.now_ms(),
                planned=planned,
                spans=partial(place.ledger.records.evidence, store.key),
            )
        except StoreError as error:
            logger().warning("store.unusable", store=store.key, reason=str(error))
            continue
        follow_edits(place.ledger.usage, store.key, edits)
