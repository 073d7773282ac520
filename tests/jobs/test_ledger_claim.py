"""Enqueue, claim, heartbeat and rescue: who gets a job, when, and what a dead attempt costs."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders import LEASE_SECONDS, again, claim, enqueue, make_job, open_ledger, part_of, request

from memoryd.jobs import statements
from memoryd.jobs.ledger import Ledger
from memoryd.memory.errors import UsageError
from memoryd.memory.testing import FakeClock

HOUR = 3600


@pytest.fixture
def ledger(tmp_path: Path, clock: FakeClock) -> Ledger:
    """An empty ledger."""
    return open_ledger(tmp_path, clock)


def test_the_same_session_end_told_twice_makes_one_finalize(ledger: Ledger) -> None:
    """Hook, sweep and a doubled envelope may all name the same end."""
    first = request(ledger)
    second = request(ledger, trigger="sweep")

    assert first.created and not second.created
    assert second.job == first.job
    assert len(ledger.records.jobs()) == 1


def test_a_longer_transcript_makes_another_finalize(ledger: Ledger) -> None:
    """A resumed session has an end of its own."""
    enqueue(ledger, cutoff=100)
    longer = request(ledger, cutoff=200)

    assert longer.created


def test_an_end_told_again_after_it_was_worked_makes_nothing(ledger: Ledger) -> None:
    """The key outlives the work as long as the row stands."""
    enqueue(ledger)
    ledger.complete(claim(ledger), "session.empty")

    assert not request(ledger).created


def test_a_pending_extract_reads_further_instead_of_being_doubled(ledger: Ledger) -> None:
    """The cutoff grows and never shrinks."""
    first = enqueue(ledger, kind="extract", cutoff=100)
    grown = request(ledger, kind="extract", cutoff=300, reason="compact")
    late = request(ledger, kind="extract", cutoff=200)

    assert not grown.created and grown.job is not None and grown.job.id == first.id
    assert (grown.job.cutoff, grown.job.reason) == (300, "compact")
    assert late.job is not None and late.job.cutoff == 300


def test_an_extract_asked_for_while_one_runs_waits_for_it(ledger: Ledger) -> None:
    """What is said during an extract is for the next one, which the serial key holds back."""
    enqueue(ledger, kind="extract", cutoff=100)
    running = claim(ledger)
    made = request(ledger, kind="extract", cutoff=200)

    assert made.created
    assert ledger.claim("other") is None

    ledger.complete(running, "extract.none")
    assert made.job is not None and claim(ledger).id == made.job.id


@pytest.mark.parametrize("how", ["snooze", "release", "fail", "rescue", "retry"])
def test_an_extract_that_waits_again_takes_over_the_newer_one(
    ledger: Ledger, clock: FakeClock, how: str
) -> None:
    """Both pending would break the rule of one a session, and the ledger with it."""
    older = enqueue(ledger, kind="extract", cutoff=100)
    job = claim(ledger)
    if how == "retry":
        ledger.cancel(job)
    newer = enqueue(ledger, kind="extract", cutoff=200, reason="compact")

    if how == "snooze":
        ledger.snooze(job, clock.now_ms() + 1000, "store.busy")
    elif how == "release":
        ledger.release(job)
    elif how == "fail":
        ledger.fail(job, "answer.unusable", "no JSON")
    elif how == "rescue":
        clock.advance(LEASE_SECONDS)
        assert ledger.rescue() == 1
    else:
        assert ledger.retry(again(ledger, job))

    kept = again(ledger, older)
    gone = again(ledger, newer)
    assert (kept.status, kept.cutoff, kept.reason) == ("pending", 200, "compact")
    assert (gone.status, gone.outcome_code) == ("cancelled", "job.merged")


def test_an_extract_that_gives_up_leaves_the_newer_one_alone(ledger: Ledger) -> None:
    """A failed job does not wait, so nothing needs to give way."""
    enqueue(ledger, kind="extract")
    job = claim(ledger)
    newer = enqueue(ledger, kind="extract", cutoff=200)
    for _ in range(job.max_failures - 1):
        ledger.db.change("update job set failures = failures + 1 where id = :id", id=job.id)

    status = ledger.fail(again(ledger, job), "answer.unusable", "no JSON")

    assert status == "failed"
    assert again(ledger, newer).status == "pending"


def test_an_excluded_session_gets_no_job_but_is_remembered(ledger: Ledger) -> None:
    """The rollout's row says why, and how long its transcript is."""
    ledger.exclude("claude-code", "s1", "session.excluded")

    answer = request(ledger, cutoff=500)

    assert (answer.job, answer.created, answer.excluded) == (None, False, "session.excluded")
    rollout = ledger.records.rollout("claude-code", "s1")
    assert rollout is not None and rollout.last_cutoff == 500


