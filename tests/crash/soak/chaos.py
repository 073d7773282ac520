"""What goes wrong during a soak: kills, pauses past the lease, stepped clocks, locks, a full disk.

Everything is drawn from one seeded generator. What happens when is up to the machine, so that the
same seed gives the same blows, not the same interleaving.
"""

from __future__ import annotations

import os
import random
import select
import shutil
import signal
import sqlite3
import time
from collections import Counter
from contextlib import closing, suppress
from pathlib import Path

from memoryd.memory.locks import FileLock
from soak.clock import SteppedClock
from soak.places import LEASE_SECONDS, Places
from soak.processes import daemon, fork, some_trap, worker

WORKERS = 5
#: How long a pause lasts, so that the lease is over for certain.
PAUSE_SECONDS = LEASE_SECONDS + 0.7
#: How many of the daemons are programs from their beginning, which takes a second of a processor.
_WHOLE = 0.15
#: Mean seconds between two blows of each kind.
_EVERY = {
    "kill a worker": 1.7,
    "kill the daemon": 9.0,
    "pause": 11.0,
    "step the clock": 3.0,
    "lock a store": 12.0,
    "lock the ledger": 40.0,
    "leave a lock of git": 8.0,
    "fill the disk": 25.0,
    "edit": 0.7,
}


