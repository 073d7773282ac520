"""Jobs about a whole store: how they are made, one at a time, planned and finished."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders import MadeCandidate, enqueue, open_ledger

from memoryd.jobs.ledger import Ledger
from memoryd.memory.errors import LeaseLost, UsageError
from memoryd.memory.plan import Operation, Plan
from memoryd.memory.testing import FakeClock


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """A ledger on a file of its own."""
    return open_ledger(tmp_path, FakeClock())


def _plan(job: str) -> Plan:
    operation = Operation("-code", "user/a.md", None, None, None, "", "c1")
    return Plan(job, None, "rules", (operation,), "consolidate", "abc")


def test_the_same_day_makes_one_job_of_a_store(ledger: Ledger) -> None:
    """What it is known by decides, whoever asks."""
    made = ledger.enqueue_store("consolidate", "-code", key="2026-11-30", trigger="daily")
    again = ledger.enqueue_store("consolidate", "-code", key="2026-11-30", trigger="daily")
    other = ledger.enqueue_store("consolidate", "-code", key="2026-12-01", trigger="daily")

    assert (made.created, again.created, other.created) == (True, False, True)
    assert made.job == again.job
    assert made.job is not None and made.job.project == "-code"


def test_a_store_has_one_running_job(ledger: Ledger) -> None:
    """A second one waits for it; sessions do not."""
    ledger.enqueue_store("consolidate", "-code", key="1", trigger="daily")
    ledger.enqueue_store("consolidate", "-code", key="2", trigger="daily")
    enqueue(ledger)

    claimed = [ledger.claim("w") for _ in range(3)]

    assert [job and job.kind for job in claimed] == ["finalize", "consolidate", None]


def test_a_kind_is_asked_for_what_it_is_about(ledger: Ledger) -> None:
    """A store cannot be finalized, a session not consolidated."""
    with pytest.raises(UsageError, match="about a store"):
        ledger.enqueue_store("finalize", "-code", key="1", trigger="cli")
    with pytest.raises(UsageError, match="about a session"):
        enqueue(ledger, kind="consolidate")


def test_the_plan_of_a_store_is_kept_and_finished(ledger: Ledger) -> None:
    """It stands for the store until it is finished, with what became of its candidates."""
    ledger.enqueue_store("consolidate", "-code", key="1", trigger="daily")
    job = ledger.claim("w")
    assert job is not None

    ledger.record_plan(job, _plan(job.id), [MadeCandidate("c1"), MadeCandidate("c2")])  # type: ignore[list-item]
    standing = ledger.standing_plan(job)
    ledger.finish_plan(job, _plan(job.id), changed=["c2"])
    ledger.complete_store(job, "store.consolidated", empty=False)

    assert standing == _plan(job.id)
    assert ledger.standing_plan(job) is None
    states = {kept.id: kept.state for kept in ledger.records.candidates(job.id)}
    assert states == {"c1": "applied", "c2": "changed"}
    assert ledger.records.job(job.id).outcome_code == "store.consolidated"


def test_an_attempt_that_lost_its_lease_finishes_no_plan(ledger: Ledger) -> None:
    """The plan stands for whoever has the store now."""
    ledger.enqueue_store("consolidate", "-code", key="1", trigger="daily")
    job = ledger.claim("w")
    assert job is not None
    ledger.record_plan(job, _plan(job.id), [])
    ledger.rescue(everything=True)

    with pytest.raises(LeaseLost):
        ledger.finish_plan(job, _plan(job.id))
    with pytest.raises(LeaseLost):
        ledger.complete_store(job, "store.consolidated", empty=False)

    assert ledger.standing_plan(job) == _plan(job.id)


def test_empty_runs_in_a_row_are_counted(ledger: Ledger) -> None:
    """One that changed something begins the count anew; the last run is when it began."""
    counted = []
    for key, empty in (("1", True), ("2", True), ("3", False), ("4", True)):
        ledger.enqueue_store("consolidate", "-code", key=key, trigger="daily")
        job = ledger.claim("w")
        assert job is not None
        ledger.complete_store(job, "nothing.changed", empty=empty)
        counted.append(ledger.consolidations.of("-code").empty_runs)

    assert counted == [1, 2, 0, 1]
    assert ledger.consolidations.of("-code").last_run_at == job.started_at
    assert ledger.consolidations.of("-other").last_run_at == 0


def test_what_a_store_could_not_be_made_into_is_skipped(ledger: Ledger) -> None:
    """``retry --skip`` drops the plan and its candidates and moves no cursor."""
    ledger.enqueue_store("consolidate", "-code", key="1", trigger="daily")
    job = ledger.claim("w")
    assert job is not None
    ledger.record_plan(job, _plan(job.id), [MadeCandidate()])  # type: ignore[list-item]
    for _ in range(3):
        current = ledger.records.job(job.id)
        ledger.fail(current, "baseline.error", "no disk")
        ledger.db.change("update job set run_at = 0 where id = :id", id=job.id)
        ledger.claim("w")

    assert ledger.retry(ledger.records.job(job.id), skip=True)

    assert ledger.standing_plan(job) is None
    assert [kept.state for kept in ledger.records.candidates(job.id)] == ["skipped"]
