"""The fence: an attempt that lost its lease changes nothing and is told so, whatever it tries."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from builders import (
    LEASE_SECONDS,
    MadeCandidate,
    again,
    claim,
    enqueue,
    open_ledger,
    part_of,
    plan_of,
)

from memoryd.jobs.job import Job
from memoryd.jobs.ledger import Ledger
from memoryd.memory.errors import LeaseLost
from memoryd.memory.testing import FakeClock

Write = Callable[[Ledger, Job], object]

WRITES: dict[str, Write] = {
    "snooze": lambda ledger, job: ledger.snooze(job, 0, "store.busy"),
    "release": lambda ledger, job: ledger.release(job),
    "fail": lambda ledger, job: ledger.fail(job, "answer.unusable", "no JSON"),
    "complete": lambda ledger, job: ledger.complete(job, "session.empty"),
    "throttle": lambda ledger, job: ledger.throttle(job),
    "begin_slice": lambda ledger, job: ledger.begin_slice(job, 1, 10, "-code"),
    "record_plan": lambda ledger, job: ledger.record_plan(job, plan_of(job), [MadeCandidate()]),  # type: ignore[list-item]
    "advance": lambda ledger, job: ledger.advance(job, part_of(job)),
    "advance to the end": lambda ledger, job: ledger.advance(job, part_of(job), outcome="done"),
}

TABLES = ("job", "attempt_log", "plan", "cursor", "candidate", "rollout")


@pytest.fixture
def ledger(tmp_path: Path, clock: FakeClock) -> Ledger:
    """An empty ledger."""
    return open_ledger(tmp_path, clock)


def everything(ledger: Ledger) -> dict[str, list[tuple[object, ...]]]:
    """All rows of the tables that an attempt may write."""
    return {table: ledger.db.rows(f"select * from {table} order by 1, 2") for table in TABLES}


def refused(ledger: Ledger, job: Job, write: Write) -> None:
    """``write`` raises ``LeaseLost`` and no row differs afterwards."""
    before = everything(ledger)

    with pytest.raises(LeaseLost):
        write(ledger, job)

    assert everything(ledger) == before


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())
@pytest.mark.parametrize("kind", ["finalize", "extract"])
def test_the_attempt_that_holds_the_lease_may_write(
    ledger: Ledger, write: Write, kind: str
) -> None:
    """The winning side of each guard, so that the losing side proves something."""
    enqueue(ledger, kind=kind)
    job = claim(ledger)
    before = everything(ledger)

    write(ledger, job)

    assert everything(ledger) != before


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())
@pytest.mark.parametrize("kind", ["finalize", "extract"])
def test_a_stale_attempt_changes_nothing_while_another_runs(
    tmp_path: Path, clock: FakeClock, write: Write, kind: str
) -> None:
    """Two leases on one job, in two processes: the older one is refused, the newer is not hurt."""
    stalled, lively = open_ledger(tmp_path, clock), open_ledger(tmp_path, clock)
    enqueue(stalled, kind=kind)
    stale = claim(stalled, "stalled")
    if kind == "extract":
        enqueue(stalled, kind=kind, cutoff=900)
    clock.advance(LEASE_SECONDS)
    fresh = claim(lively, "lively")
    assert (fresh.id, fresh.attempt) == (stale.id, 2)

    refused(stalled, stale, write)

    assert not stalled.heartbeat(stale)
    assert again(lively, fresh) == fresh
    lively.advance(fresh, part_of(fresh), outcome="session.distilled")


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())
@pytest.mark.parametrize(
    "ending", ["rescued", "cancelled", "completed", "snoozed", "failed", "released"]
)
def test_an_attempt_that_ended_changes_nothing(
    ledger: Ledger, clock: FakeClock, write: Write, ending: str
) -> None:
    """However it ended, the right to write went with it."""
    enqueue(ledger)
    job = claim(ledger)
    if ending == "rescued":
        clock.advance(LEASE_SECONDS)
        ledger.rescue()
    elif ending == "cancelled":
        assert ledger.cancel(job)
    elif ending == "completed":
        ledger.complete(job, "session.empty")
    elif ending == "snoozed":
        ledger.snooze(job, clock.now_ms() + 1000, "store.busy")
    elif ending == "failed":
        ledger.fail(job, "answer.unusable", "no JSON")
    else:
        ledger.release(job)

    refused(ledger, job, write)

    assert not ledger.heartbeat(job)


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())
def test_an_attempt_of_a_pruned_job_changes_nothing(ledger: Ledger, write: Write) -> None:
    """Its row is gone; it must not come back in pieces."""
    enqueue(ledger)
    job = claim(ledger)
    ledger.cancel(job)
    ledger.prune(keep=0)

    refused(ledger, job, write)


def test_a_call_of_a_stale_attempt_is_counted_where_it_was_made(
    ledger: Ledger, clock: FakeClock
) -> None:
    """The tokens are spent, lease or not; the newer attempt's line does not show them."""
    enqueue(ledger)
    stale = claim(ledger)
    clock.advance(LEASE_SECONDS)
    fresh = claim(ledger)

    ledger.count_call(stale, 700, 80)

    first, second = ledger.records.attempts(fresh)
    assert (first.calls, first.input_tokens, first.output_tokens) == (1, 700, 80)
    assert (second.calls, second.input_tokens) == (0, 0)


def test_two_plans_of_one_session_cannot_both_stand(ledger: Ledger, clock: FakeClock) -> None:
    """The plan another job left is settled first; a second one is refused."""
    enqueue(ledger)
    dead = claim(ledger)
    ledger.record_plan(dead, plan_of(dead), [])
    clock.advance(LEASE_SECONDS)
    fresh = claim(ledger)

    refused(ledger, fresh, WRITES["record_plan"])


def test_a_plan_is_refused_when_the_cursor_has_moved(ledger: Ledger) -> None:
    """Its words are already accounted for."""
    enqueue(ledger)
    job = claim(ledger)
    ledger.advance(job, part_of(job, 1, 10))

    refused(ledger, job, WRITES["record_plan"])


def test_a_plan_that_leaves_a_gap_is_refused(ledger: Ledger) -> None:
    """Nothing between the cursor and the slice may be lost."""
    enqueue(ledger)
    job = claim(ledger)
    plan = plan_of(job, 5, 10)

    refused(ledger, job, lambda ledger, job: ledger.record_plan(job, plan, []))


@pytest.mark.parametrize(("first", "last"), [(1, 10), (1, 20), (5, 20), (12, 20)])
def test_the_cursor_moves_only_from_where_the_slice_began(
    ledger: Ledger, first: int, last: int
) -> None:
    """Not twice, not across a gap, not from before; and the job stays as it was."""
    enqueue(ledger)
    job = claim(ledger)
    ledger.advance(job, part_of(job, 1, 10))

    refused(ledger, job, lambda ledger, job: ledger.advance(job, part_of(job, first, last)))
    assert ledger.cursor(job.agent, job.session) == 10


def test_the_cursor_never_moves_back(ledger: Ledger) -> None:
    """A slice that ends before it begins is refused too."""
    enqueue(ledger)
    job = claim(ledger)
    ledger.advance(job, part_of(job, 1, 10))

    refused(ledger, job, lambda ledger, job: ledger.advance(job, part_of(job, 11, 9)))


def test_a_first_slice_must_begin_at_the_first_message(ledger: Ledger) -> None:
    """A session without a cursor has one at 0."""
    enqueue(ledger)
    job = claim(ledger)

    refused(ledger, job, lambda ledger, job: ledger.advance(job, part_of(job, 2, 10)))