def test_a_request_without_a_path_keeps_the_path_that_is_known(ledger: Ledger) -> None:
    """A late envelope may name neither transcript nor folder."""
    enqueue(ledger, transcript="/t.jsonl", cwd="/code")
    enqueue(ledger, transcript="", cwd="", cutoff=50)

    rollout = ledger.records.rollout("claude-code", "s1")
    assert rollout is not None
    assert (rollout.transcript, rollout.cwd, rollout.last_cutoff) == ("/t.jsonl", "/code", 100)


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": "dream"},
        {"cutoff": -1},
        {"cutoff": 1 << 63},
        {"session": "s\0"},
        {"session": "\udc80"},
        {"transcript": "/" + "x" * 5000},
        {"payload": {"why": "x" * 5000}},
    ],
)
def test_a_request_that_no_row_can_hold_is_refused(
    ledger: Ledger, changes: dict[str, object]
) -> None:
    """The socket and the CLI pass on what others typed."""
    with pytest.raises(UsageError):
        request(ledger, **changes)  # type: ignore[arg-type]

    assert ledger.records.jobs() == []


def test_claims_go_by_priority_then_time_then_id(ledger: Ledger, clock: FakeClock) -> None:
    """A session that ended comes before a checkpoint of one that still runs."""
    now = clock.now_ms()
    make_job(ledger, "d", id="d", kind="extract", run_at=now - 9000)
    make_job(ledger, "b", id="b", run_at=now - 1000)
    make_job(ledger, "c", id="c", run_at=now - 1000)
    make_job(ledger, "a", id="a", run_at=now - 2000)

    order = [claim(ledger).session for _ in range(4)]

    assert order == ["a", "b", "c", "d"]
    assert ledger.claim("worker") is None


def test_a_claim_is_an_attempt_with_a_lease_and_a_line_in_the_log(
    ledger: Ledger, clock: FakeClock
) -> None:
    """Everything the fence needs comes with the claim."""
    enqueue(ledger)

    job = claim(ledger, "worker-1")

    assert (job.status, job.attempt, job.lease_owner) == ("running", 1, "worker-1")
    assert clock.now_ms() + LEASE_SECONDS * 1000 == job.lease_expires_at
    (line,) = ledger.records.attempts(job)
    assert (line.attempt, line.owner, line.ended_at) == (1, "worker-1", None)


def test_a_job_runs_not_before_its_time(ledger: Ledger, clock: FakeClock) -> None:
    """A snooze or a backoff is a ``run_at`` in the future."""
    make_job(ledger, run_at=clock.now_ms() + 1000)
    assert ledger.claim("worker") is None

    clock.advance(1)
    assert ledger.claim("worker") is not None


def test_one_session_is_worked_by_one_at_a_time(ledger: Ledger) -> None:
    """A second job of the session is passed over; another session is not."""
    make_job(ledger, "s1", status="running")
    make_job(ledger, "s1")
    make_job(ledger, "s2", kind="extract")

    assert claim(ledger).session == "s2"
    assert ledger.claim("worker") is None


