"""The daily check: which stores fall due for consolidation, and which gate says no."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from structlog.testing import capture_logs
from world import DAY, World, answer, fact

from memoryd.jobs.daily import Check, check_stores
from memoryd.memory.config import Config, MemorySettings
from memoryd.memory.providers.base import Request
from memoryd.memory.testing import FakeClock

HOUR = 3600


@pytest.fixture
def world(tmp_path: Path, clock: FakeClock) -> World:
    """A home whose project has one note."""
    made = World(tmp_path, clock, [reply])
    held(made, "s0", runs=1)
    return made


def reply(request: Request) -> str:
    """One fact of a session, nothing to do in a store."""
    if request.purpose == "consolidate":
        return '{"merges": []}'
    return answer(fact("Use pnpm for packages."))


def held(world: World, session: str, runs: int = 2) -> None:
    """A session of this many runs was held and distilled."""
    transcript = world.transcript(session)
    for run in range(runs):
        transcript.user(f"Use pnpm for packages. Session {session}, run {run}.")
        transcript.assistant("Done.")
    world.finalize(transcript)


def sessions(world: World, count: int, start: int = 1) -> None:
    """That many sessions of two runs each."""
    for number in range(start, start + count):
        held(world, f"s{number}")


def refusal(world: World) -> str | None:
    """What the gates say of the project's store now."""
    return Check(world.place).refusal(world.store().key)


def test_five_sessions_make_a_store_due(world: World) -> None:
    """Four are too few."""
    sessions(world, 4)
    before = refusal(world)
    sessions(world, 1, start=5)

    assert (before, refusal(world)) == ("consolidation.too-few-sessions", None)


def test_sessions_of_one_run_do_not_count(world: World) -> None:
    """A question and its answer tell a project nothing."""
    for number in range(1, 9):
        held(world, f"s{number}", runs=1)

    assert refusal(world) == "consolidation.too-few-sessions"


def test_a_due_store_gets_one_job_a_day(world: World) -> None:
    """The check may run as often as it likes; a gate that says no makes no row."""
    made = [check_stores(world.place)]
    sessions(world, 5)
    world.clock.advance(HOUR)
    made += [check_stores(world.place), check_stores(world.place)]

    assert made == [0, 1, 0]
    assert [job.kind for job in world.ledger.records.jobs(kind="consolidate")] == ["consolidate"]


def test_a_day_must_pass_between_two_runs(world: World) -> None:
    """However many sessions there are; then only those since the last run count."""
    sessions(world, 5)
    check_stores(world.place)
    world.work()
    world.clock.advance(1)
    sessions(world, 5, start=6)
    soon = refusal(world)
    world.clock.advance(DAY)
    later = refusal(world)

    world.ledger.consolidations.ran(
        world.store().key, world.clock.now_ms(), "nothing.changed", empty=True
    )
    world.clock.advance(DAY + 1)

    assert (soon, later, refusal(world)) == (
        "consolidation.too-soon",
        None,
        "consolidation.too-few-sessions",
    )


def test_a_session_counts_once_it_was_read(world: World) -> None:
    """The one that is still being held, and nobody has read, does not count."""
    sessions(world, 4)
    held_now = world.transcript("s5")
    for run in range(2):
        held_now.user(f"Use pnpm for packages, run {run}.").assistant("Done.")
    before = refusal(world)

    world.finalize(held_now)

    assert (before, refusal(world)) == ("consolidation.too-few-sessions", None)


def test_an_old_session_that_is_read_late_counts(world: World) -> None:
    """What it said is in no consolidation yet, however long ago it was held."""
    sessions(world, 5)
    check_stores(world.place)
    world.work()
    world.clock.advance(DAY + 1)
    before = refusal(world)
    for number in range(6, 11):
        late = world.transcript(f"s{number}")
        late.at_ms -= 90 * DAY * 1000
        world.finalize(late.user("Use pnpm.").assistant("Done.").user("Good.").assistant("Yes."))

    assert (before, refusal(world)) == ("consolidation.too-few-sessions", None)


def test_a_consolidation_that_gave_up_is_due_again_the_next_day(
    tmp_path: Path, clock: FakeClock
) -> None:
    """It counts as no run, so that no day of hours and no new sessions are waited for."""
    world = World(tmp_path, clock, [lambda asked: "?" if _of_a_store(asked) else reply(asked)])
    sessions(world, 5)
    check_stores(world.place)
    world.work_to_rest()
    (gave_up,) = world.ledger.records.jobs(kind="consolidate")
    soon = check_stores(world.place)
    world.clock.advance(DAY)

    assert (gave_up.status, gave_up.error_code) == ("failed", "answer.unusable")
    assert world.ledger.consolidations.of(world.store().key).last_run_at == 0
    assert (soon, check_stores(world.place)) == (0, 1)


def _of_a_store(request: Request) -> bool:
    return request.purpose == "consolidate"


def test_which_gate_says_no_is_logged_once_a_day(world: World) -> None:
    """However often the check is made."""
    with capture_logs() as logs:
        for _ in range(30):
            check_stores(world.place)
            world.clock.advance(HOUR)

    told = [each["gate"] for each in logs if each["event"] == "consolidation.not_due"]
    assert 1 <= len(told) <= 3 and set(told) == {"consolidation.too-few-sessions"}


def test_sessions_are_counted_every_ten_minutes_at_most(world: World) -> None:
    """A check between two counts makes nothing."""
    check_stores(world.place)
    sessions(world, 5)
    soon = check_stores(world.place)
    world.clock.advance(601)

    assert (soon, check_stores(world.place)) == (0, 1)


def test_a_switch_and_a_setting_each_turn_it_off(world: World) -> None:
    """Both are read at each check; the project's own file counts too."""
    sessions(world, 5)
    world.restart(environ={"MEMORYD_DISABLE_CONSOLIDATION": "1"})
    switched = refusal(world), check_stores(world.place)
    world.restart(environ={"MEMORYD_DISABLE_CONSOLIDATION": ""})
    (world.project / ".memoryd.toml").write_text("[memory]\nauto_consolidate = false\n")
    by_project = refusal(world)
    (world.project / ".memoryd.toml").write_text("[memory\n")
    unusable = refusal(world)
    (world.project / ".memoryd.toml").unlink()
    world.restart(config=replace(Config(), memory=MemorySettings(auto_consolidate=False)))

    assert switched == ("consolidation.switched-off", 0)
    assert by_project == "consolidation.off"
    assert unusable == "project.config-unusable"
    assert refusal(world) == "consolidation.off"


def test_hours_and_sessions_are_settings(world: World) -> None:
    """A person who wants it sooner says so."""
    settings = MemorySettings(consolidate_min_hours=0, consolidate_min_sessions=1)
    world.restart(config=replace(Config(), memory=settings))
    sessions(world, 1)

    assert refusal(world) is None


def test_a_clock_set_back_does_not_hold_a_store_up(world: World) -> None:
    """A last run in the future counts as past."""
    sessions(world, 5)
    ahead = world.clock.now_ms() + 40 * DAY * 1000
    world.ledger.consolidations.ran(world.store().key, ahead, "nothing.changed", empty=True)
    world.ledger.consolidations.looked(world.store().key, ahead)

    assert check_stores(world.place) == 1


def test_a_clock_set_back_over_midnight_does_not_consolidate_twice(world: World) -> None:
    """The date before is another date, and its sessions are those that were consolidated."""
    sessions(world, 5)
    first = check_stores(world.place)
    world.work()
    world.clock.step(-10 * HOUR)

    assert (first, check_stores(world.place)) == (1, 0)
