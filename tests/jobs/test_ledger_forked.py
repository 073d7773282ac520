"""Several processes at one job and at one session at once, with stale leases and set clocks."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from builders import AGENT, again, enqueue, make_job, open_ledger, part_of
from forked import together

from memoryd.jobs.job import Job
from memoryd.jobs.ledger import Ledger
from memoryd.memory.clock import SystemClock
from memoryd.memory.errors import LeaseLost

HOUR_MS = 3_600_000
#: Where a process that is set wrong thinks it is: every lease is over, or was given for too long.
STEPS_MS = (0, 0, 0, 2 * HOUR_MS, -2 * HOUR_MS, 30 * HOUR_MS)


class SetClock(SystemClock):
    """The system's clock, set wrong by ``step`` milliseconds."""

    step = 0

    def now_ms(self) -> int:
        """Wall milliseconds."""
        return super().now_ms() + self.step


class Hammer:
    """One process that does to one job whatever may be done, with whatever token it ever had."""

    def __init__(self, folder: Path, job: str, seed: int) -> None:
        self.clock = SetClock()
        self.ledger = open_ledger(folder, self.clock)
        self.random = random.Random(seed)
        self.owner = f"owner-{seed}"
        self.job = job
        self.tokens: list[Job] = []
        self.advanced: list[tuple[int, int, int]] = []

    def run(self, rounds: int) -> dict[str, Any]:
        """The tokens it was given and the slices it advanced: attempt, first, last."""
        steps: list[Callable[[], object]] = [
            *[self.claim, self.advance, self.advance, self.rescue, self.cancel, self.retry],
            *[self.beat, self.end],
        ]
        for _ in range(rounds):
            self.clock.step = self.random.choice(STEPS_MS)
            try:
                self.random.choice(steps)()
            except LeaseLost:
                continue
        self.ledger.close()
        return {"attempts": [job.attempt for job in self.tokens], "advanced": self.advanced}

    def token(self) -> Job | None:
        """One of the last it had, which may be stale."""
        return self.random.choice(self.tokens[-2:]) if self.tokens else None

    def claim(self) -> None:
        """The one job, as the next ready or by its name."""
        only = self.random.choice([None, self.job])
        taken = self.ledger.claim(self.owner, only=only)
        if taken is not None:
            assert taken.lease_owner == self.owner
            self.tokens.append(taken)

    def advance(self) -> None:
        """A slice of one or two messages from where the cursor is; sometimes the last."""
        token = self.token()
        if token is None:
            return
        first = self.ledger.cursor(token.agent, token.session) + 1
        last = first + self.random.randint(0, 1)
        outcome = self.random.choice([None, None, "session.distilled"])
        self.ledger.advance(token, part_of(token, first, last), outcome=outcome)
        self.advanced.append((token.attempt, first, last))

    def rescue(self) -> None:
        """By the tick, or by a daemon that starts."""
        self.ledger.rescue(everything=self.random.random() < 0.2)

    def cancel(self) -> None:
        """By a person."""
        self.ledger.cancel(self.ledger.records.job(self.job))

    def retry(self) -> None:
        """By a person; one that completed is reopened behind the ledger's back, to go on."""
        if not self.ledger.retry(self.ledger.records.job(self.job)):
            self.ledger.db.change(
                "update job set status = 'pending', finished_at = null where status = 'completed'"
            )

    def beat(self) -> None:
        """A heartbeat of whichever token."""
        if token := self.token():
            self.ledger.heartbeat(token)

    def end(self) -> None:
        """One of the other ends of an attempt."""
        if token := self.token():
            now = self.clock.now_ms()
            ends: list[Callable[[], object]] = [
                lambda: self.ledger.release(token),
                lambda: self.ledger.snooze(token, now, "store.busy"),
                lambda: self.ledger.fail(token, "answer.unusable", ""),
            ]
            self.random.choice(ends)()


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0])
def test_one_job_in_the_hands_of_four_processes(tmp_path: Path, seed: int) -> None:
    """Each attempt is one owner's, each message is accounted for once, whoever comes late."""
    ledger = open_ledger(tmp_path, SystemClock())
    job = enqueue(ledger)
    ledger.close()

    def hammer(number: int) -> dict[str, Any]:
        return Hammer(tmp_path, job.id, number).run(200)

    found = together(*(partial(hammer, 10 * seed + number) for number in range(4)))

    attempts = Counter(attempt for each in found for attempt in each["attempts"])
    assert set(attempts.values()) == {1}, "one owner per token"
    slices = sorted(tuple(part[1:]) for each in found for part in each["advanced"])
    for each in found:
        assert {part[0] for part in each["advanced"]} <= set(each["attempts"])
    read = [seq for first, last in slices for seq in range(first, last + 1)]
    assert read == list(range(1, ledger.cursor(AGENT, "s1") + 1)), "every word once"
    assert len(slices) > 5
    row = again(ledger, job)
    assert row.attempt == max(attempts)
    log = ledger.records.attempts(row)
    assert [line.attempt for line in log] == sorted(attempts)
    assert [line.ending for line in log].count(None) == (row.status == "running")


