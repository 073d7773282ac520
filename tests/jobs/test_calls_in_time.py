"""No call outlives the slice it is made for: a slow provider costs time, never the daemon."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from world import NOTHING, World, answer, fact

from memoryd.jobs import distil
from memoryd.memory.config import Config, ProviderSettings
from memoryd.memory.testing import FakeClock

SAID = "Always run the linter before you commit."
SLOW = Config(provider=replace(ProviderSettings(), timeout_seconds=540))
LONG = "The build prints a long line here. " * 330


def slow(world: World, seconds: float, text: str) -> str:
    """The provider takes ``seconds``; no attempt may be stuck by then."""
    world.clock.advance(seconds)
    assert world.keeper.stuck() == []
    return text


def test_after_a_slow_bad_answer_there_is_no_time_to_ask_again(
    tmp_path: Path, clock: FakeClock
) -> None:
    """Two calls at the longest limit would be longer than the slice: a counted failure instead."""
    world = World(tmp_path, clock, [lambda request: slow(world, 540, "prose")], config=SLOW)

    job = world.finalize(world.transcript().user(SAID))

    assert (job.shown_status, job.failures, job.error_code) == ("retrying", 1, "answer.unusable")
    assert [request.timeout_seconds for request in world.model.requests] == [540]


def test_a_correction_has_what_the_first_call_left(tmp_path: Path, clock: FakeClock) -> None:
    """600 s for the slice, 60 of them for writing."""
    said = [lambda request: slow(world, 300, "prose"), answer(fact(SAID))]
    world = World(tmp_path, clock, said, config=SLOW)

    job = world.finalize(world.transcript().user(SAID))

    assert job.outcome_code == "notes.written"
    assert [request.timeout_seconds for request in world.model.requests] == [540, 240]


def test_a_slice_ends_early_and_keeps_what_was_read(tmp_path: Path, clock: FakeClock) -> None:
    """The next slice has its own time: each chunk is read once."""
    world = World(tmp_path, clock, [lambda request: slow(world, 500, NOTHING)], config=SLOW)
    transcript = world.transcript()
    for number in range(3):
        transcript.user(f"{number} {LONG}")

    job = world.finalize(transcript)

    assert job.status == "completed"
    assert len({request.prompt for request in world.model.requests}) == 3
    assert [request.timeout_seconds for request in world.model.requests] == [540] * 3


def test_what_went_before_the_first_call_is_taken_off_its_limit(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A git that took minutes must not make a call of nine more out of it."""
    monkeypatch.setattr(distil, "take_in_edits", lambda place, stores: clock.advance(400))
    world = World(tmp_path, clock, config=SLOW)

    job = world.finalize(world.transcript().user(SAID))

    assert job.status == "completed"
    assert [request.timeout_seconds for request in world.model.requests] == [140]


@pytest.mark.parametrize("cause", ["no slot", "no time"])
def test_a_call_that_cannot_be_made_in_time_waits_at_no_cost(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, cause: str
) -> None:
    """Longer and longer, and nothing is booked."""
    config = Config(provider=replace(SLOW.provider, max_concurrency=1))
    world = World(tmp_path, clock, config=config)
    if cause == "no slot":
        world.place.calls._slots.acquire()
    else:
        monkeypatch.setattr(distil, "take_in_edits", lambda place, stores: clock.advance(500))
    job = world.enqueue(world.transcript().user(SAID)).job
    waits = []

    for _ in range(3):
        world.work()
        waits.append((world.job(job).run_at - clock.now_ms()) // 1000)
        clock.advance(waits[-1])

    row = world.job(job)
    assert (row.wait_reason, row.failures, waits) == ("provider.busy", 0, [15, 30, 60])
    assert world.ledger.budget.spent("scripted") == (0, 0)


def test_a_consolidation_asks_twice_only_within_its_limit(tmp_path: Path, clock: FakeClock) -> None:
    """Fifteen minutes for both calls and the writing."""
    world = World(tmp_path, clock, [answer(fact(SAID))], config=SLOW)
    world.finalize(world.transcript().user(SAID))
    world.model._script = [lambda request: slow(world, 540, "prose"), "prose"]
    job = world.ledger.enqueue_store("consolidate", world.store().key, key="k", trigger="cli").job
    assert job is not None

    world.work()

    consolidating = [one for one in world.model.requests if one.purpose == "consolidate"]
    assert [request.timeout_seconds for request in consolidating] == [540, 300]
    assert world.job(job).error_code == "answer.unusable"


def test_nothing_is_read_of_a_store_while_nobody_may_ask(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thousand jobs that wait for a provider wake together once an hour."""
    looked: list[object] = []
    monkeypatch.setattr(distil, "take_in_edits", lambda place, stores: looked.append(stores))
    world = World(tmp_path, clock)
    world.ledger.breakers.trip("scripted", "provider.unavailable", "no connection")

    job = world.finalize(world.transcript().user(SAID))

    assert (job.wait_reason, looked) == ("provider.unavailable", [])
