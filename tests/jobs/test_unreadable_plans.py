"""A plan that cannot be read keeps the jobs of its own session only, and those not for long."""

from __future__ import annotations

from pathlib import Path

import pytest
from world import World, answer, fact

from memoryd.jobs.doctor import examine
from memoryd.jobs.recovering import recover
from memoryd.memory.errors import LeaseLost, UsageError
from memoryd.memory.providers.base import Request
from memoryd.memory.testing import FakeClock

RULE = "Always run the linter before you commit."
OTHER = "We use pnpm for packages."
DAMAGES = {"garbage": "garbage", "a list": "[]", "bytes": b"\xff\x00", "deep": "[" * 50_000}


@pytest.fixture
def world(tmp_path: Path, clock: FakeClock) -> World:
    """A home whose model learns one rule from whatever it is asked."""
    return World(tmp_path, clock, [found])


def found(request: Request) -> str:
    """What the model finds in the words it is shown."""
    return answer(*(fact(each) for each in (RULE, OTHER) if each in request.prompt))


def damage(world: World, plan: object = "garbage") -> None:
    """Edit every plan that stands."""
    with world.ledger.db.writing():
        assert world.ledger.db.change("update plan set plan = :plan", plan=plan) == 1


def left_by_a_death(world: World, monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    """The process of the session's first job dies at ``point``; its plan stands."""
    world.enqueue(world.transcript("s1").user(RULE).assistant("Fine."))
    world.die_at(point, monkeypatch)


@pytest.mark.parametrize("how", DAMAGES)
def test_a_slice_of_which_the_plan_cannot_be_read_is_read_again(
    world: World, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """Nothing was written: its words are asked about once more, and what is found is kept once."""
    left_by_a_death(world, monkeypatch, "plan.recorded")
    damage(world, DAMAGES[how])
    other = world.enqueue(world.transcript("s2").user(OTHER).assistant("Fine.")).job
    assert other is not None

    world.work_to_rest()

    jobs = world.ledger.records.jobs()
    assert {job.status for job in jobs} == {"completed"}
    assert world.ledger.db.rows("select 1 from plan") == []
    assert world.ledger.db.rows("select 1 from candidate where state = 'planned'") == []
    assert (world.bodies(), len(world.model.requests)) == (sorted([RULE, OTHER]), 3)


def test_a_slice_that_was_written_before_its_plan_rotted_is_not_read_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store's history says how far it is: nothing is written twice."""
    left_by_a_death(world, monkeypatch, "store.committed")
    damage(world)

    world.work_to_rest()

    assert world.bodies() == [RULE]
    assert len(world.commits()) == 1
    assert len(world.model.requests) == 1
    assert [each.state for each in world.candidates(world.ledger.records.jobs()[0])] == ["applied"]


def test_no_other_session_waits_for_a_plan_that_cannot_be_read(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A recovery, what is known of planned files, and the doctor go past it."""
    left_by_a_death(world, monkeypatch, "plan.recorded")
    damage(world)

    recover(world.home, world.ledger, world.clock)

    assert world.ledger.records.planned_contents() == set()
    assert world.ledger.records.standing_files("any") == {}
    found = examine(world.home, world.clock, world.environ)
    assert "plan.unreadable" in {each.code for each in found}


def test_a_person_can_skip_a_slice_of_which_the_plan_cannot_be_read(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The row says which messages it covers."""
    left_by_a_death(world, monkeypatch, "plan.recorded")
    damage(world)
    job = world.ledger.records.jobs()[0]
    with world.ledger.db.writing():
        world.ledger.db.change("update job set status = 'failed', finished_at = 1")

    assert world.ledger.retry(world.job(job), skip=True)
    world.work_to_rest()

    assert world.ledger.db.rows("select 1 from plan") == []
    assert world.ledger.cursor(job.agent, job.session) == 2
    assert (world.bodies(), len(world.model.requests)) == ([], 1)


def test_a_slice_is_not_skipped_while_another_job_writes_it(world: World) -> None:
    """Its candidates would read skipped, and its notes be there."""
    said = world.transcript("s1").user(RULE)
    job = world.enqueue(said).job
    assert job is not None and world.ledger.cancel(job)
    said.assistant("Fine.")
    world.enqueue(said)
    running = world.ledger.claim("another")
    assert running is not None and running.id != job.id

    with pytest.raises(UsageError, match="at work"):
        world.ledger.retry(world.job(job), skip=True)

    assert world.job(job).status == "cancelled"


def test_only_the_attempt_that_holds_the_job_drops_its_plan(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that lost its lease looks at what another one made meanwhile."""
    left_by_a_death(world, monkeypatch, "plan.recorded")
    job = world.ledger.records.jobs()[0]

    with pytest.raises(LeaseLost):
        world.ledger.drop_plan(job, 0)

    assert len(world.ledger.db.rows("select 1 from plan")) == 1