def test_a_cancel_and_a_rescue_of_one_job_at_once(tmp_path: Path) -> None:
    """Whoever is first, the job ends cancelled, its attempt ended once, and it never runs again."""
    ledger = open_ledger(tmp_path, SystemClock())
    stale = [make_job(ledger, f"s{n}", status="running", lease_expires_at=1) for n in range(25)]
    for job in stale:
        log = "insert into attempt_log (job_id, attempt, owner, started_at) values (:id, 1, 'x', 1)"
        ledger.db.change(log, id=job.id)
    ledger.close()

    def cancel() -> int:
        mine = open_ledger(tmp_path, SystemClock())
        return sum(mine.cancel(job) for job in stale)

    def rescue() -> int:
        mine, rescued = open_ledger(tmp_path, SystemClock()), 0
        while running := [job for job in map(partial(again, mine), stale) if is_running(job)]:
            # One at a time, so that the two meet.
            with mine.db.writing():
                rescued += mine._take_back(running[-1], mine.clock.now_ms())
        return rescued

    cancelled, _ = together(cancel, rescue)

    assert cancelled == 25
    rows = [again(ledger, job) for job in stale]
    assert {(row.status, row.outcome_code) for row in rows} == {("cancelled", "job.cancelled")}
    assert ledger.claim("late") is None
    endings = ledger.db.rows("select distinct ending from attempt_log")
    assert set(endings) <= {("crashed",), ("cancelled",)}


def is_running(job: Job) -> bool:
    """Whether the row says so."""
    return job.status == "running"


def test_three_jobs_of_one_session_at_once(tmp_path: Path) -> None:
    """A finalize, an extract and a backfill, each in a process: every message is read once."""
    end = 30
    ledger = open_ledger(tmp_path, SystemClock())
    jobs = [make_job(ledger, kind=kind) for kind in ("finalize", "extract", "backfill")]
    ledger.close()

    def work(job: Job) -> list[list[int]]:
        mine, read = open_ledger(tmp_path, SystemClock()), []
        while again(mine, job).status != "completed":
            taken = mine.claim("worker", only=job.id)
            if taken is None:
                continue
            read += slices(mine, taken, end)
        return read

    found = together(*(partial(work, job) for job in jobs))

    read = sorted(seq for each in found for first, last in each for seq in range(first, last + 1))
    assert read == list(range(1, end + 1))
    assert ledger.records.counts() == {"completed": 3}
    assert ledger.cursor(AGENT, "s1") == end


def slices(ledger: Ledger, job: Job, end: int) -> list[list[int]]:
    """Advance by three messages to the end, or give the job back half way."""
    read = []
    while (first := ledger.cursor(job.agent, job.session) + 1) <= end:
        last = min(first + 2, end)
        ledger.advance(job, part_of(job, first, last))
        read.append([first, last])
        if len(read) == 2:
            ledger.release(job)
            return read
    ledger.complete(job, "nothing.new")
    return read
