"""The doctor's look at the work that goes on: idle workers, kept locks."""

from __future__ import annotations

import os
import signal
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from builders import LEASE_SECONDS, claim, enqueue

from memoryd.jobs import checks_work, database
from memoryd.jobs.checks_work import heard, held_locks, ledger_writers, workers, write_lock
from memoryd.jobs.ledger import Ledger
from memoryd.jobs.looking import Look
from memoryd.jobs.workplace import open_ledger
from memoryd.memory.clock import SystemClock
from memoryd.memory.config import Config
from memoryd.memory.health import Finding
from memoryd.memory.home import Home
from memoryd.memory.locks import FileLock
from memoryd.memory.testing import FakeClock

MINUTE = 60


@pytest.fixture
def ledger(home: Home, clock: FakeClock) -> Iterator[Ledger]:
    """The home's ledger."""
    ledger = open_ledger(home, Config(), clock)
    yield ledger
    ledger.close()


def daemon(free: int = 2, *, ready: bool = True, pid: int = 12) -> dict[str, Any]:
    """What a daemon says of itself."""
    return {"ready": ready, "free": free, "pid": pid}


def found(
    home: Home,
    clock: FakeClock | SystemClock,
    check: Callable[[Look], Iterator[Finding]],
    says: dict[str, Any] | None,
) -> list[Finding]:
    """What one check finds while the daemon says so."""
    look = Look(home, clock, {}, says)
    try:
        return list(check(look))
    finally:
        look.close()


def test_a_job_that_nobody_takes_while_workers_are_free_is_a_problem(
    home: Home, clock: FakeClock, ledger: Ledger
) -> None:
    """Once it lasts longer than a minute; it is named, with how long."""
    job = enqueue(ledger)
    clock.advance(MINUTE)
    assert found(home, clock, workers, daemon()) == []

    clock.advance(MINUTE + 1)
    (idle,) = found(home, clock, workers, daemon())

    assert (idle.code, idle.severity) == ("workers.idle", "problem")
    assert job.id[-8:] in idle.what and "2 minutes" in idle.what and "2 workers" in idle.what
    assert "pid 12" in idle.todo


@pytest.mark.parametrize("why", ["busy", "starting", "moving", "waiting"])
def test_what_waits_for_a_reason_is_no_problem(
    home: Home, clock: FakeClock, ledger: Ledger, why: str
) -> None:
    """All work, the daemon is not ready, an attempt just ended, or the job is not due."""
    enqueue(ledger, "s1")
    if why == "waiting":
        ledger.snooze(claim(ledger), clock.now_ms() + 60 * MINUTE * 1000, "budget.spent")
    clock.advance(3 * MINUTE)
    if why == "moving":
        enqueue(ledger, "s2")
        ledger.fail(claim(ledger), "attempt.error", "x")
    says = daemon(free=int(why != "busy"), ready=why != "starting")

    assert found(home, clock, workers, says) == []


def test_jobs_that_wait_for_a_daemon_are_named(
    home: Home, clock: FakeClock, ledger: Ledger
) -> None:
    """Where none answers; not while somebody works all the same."""
    enqueue(ledger, "s1")
    enqueue(ledger, "s2")
    (none,) = found(home, clock, workers, None)
    assert (none.code, none.severity) == ("workers.ok", "ok") and "no daemon" in none.what

    clock.advance(5 * MINUTE)
    (absent,) = found(home, clock, workers, None)
    claim(ledger)

    assert (absent.code, absent.severity) == ("daemon.absent", "warning")
    assert "2 jobs" in absent.what and "5 minutes" in absent.what
    assert [each.severity for each in found(home, clock, workers, None)] == ["ok"]


@pytest.mark.parametrize("named", [True, False], ids=["its name is there", "its lease ran out"])
def test_jobs_of_a_process_that_died_are_named(
    home: Home, clock: FakeClock, ledger: Ledger, named: bool
) -> None:
    """Though nothing waits: at once where the lock has the dead one's name, else by the lease."""
    enqueue(ledger)
    claim(ledger)
    if named:
        home.daemon_lock.write_text("4194303\n")  # no process may have more
    else:
        clock.advance(LEASE_SECONDS + 1)

    (absent,) = found(home, clock, workers, None)

    assert (absent.code, absent.severity) == ("daemon.absent", "warning")
    assert "worked on 1 job died" in absent.what


def test_a_daemon_that_drains_claims_nothing_and_is_not_blamed(
    home: Home, clock: FakeClock, ledger: Ledger
) -> None:
    """What is ready waits for the next one."""
    enqueue(ledger)
    clock.advance(3 * MINUTE)

    says = daemon() | {"stopping_until": clock.now_ms() + 1}

    assert found(home, clock, workers, says) == []


