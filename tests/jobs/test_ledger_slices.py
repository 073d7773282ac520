"""Plans, candidates and the cursor; and how an attempt that is not lost may end."""

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
    plan_of,
    record,
)

from memoryd.jobs.ledger import Ledger
from memoryd.memory import seams
from memoryd.memory.testing import FakeClock

HOUR_MS = 3600 * 1000


@pytest.fixture
def ledger(tmp_path: Path, clock: FakeClock) -> Ledger:
    """An empty ledger."""
    return open_ledger(tmp_path, clock)


def states(ledger: Ledger, job_id: str) -> dict[str, str]:
    """What became of the job's candidates, by id."""
    return {kept.id: kept.state for kept in ledger.records.candidates(job_id)}


def test_a_plan_survives_the_process_that_recorded_it(
    ledger: Ledger, tmp_path: Path, clock: FakeClock
) -> None:
    """The next claim of the session finds it, word for word, and asks no model."""
    enqueue(ledger)
    plan = record(ledger, claim(ledger), [MadeCandidate()])
    ledger.close()

    reopened = open_ledger(tmp_path, clock)
    clock.advance(LEASE_SECONDS)
    job = claim(reopened)

    assert reopened.standing_plan(job) == plan
    assert reopened.records.planned_contents() == {"a" * 64}


def test_another_job_of_the_session_settles_the_plan(ledger: Ledger, clock: FakeClock) -> None:
    """The job that left it gave up; its slice is advanced by the attempt that applied it."""
    enqueue(ledger)
    dead = claim(ledger)
    plan = record(ledger, dead, [MadeCandidate()])
    ledger.db.change("update job set failures = max_failures - 1")
    ledger.fail(again(ledger, dead), "attempt.error", "disk full")
    enqueue(ledger, kind="extract", cutoff=300)
    heir = claim(ledger)
    assert ledger.standing_plan(heir) == plan

    ledger.advance(heir, plan.scope)

    assert ledger.standing_plan(heir) is None
    assert ledger.cursor(heir.agent, heir.session) == 10
    assert states(ledger, dead.id) == {"c1": "applied"}
    assert again(ledger, heir).status == "running"


def test_slices_follow_each_other_to_the_cutoff(ledger: Ledger) -> None:
    """Each advance moves the cursor; the last ends the job with its outcome."""
    enqueue(ledger)
    job = claim(ledger)

    ledger.begin_slice(job, 1, 10, "-code")
    row = again(ledger, job)
    assert (row.slice_first, row.slice_last, row.project) == (1, 10, "-code")
    ledger.record_plan(job, plan_of(job, 1, 10), [])
    ledger.advance(job, part_of(job, 1, 10))
    row = again(ledger, job)
    assert (row.status, row.attempt, row.slice_first) == ("running", 1, None)
    ledger.record_plan(job, plan_of(job, 11, 12), [])
    ledger.advance(job, part_of(job, 11, 12), outcome="session.distilled")

    row = again(ledger, job)
    assert (row.status, row.outcome_code) == ("completed", "session.distilled")
    assert (row.lease_owner, row.lease_expires_at) == (None, None)
    assert ledger.cursor(job.agent, job.session) == 12
    (line,) = ledger.records.attempts(job)
    assert (line.ending, line.detail) == ("completed", "session.distilled")


def test_a_session_nobody_read_has_its_cursor_at_0(ledger: Ledger) -> None:
    """``seq`` counts from 1."""
    assert ledger.cursor("claude-code", "never") == 0


def test_candidates_are_kept_with_what_policy_said(ledger: Ledger) -> None:
    """Applied or not, ``show`` can say why; and they outlive the job."""
    enqueue(ledger)
    job = claim(ledger)
    record(
        ledger,
        job,
        [
            MadeCandidate("c1", decision="apply"),
            MadeCandidate("c2", decision="review", reason="cap"),
            MadeCandidate("c3", decision="ignore", reason="forgotten", detail="x" * 900),
        ],
    )
    assert states(ledger, job.id) == {"c1": "planned", "c2": "pending", "c3": "ignored"}

    ledger.advance(job, part_of(job), outcome="session.distilled")
    ledger.prune(keep=0)

    first, second, third = ledger.records.candidates(job.id)
    assert [first.state, second.state, third.state] == ["applied", "pending", "ignored"]
    assert first.evidence == (("m1", 3, "I prefer tabs"),)
    assert (second.reason, len(third.detail)) == ("cap", 500)


def test_candidates_that_met_a_persons_edit_say_so(ledger: Ledger) -> None:
    """Theirs stands; ours was appended as a line or dropped."""
    enqueue(ledger)
    job = claim(ledger)
    record(ledger, job, [MadeCandidate(name) for name in ("kept", "line", "lost")])

    ledger.advance(job, part_of(job), changed=["lost"], appended=["line"])

    assert states(ledger, job.id) == {"kept": "applied", "line": "appended", "lost": "changed"}


def test_candidates_of_another_slice_are_not_settled(ledger: Ledger) -> None:
    """Ids from elsewhere are no way to change them either."""
    enqueue(ledger, "other")
    other = claim(ledger)
    record(ledger, other, [MadeCandidate("theirs")])
    enqueue(ledger, "s1")
    job = claim(ledger)
    record(ledger, job, [MadeCandidate("ours")])

    ledger.advance(job, part_of(job), changed=["theirs"])

    assert states(ledger, other.id) == {"theirs": "planned"}


