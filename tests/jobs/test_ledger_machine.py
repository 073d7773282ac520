"""Any order of what workers, rescues, people and clocks may do keeps the ledger's promises."""

from __future__ import annotations

import itertools
import random
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from builders import LEASE_SECONDS, open_ledger, part_of, plan_of, request
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from memoryd.jobs import ledger_requests
from memoryd.jobs.archived import Archived
from memoryd.jobs.job import Job
from memoryd.jobs.ledger import Ledger
from memoryd.jobs.retention import Which
from memoryd.memory.errors import LeaseLost, UsageError
from memoryd.memory.plan import Plan
from memoryd.memory.testing import FakeClock

WORKERS = st.sampled_from(["one", "two"])
BACK = st.integers(0, 2)
PICK = st.integers(0, 7)
SESSIONS = ("s1", "s2")
STORE = "-code"
#: Thousands of synced commits, of which none is about the disk.
IN_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
FINISHED = ("completed", "failed", "cancelled")
#: What is compared between two steps.
ROWS = "select id, status, attempt, failures, cutoff from job"


class Queue(RuleBasedStateMachine):
    """Two workers with a ledger object each on one file; ``claims`` is what they ever took.

    An attempt that stalled comes back as one of the older claims. ``began_again`` are the jobs that
    the last step may have let run anew, ``may_go`` those it may have deleted.
    """

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(dir=IN_MEMORY)
        self.clock = FakeClock()
        self.ledgers = {
            name: open_ledger(Path(self.folder.name), self.clock) for name in ("one", "two")
        }
        self.ledger = self.ledgers["one"]
        # Hypothesis replays its choices: ids and jitter must come out the same every time.
        for name, ledger in self.ledgers.items():
            ledger._rng = random.Random(name)
        self.make_id, numbers = ledger_requests.uuid7, itertools.count()
        ledger_requests.uuid7 = lambda now_ms: f"{now_ms:015d}-{next(numbers):06d}"
        self.claims: list[tuple[str, Job]] = []
        self.cursors = dict.fromkeys(SESSIONS, 0)
        self.cutoff = 0
        self.rows: dict[str, tuple[object, ...]] = {}
        self.began_again: set[str] = set()
        self.may_go: set[str] = set()

    def teardown(self) -> None:
        """Close both connections before the folder goes."""
        ledger_requests.uuid7 = self.make_id
        for ledger in self.ledgers.values():
            ledger.close()
        self.folder.cleanup()

    def holds(self, job: Job) -> bool:
        """Whether the row still says that this attempt runs."""
        row = self.ledger.records.find(job.id)
        return row is not None and (row.status, row.attempt) == ("running", job.attempt)

    def has_plan(self, job: Job) -> bool:
        """Whether a plan of its own stands."""
        return bool(self.ledger.db.rows("select 1 from plan where job_id = :id", id=job.id))

    # -- jobs are made ---------------------------------------------------------------------------

    @rule(session=st.sampled_from(SESSIONS), kind=st.sampled_from(["extract", "finalize"]))
    def enqueue(self, session: str, kind: str) -> None:
        """A session ends, or a run of it does. Time passes, so that ids have one order."""
        self.cutoff += 1
        self.clock.advance(0.001)
        request(self.ledger, session, kind, cutoff=self.cutoff)

    @rule(
        what=st.sampled_from(["again", "store", "backfill"]),
        pick=PICK,
        session=st.sampled_from(SESSIONS),
        look=st.integers(1, 3),
    )
    def make(self, what: str, pick: int, session: str, look: int) -> None:
        """What makes a job, or not, besides the end of a session or a run."""
        self.clock.advance(0.001)
        if what == "again":
            self.tell_again(pick, "cli" if pick % 2 else "hook")
        elif what == "store":
            self.ledger.enqueue_store("consolidate", STORE, key=str(look), trigger="daily")
        else:
            self.find(session, look, per_day=1 + pick)

    def tell_again(self, pick: int, asked: str) -> None:
        """The same end is told twice: one job, read again only where it could not be read."""
        ended = [job for job in self.ledger.records.jobs() if job.kind == "finalize"]
        if not ended:
            return
        job = ended[pick % len(ended)]
        code = job.outcome_code if job.status == "completed" else None
        may = code == "transcript.gone" or (asked == "cli" and code == "extraction.off")
        made = request(self.ledger, job.session, cutoff=job.cutoff, trigger=asked)
        assert made.job is None or made.job.id == job.id
        assert made.created == (may and not made.excluded)
        if made.created:
            self.began_again.add(job.id)

    def find(self, session: str, look: int, per_day: int) -> None:
        """Discovery found a session of the archive, new, changed or as it was."""
        self.ledger.db.change(
            "insert into rollout (agent, session, transcript, cwd, last_cutoff, seen_at)"
            " values ('claude-code', :session, '/t', '/code', 0, 0)"
            " on conflict (agent, session) do nothing",
            session=session,
        )
        self.ledger.db.change(
            "update rollout set fingerprint = :look where session = :session",
            look=str(look),
            session=session,
        )
        found = Archived(
            *("claude-code", session, "/t", "/code", None, str(look)), 1, 1, 1, None, None, None
        )
        known = self.ledger.records.by_key(f"backfill:claude-code/{session}#{look}")
        made = self.ledger.enqueue_backfill(found, cutoff=self.cutoff, per_day=per_day)
        if made is not None and known is not None:
            assert made.id == known.id
            self.began_again.add(made.id)

    # -- workers ---------------------------------------------------------------------------------

    @rule(worker=WORKERS, room=st.sampled_from([0, 1, 9]))
    def claim(self, worker: str, room: int = 9) -> None:
        """A worker takes a job, whatever it took before; a backfill only where there is room."""
        job = self.ledgers[worker].claim(worker, room=room)
        if job is None:
            self.enqueue(SESSIONS[self.cutoff % 2], "extract")
            job = self.ledgers[worker].claim(worker, room=room)
        if job is not None and job.kind == "backfill":
            ((others,),) = self.ledger.db.rows(
                "select count(*) from job where status = 'running' and id <> :id", id=job.id
            )
            assert others < room
        self.took(worker, job)

    @precondition(lambda self: self.cutoff)
    @rule(worker=WORKERS, pick=PICK)
    def claim_one(self, worker: str, pick: int) -> None:
        """A person has one job worked at once, where it is ready."""
        jobs = self.ledger.records.jobs()
        if not jobs:
            return
        job = jobs[pick % len(jobs)]
        taken = self.ledgers[worker].claim(worker, only=job.id)
        assert taken is None or (taken.id == job.id and job.status == "pending")
        self.took(worker, taken)

    def took(self, worker: str, job: Job | None) -> None:
        """One owner per token; a job that crashed runs beside no other."""
        if job is None:
            return
        tokens = {(each.id, each.attempt) for _, each in self.claims}
        assert (job.id, job.attempt) not in tokens, "one owner per token"
        self.claims.append((worker, job))
        running = self.ledger.db.rows("select crashes from job where status = 'running'")
        assert len(running) == 1 or running.count((0,)) == len(running), "poison runs alone"

    @rule(worker=WORKERS)
    def begin(self, worker: str) -> None:
        """A worker comes as far as a plan, which is applied later, or by somebody else."""
        before = len(self.claims)
        self.claim(worker)
        if len(self.claims) > before:
            self.write(0, "plan")

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
    @rule(
        back=BACK,
        how=st.sampled_from(
            ["snooze", "release", "fail", "complete", "gone", "off", "throttle", "plan", "slice"]
        ),
    )
    def write(self, back: int, how: str) -> None:
        """An attempt records something: exactly the one that holds the lease may."""
        ledger, job = self.one_of(back)
        expected = self.holds(job)
        if how == "plan" and ledger.standing_plan(job) is not None:
            expected = False
        if how in ("complete", "gone", "off", "throttle") and ledger.standing_plan(job):
            return  # a handler settles what stands before it does anything else
        if how == "throttle" and job.kind != "extract":
            return
        first = ledger.cursor(job.agent, job.session) + 1
        plan = plan_of(job, first, first + 2)
        if job.kind == "consolidate":
            plan = replace(plan, slice=None)
        writes = {
            "snooze": lambda: ledger.snooze(job, self.clock.now_ms() + 1000, "store.busy"),
            "release": lambda: ledger.release(job),
            "fail": lambda: ledger.fail(job, "answer.unusable", ""),
            "complete": lambda: ledger.complete(job, "session.empty"),
            "gone": lambda: ledger.complete(job, "transcript.gone"),
            "off": lambda: ledger.complete(job, "extraction.off"),
            "throttle": lambda: ledger.throttle(job),
            "plan": lambda: ledger.record_plan(job, plan, []),
            "slice": lambda: ledger.begin_slice(job, first, first + 2, STORE),
        }
        if expected:
            writes[how]()
            self.may_go |= {job.id} if how == "throttle" else set()
        else:
            with pytest.raises(LeaseLost):
                writes[how]()

    @precondition(lambda self: self.claims)
    @rule(back=BACK, last=st.booleans())
    def advance(self, back: int, last: bool) -> None:
        """An attempt settles the standing plan, or passes over some words."""
        ledger, job = self.one_of(back)
        plan = ledger.standing_plan(job)
        if job.kind == "consolidate":
            return self.finish(ledger, job, plan)
        first = ledger.cursor(job.agent, job.session) + 1
        part = plan.scope if plan else part_of(job, first, first + 1)
        outcome = "session.distilled" if last else None
        if self.holds(job):
            ledger.advance(job, part, outcome=outcome)
            assert part.first == first, "no word twice, none left out"
            assert ledger.cursor(job.agent, job.session) == part.last
            assert ledger.standing_plan(job) is None
        else:
            with pytest.raises(LeaseLost):
                ledger.advance(job, part, outcome=outcome)
        return None

    def finish(self, ledger: Ledger, job: Job, plan: Plan | None) -> None:
        """The same for the plan of a store."""
        ends = partial(ledger.complete_store, job, "store.consolidated", empty=False)
        do = ends if plan is None else partial(ledger.finish_plan, job, plan)
        if self.holds(job):
            do()
            assert ledger.standing_plan(job) is None
        else:
            with pytest.raises(LeaseLost):
                do()

    @precondition(lambda self: self.claims)
    @rule(back=BACK)
    def heartbeat(self, back: int) -> None:
        """A beat says whether the lease is still held."""
        ledger, job = self.one_of(back)
        expected = self.holds(job)
        assert ledger.heartbeat(job) == expected

    @rule(worker=WORKERS, how=st.sampled_from(["tick", "tick", "awake", "awake", "start"]))
    def rescue(self, worker: str, how: str) -> None:
        """The tick of a process; of one that slept, which takes nothing away from its own attempts;
        or a daemon that takes the home, so that nobody else can be working."""
        ledger = self.ledgers[worker]
        living = [job for name, job in self.claims if name == worker and self.holds(job)]
        if how == "awake":
            ledger.alive = lambda: living
        ledger.rescue(everything=how == "start")
        ledger.alive = tuple
        if how == "awake":
            assert all(map(self.holds, living))
        if how == "start":
            assert not ledger.db.rows("select 1 from job where status = 'running'")

    # -- time and people -------------------------------------------------------------------------

    @rule(seconds=st.sampled_from([1, 60, LEASE_SECONDS, 7200]), by=st.sampled_from("ppb+-"))
    def pass_time(self, seconds: int, by: str) -> None:
        """Time passes, or the wall clock is set: back, or a day forth or back."""
        if by == "p":
            self.clock.advance(seconds)
        else:
            self.clock.step({"b": -seconds, "+": 30 * 3600, "-": -30 * 3600}[by])

    @precondition(lambda self: self.cutoff)
    @rule(
        pick=PICK,
        what=st.sampled_from(["cancel", "cancel", "retry", "retry", "skip", "prune", "exclude"]),
    )
    def person(self, pick: int, what: str) -> None:
        """A person cancels, asks again, tidies, or has a session left alone."""
        jobs = self.ledger.records.jobs()
        if not jobs:
            return
        job = jobs[pick % len(jobs)]
        if what == "prune":
            self.prune(pick % 3, failed=pick > 5)
        elif what == "exclude":
            self.exclude(SESSIONS[pick % 2], back=pick < 6)
        elif what == "cancel":
            may = job.status in ("pending", "running") and not self.has_plan(job)
            assert self.ledger.cancel(job) == may
        else:
            may = job.status in ("failed", "cancelled")
            if may and what == "skip" and self.is_worked(job):
                with pytest.raises(UsageError, match="another job is at work"):
                    self.ledger.retry(job, skip=True)
                return
            assert self.ledger.retry(job, skip=what == "skip") == may
            self.began_again |= {job.id} if may else set()

    def is_worked(self, job: Job) -> bool:
        """Whether another job of its serial key runs: what it plans must not be taken from it."""
        running = self.ledger.records.jobs(status="running")
        return any(each.serial_key == job.serial_key for each in running)

    def exclude(self, session: str, back: bool) -> None:
        """Never read a session; what is being written is finished. Mostly taken back."""
        self.ledger.exclude("claude-code", session, "session.excluded")
        open_jobs = self.ledger.db.rows(
            "select id from job where session = :session and status in ('pending', 'running')"
            " and not exists (select 1 from plan where plan.job_id = job.id)",
            session=session,
        )
        assert open_jobs == []
        if back:
            self.ledger.db.change("update rollout set excluded = null")

    def prune(self, keep: int, failed: bool) -> None:
        """Retention, or a person who tidies; a look beforehand says the same."""
        statuses = frozenset({"completed", "cancelled", *(["failed"] if failed else [])})
        which = Which(statuses, keep, self.clock.now_ms())
        said = self.ledger.retention.would_go(which)
        self.may_go |= {str(row[0]) for row in self.rows.values() if row[1] in statuses}
        assert self.ledger.retention.prune(which) == said

    # -- what always holds -----------------------------------------------------------------------

    @invariant()
    def no_job_goes_or_runs_again_or_is_forgiven_by_itself(self) -> None:
        """It leaves only by a prune or a throttle, comes back and has its failures forgotten only
        when asked for again; attempts only grow, and so does what an extract is to read."""
        now = {str(row[0]): row for row in self.ledger.db.rows(ROWS)}
        assert set(self.rows) - set(now) <= self.may_go
        for identifier in set(now) & set(self.rows) - self.began_again:
            _, was, attempt, failures, cutoff = self.rows[identifier]
            _, status, attempt_now, failures_now, cutoff_now = now[identifier]
            assert status == was or was not in FINISHED
            assert attempt_now - attempt in (0, 1)
            assert failures_now - failures in (0, 1)
            assert cutoff_now >= cutoff
        self.rows = now
        self.began_again, self.may_go = set(), set()

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
    def every_plan_begins_at_its_cursor_and_somebody_settles_it(self) -> None:
        """Else nobody could ever advance it: a job of its serial key waits, or shows as failed."""
        rows = self.ledger.db.rows(
            "select plan.first, coalesce(cursor.seq, 0) from plan left join cursor"
            " on cursor.agent = plan.agent and cursor.session = plan.session"
            " where plan.agent <> ''"
        )
        assert all(first == seq + 1 for first, seq in rows)
        nobody = self.ledger.db.rows(
            "select serial_key from plan where not exists (select 1 from job"
            " where job.serial_key = plan.serial_key"
            " and job.status in ('pending', 'running', 'failed'))"
        )
        assert nobody == []

    @invariant()
    def exactly_the_running_jobs_have_a_lease_and_each_other_attempt_its_end(self) -> None:
        """A row is never half way between two states; no attempt outlives its job, or is lost."""
        leased = self.ledger.db.rows("select id from job where lease_owner is not null order by 1")
        running = self.ledger.db.rows("select id from job where status = 'running' order by 1")
        assert leased == running
        open_attempts = self.ledger.db.rows("select job_id from attempt_log where ended_at is null")
        assert set(open_attempts) <= set(running)
        unaccounted = (
            "select id from job where attempt - (status = 'running') <> (select count(*)"
            " from attempt_log where job_id = job.id and ended_at is not null)"
        )
        assert not self.ledger.db.rows(unaccounted)
        lost = "select 1 from attempt_log where job_id not in (select id from job)"
        assert self.ledger.db.rows(lost) == []

    @invariant()
    def exactly_the_finished_jobs_have_an_end(self) -> None:
        """What is pruned by its end is never at work."""
        rows = self.ledger.db.rows(
            "select id from job where (finished_at is not null)"
            " <> (status in ('completed', 'failed', 'cancelled'))"
        )
        assert rows == []

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
    max_examples=40,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TestQueue.pytestmark = [pytest.mark.slow]
