"""The queue in figures, from rows in any state."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders import AGENT, claim, enqueue, make_job, open_ledger

from memoryd.jobs.figures import Done, Figures, Oldest, Waits, in_all
from memoryd.jobs.ledger import Ledger
from memoryd.memory.clock import local_date
from memoryd.memory.testing import FakeClock

MINUTE = 60_000


@pytest.fixture
def ledger(tmp_path: Path, clock: FakeClock) -> Ledger:
    """An empty ledger."""
    return open_ledger(tmp_path, clock)


@pytest.fixture
def figures(ledger: Ledger) -> Figures:
    """What counts in it."""
    return Figures(ledger.db)


def test_jobs_are_counted_by_kind_and_the_status_a_person_sees(
    ledger: Ledger, figures: Figures
) -> None:
    """Retrying and waiting are told apart from what is simply pending."""
    make_job(ledger, "s1")
    make_job(ledger, "s2", failures=1)
    make_job(ledger, "s3", failures=1, wait_reason="budget.spent")
    make_job(ledger, "s4", status="running", serial_key="a")
    make_job(ledger, "s5", status="completed", kind="extract")
    make_job(ledger, "s6", status="completed", kind="extract")
    make_job(ledger, "s7", status="failed")
    make_job(ledger, "s8", status="failed", kind="of-tomorrow")

    found = figures.by_kind()

    assert found == {
        "finalize": {"pending": 1, "retrying": 1, "waiting": 1, "running": 1, "failed": 1},
        "extract": {"completed": 2},
        "of-tomorrow": {"failed": 1},
    }
    assert in_all(found.values()) == ledger.records.counts()


def test_each_reason_to_wait_is_told_with_its_count_and_until_when(
    ledger: Ledger, figures: Figures, clock: FakeClock
) -> None:
    """The most frequent first; the first and the last of each."""
    now = clock.now_ms()
    for number in range(3):
        at = now + number * MINUTE
        make_job(ledger, f"s{number}", wait_reason="store.busy", run_at=at)
    make_job(ledger, "s9", wait_reason="budget.spent", run_at=now + 9 * MINUTE)

    assert figures.waits() == [
        Waits("store.busy", 3, now, now + 2 * MINUTE),
        Waits("budget.spent", 1, now + 9 * MINUTE, now + 9 * MINUTE),
    ]


def test_the_oldest_of_each_status_is_named(
    ledger: Ledger, figures: Figures, clock: FakeClock
) -> None:
    """The archive's may wait for days and is not meant."""
    now = clock.now_ms()
    make_job(ledger, "s0", kind="backfill", created_at=now - 90 * MINUTE)
    old = make_job(ledger, "s1", created_at=now - 9 * MINUTE)
    make_job(ledger, "s2", created_at=now - 2 * MINUTE)
    waits = make_job(ledger, "s3", wait_reason="disk.full", created_at=now - MINUTE)
    runs = make_job(ledger, "s4", status="running", serial_key="a", started_at=now - 3 * MINUTE)

    assert figures.oldest() == [
        Oldest("pending", old.id, "finalize", now - 9 * MINUTE),
        Oldest("waiting", waits.id, "finalize", now - MINUTE),
        Oldest("running", runs.id, "finalize", now - 3 * MINUTE),
    ]


def test_what_was_done_is_counted_by_the_hour(
    ledger: Ledger, figures: Figures, clock: FakeClock
) -> None:
    """Jobs, attempts, calls and tokens; what is older, or from a clock ahead, is left out."""
    make_job(ledger, "s0", status="completed", finished_at=clock.now_ms() + MINUTE)
    enqueue(ledger, "s1")
    job = claim(ledger)
    ledger.count_call(job, 100, 20)
    ledger.complete(job, "nothing.durable")
    clock.advance(2 * 3600)
    enqueue(ledger, "s2")
    ledger.fail(claim(ledger), "attempt.error", "x")

    hour, day = (figures.done(clock.now_ms(), hours) for hours in (1, 24))

    assert hour == Done(1, {}, {"failed": 1}, 0, 0, 0)
    assert day.jobs["completed"] == 2 and day.attempts == {"completed": 1, "failed": 1}
    assert (day.calls, day.input_tokens, day.output_tokens) == (1, 100, 20)


def test_counting_reads_no_finished_row(ledger: Ledger, figures: Figures) -> None:
    """However many there are: the plan of each statement that counts them says so."""
    import memoryd.jobs.figures as module

    values = {"since": 0, "now": 1}
    finished_too = (module._FINISHED, module._ENDED)
    for text in (*finished_too, module._BY_KIND, module._ATTEMPTS, module._LAST_MOVE):
        plan = [row[3] for row in ledger.db.rows(f"explain query plan {text}", **values)]
        assert not any(line in {"SCAN job", "SCAN attempt_log"} for line in plan), plan
    for text in finished_too:
        plan = [row[3] for row in ledger.db.rows(f"explain query plan {text}", **values)]
        finished = [line for line in plan if "job_ended" in line]
        assert finished and all("COVERING INDEX" in line for line in finished), plan


def test_breakers_and_spending_of_every_provider_are_told(
    ledger: Ledger, figures: Figures, clock: FakeClock
) -> None:
    """Not only of the one that is configured now."""
    ledger.breakers.stop("openai", "provider.permanent", "401")
    ledger.breakers.trip("anthropic", "provider.unavailable", "no route")
    ledger.budget.reserve("openai", 50, 10, 1000)

    assert [(each.provider, each.state) for each in figures.breakers()] == [
        ("anthropic", "open"),
        ("openai", "stopped"),
    ]
    (spent,) = figures.spending(local_date(clock.now_ms()))
    assert (spent.provider, spent.calls, spent.tokens, spent.cost) == ("openai", 1, 50, 0)


def test_a_claimable_job_is_told_since_nothing_kept_a_worker_from_it(
    ledger: Ledger, figures: Figures, clock: FakeClock
) -> None:
    """Since it is due, and since an attempt anywhere last began or ended."""
    start = clock.now_ms()
    job = enqueue(ledger, "s1")
    clock.advance(0.001)
    other = enqueue(ledger, "s2")
    clock.advance(90)
    assert figures.unclaimed_since(clock.now_ms()) == (job.id, start)

    taken = claim(ledger)
    assert figures.unclaimed_since(clock.now_ms()) == (other.id, clock.now_ms())
    clock.advance(5)
    ledger.complete(taken, "nothing.durable")

    assert figures.unclaimed_since(clock.now_ms()) == (other.id, clock.now_ms())


@pytest.mark.parametrize(
    "why",
    ["later", "serial", "backfill", "crashed", "alone"],
)
def test_what_no_worker_may_take_is_not_claimable(
    ledger: Ledger, figures: Figures, clock: FakeClock, why: str
) -> None:
    """Not due, its session is worked on, the archive's, or one of the two runs alone."""
    changes: dict[str, dict[str, object]] = {
        "later": {"run_at": clock.now_ms() + MINUTE},
        "serial": {"serial_key": f"session:{AGENT}/busy"},
        "backfill": {"kind": "backfill"},
        "crashed": {"crashes": 1},
        "alone": {},
    }
    make_job(ledger, "busy", status="running", crashes=int(why == "alone"))
    make_job(ledger, "s1", **changes[why])
    clock.advance(30)

    assert figures.unclaimed_since(clock.now_ms()) is None