def test_a_given_job_is_claimed_under_the_same_rules(ledger: Ledger, clock: FakeClock) -> None:
    """``only`` chooses the job; it opens no other door."""
    first = make_job(ledger, "s1")
    second = make_job(ledger, "s1", kind="extract")
    later = make_job(ledger, "s2", run_at=clock.now_ms() + 1000)

    taken = ledger.claim("worker", only=second.id)

    assert taken is not None and taken.id == second.id
    assert ledger.claim("worker", only=first.id) is None, "its session is taken"
    assert ledger.claim("worker", only=later.id) is None, "it is not due"
    assert ledger.claim("worker", only="no-such-id") is None


def test_another_process_that_was_faster_is_no_error(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The unique index has the last word, whatever the statement saw."""
    make_job(ledger, "s1", status="running")
    waiting = make_job(ledger, "s1")
    blind = statements.CLAIM.replace("other.serial_key = job.serial_key", "1 = 0")
    assert blind != statements.CLAIM
    monkeypatch.setattr(statements, "CLAIM", blind)

    assert ledger.claim("worker") is None
    assert waiting == again(ledger, waiting)


def test_a_heartbeat_extends_the_lease(ledger: Ledger, clock: FakeClock) -> None:
    """From the time of the beat, not from the old end."""
    enqueue(ledger)
    job = claim(ledger)
    clock.advance(100)

    assert ledger.heartbeat(job)

    assert clock.now_ms() + LEASE_SECONDS * 1000 == again(ledger, job).lease_expires_at


def test_a_live_lease_is_not_rescued(ledger: Ledger, clock: FakeClock) -> None:
    """To the last millisecond."""
    enqueue(ledger)
    job = claim(ledger)
    clock.advance(LEASE_SECONDS - 0.001)

    assert ledger.rescue() == 0
    assert job == again(ledger, job)


def test_a_first_crash_is_retried_at_once_and_counted(ledger: Ledger, clock: FakeClock) -> None:
    """Same cutoff, one failure, and the attempt's line says how it ended."""
    enqueue(ledger)
    job = claim(ledger)
    clock.advance(LEASE_SECONDS)

    assert ledger.rescue() == 1

    row = again(ledger, job)
    assert ("pending", 1, 1, job.cutoff) == (row.status, row.failures, row.crashes, row.cutoff)
    assert (
        row.error_code,
        row.lease_owner,
        row.lease_expires_at,
    ) == ("attempt.crashed", None, None)
    assert ledger.records.attempts(job)[0].ending == "crashed"
    assert claim(ledger).attempt == 2


def test_later_crashes_wait_longer_and_the_last_gives_up(ledger: Ledger, clock: FakeClock) -> None:
    """A job that kills its worker cannot do so for ever."""
    job = enqueue(ledger)
    waits = []
    for _ in range(job.max_failures):
        claim(ledger)
        clock.advance(LEASE_SECONDS)
        ledger.rescue()
        row = again(ledger, job)
        waits.append((row.run_at - clock.now_ms()) // 1000)
        clock.advance(2 * HOUR)

    assert waits == [0, 15, 60, 240, 0]
    assert (row.status, row.error_code) == ("failed", "attempt.crashed")
    assert row.finished_at is not None
    assert ledger.claim("worker") is None


def test_a_claim_rescues_what_expired_before_it_chooses(ledger: Ledger, clock: FakeClock) -> None:
    """Nobody needs to wait for the tick: the dead attempt's job is taken again."""
    enqueue(ledger, "s1", cutoff=100)
    dead = claim(ledger)
    enqueue(ledger, "s1", kind="extract", cutoff=200)
    clock.advance(LEASE_SECONDS)

    taken = claim(ledger)

    assert (dead.id, 2, 1) == (taken.id, taken.attempt, taken.failures)


def test_a_start_rescues_every_running_row(ledger: Ledger) -> None:
    """Whoever just took the home's lock knows that nobody else works."""
    make_job(ledger, "s1", status="running")
    make_job(ledger, "s2", status="running")

    assert ledger.rescue(everything=True) == 2
    assert ledger.records.counts() == {"retrying": 2}


def test_a_rescue_with_nothing_to_rescue_takes_no_write_lock(
    ledger: Ledger, tmp_path: Path, clock: FakeClock
) -> None:
    """The tick runs every 30 s; it must not stand in anybody's way."""
    enqueue(ledger)
    claim(ledger)
    other = open_ledger(tmp_path, clock)
    with other.db.writing():
        assert ledger.rescue() == 0


def test_an_empty_claim_takes_no_write_lock(
    ledger: Ledger, tmp_path: Path, clock: FakeClock
) -> None:
    """Idle workers only look."""
    other = open_ledger(tmp_path, clock)
    with other.db.writing():
        assert ledger.claim("worker") is None


def test_attempts_alive_in_this_process_are_renewed_not_rescued(
    ledger: Ledger, clock: FakeClock
) -> None:
    """A laptop that slept through the lease comes back with its threads in mid-work."""
    enqueue(ledger, "s1")
    enqueue(ledger, "s2", kind="extract")
    asleep = claim(ledger)
    ledger.alive = lambda: [asleep]
    clock.step(8 * HOUR)

    other = claim(ledger)

    assert other.session == "s2"
    assert ledger.rescue() == 0
    row = again(ledger, asleep)
    assert (row.status, row.attempt, row.failures) == ("running", 1, 0)
    assert clock.now_ms() + LEASE_SECONDS * 1000 == row.lease_expires_at


def test_a_lease_too_far_ahead_counts_as_past(ledger: Ledger, clock: FakeClock) -> None:
    """The clock was stepped back under it; waiting for its end could take years."""
    enqueue(ledger)
    claim(ledger)
    clock.step(-HOUR)

    assert ledger.rescue() == 1


def test_a_clock_stepped_forward_costs_one_rescue(ledger: Ledger, clock: FakeClock) -> None:
    """The lease looks over; the attempt is fenced off and the job goes on."""
    enqueue(ledger)
    stale = claim(ledger)
    clock.step(24 * HOUR)

    taken = claim(ledger)

    assert (stale.id, 2) == (taken.id, taken.attempt)
    assert not ledger.heartbeat(stale)


def test_a_run_at_over_25_hours_ahead_counts_as_due(ledger: Ledger, clock: FakeClock) -> None:
    """It was written by a clock that ran ahead and was set right."""
    make_job(ledger, "sane", run_at=clock.now_ms() + 25 * HOUR * 1000)
    make_job(ledger, "mad", run_at=clock.now_ms() + 25 * HOUR * 1000 + 1)

    assert claim(ledger).session == "mad"
    assert ledger.claim("worker") is None


def test_the_time_is_read_with_the_write_lock_held(
    ledger: Ledger, tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lease given while we waited for the lock must not look too far ahead to us."""
    other = open_ledger(tmp_path, clock)
    enqueue(ledger, "s1")
    enqueue(ledger, "s2")
    peek = ledger.db.rows
    seen = []

    def meanwhile(text: str, **values: object) -> list[tuple[object, ...]]:
        rows = peek(text, **values)
        if not seen:
            clock.advance(2)
            seen.append(claim(other))
        return rows

    monkeypatch.setattr(ledger.db, "rows", meanwhile)

    taken = claim(ledger)

    assert {"s1", "s2"} == {seen[0].session, taken.session}
    assert seen[0] == again(other, seen[0])


def test_a_job_that_crashed_runs_alone(ledger: Ledger) -> None:
    """It may take the process with it: nothing else should be in there."""
    suspect = make_job(ledger, "s1", crashes=1, failures=1)
    make_job(ledger, "s2", kind="extract")

    assert suspect.id == claim(ledger).id
    assert ledger.claim("worker") is None


def test_a_job_that_crashed_is_not_starved_by_a_long_queue(ledger: Ledger) -> None:
    """Two workers that always have something running would never leave it alone."""
    running = [make_job(ledger, f"r{number}", status="running") for number in range(2)]
    suspect = make_job(ledger, "s1", crashes=1, failures=1)
    make_job(ledger, "s2", kind="extract")

    ledger.complete(running[0], "session.empty")
    assert ledger.claim("worker") is None, "the other one still runs"
    ledger.complete(running[1], "session.empty")
    assert suspect.id == claim(ledger).id


def test_a_job_that_crashed_and_is_not_due_holds_nobody_back(
    ledger: Ledger, clock: FakeClock
) -> None:
    """Between its attempts the queue goes on."""
    make_job(ledger, "s1", crashes=2, failures=2, run_at=clock.now_ms() + 60_000)
    make_job(ledger, "s2")
    make_job(ledger, "s3")

    assert {"s2", "s3"} == {claim(ledger).session, claim(ledger).session}


def test_the_ledger_says_when_something_is_next_due(ledger: Ledger, clock: FakeClock) -> None:
    """The doorbell waits until then and not a poll longer."""
    assert ledger.next_due_ms() is None
    now = clock.now_ms()

    make_job(ledger, "s1", run_at=now + 5000)
    assert now + 5000 == ledger.next_due_ms()

    make_job(ledger, "s2", status="running", lease_expires_at=now + 3000)
    assert now + 3000 == ledger.next_due_ms()


def test_the_ledger_is_idle_when_nothing_runs_and_nothing_is_due(
    ledger: Ledger, clock: FakeClock
) -> None:
    """``run --once`` ends then; a snoozed job does not keep it."""
    assert ledger.idle()
    make_job(ledger, "later", run_at=clock.now_ms() + 1000)
    assert ledger.idle()

    enqueue(ledger)
    assert not ledger.idle()
    job = claim(ledger)
    assert not ledger.idle()
    ledger.advance(job, part_of(job), outcome="session.distilled")
    assert ledger.idle()


def test_a_claim_in_between_does_not_make_the_ledger_look_idle(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not running yet when looked at first, not pending any more when looked at next."""
    enqueue(ledger)
    look = ledger.db.rows

    def then_claim(text: str, **values: object) -> list[tuple[object, ...]]:
        found = look(text, **values)
        monkeypatch.setattr(ledger.db, "rows", look)
        assert ledger.claim("another") is not None
        return found

    monkeypatch.setattr(ledger.db, "rows", then_claim)

    assert not ledger.idle()


@pytest.mark.parametrize("statement", ["CLAIM", "ANY_DUE", "EXPIRED"])
def test_a_claim_never_scans_the_table(ledger: Ledger, statement: str) -> None:
    """A million finished rows must cost nothing: partial indexes answer every question."""
    values = {
        "now": 0,
        "run_horizon": 0,
        "lease_horizon": 0,
        "all": 0,
        "batch": 1,
        "room": 1,
        "owner": "o",
        "lease_expires_at": 0,
    }
    text = getattr(statements, statement)

    plan = " / ".join(str(row[3]) for row in ledger.db.rows(f"explain query plan {text}", **values))

    tables = [step for step in plan.split(" / ") if step.startswith(("SCAN job", "SEARCH job"))]
    assert tables and all(" USING " in step for step in tables), plan
    used = {"CLAIM": "job_ready", "ANY_DUE": "job_ready", "EXPIRED": "job_"}
    assert used[statement] in plan


@pytest.mark.parametrize(
    ("first", "second"),
    [(("cli", "asked"), ("hook", "stop")), (("hook", "compact"), ("hook", "stop"))],
)
def test_a_merged_extract_keeps_the_stronger_request(
    ledger: Ledger, first: tuple[str, str], second: tuple[str, str]
) -> None:
    """What a person or a compaction asked for is not throttled because a run ended too."""
    for trigger, reason in (first, second):
        enqueue(ledger, kind="extract", trigger=trigger, reason=reason)

    (job,) = ledger.records.jobs()

    assert (job.trigger, job.reason) == first