def test_a_plan_with_a_bad_candidate_is_not_kept_in_part(ledger: Ledger) -> None:
    """One transaction: a fault in the last row leaves no plan behind."""
    enqueue(ledger)
    job = claim(ledger)

    with pytest.raises(ValueError, match="not an operational code"):
        record(ledger, job, [MadeCandidate("c1"), MadeCandidate("c2", reason="Free Text")])

    assert ledger.standing_plan(job) is None
    assert states(ledger, job.id) == {}


def test_the_seams_are_reached_after_the_effect(
    ledger: Ledger, tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process killed there leaves what the crash table says: seen by another connection."""
    other = open_ledger(tmp_path, clock)
    enqueue(ledger)
    job = claim(ledger)
    seen = []

    def look(point: str) -> None:
        seen.append(
            (point, other.standing_plan(job) is not None, other.cursor("claude-code", "s1"))
        )

    monkeypatch.setattr(seams, "hook", look)
    record(ledger, job)
    ledger.advance(job, part_of(job))

    assert seen == [("plan.recorded", True, 0), ("cursor.advanced", False, 10)]


def test_a_snooze_costs_no_failure_and_says_why(ledger: Ledger, clock: FakeClock) -> None:
    """It shows as waiting, with reason and time, and is counted for the next, longer wait."""
    enqueue(ledger)
    job = claim(ledger)
    until = clock.now_ms() + 15_000

    ledger.snooze(job, until, "provider.unavailable", "connection refused " * 50)

    row = again(ledger, job)
    assert (row.shown_status, row.wait_reason) == ("waiting", "provider.unavailable")
    assert (row.run_at, row.failures, row.snoozes) == (until, 0, 1)
    assert len(row.error_detail or "") == 500
    assert ledger.records.waiting() == {"provider.unavailable": 1}
    assert ledger.records.attempts(job)[0].ending == "snoozed"

    clock.advance(15)
    assert claim(ledger).wait_reason is None


def test_a_snooze_is_a_day_long_at_most(ledger: Ledger, clock: FakeClock) -> None:
    """Beyond 25 hours a time looks like a stepped clock: the job would spin at a closed door."""
    enqueue(ledger)
    ledger.snooze(claim(ledger), clock.now_ms() + 7 * 24 * HOUR_MS, "provider.limited")

    assert ledger.claim("worker") is None
    assert ledger.next_due_ms() == clock.now_ms() + 24 * HOUR_MS


def test_progress_forgets_the_snoozes(ledger: Ledger, clock: FakeClock) -> None:
    """The wait doubles only while the job gets nowhere."""
    make_job(ledger, snoozes=4)
    job = claim(ledger)

    ledger.advance(job, part_of(job))

    assert again(ledger, job).snoozes == 0


def test_a_released_job_keeps_its_place_and_costs_nothing(ledger: Ledger, clock: FakeClock) -> None:
    """A drain gives it back; after the restart it is first again."""
    early = make_job(ledger, "early")
    clock.advance(60)
    make_job(ledger, "late")
    job = claim(ledger)

    ledger.release(job)

    row = again(ledger, job)
    assert (row.status, row.failures, row.run_at) == ("pending", 0, early.run_at)
    assert ledger.records.attempts(job)[0].ending == "released"
    assert claim(ledger).id == early.id


def test_failures_wait_longer_each_time_and_then_give_up(ledger: Ledger, clock: FakeClock) -> None:
    """15 s, times 4 each, 10 % either way; the reason stays in the row."""
    job = enqueue(ledger)
    waits = []
    for _ in range(job.max_failures):
        status = ledger.fail(claim(ledger), "answer.unusable", "no JSON")
        waits.append((again(ledger, job).run_at - clock.now_ms()) / 1000)
        clock.advance(7200)

    for wait, expected in zip(waits, [15, 60, 240, 960, 0], strict=True):
        assert expected * 0.9 <= wait <= expected * 1.1
    row = again(ledger, job)
    assert (status, row.status, row.error_code) == ("failed", "failed", "answer.unusable")
    assert (row.failures, row.error_detail) == (5, "no JSON")
    assert ledger.claim("worker") is None


def test_failure_details_are_bounded_and_codes_are_codes(ledger: Ledger) -> None:
    """Free text never lands where a program looks."""
    enqueue(ledger)
    job = claim(ledger)

    with pytest.raises(ValueError, match="not an operational code"):
        ledger.fail(job, "Something went wrong", "")
    assert again(ledger, job) == job

    ledger.fail(job, "answer.unusable", "x" * 10_000)
    assert len(again(ledger, job).error_detail or "") == 500


def test_a_throttled_extract_leaves_no_row_but_a_count(ledger: Ledger) -> None:
    """Most runs are throttled: a row each would bury the rest."""
    enqueue(ledger, kind="extract")
    job = claim(ledger)

    ledger.throttle(job)

    assert ledger.records.jobs() == []
    assert ledger.records.attempts(job) == []
    rollout = ledger.records.rollout(job.agent, job.session)
    assert rollout is not None and rollout.throttled == 1
    assert ledger.cursor(job.agent, job.session) == 0


def test_a_job_without_words_completes_and_leaves_the_cursor(ledger: Ledger) -> None:
    """The words wait for the next job."""
    enqueue(ledger)
    job = claim(ledger)

    ledger.complete(job, "run.too-short")

    assert again(ledger, job).outcome_code == "run.too-short"
    assert ledger.cursor(job.agent, job.session) == 0