class Chaos:
    """The processes of a soak and what is done to them. ``done`` counts it."""

    def __init__(self, places: Places, rng: random.Random, clock: SteppedClock) -> None:
        self.places = places
        self.clock = clock
        self.done: Counter[str] = Counter()
        self._rng = rng
        self._daemon = 0
        self._workers: set[int] = set()
        #: Paused processes and when (monotonic) they go on; the same for lock holders' ends.
        self._paused: dict[int, float] = {}
        self._helpers: set[int] = set()
        self._ballast_until = 0.0
        now = time.monotonic()
        self._next = {blow: now + self._rng.expovariate(1 / mean) for blow, mean in _EVERY.items()}

    # -- processes -------------------------------------------------------------------------------

    def tend(self) -> None:
        """Bury who died, start who is missing, wake whose pause is over, end what had its time."""
        self._bury()
        if not self._daemon:
            whole = self._rng.random() < _WHOLE
            self._daemon = fork(self.places, lambda: daemon(self.places, whole=whole))
            self.done["daemons"] += 1
        while len(self._workers) < WORKERS:
            trap = some_trap(self._rng)
            self._workers.add(fork(self.places, lambda trap=trap: worker(self.places, trap)))
        now = time.monotonic()
        for pid in [pid for pid, until in self._paused.items() if until <= now]:
            del self._paused[pid]
            _send(pid, signal.SIGCONT)
            self.done["pauses past the lease"] += 1
        if self._ballast_until and self._ballast_until <= now:
            self._ballast.unlink(missing_ok=True)
            self._ballast_until = 0.0

    def _bury(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            self._paused.pop(pid, None)
            if pid in self._helpers:
                self._helpers.discard(pid)
                continue
            if os.waitstatus_to_exitcode(status) == -signal.SIGKILL:
                self.done["kills"] += 1
                self.done["kills of the daemon" if pid == self._daemon else "kills of workers"] += 1
            else:
                self.done["ended otherwise"] += 1
            self._workers.discard(pid)
            self._daemon = 0 if pid == self._daemon else self._daemon

    def stop(self) -> None:
        """End everything that is still there."""
        for pid in (*self._workers, self._daemon, *self._helpers):
            if pid:
                _send(pid, signal.SIGKILL)
                with suppress(ChildProcessError):
                    os.waitpid(pid, 0)
        self._workers, self._daemon, self._helpers = set(), 0, set()
        self._ballast.unlink(missing_ok=True)
        for left in self._git_locks():
            left.unlink(missing_ok=True)  # as doctor tells a person to

    # -- blows -----------------------------------------------------------------------------------

    def strike(self) -> list[str]:
        """Whatever is due; ``edit`` is for the person to do."""
        now = time.monotonic()
        due = [blow for blow, at in self._next.items() if at <= now]
        for blow in due:
            self._next[blow] = now + self._rng.expovariate(1 / _EVERY[blow])
            getattr(self, f"_{blow.replace(' ', '_')}", lambda: None)()
        return due

    def _kill_a_worker(self) -> None:
        if self._paused and self._rng.random() < 0.9:
            return  # who crashed runs alone: nothing goes on until those that stand still lost
        working = [pid for pid in self._owners() if pid in self._workers]
        # A lone one is mostly the job that crashed before: killed each time it is given up.
        if choice := working if len(working) > 1 else sorted(self._workers):
            _send(self._rng.choice(choice), signal.SIGKILL)

    def _kill_the_daemon(self) -> None:
        if self._daemon:
            _send(self._daemon, signal.SIGKILL)

    def _pause(self) -> None:
        """Stop every process that works at this moment until its lease is over."""
        ours = {*self._workers, self._daemon} - self._paused.keys()
        working = [pid for pid in self._owners() if pid in ours]
        for pid in working if len(working) > 1 else ():
            _send(pid, signal.SIGSTOP)
            self._paused[pid] = time.monotonic() + PAUSE_SECONDS
        if len(working) < 2:
            self._next["pause"] = 0.0  # at the next look then

    def _step_the_clock(self) -> None:
        forward = self._rng.choice((1, 20, 120, 120, 600, 3600, 9000))
        seconds = self._rng.choice((forward, forward, -self._rng.choice((1, 20, 120, 3600))))
        self.clock.step(seconds)
        self.done["clock steps forward" if seconds > 0 else "clock steps back"] += 1

    def _lock_a_store(self) -> None:
        locks = sorted(self.places.home.locks.glob("*.lock"))
        stores = [path for path in locks if path.name != "daemon.lock"]
        if stores:
            path, seconds = self._rng.choice(stores), self._rng.uniform(0.5, 6.5)
            self._helpers.add(fork(self.places, lambda: _hold_store(path, seconds)))
            self.done["store locks"] += 1

    def _lock_the_ledger(self) -> None:
        seconds = self._rng.uniform(0.5, 6.0)
        ledger = self.places.home.ledger
        self._helpers.add(fork(self.places, lambda: _hold_ledger(ledger, seconds)))
        self.done["ledger locks"] += 1

    def _leave_a_lock_of_git(self) -> None:
        baselines = sorted(self.places.home.root.glob("baselines/*.git"))
        if not baselines:
            return
        baseline = self._rng.choice(baselines)
        index = self._rng.random() < 0.6
        path = baseline / ("index.lock" if index else "refs/heads/main.lock")
        with suppress(OSError):
            path.touch()
            long_ago = time.time() - 7200
            os.utime(path, (long_ago, long_ago))
            self.done["locks of a dead git"] += 1

    def _fill_the_disk(self) -> None:
        if not self.places.mounted or self._ballast_until:
            return
        free = shutil.disk_usage(self._ballast.parent).free
        left = self._rng.choice((0, 4096, 65536))
        with suppress(OSError), self._ballast.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, max(1, free - left))
        self._ballast_until = time.monotonic() + self._rng.uniform(0.3, 2.5)
        self.done["full disks"] += 1

    # -- looking ---------------------------------------------------------------------------------

    @property
    def _ballast(self) -> Path:
        return self.places.root / "disk" / "ballast"

    def _git_locks(self) -> list[Path]:
        return list(self.places.home.root.glob("baselines/*.git/**/*.lock"))

    def _owners(self) -> list[int]:
        """The processes that hold a job at this moment."""
        rows = look(self.places, "select lease_owner from job where status = 'running'")
        return sorted({int(owner.partition("-")[0]) for (owner,) in rows if owner})

    def open_jobs(self) -> int:
        """How many jobs are being worked or could be."""
        text = (
            "select count(*) from job where status = 'running'"
            f" or (status = 'pending' and run_at <= {self.clock.now_ms()})"
        )
        rows = look(self.places, text)
        return int(rows[0][0]) if rows else 10**6


def look(places: Places, text: str) -> list[tuple[object, ...]]:
    """Rows of the ledger; none while it cannot be read."""
    try:
        uri = f"file:{places.home.ledger}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True, timeout=0.2)) as database:
            return database.execute(text).fetchall()
    except sqlite3.Error:
        return []


def _send(pid: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def _hold_store(path: Path, seconds: float) -> None:
    with FileLock(path) as lock:
        if lock.acquire(2.0):
            select.select([], [], [], seconds)


def _hold_ledger(path: Path, seconds: float) -> None:
    with closing(sqlite3.connect(path, timeout=2.0, isolation_level=None)) as database:
        database.execute("begin exclusive")
        select.select([], [], [], seconds)
        database.execute("rollback")
