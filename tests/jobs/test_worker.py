"""A worker records how each attempt ended, whatever a handler raises."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

import pytest
from world import Stopped, World, answer, fact

from memoryd.jobs import worker as workers
from memoryd.jobs.control import Snooze
from memoryd.jobs.job import Job
from memoryd.jobs.keeper import LeaseKeeper
from memoryd.jobs.worker import Worker
from memoryd.jobs.workplace import Workplace
from memoryd.memory.errors import (
    BaselineLocked,
    BaselineUnusable,
    DiskFull,
    HistoryError,
    HomeError,
    LeaseLost,
    LedgerError,
    StoreBusy,
    StoreDetached,
    StoreError,
    StoreHeld,
)
from memoryd.memory.testing import FakeClock

RULE = "Always run the linter before you commit."
MINUTE = 60_000


@pytest.fixture
def world(tmp_path: Path, clock: FakeClock) -> World:
    """A home whose model takes the rule for a fact."""
    return World(tmp_path, clock, [answer(fact(RULE))])


def raising(monkeypatch: pytest.MonkeyPatch, error: BaseException | None) -> list[Job]:
    """Have every handler raise ``error``; the jobs it was given."""
    given: list[Job] = []

    def handler(job: Job, place: Workplace, keeper: LeaseKeeper) -> None:
        given.append(job)
        if error is not None:
            raise error
        place.ledger.complete(job, "test.done")

    monkeypatch.setitem(workers.HANDLERS, "finalize", handler)
    return given


def enqueue(world: World, session: str = "s1") -> Job:
    """A job for a session of one line, made after those before it."""
    world.clock.advance(0.001)
    job = world.enqueue(world.transcript(session).user(RULE)).job
    assert job is not None
    return job


@pytest.mark.parametrize(
    ("error", "reason", "wait_ms"),
    [
        (Snooze(1_767_603_600_001 + 5 * MINUTE, "budget.spent", "b"), "budget.spent", 5 * MINUTE),
        (StoreBusy("the store is being written"), "store.busy", 15_000),
        (StoreHeld("half of the notes vanished"), "store.held", 10 * MINUTE),
        (StoreDetached("an old commit is checked out"), "store.detached", 10 * MINUTE),
        (BaselineLocked("another git is at work"), "baseline.locked", 15_000),
        (BaselineUnusable("git is not installed"), "baseline.unusable", 15_000),
        (DiskFull("no space left"), "disk.full", 15_000),
        (HistoryError("database is locked"), "history.unusable", 15_000),
        (HomeError("home.json cannot be read"), "home.unusable", 15_000),
        (LedgerError("database is locked"), "ledger.unusable", 15_000),
        (OSError(errno.ENOSPC, "No space left on device"), "disk.full", 15_000),
    ],
)
def test_what_is_nobodys_fault_waits_at_no_cost(
    world: World,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    reason: str,
    wait_ms: int,
) -> None:
    """The row says what for, and until when."""
    job = enqueue(world)
    raising(monkeypatch, error)

    world.work()

    row = world.job(job)
    assert (row.shown_status, row.wait_reason, row.failures) == ("waiting", reason, 0)
    assert row.run_at == world.clock.now_ms() + wait_ms
    assert row.error_detail


def test_a_busy_store_is_asked_less_and_less_often(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """15 s doubling to 10 minutes."""
    job = enqueue(world)
    raising(monkeypatch, StoreBusy("the store is being written"))
    waits = []

    for _ in range(8):
        world.work()
        waits.append((world.job(job).run_at - world.clock.now_ms()) // 1000)
        world.clock.advance(waits[-1])

    assert waits == [15, 30, 60, 120, 240, 480, 600, 600]


@pytest.mark.parametrize(
    ("error", "code", "detail"),
    [
        (StoreError("no room", hint="make some"), "store.unusable", "no room (make some)"),
        (KeyError("x"), "attempt.error", "KeyError: 'x'"),
        (RecursionError("deep"), "attempt.error", "RecursionError: deep"),
        (MemoryError(), "attempt.error", "MemoryError: "),
    ],
)
def test_a_fault_is_counted_and_tried_again(
    world: World, monkeypatch: pytest.MonkeyPatch, error: Exception, code: str, detail: str
) -> None:
    """The worker lives on; the row says what went wrong."""
    job, other = enqueue(world, "s1"), enqueue(world, "s2")
    given = raising(monkeypatch, error)

    assert world.work() == 2

    row = world.job(job)
    assert (row.shown_status, row.failures) == ("retrying", 1)
    assert (row.error_code, row.error_detail) == (code, detail)
    assert {one.id for one in given} == {job.id, other.id}


def test_a_lost_lease_is_recorded_by_nobody(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The row belongs to another by now."""
    job = enqueue(world)
    raising(monkeypatch, LeaseLost("another has it"))

    world.work()

    row = world.job(job)
    assert (row.status, row.failures, row.error_code) == ("running", 0, None)
    assert world.keeper.alive() == []


