"""What people do to the queue: cancel, exclude, retry, skip."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders import (
    LEASE_SECONDS,
    MadeCandidate,
    again,
    claim,
    enqueue,
    make_job,
    open_ledger,
    part_of,
    record,
)

from memoryd.jobs.ledger import Ledger
from memoryd.memory.testing import FakeClock


@pytest.fixture
def ledger(tmp_path: Path, clock: FakeClock) -> Ledger:
    """An empty ledger."""
    return open_ledger(tmp_path, clock)


def test_a_pending_job_is_called_off(ledger: Ledger) -> None:
    """And never claimed."""
    job = enqueue(ledger)

    assert ledger.cancel(job)

    row = again(ledger, job)
    assert (row.status, row.outcome_code) == ("cancelled", "job.cancelled")
    assert ledger.claim("worker") is None


def test_a_running_job_is_called_off_until_its_plan_is_recorded(ledger: Ledger) -> None:
    """Its attempt learns by the next heartbeat."""
    enqueue(ledger)
    job = claim(ledger)

    assert ledger.cancel(job)

    assert not ledger.heartbeat(job)
    assert again(ledger, job).status == "cancelled"
    assert ledger.records.attempts(job)[0].ending == "cancelled"


def test_a_job_claimed_since_it_was_looked_at_is_called_off_whole(ledger: Ledger) -> None:
    """The person saw it pending; the attempt's line in the log is ended all the same."""
    seen = enqueue(ledger)
    claim(ledger)

    assert ledger.cancel(seen)

    assert ledger.records.attempts(seen)[0].ending == "cancelled"


def test_it_is_too_late_to_cancel_once_the_plan_stands(ledger: Ledger, clock: FakeClock) -> None:
    """Running or crashed: it is being written, and undo is the way."""
    enqueue(ledger)
    job = claim(ledger)
    record(ledger, job)

    assert not ledger.cancel(job)
    clock.advance(LEASE_SECONDS)
    ledger.rescue()
    assert again(ledger, job).status == "pending"
    assert not ledger.cancel(job)


def test_a_job_between_two_slices_can_be_called_off(ledger: Ledger) -> None:
    """What is written stays written; the rest is not read."""
    enqueue(ledger)
    job = claim(ledger)
    record(ledger, job)
    ledger.advance(job, part_of(job))

    assert ledger.cancel(job)
    assert ledger.cursor(job.agent, job.session) == 10


@pytest.mark.parametrize("status", ["completed", "failed", "cancelled"])
def test_a_finished_job_cannot_be_called_off(ledger: Ledger, status: str) -> None:
    """Nothing is left to stop."""
    job = make_job(ledger, status=status)

    assert not ledger.cancel(job)
    assert again(ledger, job) == job


def test_an_exclusion_cancels_what_is_pending_for_the_session(ledger: Ledger) -> None:
    """And nothing of another session."""
    finalize = enqueue(ledger, "private")
    extract = enqueue(ledger, "private", kind="extract")
    other = enqueue(ledger, "other")

    assert ledger.exclude("claude-code", "private", "session.discarded") == 2

    for job in (finalize, extract):
        row = again(ledger, job)
        assert (row.status, row.outcome_code) == ("cancelled", "session.discarded")
    assert again(ledger, other).status == "pending"
    kept = {rollout.session: rollout.excluded for rollout in ledger.records.rollouts()}
    assert kept == {"private": "session.discarded", "other": None}


def test_a_session_can_be_excluded_before_anything_is_known_of_it(ledger: Ledger) -> None:
    """A kill switch in a first envelope."""
    assert ledger.exclude("claude-code", "new", "session.excluded") == 0

    rollout = ledger.records.rollout("claude-code", "new")
    assert rollout is not None
    assert (rollout.excluded, rollout.last_cutoff) == ("session.excluded", 0)


@pytest.mark.parametrize("status", ["failed", "cancelled"])
def test_a_person_may_ask_again(ledger: Ledger, clock: FakeClock, status: str) -> None:
    """It starts fresh: no failures, no crashes, no reason to wait, due now."""
    job = make_job(
        ledger,
        status=status,
        failures=5,
        crashes=2,
        snoozes=3,
        error_code="answer.unusable",
        error_detail="no JSON",
        outcome_code="job.cancelled" if status == "cancelled" else None,
    )
    clock.advance(60)

    assert ledger.retry(job)

    row = again(ledger, job)
    assert (row.status, row.failures, row.crashes, row.snoozes) == ("pending", 0, 0, 0)
    assert (row.error_code, row.error_detail, row.outcome_code) == (None, None, None)
    assert (row.finished_at, row.run_at) == (None, clock.now_ms())
    assert claim(ledger).attempt == 2, "the attempt only grows"


