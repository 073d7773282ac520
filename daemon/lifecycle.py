"""The daemon: boot, run, shut down.

Order matters. The home's lock first, so that everything found running belongs to nobody and is
rescued at once. Then the ledger, the leases, the socket; READY; and only then the watches and
whatever is slow. On the way out: claim nothing more, let attempts finish within the drain, give
the rest back at no cost, close the socket, and last the lock.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

from memoryd.daemon.api import Answers, Api
from memoryd.daemon.counters import Counters
from memoryd.daemon.discovering import Discovering
from memoryd.daemon.leaving import Leaving
from memoryd.daemon.metrics import Snapshot, render
from memoryd.daemon.notify import Notifier
from memoryd.daemon.schedule import Schedule
from memoryd.daemon.standing import STANDING_SECONDS, Standing
from memoryd.daemon.stores import StoreKeeper
from memoryd.daemon.supervised import supervisor
from memoryd.daemon.upgrade import EXIT_UPGRADED, LOOK_SECONDS, Upgrades
from memoryd.daemon.watcher import Watcher
from memoryd.jobs.accounts import Account
from memoryd.jobs.backups import back_up_daily
from memoryd.jobs.calls import Calls, price
from memoryd.jobs.daily import check_stores
from memoryd.jobs.doorbell import Doorbell
from memoryd.jobs.endings import Endings
from memoryd.jobs.figures import Figures
from memoryd.jobs.indexing import index_some
from memoryd.jobs.job import Job
from memoryd.jobs.keeper import LeaseKeeper
from memoryd.jobs.letting_go import let_go
from memoryd.jobs.recovering import recover
from memoryd.jobs.report import report
from memoryd.jobs.sweep import finalize_idle, take_in_envelopes
from memoryd.jobs.tidying import tidy
from memoryd.jobs.usage import follow_edits
from memoryd.jobs.worker import Worker
from memoryd.jobs.workplace import Workplace, open_workplace
from memoryd.memory import own_calls, seams
from memoryd.memory.clock import Clock, SystemClock
from memoryd.memory.config import Config, load
from memoryd.memory.errors import (
    HELD_CODES,
    ConfigError,
    HomeError,
    HomeLocked,
    LeaseLost,
    LedgerError,
    MemorydError,
)
from memoryd.memory.home import Home
from memoryd.memory.locks import FileLock, is_alive
from memoryd.memory.log import logger

RESCUE_SECONDS = 30.0
SWEEP_SECONDS = 60.0
#: Between two looks at all sessions of all agents.
DISCOVERY_SECONDS = 600.0
#: Whether the folders that are watched are still those of the home, and whether all of them are.
FOLDERS_SECONDS = 30.0
WATCHES_SECONDS = 600.0
#: Every store is looked at this often, whatever the watches saw.
STORES_SECONDS = 600.0
#: The daily check: a store is consolidated at most once a day, whenever it falls due.
CHECK_SECONDS = 3600.0
#: What ended while no daemon ran is taken in and distilled first.
CHECK_FIRST_SECONDS = 120.0
#: Between two looks whether what runs once a local date is due.
DATE_SECONDS = 600.0
#: A pass is bounded: what a first one leaves of a long history, the next ones take.
WORDS_SECONDS = 3600.0
WORDS_FIRST_SECONDS = 300.0
STUCK_LOOK_SECONDS = 15.0
#: Between two looks of a worker at a ledger that cannot be used.
TROUBLE_SECONDS = 10.0

EXIT_TROUBLE = 1
EXIT_STUCK = 70
#: How long one who has just taken the home's lock is given to write its pid into it.
NAMING_SECONDS = 0.5


def lock_home(home: Home) -> FileLock:
    """The home's lock, held. Raises ``HomeLocked`` naming the pid that holds it."""
    home.prepare()
    lock = FileLock(home.daemon_lock)
    try:
        # Who was faster in this very moment has the lock and has not written its pid yet.
        if lock.acquire() or (not is_alive(lock.holder()) and lock.acquire(NAMING_SECONDS)):
            return lock
    except OSError as error:
        raise HomeError(
            f"the lock {home.daemon_lock} cannot be opened: {error.strerror}",
            hint="check who owns the home",
        ) from error
    pid = lock.holder()
    raise HomeLocked(
        f"memoryd already runs on {home.root} (pid {pid})",
        hint="`memoryd status` shows what it does; stop it first to run another",
        pid=pid,
    )