def test_a_fault_after_the_lease_was_lost_is_recorded_by_nobody(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A person cancelled the job while it went wrong."""
    job = enqueue(world)

    def handler(job: Job, place: Workplace, keeper: LeaseKeeper) -> None:
        place.ledger.cancel(job)
        raise ValueError("too late")

    monkeypatch.setitem(workers.HANDLERS, "finalize", handler)

    world.work()

    assert (world.job(job).status, world.job(job).failures) == ("cancelled", 0)


def test_the_lease_is_kept_for_as_long_as_the_attempt_takes(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the process is being torn down under it."""
    enqueue(world)
    seen: list[list[str]] = []

    def handler(job: Job, place: Workplace, keeper: LeaseKeeper) -> None:
        seen.append([held.id for held in keeper.alive()])
        raise Stopped

    monkeypatch.setitem(workers.HANDLERS, "finalize", handler)

    with pytest.raises(Stopped):
        world.work()

    assert (seen, world.keeper.alive()) == ([[world.ledger.records.jobs()[0].id]], [])


def test_whoever_waits_is_told_of_each_end(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """However the attempt ended."""
    job = enqueue(world)
    raising(monkeypatch, ValueError("x"))
    told: list[str] = []
    worker = Worker(lambda: world.place, world.keeper, lambda ended: told.append(ended.id))

    worker.work_ready()

    assert told == [job.id]


def test_the_others_are_rung_after_a_job_that_ran_alone(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They found nothing they might take while it did, and would sleep until the next sweep."""
    rung: list[str] = []
    job = enqueue(world)
    raising(monkeypatch, None)
    worker = Worker(lambda: world.place, world.keeper, ring=lambda: rung.append("rung"))
    for crashes, rings in ((0, 0), (1, 1)):
        world.ledger.db.change(
            "update job set status = 'pending', finished_at = null, crashes = :crashes",
            crashes=crashes,
        )
        assert worker.work_one(job.id)
        assert len(rung) == rings


def test_a_worker_that_is_stopping_claims_nothing_more(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it works on it finishes."""
    first, second = enqueue(world, "s1"), enqueue(world, "s2")
    given = raising(monkeypatch, None)

    assert world.worker.work_ready(lambda: len(given) == 1) == 1

    assert world.job(first).status == "completed"
    assert (world.job(second).status, world.job(second).attempt) == ("pending", 0)


def test_one_job_can_be_worked_alone(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """And only once."""
    first, second = enqueue(world, "s1"), enqueue(world, "s2")
    raising(monkeypatch, None)

    assert world.worker.work_one(second.id)
    assert not world.worker.work_one(second.id)

    assert [world.job(job).status for job in (first, second)] == ["pending", "completed"]


def test_the_owner_of_a_lease_names_the_process(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For a person who looks at what is running."""
    job = enqueue(world)
    raising(monkeypatch, None)

    world.work()

    (attempt,) = world.ledger.records.attempts(job)
    assert attempt.owner.startswith(f"{os.getpid()}-")
    assert (attempt.ending, attempt.detail) == ("completed", "test.done")


def test_a_job_that_kills_its_worker_is_given_up(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After five crashes it stays, failed, with the reason; the others were worked."""
    poison = enqueue(world, "s1")
    other = enqueue(world, "s2")

    def handler(job: Job, place: Workplace, keeper: LeaseKeeper) -> None:
        if job.id == poison.id:
            raise Stopped
        place.ledger.complete(job, "test.done")

    monkeypatch.setitem(workers.HANDLERS, "finalize", handler)
    for _ in range(5):
        with pytest.raises(Stopped):
            world.work()
        world.clock.advance(3600)
        world.ledger.rescue()
        world.clock.advance(3600)
    world.work()

    row = world.job(poison)
    assert (row.status, row.failures, row.error_code) == ("failed", 5, "attempt.crashed")
    assert world.job(other).status == "completed"
    assert [one.ending for one in world.ledger.records.attempts(poison)] == ["crashed"] * 5


def test_two_workers_never_work_one_session_at_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An extract and a finalize of one session; another session is worked beside them."""
    seen: list[tuple[str, list[str]]] = []
    both = threading.Barrier(2)

    def handler(job: Job, place: Workplace, keeper: LeaseKeeper) -> None:
        if job.kind == "finalize":
            both.wait(60)  # the two sessions do run beside each other
        rows = place.ledger.db.rows("select session from job where status = 'running'")
        seen.append((job.session, [str(row[0]) for row in rows]))
        if job.kind == "finalize":
            both.wait(60)
        place.ledger.complete(job, "test.done")

    for kind in ("finalize", "extract"):
        monkeypatch.setitem(workers.HANDLERS, kind, handler)
    enqueue(world, "s1")
    world.enqueue(world.transcript("s1"), "extract", reason="compact")
    enqueue(world, "s2")

    def work() -> None:
        Worker(lambda: world.place, world.keeper).work_ready()
        world.place.close()

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert sorted(session for session, _ in seen) == ["s1", "s1", "s2"]
    assert [running.count("s1") for session, running in seen if session == "s1"] == [1, 1]
    assert ["s1", "s2"] in [sorted(running) for _, running in seen]
