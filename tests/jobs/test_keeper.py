"""Leases are extended while an attempt is alive and within its limit, and no longer."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from builders import LEASE_SECONDS, again, claim, enqueue, open_ledger

from memoryd.jobs.job import Job
from memoryd.jobs.keeper import LeaseKeeper
from memoryd.jobs.ledger import Ledger
from memoryd.memory.errors import LeaseLost, LedgerError
from memoryd.memory.testing import FakeClock

LIMIT = 600


@pytest.fixture
def ledger(tmp_path: Path, clock: FakeClock) -> Ledger:
    """An empty ledger."""
    return open_ledger(tmp_path, clock)


@pytest.fixture
def keeper(ledger: Ledger, clock: FakeClock) -> LeaseKeeper:
    """A keeper whose thread does not run; the tests beat."""
    return LeaseKeeper(ledger, clock, 30)


@pytest.fixture
def held(ledger: Ledger, keeper: LeaseKeeper) -> Job:
    """An attempt that was just begun."""
    enqueue(ledger)
    job = claim(ledger)
    keeper.hold(job)
    return job


def beat(keeper: LeaseKeeper, clock: FakeClock, seconds: int) -> None:
    """Let that much time pass, with a beat each 30 seconds."""
    for _ in range(seconds // 30):
        clock.advance(30)
        keeper.renew()


def test_a_living_attempt_keeps_its_lease(
    ledger: Ledger, keeper: LeaseKeeper, held: Job, clock: FakeClock
) -> None:
    """Past the lease it began with, and nobody else gets the job."""
    beat(keeper, clock, LEASE_SECONDS + 60)

    assert again(ledger, held).lease_expires_at == clock.now_ms() + LEASE_SECONDS * 1000
    assert ledger.claim("other") is None


def test_an_attempt_over_its_limit_loses_its_lease(
    ledger: Ledger, keeper: LeaseKeeper, held: Job, clock: FakeClock
) -> None:
    """No beat after ten minutes: another claims the job, and the fence refuses the first."""
    beat(keeper, clock, LIMIT)
    assert again(ledger, held).lease_expires_at == clock.now_ms() + (LEASE_SECONDS - 30) * 1000

    beat(keeper, clock, LEASE_SECONDS)
    other = claim(ledger, "other")

    assert (other.id, other.attempt, other.failures) == (held.id, 2, 1)
    with pytest.raises(LeaseLost):
        ledger.complete(held, "notes.written")


def test_a_rescue_here_does_not_keep_an_attempt_over_its_limit(
    ledger: Ledger, keeper: LeaseKeeper, held: Job, clock: FakeClock
) -> None:
    """What the keeper gave up is not renewed by another way."""
    clock.advance(LIMIT + LEASE_SECONDS)

    assert ledger.rescue() == 1
    assert again(ledger, held).failures == 1


def test_a_new_slice_has_the_whole_limit(
    ledger: Ledger, keeper: LeaseKeeper, held: Job, clock: FakeClock
) -> None:
    """A long session takes as many as it needs."""
    for _ in range(4):
        beat(keeper, clock, LIMIT - 30)
        keeper.new_slice(held)

    assert again(ledger, held).status == "running"
    assert (ledger.claim("other"), keeper.stuck()) == (None, [])


def test_an_attempt_is_stuck_a_minute_after_its_limit(
    keeper: LeaseKeeper, held: Job, clock: FakeClock
) -> None:
    """Not before; and not once it has come back."""
    clock.advance(LIMIT + 59)
    assert keeper.stuck() == []

    clock.advance(1)
    assert [job.id for job in keeper.stuck()] == [held.id]

    keeper.drop(held)
    assert keeper.stuck() == []


def test_an_attempt_that_ended_is_let_go(
    ledger: Ledger, keeper: LeaseKeeper, held: Job, clock: FakeClock
) -> None:
    """Its lease is its own again."""
    keeper.drop(held)
    beat(keeper, clock, LEASE_SECONDS)

    assert keeper.alive() == []
    assert claim(ledger, "other").id == held.id


@pytest.mark.parametrize("way", ["claim", "rescue"])
def test_after_a_suspend_living_attempts_are_renewed_before_any_rescue(
    ledger: Ledger, keeper: LeaseKeeper, held: Job, clock: FakeClock, way: str
) -> None:
    """The wall clock jumped eight hours, the monotonic one stood still: the attempt is alive."""
    clock.step(8 * 3600)

    taken = ledger.claim("another worker here") if way == "claim" else ledger.rescue()

    assert not taken
    row = again(ledger, held)
    assert (row.attempt, row.failures, row.status) == (1, 0, "running")
    assert row.lease_expires_at == clock.now_ms() + LEASE_SECONDS * 1000


def test_after_a_suspend_a_dead_processs_attempt_is_rescued(
    ledger: Ledger, keeper: LeaseKeeper, clock: FakeClock
) -> None:
    """Only what this keeper holds is alive here."""
    enqueue(ledger, "s2")
    dead = claim(ledger, "a process that died")
    clock.step(8 * 3600)

    assert claim(ledger).id == dead.id
    assert again(ledger, dead).failures == 1


def test_a_lost_lease_is_not_asked_for_again(
    ledger: Ledger, keeper: LeaseKeeper, held: Job, clock: FakeClock
) -> None:
    """Cancelled by a person: the keeper leaves the row alone."""
    ledger.cancel(held)
    keeper.renew()
    ledger.retry(again(ledger, held))
    other = claim(ledger, "other")
    lease = again(ledger, other).lease_expires_at

    clock.advance(30)
    keeper.renew()

    assert again(ledger, other).lease_expires_at == lease


def test_an_attempt_is_told_once_that_its_lease_is_lost(
    ledger: Ledger, keeper: LeaseKeeper, clock: FakeClock
) -> None:
    """At the first beat after it, and only the one that lost it."""
    enqueue(ledger)
    enqueue(ledger, "s2")
    told: list[str] = []
    first, second = claim(ledger), claim(ledger)
    keeper.hold(first, lambda: told.append("first"))
    keeper.hold(second, lambda: told.append("second"))
    keeper.renew()
    assert told == []

    ledger.cancel(first)
    beat(keeper, clock, 60)

    assert told == ["first"]


def test_a_beat_may_be_asked_for_at_once(ledger: Ledger, clock: FakeClock) -> None:
    """The next one would come in an hour; each time that it is asked for."""
    keeper = LeaseKeeper(ledger, clock, 3600)
    beats = threading.Semaphore(0)
    keeper.renew = beats.release  # type: ignore[method-assign]
    keeper.start()

    for _ in range(2):
        keeper.renew_soon()
        assert beats.acquire(timeout=60)

    assert not beats.acquire(blocking=False)
    keeper.stop()


def test_the_thread_beats_until_it_is_stopped(ledger: Ledger, clock: FakeClock) -> None:
    """Also after a beat that failed; ``stop`` is safe twice, and before ``start``."""
    beats = threading.Semaphore(0)
    keeper = LeaseKeeper(ledger, clock, 0.001)
    enqueue(ledger)
    keeper.hold(claim(ledger))
    real = ledger.heartbeat
    failed = threading.Event()

    def counted(job: Job) -> bool:
        beats.release()
        if not failed.is_set():
            failed.set()
            raise LedgerError("the disk is full")
        return real(job)

    ledger.heartbeat = counted  # type: ignore[method-assign]
    keeper.stop()
    keeper.start()
    for _ in range(3):
        assert beats.acquire(timeout=60)
    keeper.stop()
    keeper.stop()

    assert "leases" not in {thread.name for thread in threading.enumerate()}


def test_an_attempt_that_was_called_off_takes_no_lease_with_it(
    ledger: Ledger, keeper: LeaseKeeper, held: Job
) -> None:
    """It is still in its call when the job is asked for and claimed again; then it ends."""
    ledger.cancel(held)
    ledger.retry(again(ledger, held))
    second = claim(ledger)
    keeper.hold(second)

    keeper.drop(held)

    assert keeper.alive() == [second]
    assert keeper.seconds_left(second) == LIMIT