@contextmanager
def another_process(do: Callable[[], None]) -> Iterator[int]:
    """A process of its own that has done ``do`` and stands still."""
    ready, done = os.pipe()
    child = os.fork()
    if not child:
        try:
            do()
            os.write(done, b"x")
            signal.pause()
        finally:
            os._exit(1)
    os.close(done)
    assert os.read(ready, 1) == b"x"
    os.close(ready)
    try:
        yield child
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_a_lock_that_is_held_for_long_is_named_with_its_process(home: Home) -> None:
    """Over ten minutes; the home's own only where its process is no daemon that answers."""
    clock = SystemClock()

    def take() -> None:
        for name in ("daemon", "%inbox", "-code", "-new"):
            FileLock(home.locks / f"{name}.lock").acquire()

    with another_process(take) as child:
        old = clock.now_ms() / 1000 - 11 * MINUTE
        for name in ("daemon", "%inbox", "-code"):
            os.utime(home.locks / f"{name}.lock", (old, old))
        stuck = found(home, clock, held_locks, None)
        beside = found(home, clock, held_locks, daemon(pid=child))

    assert [each.code for each in stuck] == ["lock.held"] * 3
    assert all(f"process {child} holds" in each.what for each in stuck)
    assert sorted(each.what.partition(" holds ")[2] for each in beside) == [
        "the lock of the inbox for 11 minutes",
        "the lock of the store -code for 11 minutes",
    ]
    assert found(home, clock, held_locks, None) == []


@pytest.mark.skipif(not Path("/proc/locks").exists(), reason="the system does not tell")
def test_who_keeps_the_ledgers_write_lock_is_named(
    home: Home, clock: FakeClock, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that writes and ends is nothing; nor is what this process does itself."""
    monkeypatch.setattr(database, "BUSY_TIMEOUT_SECONDS", 0.01)

    def begin() -> None:
        global kept  # the connection must live as long as the process
        kept = sqlite3.connect(home.ledger, isolation_level=None)
        kept.execute("begin immediate")

    with another_process(begin) as child:
        assert ledger_writers(home) == [child]
        (locked,) = found(home, clock, write_lock, None)
    with ledger.db.writing():
        assert ledger_writers(home) == []

    assert (locked.code, locked.severity) == ("ledger.locked", "problem")
    assert f"process {child} " in locked.what
    assert found(home, clock, write_lock, None) == []


kept: sqlite3.Connection


@pytest.mark.parametrize(
    "line",
    [
        "",
        "1: FLOCK  ADVISORY  WRITE 77 08:01:5 0 EOF",
        "1: POSIX  ADVISORY  READ 77 08:01:5 120 120",
        "1: POSIX  ADVISORY  WRITE 77 08:01:6 120 120",
        "1: POSIX  ADVISORY  WRITE 77 08:01:5 121 127",
        "1: POSIX  ADVISORY  WRITE -1 08:01:5 120 120",
        "1: -> POSIX  ADVISORY  WRITE 77 08:01:5 120 120",
        "1: POSIX  ADVISORY  WRITE 77 <none>:0 120 120",
    ],
)
def test_other_locks_are_not_taken_for_the_writers(line: str) -> None:
    """Of another kind, file or place, and of who only waits for it."""
    assert checks_work._writer(line, 5) == 0
    assert checks_work._writer("1: POSIX  ADVISORY  WRITE 77 08:01:5 0 EOF", 5) == 77


def test_a_daemon_that_runs_and_does_not_answer_is_named_with_its_pid(
    home: Home, clock: FakeClock, ledger: Ledger
) -> None:
    """Not as absent: to start another would be refused."""
    enqueue(ledger)
    lock = FileLock(home.daemon_lock)
    assert lock.acquire()
    os.utime(home.daemon_lock, ns=(clock.now_ms() * 1_000_000,) * 2)
    with lock:
        (starting,) = found(home, clock, heard, None)
        clock.advance(2 * MINUTE)
        (deaf,) = found(home, clock, heard, None)

        assert {each.severity for each in found(home, clock, workers, None)} == {"ok"}
        assert found(home, clock, heard, daemon()) == []

    assert (starting.severity, deaf.code, deaf.severity) == ("warning", "daemon.deaf", "problem")
    assert f"pid {os.getpid()}" in deaf.what


def test_what_is_in_the_way_of_the_socket_is_named(home: Home, clock: FakeClock) -> None:
    """A folder in its place, a file in its folder's."""
    socket = home.socket({})
    socket.mkdir(parents=True)
    (folder,) = found(home, clock, heard, daemon())
    socket.rmdir()
    socket.parent.rmdir()
    socket.parent.write_text("")
    (file,) = found(home, clock, heard, daemon())

    assert (folder.code, file.code) == ("socket.blocked", "socket.blocked")
    assert str(socket) in folder.what and f"{socket.parent} is" in file.what
