"""The doorbell wakes workers, wakes by itself when something is due, and stops when told."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator

import pytest

from memoryd.jobs.doorbell import Doorbell

SECONDS = 60.0


@pytest.fixture(autouse=True)
def own_signals() -> Iterator[None]:
    """Give pytest its signal handlers back."""
    names = (signal.SIGTERM, signal.SIGINT)
    before = [signal.getsignal(name) for name in names]
    yield
    for name, handler in zip(names, before, strict=True):
        signal.signal(name, handler)


def quiet() -> float:
    """A clock thread with nothing to do."""
    return SECONDS


def never() -> float | None:
    """A ledger in which nothing is due."""
    return None


def during(doorbell: Doorbell, script: Callable[[], object], number: int = signal.SIGTERM) -> None:
    """Run ``doorbell`` in this thread and ``script`` beside it, then send the signal."""
    failed: list[BaseException] = []

    def beside() -> None:
        try:
            script()
        except BaseException as error:  # noqa: BLE001 - carried over to the test's own thread
            failed.append(error)
        finally:
            os.kill(os.getpid(), number)

    thread = threading.Thread(target=beside)
    started = threading.Event()
    tick = doorbell._huey.tick

    def first() -> float:
        if not started.is_set():
            started.set()
            thread.start()
        return float(tick())

    doorbell._huey.tick = first
    doorbell.listen()
    doorbell.run()
    thread.join(SECONDS)
    if failed:
        raise failed[0]


def test_a_ring_wakes_a_worker() -> None:
    """And another ring wakes one again."""
    worked = threading.Semaphore(0)
    doorbell = Doorbell(worked.release, quiet, never, workers=1, drain_seconds=SECONDS)

    def rings() -> None:
        for _ in range(3):
            doorbell.ring()
            assert worked.acquire(timeout=SECONDS)

    during(doorbell, rings)


def test_a_ring_wakes_every_worker() -> None:
    """There may be a job for each."""
    together = threading.Barrier(4)
    doorbell = Doorbell(
        lambda: together.wait(SECONDS), quiet, never, workers=3, drain_seconds=SECONDS
    )

    def rings() -> None:
        doorbell.ring()
        together.wait(SECONDS)

    during(doorbell, rings)


def test_a_thousand_rings_are_one_message_a_worker() -> None:
    """Whoever looks works until nothing is ready; more messages would be looks in vain."""
    entered, leave = threading.Semaphore(0), threading.Event()
    looks: list[int] = []

    def work() -> None:
        looks.append(1)
        entered.release()
        assert leave.wait(SECONDS)

    doorbell = Doorbell(work, quiet, never, workers=2, drain_seconds=SECONDS)

    def rings() -> None:
        doorbell.ring()
        for _ in range(2):
            assert entered.acquire(timeout=SECONDS)
        for _ in range(1000):
            doorbell.ring()
        leave.set()
        for _ in range(2):
            assert entered.acquire(timeout=SECONDS)

    during(doorbell, rings)

    assert len(looks) == 4


def test_what_falls_due_wakes_a_worker_without_a_ring() -> None:
    """The ledger says when; once it is worked, the wait is long again."""
    worked = threading.Event()

    def due() -> float | None:
        return None if worked.is_set() else 0.01

    doorbell = Doorbell(worked.set, quiet, due, workers=1, drain_seconds=SECONDS)

    during(doorbell, lambda: worked.wait(SECONDS))

    assert worked.is_set()


def test_the_clock_thread_ticks_when_it_asked_to() -> None:
    """Whether anybody rings or not."""
    ticks = threading.Semaphore(0)

    def tick() -> float:
        ticks.release()
        return 0.001

    doorbell = Doorbell(lambda: None, tick, never, workers=1, drain_seconds=SECONDS)

    during(doorbell, lambda: [ticks.acquire(timeout=SECONDS) for _ in range(3)])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_lets_the_attempt_finish(number: int) -> None:
    """``run`` comes back after it; ``stopping`` told the worker to claim nothing more."""
    entered = threading.Event()
    finished: list[bool] = []

    def work() -> None:
        entered.set()
        # The signal comes while this attempt is at work.
        doorbell._consumer.stop_flag.wait(SECONDS)
        finished.append(doorbell.stopping)

    doorbell = Doorbell(work, quiet, never, workers=1, drain_seconds=SECONDS)

    def rings() -> None:
        doorbell.ring()
        assert entered.wait(SECONDS)

    assert not doorbell.stopping
    during(doorbell, rings, number)

    assert finished == [True]


def test_a_stop_wakes_workers_that_wait() -> None:
    """Nothing is due for days; the stop does not wait for it."""
    doorbell = Doorbell(lambda: None, quiet, lambda: 86_400.0, workers=3, drain_seconds=SECONDS)

    during(doorbell, lambda: None)

    assert doorbell.stopping


def test_a_stop_does_not_wait_longer_than_the_drain() -> None:
    """An attempt that does not end is left to the caller."""
    entered, leave = threading.Event(), threading.Event()

    def work() -> None:
        entered.set()
        leave.wait(SECONDS)

    doorbell = Doorbell(work, quiet, never, workers=1, drain_seconds=0)

    def rings() -> None:
        doorbell.ring()
        assert entered.wait(SECONDS)

    during(doorbell, rings)

    assert not leave.is_set()
    leave.set()


def test_a_worker_outlives_an_attempt_that_went_wrong() -> None:
    """The next ring finds it there."""
    calls = threading.Semaphore(0)

    def work() -> None:
        calls.release()
        raise ValueError("broken")

    doorbell = Doorbell(work, quiet, never, workers=1, drain_seconds=SECONDS)

    def rings() -> None:
        for _ in range(2):
            doorbell.ring()
            assert calls.acquire(timeout=SECONDS)

    during(doorbell, rings)
