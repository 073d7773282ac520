"""A start upon thousands of stale jobs: taken back a few at a time, worked in their order."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from builders import claim, make_job, open_ledger

from memoryd.jobs import ledger_claims
from memoryd.jobs.database import Database
from memoryd.jobs.ledger import Ledger
from memoryd.memory.testing import FakeClock

STALE = 25
BATCH = 10


@pytest.fixture
def ledger(tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    """A ledger that a daemon left with many running jobs, all leases over."""
    monkeypatch.setattr(ledger_claims, "RESCUE_BATCH", BATCH)
    ledger = open_ledger(tmp_path, clock)
    with ledger.db.writing():
        for number in range(STALE):
            make_job(ledger, f"s{number}", status="running", lease_expires_at=1)
    return ledger


@pytest.fixture
def transactions(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Of each write transaction, how many rows it had changed when it ended."""
    seen: list[int] = []
    writing = Database.writing

    @contextmanager
    def counted(self: Database, *, durable: bool = False) -> Iterator[None]:
        before = self._connected().total_changes
        with writing(self, durable=durable):
            yield
        seen.append(self._connected().total_changes - before)

    monkeypatch.setattr(Database, "writing", counted)
    return seen


@pytest.mark.parametrize("everything", [True, False])
def test_they_are_taken_back_in_bounded_transactions(
    ledger: Ledger, transactions: list[int], everything: bool
) -> None:
    """Others get the write lock in between."""
    assert ledger.rescue(everything=everything) == STALE

    rows_and_lines = [2 * BATCH, 2 * BATCH, 2 * (STALE - 2 * BATCH)]
    assert transactions == rows_and_lines
    assert ledger.records.counts() == {"retrying": STALE}


def test_a_claim_takes_back_what_holds_the_others_back(
    ledger: Ledger, transactions: list[int]
) -> None:
    """A batch at a time, as many as it takes: what crashed waits until nothing else runs."""
    first = claim(ledger)

    assert max(transactions) <= 2 * BATCH + 2
    assert ledger.records.counts() == {"retrying": STALE - 1, "running": 1}
    assert ledger.claim("beside") is None
    ledger.complete(first, "transcript.gone")
    for _ in range(STALE - 1):
        ledger.complete(claim(ledger), "transcript.gone")
    assert ledger.records.counts() == {"completed": STALE}


def test_those_of_this_process_are_renewed_and_end_no_rescue(ledger: Ledger) -> None:
    """However many there are: a rescue of everything ends too."""
    jobs = ledger.records.jobs()
    ledger.alive = lambda: jobs[:BATCH]

    assert ledger.rescue(everything=True) <= STALE - BATCH
    ledger.rescue()

    running = {job.id for job in ledger.records.jobs(status="running")}
    assert running >= {job.id for job in jobs[:BATCH]}
