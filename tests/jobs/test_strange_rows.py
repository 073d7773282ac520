"""Rows that none of ours writes, or that a newer version wrote: the others do not wait for them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from builders import claim, enqueue, make_job, open_ledger
from world import NOTHING, World, answer, fact

from memoryd.daemon.lifecycle import Daemon
from memoryd.jobs import sweep
from memoryd.jobs.discovery import discover
from memoryd.jobs.doctor import examine
from memoryd.jobs.figures import Figures
from memoryd.jobs.job import Job
from memoryd.jobs.ledger import Ledger
from memoryd.jobs.letting_go import let_go
from memoryd.memory.clock import SystemClock
from memoryd.memory.config import Config, SessionSettings
from memoryd.memory.home import Home
from memoryd.memory.testing import FakeClock

RULE = "Always run the linter before you commit."
HOUR_MS = 3_600_000


@pytest.fixture
def ledger(tmp_path: Path, clock: FakeClock) -> Ledger:
    """An empty ledger."""
    return open_ledger(tmp_path, clock)


@pytest.fixture
def world(tmp_path: Path, clock: FakeClock) -> World:
    """A home whose model answers with one rule."""
    return World(tmp_path, clock, [answer(fact(RULE)), NOTHING, NOTHING])


def edit(ledger: Ledger, text: str, **values: object) -> None:
    """Change the ledger as a person with an editor would."""
    with ledger.db.writing():
        ledger.db.change(text, **values)


# -- leases --------------------------------------------------------------------------------------


@pytest.mark.parametrize("lease", [None, "soon", b"\xff", 1e300])
@pytest.mark.parametrize("crashes", [0, 1])
def test_a_lease_that_ends_at_no_time_is_over(ledger: Ledger, lease: object, crashes: int) -> None:
    """Else its job is worked never again and, one that crashed, holds all others back."""
    stuck = make_job(ledger, "stuck", status="running", attempt=1, crashes=crashes)
    edit(ledger, "update job set lease_expires_at = :lease", lease=lease)
    enqueue(ledger, "other")

    due = ledger.next_due_ms()
    taken = claim(ledger)

    assert due is not None and due <= ledger.clock.now_ms() + 1000
    assert ledger.records.job(stuck.id).crashes == crashes + 1
    assert taken.session == ("other" if crashes else "stuck")


def test_everything_that_runs_is_rescued_whatever_its_lease_says(ledger: Ledger) -> None:
    """The process that holds the home's lock works alone."""
    stuck = make_job(ledger, "stuck", status="running", attempt=1)
    edit(ledger, "update job set lease_expires_at = null")

    assert ledger.rescue(everything=True) == 1
    assert ledger.records.job(stuck.id).status == "pending"


# -- what is overdue -----------------------------------------------------------------------------


def test_what_is_overdue_and_can_be_claimed_is_looked_at_again_soon(ledger: Ledger) -> None:
    """Its ring was lost: a free worker comes by itself, and not without a pause."""
    enqueue(ledger)
    ledger.clock.advance(60)  # type: ignore[attr-defined]

    due = ledger.next_due_ms()

    assert due is not None and 0 < due - ledger.clock.now_ms() <= 1000


@pytest.mark.parametrize("what", ["backfill", "alone", "same session", "unknown kind"])
def test_what_is_overdue_and_cannot_be_claimed_wakes_nobody(ledger: Ledger, what: str) -> None:
    """It is looked at when something ends, or at the next sweep."""
    if what == "backfill":
        make_job(ledger, "s2", kind="backfill")
    elif what == "unknown kind":
        make_job(ledger, "s2")
        edit(ledger, "update job set kind = 'compact'")
    else:
        enqueue(ledger, "s1")
        running = claim(ledger)
        session = "s1" if what == "same session" else "s2"
        make_job(ledger, session, crashes=int(what == "alone"))
        assert running.status == "running"

    due = ledger.next_due_ms()

    assert due is None or due > ledger.clock.now_ms() + 60_000


def test_an_attempt_line_that_no_claim_made_stops_no_claim(ledger: Ledger) -> None:
    """The head of the order would never be taken, and nothing behind it."""
    job = enqueue(ledger)
    edit(
        ledger,
        "insert into attempt_log (job_id, attempt, owner, started_at, ended_at)"
        " values (:id, 1, 'x', 1, 2)",
        id=job.id,
    )

    assert claim(ledger).id == job.id
    assert ledger.records.attempts(job)[0].ended_at is None


# -- kinds ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["compact", b"\x00\xff"])
def test_a_job_of_a_kind_that_is_not_known_waits_for_a_version_that_knows_it(
    ledger: Ledger, kind: object
) -> None:
    """At no cost, and alone it holds nobody back, though it crashed under the newer version."""
    waiting = make_job(ledger, "newer", crashes=1)
    edit(ledger, "update job set kind = :kind", kind=kind)
    other = enqueue(ledger, "other")

    ledger.rescue()
    taken = claim(ledger)

    # Asked of the table: what is shown leaves out a kind that is no text.
    rows = ledger.db.rows(
        "select status, wait_reason, attempt from job where id = :id", id=waiting.id
    )
    assert rows == [("pending", "kind.unknown", 0)] and taken.id == other.id
    assert not ledger.claim("owner", only=waiting.id)
    ledger.complete(taken, "nothing.new")
    assert ledger.idle()
    assert Figures(ledger.db).unclaimed_since(ledger.clock.now_ms()) is None


