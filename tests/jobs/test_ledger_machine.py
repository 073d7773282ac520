"""Any order of what two workers, a rescue and a person may do keeps the ledger's promises."""

from __future__ import annotations

import itertools
import random
import tempfile
from pathlib import Path

import pytest
from builders import LEASE_SECONDS, enqueue, open_ledger, part_of, plan_of
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from memoryd.jobs import ledger as ledger_module
from memoryd.jobs.job import Job
from memoryd.jobs.ledger import Ledger
from memoryd.memory.errors import LeaseLost
from memoryd.memory.testing import FakeClock

WORKERS = st.sampled_from(["one", "two"])
BACK = st.integers(0, 2)
SESSIONS = ("s1", "s2")


class Queue(RuleBasedStateMachine):
    """Two workers with a ledger object each on one file; ``claims`` is what they ever took.

    An attempt that stalled comes back as one of the older claims.
    """

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.clock = FakeClock()
        self.ledgers = {
            name: open_ledger(Path(self.folder.name), self.clock) for name in ("one", "two")
        }
        self.ledger = self.ledgers["one"]
        # Hypothesis replays its choices: ids and jitter must come out the same every time.
        for name, ledger in self.ledgers.items():
            ledger._rng = random.Random(name)
        self.make_id, numbers = ledger_module.uuid7, itertools.count()
        ledger_module.uuid7 = lambda now_ms: f"{now_ms:015d}-{next(numbers):06d}"
        self.claims: list[tuple[str, Job]] = []
        self.cursors = dict.fromkeys(SESSIONS, 0)
        self.cutoff = 0

    def teardown(self) -> None:
        """Close both connections before the folder goes."""
        ledger_module.uuid7 = self.make_id
        for ledger in self.ledgers.values():
            ledger.close()
        self.folder.cleanup()

    def holds(self, job: Job) -> bool:
        """Whether the row still says that this attempt runs."""
        row = self.ledger.records.find(job.id)
        return row is not None and (row.status, row.attempt) == ("running", job.attempt)

    @rule(session=st.sampled_from(SESSIONS), kind=st.sampled_from(["extract", "finalize"]))
    def enqueue(self, session: str, kind: str) -> None:
        """A session ends, or a run of it does. Time passes, so that ids have one order."""
        self.cutoff += 1
        self.clock.advance(0.001)
        enqueue(self.ledger, session, kind, cutoff=self.cutoff)

    @rule(worker=WORKERS)
    def claim(self, worker: str) -> None:
        """A worker takes a job, whatever it took before."""
        job = self.ledgers[worker].claim(worker)
        if job is None:
            self.enqueue(SESSIONS[self.cutoff % 2], "extract")
            job = self.ledgers[worker].claim(worker)
        if job is None:
            return
        tokens = {(each.id, each.attempt) for _, each in self.claims}
        assert (job.id, job.attempt) not in tokens, "one owner per token"
        self.claims.append((worker, job))

    @precondition(lambda self: self.claims)
    @rule(worker=WORKERS)
    def overtake(self, worker: str) -> None:
        """All leases run out and a worker takes the next job, often one that is still worked."""
        self.clock.advance(LEASE_SECONDS)
        self.claim(worker)

    def one_of(self, back: int) -> tuple[Ledger, Job]:
        """The claim made ``back`` claims ago, or the first, with its worker's ledger."""
        worker, job = self.claims[max(-len(self.claims), -1 - back)]
        return self.ledgers[worker], job

    @precondition(lambda self: self.claims)
    @rule(back=BACK, how=st.sampled_from(["snooze", "release", "fail", "complete", "plan"]))
    def write(self, back: int, how: str) -> None:
        """An attempt records something: exactly the one that holds the lease may."""
        ledger, job = self.one_of(back)
        expected = self.holds(job)
        if how == "plan" and ledger.standing_plan(job) is not None:
            expected = False
        first = ledger.cursor(job.agent, job.session) + 1
        writes = {
            "snooze": lambda: ledger.snooze(job, self.clock.now_ms() + 1000, "store.busy"),
            "release": lambda: ledger.release(job),
            "fail": lambda: ledger.fail(job, "answer.unusable", ""),
            "complete": lambda: ledger.complete(job, "session.empty"),
            "plan": lambda: ledger.record_plan(job, plan_of(job, first, first + 2), []),
        }
        if expected:
            writes[how]()
        else:
            with pytest.raises(LeaseLost):
                writes[how]()

    @precondition(lambda self: self.claims)
    @rule(back=BACK, last=st.booleans())
    def advance(self, back: int, last: bool) -> None:
        """An attempt settles the standing plan, or passes over some words."""
        ledger, job = self.one_of(back)
        plan = ledger.standing_plan(job)
        first = ledger.cursor(job.agent, job.session) + 1
        part = plan.scope if plan else part_of(job, first, first + 1)
        outcome = "session.distilled" if last else None
        if self.holds(job):
            ledger.advance(job, part, outcome=outcome)
            assert ledger.cursor(job.agent, job.session) == part.last
            assert ledger.standing_plan(job) is None
        else:
            with pytest.raises(LeaseLost):
                ledger.advance(job, part, outcome=outcome)

    @precondition(lambda self: self.claims)
    @rule(back=BACK)
    def heartbeat(self, back: int) -> None:
        """A beat says whether the lease is still held."""
        ledger, job = self.one_of(back)
        expected = self.holds(job)
        assert ledger.heartbeat(job) == expected

    @rule(worker=WORKERS)
    def rescue(self, worker: str) -> None:
        """The tick of either process."""
        self.ledgers[worker].rescue()

    @rule(seconds=st.sampled_from([1, 60, LEASE_SECONDS, 7200]))
    def wait(self, seconds: int) -> None:
        """Time passes."""
        self.clock.advance(seconds)

    @rule(seconds=st.sampled_from([-7200, 7200]))
    def step(self, seconds: int) -> None:
        """The wall clock is set."""
        self.clock.step(seconds)

    @precondition(lambda self: self.cutoff)
    @rule(pick=st.integers(0, 7), what=st.sampled_from(["cancel", "retry", "skip"]))
    def person(self, pick: int, what: str) -> None:
        """A person cancels or asks again."""
        jobs = self.ledger.records.jobs()
        job = jobs[pick % len(jobs)]
        if what != "cancel":
            may = job.status in ("failed", "cancelled")
            assert self.ledger.retry(job, skip=what == "skip") == may
            return
        planned = self.ledger.db.rows("select 1 from plan where job_id = :id", id=job.id)
        may = job.status in ("pending", "running") and not planned
        assert self.ledger.cancel(job) == may

    @invariant()
    def one_running_job_per_serial_key(self) -> None:
        """Two would read the same words."""
        rows = self.ledger.db.rows(
            "select serial_key from job where status = 'running' group by 1 having count(*) > 1"
        )
        assert rows == []

    @invariant()
    def the_cursor_only_grows(self) -> None:
        """What was distilled is never read again."""
        for session in SESSIONS:
            now = self.ledger.cursor("claude-code", session)
            assert now >= self.cursors[session]
            self.cursors[session] = now

    @invariant()
    def every_plan_begins_at_its_cursor(self) -> None:
        """Else nobody could ever advance it."""
        rows = self.ledger.db.rows(
            "select plan.first, coalesce(cursor.seq, 0) from plan left join cursor"
            " on cursor.agent = plan.agent and cursor.session = plan.session"
        )
        assert all(first == seq + 1 for first, seq in rows)

    @invariant()
    def exactly_the_running_jobs_have_a_lease_and_an_open_attempt(self) -> None:
        """A row is never half way between two states."""
        leased = self.ledger.db.rows("select id from job where lease_owner is not null order by 1")
        running = self.ledger.db.rows("select id from job where status = 'running' order by 1")
        open_attempts = self.ledger.db.rows(
            "select job_id from attempt_log where ended_at is null order by 1"
        )
        assert leased == running == open_attempts

    @invariant()
    def one_extract_waits_a_session(self) -> None:
        """Its cutoff grows instead."""
        rows = self.ledger.db.rows(
            "select session from job where kind = 'extract' and status = 'pending'"
            " group by 1 having count(*) > 1"
        )
        assert rows == []


TestQueue = Queue.TestCase
TestQueue.settings = settings(
    max_examples=100,
    stateful_step_count=50,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TestQueue.pytestmark = [pytest.mark.slow]
