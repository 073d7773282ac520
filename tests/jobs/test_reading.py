"""How far one reading goes: chunks, slices, budgets, time; and what is shown with them."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

from world import DAY, NOTHING, World, answer, fact

from memoryd.jobs.reading import SLICE_CHUNKS
from memoryd.memory.baseline import Baseline
from memoryd.memory.config import Config, ProviderSettings
from memoryd.memory.errors import BadAnswer
from memoryd.memory.prompt import CHUNK_CHARACTERS
from memoryd.memory.providers.base import Request
from memoryd.memory.testing import FakeClock

SAID = "Always run the linter before you commit."
#: Some 7,600 characters; two such messages do not fit one chunk.
FILLER = "lorem ipsum dolor sit amet " * 280


def shown(world: World) -> Counter[str]:
    """How often each word marker was shown to the model."""
    return Counter(re.findall(r"w\d{7}", world.prompts()))


def test_three_mebibytes_are_read_once_within_a_small_daily_budget(
    tmp_path: Path, clock: FakeClock
) -> None:
    """Over several days; every word exactly once, one call a chunk of at most 12,000 characters."""
    asked_on: Counter[int] = Counter()

    def nothing(request: Request) -> str:
        asked_on[clock.now_ms() // (DAY * 1000)] += 1
        return NOTHING

    budget = replace(ProviderSettings(), daily_calls=100)
    world = World(tmp_path, clock, [nothing], config=Config(provider=budget))
    said = world.transcript()
    number = 0
    while said.size < 3 << 20:
        length = 3000 if number % 2 else 431  # some messages are longer than a chunk
        text = " ".join(f"w{number + at:07}" for at in range(length))
        (said.user if said.lines % 2 else said.assistant)(text)
        number += length
    begun = clock.now_ms()

    job = world.finalize(said)
    assert job.wait_reason == "budget.spent"
    world.work_to_rest()

    job = world.job(job)
    assert (job.status, job.outcome_code, job.failures) == ("completed", "nothing.durable", 0)
    assert world.cursor(said) == world.place.history.last_seq(said.agent, said.session)
    assert shown(world) == {f"w{at:07}": 1 for at in range(number)}
    assert max(asked_on.values()) == 100
    assert 2 <= (clock.now_ms() - begun) / DAY / 1000 <= 8
    for request in world.model.requests:
        block = request.prompt.partition("<transcript>\n")[2].partition("\n</transcript>")[0]
        assert len(block) <= CHUNK_CHARACTERS


def test_a_slice_is_at_most_eight_chunks(tmp_path: Path, clock: FakeClock) -> None:
    """Twenty chunks are three slices, each with a commit of its own."""
    texts = [f"Rule number {number} holds always." for number in range(20)]
    world = World(tmp_path, clock, [answer(fact(text)) for text in texts])
    said = world.transcript()
    for text in texts:
        said.user(text + FILLER)

    job = world.finalize(said)

    assert SLICE_CHUNKS == 8
    made = [
        one.values("Memoryd-Slice")[0].split(" ")[1]
        for one in reversed(Baseline(world.store()).log())
        if one.values("Memoryd-Slice")
    ]
    assert made == ["1..8", "9..16", "17..20"]
    assert len(world.model.requests) == 20
    assert len(world.bodies()) == 20
    (attempt,) = world.ledger.records.attempts(job)
    assert (attempt.calls, attempt.ending) == (20, "completed")


def test_a_budget_that_ends_inside_a_slice_keeps_what_was_read(
    tmp_path: Path, clock: FakeClock
) -> None:
    """The slice ends there, is written at once, and goes on there the next day."""
    texts = [f"Rule number {number} holds always." for number in range(5)]
    budget = replace(ProviderSettings(), daily_calls=3)
    world = World(tmp_path, clock, [answer(fact(t)) for t in texts], config=Config(provider=budget))
    said = world.transcript()
    for text in texts:
        said.user(text + FILLER)

    job = world.finalize(said)
    assert (job.wait_reason, world.cursor(said)) == ("budget.spent", 3)
    assert world.bodies() == texts[:3]
    assert {kept.state for kept in world.candidates(job)} == {"applied"}

    world.work_to_rest()
    assert world.job(job).outcome_code == "notes.written"
    assert world.bodies() == texts
    assert len(world.model.requests) == 5
    assert len(world.commits()) == 2


def test_a_failure_inside_a_slice_keeps_what_was_read(tmp_path: Path, clock: FakeClock) -> None:
    """The retry begins with the chunk that failed."""
    rule = "Rule number one holds always."
    world = World(tmp_path, clock, [answer(fact(rule)), BadAnswer("it was empty"), NOTHING])
    said = world.transcript().user(rule + FILLER).user(FILLER)

    job = world.finalize(said)
    assert (job.failures, world.cursor(said), world.bodies()) == (1, 1, [rule])

    world.work_to_rest()
    assert (world.job(job).outcome_code, world.cursor(said)) == ("notes.written", 2)
    assert len(world.model.requests) == 3


def test_a_slow_provider_makes_the_slices_smaller(tmp_path: Path, clock: FakeClock) -> None:
    """Two minutes a call: no slice is over its ten minutes, and none is begun in vain."""
    texts = [f"Rule number {number:02} holds always." for number in range(10)]

    def slow(request: Request) -> str:
        clock.advance(120)
        assert world.keeper.stuck() == []
        assert world.keeper.seconds_left(world.ledger.records.jobs()[0]) > 0
        return answer(*(fact(text) for text in texts if text in request.prompt))

    settings = replace(ProviderSettings(), timeout_seconds=120.0)
    world = World(tmp_path, clock, [slow], config=Config(provider=settings))
    said = world.transcript()
    for text in texts:
        said.user(text + FILLER)

    job = world.finalize(said)

    assert (job.outcome_code, job.attempt, job.failures) == ("notes.written", 1, 0)
    assert (world.bodies(), len(world.model.requests)) == (texts, 10)
    assert len(world.commits()) == 4  # three chunks a slice


def test_a_provider_slower_than_a_slice_still_gets_somewhere(
    tmp_path: Path, clock: FakeClock
) -> None:
    """One chunk a slice: the first is always asked."""

    def slow(request: Request) -> str:
        clock.advance(500)
        return NOTHING

    settings = replace(ProviderSettings(), timeout_seconds=540.0)
    world = World(tmp_path, clock, [slow], config=Config(provider=settings))
    said = world.transcript().user(FILLER).user(FILLER)

    job = world.finalize(said)

    assert (job.status, world.cursor(said), len(world.model.requests)) == ("completed", 2, 2)


def test_the_notes_nearest_to_a_chunk_are_shown_with_it(tmp_path: Path, clock: FakeClock) -> None:
    """So that the answer can be that it is known already."""
    known = fact(SAID, relation={"kind": "same", "name": "always-run-the-linter-before-you-commit"})
    world = World(tmp_path, clock, [answer(fact(SAID)), answer(known)])
    world.finalize(world.transcript("s1").user(SAID))

    job = world.finalize(world.transcript("s2").user("About the linter: " + SAID))

    assert "[always-run-the-linter-before-you-commit] feedback" in world.model.requests[1].prompt
    assert (world.reasons(job), len(world.commits())) == (["same"], 1)


def test_what_was_said_in_no_known_directory_still_has_a_home(
    tmp_path: Path, clock: FakeClock
) -> None:
    """The project is that of the directory the agent was started in, as the hook saw it."""
    world = World(tmp_path, clock, [answer(fact(SAID))])
    said = world.transcript().user(SAID, cwd=None)

    job = world.finalize(said, cwd=str(world.project))

    assert job.outcome_code == "notes.written", job.error_detail
    assert world.bodies() == [SAID]


def test_each_fact_goes_to_the_project_it_was_said_in(tmp_path: Path, clock: FakeClock) -> None:
    """One session in two projects: two stores, one commit each, one slice."""
    other = tmp_path / "other"
    other.mkdir()
    second = "We deploy on Fridays only, never else."
    world = World(tmp_path, clock, [answer(fact(SAID), fact(second))])

    world.finalize(world.transcript().user(SAID).user(second, cwd=str(other)))

    assert (world.bodies(), world.bodies(other)) == ([SAID], [second])
    assert (len(world.commits()), len(world.commits(other))) == (1, 1)