def end_left_programs(home: Home) -> None:
    """End what the provider's programs of a daemon that was killed still do. The lock is held."""
    place = own_calls.folder(home)
    if not place.is_dir():
        return  # no program was ever asked
    from memoryd.memory.providers.leftovers import end_calls_of_the_dead

    left = end_calls_of_the_dead(place)
    if left:
        logger().warning("provider.left-programs", ended=left)


@dataclass
class _Seen:
    """What status tells of this process."""

    started_at: int
    ready: bool = False
    last_sweep_at: int | None = None
    last_rescue_at: int | None = None
    reloads: int = 0
    #: Another version that is installed meanwhile.
    upgraded_to: str = ""
    #: Settings that were changed and are not used before a restart.
    restart_for: tuple[str, ...] = ()
    #: Wall ms at which the drain ends at the latest, once it has begun.
    stopping_until: int | None = None


class Daemon:
    """One daemon on one home. ``run`` owns the main thread until a signal."""

    def __init__(self, home: Home, environ: Mapping[str, str], clock: Clock | None = None) -> None:
        self.home = home
        self.environ = environ
        self.clock = clock or SystemClock()
        self.notifier = Notifier(environ)
        self.endings = Endings()
        self.seen = _Seen(self.clock.now_ms())
        self.counters = Counters()
        self.upgrades = Upgrades(home)
        self.exit_code = 0
        self.standing = Standing(home, self.clock)
        #: What was taken away under this daemon, for which it ends.
        self.trouble: MemorydError | None = None
        self.leaving = Leaving(lambda: self.doorbell.drain_seconds, self._code)

    def run(self) -> int:
        """Run until a signal; the exit code. Raises what start-up can raise, before READY."""
        config = load(self.home.config_file)
        lock = lock_home(self.home)
        try:
            self.standing.lock = lock
            end_left_programs(self.home)
            self._open(config)
            rescued = self.place.ledger.rescue(everything=True)
            logger().info("daemon.started", pid=os.getpid(), rescued=rescued)
            seams.reach("daemon.opened")
            self._serve()
            self.standing.end()
        except (MemorydError, OSError) as error:
            if self.trouble is None:
                raise
            logger().warning("daemon.stopped", reason=str(error))  # what was taken away is why
        finally:
            lock.release()
            self.leaving.end()
        if self.trouble is not None:
            raise self.trouble
        return self.exit_code

    def _code(self) -> int:
        return self.exit_code if self.trouble is None else EXIT_TROUBLE

    # -- boot ------------------------------------------------------------------------------------

    def _open(self, config: Config) -> None:
        lost = self.standing.lost_log()
        self.place: Workplace = open_workplace(
            self.home, config, self.clock, self.environ, check=True
        )
        if lost:
            recover(self.home, self.place.ledger, self.clock)
        self.standing.begin()
        # A new process has new keys and perhaps a new configuration: ask again.
        self.place.ledger.breakers.resume(config.provider.name)
        self.place.ledger.wake(*HELD_CODES, "budget.too-small")
        self.keeper = LeaseKeeper(self.place.ledger, self.clock, config.queue.heartbeat_seconds)
        self.stores = StoreKeeper(
            self.home,
            self.clock,
            self.place.ledger.records.planned_contents,
            self.place.ledger.records.evidence,
            partial(follow_edits, self.place.ledger.usage),
            self._on_released,
        )
        self.watcher = Watcher(self.home, self._on_inbox, self.stores.saw, self._on_lost)
        self.discovering = Discovering(lambda: self.place, self._sweep)
        self.schedule = self._duties()
        self.doorbell = Doorbell(
            self._work,
            self.schedule.run_due,
            self._seconds_to_due,
            self._say_stopping,
            workers=config.queue.workers,
            drain_seconds=config.queue.drain_seconds,
        )
        self.api = Api(
            self.home.socket(self.environ),
            Answers(
                self.status,
                self._on_ring,
                self._wait,
                self._events,
                self._on_prompt,
                self.place.close,
                self._changes,
                self._metrics,
            ),
        )

    def _duties(self) -> Schedule:
        schedule = Schedule(self.clock)
        # What may take longer than a start may: watches, and a first look at every store.
        schedule.add("watch", float("inf"), self.watcher.start)
        schedule.add("stores", float("inf"), self.stores.start)
        schedule.add("look", STORES_SECONDS, self.stores.all_changed, first=STORES_SECONDS)
        schedule.add("standing", STANDING_SECONDS, self._look_around, first=STANDING_SECONDS)
        schedule.add("rescue", RESCUE_SECONDS, self._rescue, first=RESCUE_SECONDS)
        schedule.add("sweep", SWEEP_SECONDS, self._sweep)
        schedule.add("discovery", DISCOVERY_SECONDS, self.discovering.begin)
        schedule.add("folders", FOLDERS_SECONDS, self.watcher.renew, first=FOLDERS_SECONDS)
        schedule.add("watches", WATCHES_SECONDS, self.watcher.check, first=WATCHES_SECONDS)
        schedule.add("daily", CHECK_SECONDS, self._check_stores, first=CHECK_FIRST_SECONDS)
        schedule.add("tidy", DATE_SECONDS, self._tidy)
        schedule.add("backup", DATE_SECONDS, self._back_up, first=CHECK_FIRST_SECONDS)
        schedule.add("words", WORDS_SECONDS, self._let_go, first=WORDS_FIRST_SECONDS)
        schedule.add("stuck", STUCK_LOOK_SECONDS, self._end_if_stuck, first=STUCK_LOOK_SECONDS)
        schedule.add("upgrade", LOOK_SECONDS, self._end_if_upgraded, first=LOOK_SECONDS)
        # The last: a duty that hangs keeps the watchdog hungry.
        if self.notifier.watchdog_seconds:
            schedule.add("watchdog", self.notifier.watchdog_seconds, self._feed_watchdog)
        return schedule

    def _serve(self) -> None:
        """Start the services, work until a signal, stop them in reverse whatever one raises."""
        signal.signal(signal.SIGHUP, self._on_hangup)
        with ExitStack() as ending:
            ending.callback(self.place.close)
            self.keeper.start()
            ending.callback(self.keeper.stop)
            self.api.start()
            ending.callback(self.api.stop)
            ending.callback(self.endings.close)
            ending.callback(self.watcher.stop)
            ending.callback(self.stores.stop)
            ending.callback(self.discovering.stop)
            ending.callback(self._give_back)
            self.doorbell.listen()
            self.seen.ready = True
            self.notifier.send(
                READY="1", STATUS=f"working {self.home.root}", MAINPID=str(os.getpid())
            )
            self.doorbell.run()
            self.leaving.drained()
        logger().info("daemon.stopped", pid=os.getpid())

    # -- shutdown --------------------------------------------------------------------------------

    def _say_stopping(self) -> None:
        self.leaving.begin()
        drain_ms = int(self.place.config.queue.drain_seconds * 1000)
        self.seen.stopping_until = self.clock.now_ms() + drain_ms
        working = len(self.keeper.alive())
        self.notifier.send(STOPPING="1", STATUS=f"stopping, {working} attempts in flight")

    def _give_back(self) -> None:
        """Return the jobs of attempts that the drain did not see the end of, at no cost."""
        try:
            self.keeper.give_back_left()
            for job in self.keeper.alive():
                self._release(job)
        except LedgerError as error:  # the next start rescues them
            logger().error("work.interrupted", code=error.code, reason=str(error))

    def _release(self, job: Job) -> None:
        try:
            self.place.ledger.release(job)
        except LeaseLost:
            logger().info("lease.lost", job=job.id)

    # -- work ------------------------------------------------------------------------------------

    def _work(self) -> None:
        """One ring in one worker thread."""
        if self._end_if_taken_away():
            return
        worker = Worker(
            lambda: self.place,
            self.keeper,
            lambda job: self.endings.rang(),
            self._count,
            self.doorbell.ring,
        )
        try:
            worker.work_ready(lambda: self.doorbell.stopping)
            index_some(self.place, lambda: self.doorbell.stopping)
        except MemorydError as error:
            # The ledger is locked for long, the disk is full: what is in the rows stands.
            logger().error("work.interrupted", code=error.code, reason=str(error))
            self.doorbell.pause(TROUBLE_SECONDS)
            self.doorbell.ring()
        self.endings.rang()

    def _seconds_to_due(self) -> float | None:
        try:
            due = self.place.ledger.next_due_ms()
        except MemorydError as error:
            logger().error("work.interrupted", code=error.code, reason=str(error))
            return TROUBLE_SECONDS
        return None if due is None else max(0.0, (due - self.clock.now_ms()) / 1000)

    def _on_inbox(self) -> None:
        """A new envelope: its file was the ring, also where a command was faster to take it in."""
        if self._end_if_taken_away():
            return
        try:
            take_in_envelopes(self.place)
        finally:
            self.doorbell.ring()  # whatever stopped it: what is in the ledger does not wait
            self.endings.rang()

    def _on_lost(self) -> None:
        """Events may have been lost: everything is looked at once."""
        self._on_inbox()
        self.stores.all_changed()

    def _on_released(self, key: str) -> None:
        """A store is held no more: its jobs go on."""
        self.place.ledger.wake(*HELD_CODES)
        self.doorbell.ring()

    def _on_ring(self) -> None:
        if self._end_if_taken_away():
            return
        self.keeper.renew_soon()  # what is worked on may just have been called off
        take_in_envelopes(self.place)
        self.doorbell.ring()
        self.endings.rang()

    def _on_prompt(self, agent: str, said: bytes) -> dict[str, Any]:
        from memoryd.daemon.prompts import answer

        return answer(self.place, agent, said)

    def _wait(self, job: str | None, seconds: float) -> bool:
        records = self.place.ledger.records
        if job is None:
            return self.endings.wait(self.place.ledger.idle, seconds)
        found = records.job(job)

        def at_rest() -> bool:
            now = records.find(found.id)
            return now is None or now.at_rest

        return self.endings.wait(at_rest, seconds)

    def _events(self, after: int, seconds: float) -> list[dict[str, Any]]:
        events = self.place.ledger.events
        self.endings.wait(lambda: events.last_id() > after, seconds)
        return [asdict(each) for each in events.after(after)]

    def _changes(self, after: int, seconds: float) -> int:
        self.endings.wait(lambda: self.endings.count != after, seconds)
        return self.endings.count

    def _count(self, done: Account) -> None:
        calls = self.place.calls
        paid = price(calls.settings, done.input_tokens, done.output_tokens)
        self.counters.count(done, calls.provider.name, paid)

    # -- duties ----------------------------------------------------------------------------------

    def _sweep(self) -> None:
        try:
            taken = take_in_envelopes(self.place)
            idle = finalize_idle(self.place)
            self.seen.last_sweep_at = self.clock.now_ms()
            if taken.envelopes or idle:
                logger().info("sweep.made", jobs=taken.created, idle=idle, bad=taken.bad)
        finally:
            self.doorbell.ring()  # whatever stopped it: what is in the ledger does not wait
        self._renew_history()
        index_some(self.place)

    def _renew_history(self) -> None:
        """Where its file was deleted or replaced, read again what the new one lacks."""
        # An attempt must find again what it wrote: the file is changed between two of them.
        if not self.keeper.alive() and self.place.history.renew():
            logger().warning("history.replaced")
            self.discovering.begin()

    def _rescue(self) -> None:
        rescued = self.place.ledger.rescue()
        self.seen.last_rescue_at = self.clock.now_ms()
        if rescued:
            logger().warning("rescue.made", jobs=rescued)
            self.doorbell.ring()

    def _check_stores(self) -> None:
        if check_stores(self.place):
            self.doorbell.ring()

    def _tidy(self) -> None:
        self.place.ledger.daily_runs.once("tidy", lambda: tidy(self.place))

    def _back_up(self) -> None:
        reason = back_up_daily(self.place.ledger, self.home.backups)
        self.stores.troubles.uncopied = reason

    def _let_go(self) -> None:
        let_go(self.place)

    def _feed_watchdog(self) -> None:
        """Fed by progress: the duties were all done, and no attempt is over its limit."""
        overdue = self.keeper.overdue()
        if not overdue:
            self.notifier.send(WATCHDOG="1")
            return
        logger().warning("watchdog.unfed", jobs=[job.id for job in overdue])

    def _end_if_upgraded(self) -> None:
        """Drain, and leave with 75, where another version is installed and someone starts it."""
        version = self.upgrades.due()
        if version is None or version == self.seen.upgraded_to:
            return
        self.seen.upgraded_to = version
        starts_again = supervisor(self.environ) and self.upgrades.take(version)
        running = self.upgrades.running
        logger().info("daemon.upgraded", running=running, now=version, restart=bool(starts_again))
        if starts_again:
            self.exit_code = EXIT_UPGRADED
            os.kill(os.getpid(), signal.SIGTERM)

    def _look_around(self) -> None:
        """Whether all that the daemon stands on is there; it listens anew where it is not heard."""
        if self._end_if_taken_away():
            return
        if self.api.renew():
            logger().warning("api.renewed", socket=str(self.api.path))
        self.standing.mark()

    def _end_if_taken_away(self) -> bool:
        """End where the home or the ledger was removed under this process; whether it was.

        Only what serves is ended by a signal: a start that cannot go on says so by itself.
        """
        if not self.seen.ready:
            return False
        if self.trouble is None:
            found = self.standing.trouble()
            if found is None:
                return False
            self.trouble = found
            logger().error("daemon.ending", code=found.code, reason=found.message)
            self.notifier.send(STATUS=found.message)
            if not self.doorbell.stopping:
                os.kill(os.getpid(), signal.SIGTERM)
        return True

    def _end_if_stuck(self) -> None:
        from memoryd.memory.providers.command import kill_running

        stuck = self.keeper.stuck()
        if not stuck:
            return
        logger().error("daemon.stuck", jobs=[job.id for job in stuck])
        self.notifier.send(STATUS="an attempt is stuck; leaving with code 70")
        # The thread cannot be stopped from outside. Its job is rescued by the next start, which
        # counts the failure; everything else is on disk.
        kill_running()
        os._exit(EXIT_STUCK)

    def _on_hangup(self, number: int, frame: object) -> None:
        """A handler must not wait for locks the main thread may hold: a thread reads the file."""
        threading.Thread(target=self._reload, name="reload", daemon=True).start()

    def _reload(self) -> None:
        """Read the configuration again; one that cannot be used changes nothing."""
        try:
            config = load(self.home.config_file)
            self.place = _with_config(self.place, config)
        except ConfigError as error:
            logger().error("config.kept", problems=list(error.problems))
            self.notifier.send(STATUS=f"the configuration is kept: {error.message}")
            return
        self.seen.reloads += 1
        self._use_queue_settings(config)
        self.place.ledger.breakers.resume(config.provider.name)
        # The budget, and the share of it, may be another now.
        self.place.ledger.wake("backfill.share-spent", "budget.spent", "budget.too-small")
        logger().info("config.reloaded", provider=config.provider.name)
        self.doorbell.ring()
        self.place.close()
        later = ", ".join(self.seen.restart_for)
        said = f"the configuration is read again{f', but {later}: restart' if later else ''}"
        self.notifier.send(STATUS=f"working {self.home.root}, {said}")

    def _use_queue_settings(self, config: Config) -> None:
        """What the process was built with: the leases are others now, its threads are not."""
        self.place.ledger.lease_ms = config.queue.lease_seconds * 1000
        self.keeper.heartbeat_seconds = config.queue.heartbeat_seconds
        self.doorbell.drain_within(config.queue.drain_seconds)
        changed = config.queue.workers != self.doorbell.workers
        self.seen.restart_for = ("queue.workers",) if changed else ()
        if changed:
            logger().warning("config.restart_needed", keys=list(self.seen.restart_for))

    # -- looking ---------------------------------------------------------------------------------

    def _metrics(self) -> str:
        ledger, now = self.place.ledger, self.clock.now_ms()
        figures = Figures(ledger.db)
        unclaimed = figures.unclaimed_since(now)
        return render(
            Snapshot(
                report=self.status(),
                counted=self.counters.read(),
                now_ms=now,
                ready=figures.waiting_for_a_worker(now)[0],
                unclaimed_since=unclaimed[1] if unclaimed is not None else None,
                rescued=ledger.rescued,
                duties=self.schedule.counts(),
            )
        )

    def status(self) -> dict[str, Any]:
        """The report of the home and the state of this process."""
        place = self.place
        found = asdict(report(self.home, place.ledger, place.config, self.environ))
        working = [job.id for job in self.keeper.alive()]
        busy = min(len(working), self.doorbell.workers)
        found["daemon"] = {
            "pid": os.getpid(),
            "started_at": self.seen.started_at,
            "ready": self.seen.ready,
            "watching": self.watcher.mode,
            "last_sweep_at": self.seen.last_sweep_at,
            "last_rescue_at": self.seen.last_rescue_at,
            "last_discovery_at": self.discovering.last_at,
            "working": working,
            "workers": self.doorbell.workers,
            "busy": busy,
            "free": self.doorbell.workers - busy,
            "reloads": self.seen.reloads,
            "version": self.upgrades.running,
            "upgraded_to": self.seen.upgraded_to,
            "restart_for": list(self.seen.restart_for),
            "stopping_until": self.seen.stopping_until,
        } | self.stores.troubles.for_status()
        return found


def _with_config(place: Workplace, config: Config) -> Workplace:
    """``place`` under another configuration. Raises ``ConfigError``."""
    from memoryd.memory.providers.registry import make

    provider = make(config.provider, place.environ, own_calls.folder(place.home))
    calls = Calls(place.ledger, provider, config.provider, share=config.backfill.share)
    return replace(place, config=config, calls=calls)
