"""What stands in the way of a store costs a job nothing: it waits, says why, and goes on."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from world import World, answer, fact

from memoryd.jobs.job import Job
from memoryd.memory import branch
from memoryd.memory.baseline import Baseline
from memoryd.memory.testing import FakeClock

FIRST = "Always run the linter before you commit."
SECOND = "Always write the changelog in the same commit."


@pytest.fixture
def world(tmp_path: Path, clock: FakeClock) -> World:
    """A home in which one session has left a note; the next one's fact waits in the model."""
    made = World(tmp_path, clock, [answer(fact(FIRST)), answer(fact(SECOND))])
    made.finalize(made.transcript("s1").user(FIRST))
    assert made.bodies() == [FIRST]
    return made


def assert_waits(world: World, job: Job, reason: str) -> None:
    """The job costs nothing, and the row says in words what is wrong."""
    assert (job.shown_status, job.wait_reason, job.failures) == ("waiting", reason, 0)
    assert job.error_detail
    assert world.bodies() == [FIRST]


def assert_goes_on(world: World) -> None:
    """Both facts are notes, each asked for once, each in one commit."""
    world.work_to_rest()
    assert world.bodies() == sorted([FIRST, SECOND])
    assert len(world.model.requests) == 2
    assert len(world.commits()) == 2


def test_a_job_waits_for_git_and_asks_no_model_meanwhile(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a model would say could not be written."""
    with monkeypatch.context() as patched:
        patched.setenv("PATH", "/nowhere")
        job = world.finalize(world.transcript("s2").user(SECOND))

    assert_waits(world, job, "baseline.unusable")
    assert len(world.model.requests) == 1
    assert_goes_on(world)


def _lock(world: World) -> Callable[[], None]:
    lock = world.store().git_dir / branch.BRANCH
    lock = lock.with_name(f"{lock.name}.lock")
    lock.touch()
    now = world.clock.now_ms() / 1000
    os.utime(lock, (now, now))
    return lambda: None  # it grows old by itself


def _detach(world: World) -> Callable[[], None]:
    root = world.store().root
    subprocess.run(["git", "-C", root, "checkout", "-q", "--detach"], check=True)
    return lambda: (
        subprocess.run(["git", "-C", root, "checkout", "-q", "main"], check=True) and None
    )


def _damage(world: World) -> Callable[[], None]:
    head = world.store().git_dir / "HEAD"
    kept = head.with_name("HEAD.kept")
    shutil.copy(head, kept)
    head.write_bytes(b"")
    return lambda: kept.replace(head) and None


@pytest.mark.parametrize(
    ("fault", "reason"),
    [(_lock, "baseline.locked"), (_detach, "store.detached"), (_damage, "baseline.unusable")],
)
def test_a_job_waits_for_what_stands_in_its_way_and_goes_on(
    world: World, fault: Callable[[World], Callable[[], None]], reason: str
) -> None:
    """However long it takes: nothing is lost, doubled or paid for twice."""
    mend = fault(world)
    job = world.finalize(world.transcript("s2").user(SECOND))
    if fault is _lock:  # the plan was recorded: its file is there, in no commit yet
        assert (job.wait_reason, job.failures) == (reason, 0)
    else:
        assert_waits(world, job, reason)
        for _ in range(6):
            world.clock.advance(601)
            world.work()
    assert world.job(job).failures == 0
    mend()

    assert_goes_on(world)
    assert Baseline(world.store()).changed_paths() == []
    assert world.job(job).outcome_code == "notes.written"


def test_a_job_waits_while_the_histories_are_away(world: World) -> None:
    """No other is begun in their place, and what the next session said waits for them."""
    world.home.baselines.rename(world.folder / "away")

    job = world.finalize(world.transcript("s2").user(SECOND))

    assert_waits(world, job, "baseline.missing")
    assert not any(world.home.baselines.glob("*.git"))
    shutil.rmtree(world.home.baselines, ignore_errors=True)
    (world.folder / "away").rename(world.home.baselines)
    assert_goes_on(world)