def test_the_version_that_knows_a_kind_goes_on_with_it(ledger: Ledger) -> None:
    """The upgrade is undone: nothing of the job was lost."""
    job = make_job(ledger, "newer")
    edit(ledger, "update job set kind = 'compact'")
    ledger.rescue(everything=True)
    edit(ledger, "update job set kind = 'finalize'")

    ledger.rescue(everything=True)

    assert claim(ledger).id == job.id


def test_a_kind_that_is_not_known_has_not_crashed_where_its_daemon_was_stopped(
    ledger: Ledger,
) -> None:
    """It ran under the newer version: this one gives it back as it was."""
    running = make_job(ledger, "newer", status="running", attempt=1)
    edit(ledger, "update job set kind = 'compact', lease_expires_at = 1")

    ledger.rescue(everything=True)

    job = ledger.records.job(running.id)
    assert (job.status, job.failures, job.crashes) == ("pending", 0, 0)
    assert job.wait_reason == "kind.unknown"


def test_an_attempt_that_cannot_be_held_is_recorded_as_any_other(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing between the claim and the work leaves a job running that nobody works."""

    def hold(job: Job) -> None:
        raise KeyError(job.kind)

    monkeypatch.setattr(world.keeper, "hold", hold)
    job = world.finalize(world.transcript().user(RULE))

    assert (job.status, job.failures, job.error_code) == ("pending", 1, "attempt.error")


def test_the_doctor_names_jobs_of_a_kind_that_is_not_known(tmp_path: Path) -> None:
    """And says that it is the version that is too old."""
    home = Home(tmp_path / "home")
    home.prepare()
    ledger = open_ledger(home.root, SystemClock())
    job = make_job(ledger, "newer")
    edit(ledger, "update job set kind = 'compact'")

    found = [each for each in examine(home, SystemClock(), {}) if each.code == "job.unknown-kind"]

    assert len(found) == 1
    assert "compact" in found[0].what and job.id[-8:] in found[0].what


# -- rollouts ------------------------------------------------------------------------------------

DAMAGED = {
    "bytes": "update rollout set transcript = x'00ff' where session = 'bad'",
    "NUL": "update rollout set transcript = 'a' || char(0) || 'b' where session = 'bad'",
    "words": "update rollout set last_cutoff = 'abc', extracts = 'z', at_most = 'q'"
    " where session = 'bad'",
}


@pytest.mark.parametrize("how", DAMAGED)
def test_a_session_of_which_the_row_is_damaged_keeps_no_other_from_being_found(
    world: World, how: str
) -> None:
    """The sweep finds the good one, and discovery mends what it can of the damaged one."""
    for session in ("bad", "good"):
        said = world.transcript(session).user(RULE)
        os.utime(said.path, (1, world.clock.now_ms() / 1000 - 7200))
    old = world.clock.now_ms() / 1000 - 86_400
    os.utime(world.home.identity, (old, old))
    discover(world.home, world.ledger, world.config, world.environ)
    edit(world.ledger, "update rollout set seen_at = 1")
    edit(world.ledger, DAMAGED[how])

    made = sweep.finalize_idle(world.place)
    discover(world.home, world.ledger, world.config, world.environ)

    assert made >= 1
    sessions = {job.session for job in world.ledger.records.jobs()}
    sweep.finalize_idle(world.place)
    assert "good" in sessions
    if how == "bytes":
        assert {job.session for job in world.ledger.records.jobs()} == {"bad", "good"}


def test_a_sweep_that_fails_rings_all_the_same(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is in the ledger does not wait for what stopped the sweep."""

    class Bell:
        rung = 0

        def ring(self) -> None:
            self.rung += 1

    def fails(place: object) -> int:
        raise TypeError("a row")

    daemon = Daemon(world.home, world.environ, world.clock)
    daemon.place, bell = world.place, Bell()
    daemon.doorbell = bell  # type: ignore[assignment]
    monkeypatch.setattr("memoryd.daemon.lifecycle.finalize_idle", fails)

    with pytest.raises(TypeError):
        daemon._sweep()

    assert bell.rung == 1


# -- cursors -------------------------------------------------------------------------------------


def test_a_cursor_that_says_nothing_keeps_its_own_session_only(
    tmp_path: Path, clock: FakeClock
) -> None:
    """Its job waits at no cost and says why; the daily work passes it by."""
    config = Config(sessions=SessionSettings(keep_days=1))
    world = World(tmp_path, clock, [NOTHING, NOTHING, NOTHING], config=config)
    for session in ("s0", "s1", "s2"):
        world.finalize(world.transcript(session).user(RULE))
    edit(world.ledger, "update cursor set seq = 'abc' where session = 's1'")
    waits = world.enqueue(world.transcript("s1").user("We deploy on Fridays only.")).job
    other = world.enqueue(world.transcript("s3").user("Thanks a lot.")).job

    world.worker.work_ready()
    clock.advance(3 * 24 * 3600)
    stripped = let_go(world.place)

    assert waits is not None and other is not None
    row = world.job(waits)
    assert (row.shown_status, row.wait_reason, row.failures) == ("waiting", "cursor.unreadable", 0)
    assert world.job(other).status == "completed"
    assert stripped >= 2