@pytest.mark.parametrize("status", ["pending", "running", "completed"])
def test_only_what_ended_badly_can_be_asked_for_again(ledger: Ledger, status: str) -> None:
    """A completed job has nothing left to do; a new end of the session makes a new job."""
    job = make_job(ledger, status=status)

    assert not ledger.retry(job)
    assert again(ledger, job) == job


def failed_on_a_slice(ledger: Ledger, *, planned: bool = False) -> str:
    """A job that gave up on messages 1..10; its id."""
    enqueue(ledger)
    job = claim(ledger)
    ledger.begin_slice(job, 1, 10, "-code")
    if planned:
        record(ledger, job, [MadeCandidate()])
    ledger.db.change("update job set failures = max_failures - 1")
    assert ledger.fail(again(ledger, job), "answer.unusable", "no JSON") == "failed"
    return job.id


def test_retry_alone_reads_the_same_words_again(ledger: Ledger) -> None:
    """The cursor stays."""
    job = ledger.records.job(failed_on_a_slice(ledger))

    assert ledger.retry(job)

    assert ledger.cursor(job.agent, job.session) == 0


def test_retry_with_skip_passes_over_the_slice(ledger: Ledger) -> None:
    """For good; the job goes on behind it."""
    job = ledger.records.job(failed_on_a_slice(ledger))

    assert ledger.retry(job, skip=True)

    assert ledger.cursor(job.agent, job.session) == 10
    row = again(ledger, job)
    assert (row.status, row.slice_first) == ("pending", None)


def test_skip_drops_the_plan_of_the_slice(ledger: Ledger) -> None:
    """A plan behind the cursor could never be advanced: the session would stand still for ever."""
    job = ledger.records.job(failed_on_a_slice(ledger, planned=True))

    assert ledger.retry(job, skip=True)

    assert ledger.standing_plan(job) is None
    assert [kept.state for kept in ledger.records.candidates(job.id)] == ["skipped"]
    assert ledger.cursor(job.agent, job.session) == 10


def test_skip_passes_over_a_plan_that_another_job_left(ledger: Ledger) -> None:
    """Whoever fails to settle it can get past it."""
    failed_on_a_slice(ledger, planned=True)
    heir = make_job(ledger, status="failed")

    assert ledger.retry(heir, skip=True)

    assert ledger.standing_plan(heir) is None
    assert ledger.cursor(heir.agent, heir.session) == 10


def test_skip_goes_by_the_row_not_by_what_was_seen(ledger: Ledger) -> None:
    """The cursor has moved since the job was looked at: nothing is passed over twice."""
    job = ledger.records.job(failed_on_a_slice(ledger))
    ledger.db.change(
        "insert into cursor (agent, session, seq, updated_at) values ('claude-code', 's1', 25, 0)"
    )

    assert ledger.retry(job, skip=True)

    assert ledger.cursor(job.agent, job.session) == 25


def test_skip_without_a_slice_is_a_retry(ledger: Ledger) -> None:
    """The job failed before it read a word."""
    job = make_job(ledger, status="failed")

    assert ledger.retry(job, skip=True)
    assert ledger.cursor(job.agent, job.session) == 0


def test_what_waited_for_a_store_is_woken_when_it_is_held_no_more(
    ledger: Ledger, clock: FakeClock
) -> None:
    """At once and at no cost; what waits for something else waits on."""
    ends = {}
    for session, reason in (("s1", "store.held"), ("s2", "budget.spent")):
        enqueue(ledger, session)
        job = claim(ledger)
        ledger.snooze(job, clock.now_ms() + 600_000, reason)
        ends[session] = job

    assert ledger.wake("store.held") == 1

    assert again(ledger, ends["s1"]).run_at == clock.now_ms()
    assert again(ledger, ends["s2"]).run_at == clock.now_ms() + 600_000
    assert claim(ledger).id == ends["s1"].id


def test_whoever_takes_an_extract_over_has_its_plan_to_settle(
    ledger: Ledger, clock: FakeClock
) -> None:
    """It cannot be called off while that stands: nobody else would come to settle it."""
    planned = enqueue(ledger, kind="extract")
    running = claim(ledger)
    record(ledger, running)
    merged = enqueue(ledger, kind="extract", cutoff=900)
    ledger.snooze(running, clock.now_ms() + 1000, "store.busy")
    assert again(ledger, merged).outcome_code == "job.merged"

    assert ledger.retry(merged)

    assert again(ledger, planned).outcome_code == "job.merged"
    assert not ledger.cancel(merged)
    assert ledger.prune(keep=0) == 1
    settling = claim(ledger)
    ledger.advance(settling, part_of(settling), outcome="session.distilled")
    assert ledger.standing_plan(settling) is None
