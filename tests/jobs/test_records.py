"""Reading the ledger: jobs by a part of their id, lists, counts, attempts."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders import claim, enqueue, make_job, open_ledger

from memoryd.jobs.filters import Filter
from memoryd.jobs.ledger import Ledger
from memoryd.memory.errors import UsageError
from memoryd.memory.testing import FakeClock

ONE = "01890000-0000-7000-8000-00000000abcd"
TWO = "01890000-0000-7000-8000-10000000abcd"


@pytest.fixture
def ledger(tmp_path: Path, clock: FakeClock) -> Ledger:
    """An empty ledger."""
    return open_ledger(tmp_path, clock)


@pytest.mark.parametrize("typed", [ONE, ONE.upper(), ONE[-8:-4] + "abcd", "00000000abcd"])
def test_a_job_is_found_by_any_ending_that_only_it_has(ledger: Ledger, typed: str) -> None:
    """A person types what `list` shows."""
    make_job(ledger, "s1", id=ONE)
    make_job(ledger, "s2", id="01890000-0000-7000-8000-00000000ffff")

    assert ledger.records.job(typed).session == "s1"


def test_an_ending_that_two_jobs_share_is_refused(ledger: Ledger) -> None:
    """With what to do; the whole id still works."""
    make_job(ledger, "s1", id=ONE)
    make_job(ledger, "s2", id=TWO)

    with pytest.raises(UsageError, match="more than one") as raised:
        ledger.records.job("abcd")

    assert "type more" in raised.value.hint
    assert ledger.records.job(TWO).session == "s2"


@pytest.mark.parametrize("typed", ["", "%", "____", "beef", "x" * 100_000, "\udc80", "' or 1=1"])
def test_an_ending_that_no_job_has_is_refused(ledger: Ledger, typed: str) -> None:
    """Wild cards, huge words and broken bytes are only endings that do not fit."""
    make_job(ledger, id=ONE)

    with pytest.raises(UsageError, match="no job has an id"):
        ledger.records.job(typed)


@pytest.mark.parametrize("status", ["pending", "running", "failed", "cancelled"])
def test_the_few_of_a_status_are_found_by_an_index(ledger: Ledger, status: str) -> None:
    """Not by going through a million others."""
    wanted = Filter(status=status)
    clauses, _ = wanted.clauses()
    asked = f"where {' and '.join(clauses)} order by {wanted.order()} limit 20"

    steps = [row[3] for row in ledger.db.rows(f"explain query plan select * from job {asked}")]

    assert steps[0].startswith(("SEARCH job USING", "SCAN job USING INDEX job_")), steps


def test_lists_show_the_newest_first_and_no_more_than_asked(
    ledger: Ledger, clock: FakeClock
) -> None:
    """By status or kind where one is named."""
    for number in range(5):
        clock.advance(1)
        make_job(ledger, f"s{number}", status="failed" if number % 2 else "pending")

    assert [job.session for job in ledger.records.jobs(limit=2)] == ["s4", "s3"]
    assert [job.session for job in ledger.records.jobs(status="failed")] == ["s3", "s1"]
    assert ledger.records.jobs(kind="extract") == []


def test_a_list_needs_no_sort_of_the_whole_table(ledger: Ledger) -> None:
    """With a million rows, the newest fifty are read from the end of an index."""
    steps = ledger.db.rows("explain query plan select id from job order by id desc limit 50")

    assert "TEMP B-TREE" not in str(steps)


def test_counts_use_the_words_a_person_sees(ledger: Ledger) -> None:
    """Retrying and waiting are kinds of pending."""
    make_job(ledger, "a")
    make_job(ledger, "b", failures=1)
    make_job(ledger, "c", failures=1, wait_reason="store.busy")
    make_job(ledger, "d", status="running")
    make_job(ledger, "e", status="failed")

    assert ledger.records.counts() == {
        "pending": 1,
        "retrying": 1,
        "waiting": 1,
        "running": 1,
        "failed": 1,
    }
    shown = {job.session: job.shown_status for job in ledger.records.jobs()}
    assert shown == {"a": "pending", "b": "retrying", "c": "waiting", "d": "running", "e": "failed"}


def test_the_attempt_log_tells_each_attempt(ledger: Ledger, clock: FakeClock) -> None:
    """Who, how long, how it ended, and what it cost."""
    enqueue(ledger)
    job = claim(ledger, "one")
    ledger.count_call(job, 100, 10)
    ledger.count_call(job, 200, 20)
    clock.advance(5)
    ledger.snooze(job, clock.now_ms(), "store.busy")
    job = claim(ledger, "two")

    first, second = ledger.records.attempts(job)

    assert (first.owner, first.ending, first.detail) == ("one", "snoozed", "store.busy")
    assert first.ended_at is not None and first.ended_at - first.started_at == 5000
    assert (first.calls, first.input_tokens, first.output_tokens) == (2, 300, 30)
    assert (second.owner, second.ending, second.calls) == ("two", None, 0)


def test_every_row_carries_the_home_and_a_code_for_who_made_it(ledger: Ledger) -> None:
    """A ledger copied into another home can be told."""
    job = enqueue(ledger, payload={"why": "clear"})

    assert (job.home, job.trigger, job.payload) == (ledger.home, "hook", '{"why": "clear"}')
    assert ledger.records.find(job.id) == job
    assert ledger.records.by_key(str(job.idempotency_key)) == job
    assert ledger.records.find("no-such") is None
    assert ledger.records.by_key("no-such") is None
