"""Backfill is never in the way: of workers, of the budget, of a person who says stop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from archives import RULE, TABS, Past
from world import DAY, NOTHING, World

from memoryd.jobs import backfill
from memoryd.jobs.job import Job
from memoryd.memory.config import Config, CurationSettings, MemorySettings, ProviderSettings
from memoryd.memory.providers.base import Request
from memoryd.memory.testing import FakeClock


def long(number: int) -> str:
    """A message that fills most of a chunk and repeats nothing: nine are more than a slice."""
    return " ".join(f"Thought {part} of part {number} is another one." for part in range(200))


def with_workers(config: Config, workers: int) -> Config:
    """``config`` with so many workers, and as many calls at once."""
    queue = replace(config.queue, workers=workers)
    return replace(config, queue=queue, provider=replace(config.provider, max_concurrency=workers))


def ready(past: Past, *names: str) -> None:
    """Discovered old sessions, with a job each."""
    for name in names:
        past.session(name)
    past.discover()
    backfill.plan(past.place)


def claim(past: Past) -> Job | None:
    """What a worker would take up now."""
    return past.ledger.claim("worker", room=backfill.room(past.place))


def asked_about(past: Past) -> list[str]:
    """Every text the model was asked about that a person said, in order."""
    asked = [message for each in past.model.requests for message in each.messages]
    return [message.text for message in asked if message.role == "user"]


def assert_read_once(past: Past, *said: str) -> None:
    """Each word of it was asked about once; a long message is asked about in parts."""
    asked = " ".join(sorted(asked_about(past))).split()
    assert sorted(asked) == sorted(" ".join(said).split())


@pytest.mark.parametrize(("workers", "at_once"), [(1, 1), (2, 1), (3, 2), (4, 3)])
def test_it_never_takes_the_last_free_worker(
    tmp_path: Path, clock: FakeClock, workers: int, at_once: int
) -> None:
    """With one worker it takes that, where nothing else runs."""
    past = Past(tmp_path, clock, config=with_workers(Config(), workers))
    ready(past, *(f"s{number}" for number in range(6)))

    taken = [claim(past) for _ in range(6)]

    assert len([job for job in taken if job]) == at_once


def test_it_never_takes_the_last_call_that_may_be_made_at_once(
    tmp_path: Path, clock: FakeClock
) -> None:
    """A fresh session would get a worker, and then wait for the provider."""
    config = with_workers(Config(), 4)
    provider = replace(config.provider, max_concurrency=2)
    past = Past(tmp_path, clock, config=replace(config, provider=provider))
    ready(past, "s1", "s2", "s3")

    assert [job is not None for job in (claim(past), claim(past))] == [True, False]


def test_whatever_runs_counts(tmp_path: Path, clock: FakeClock) -> None:
    """A fresh session is worked: with two workers the other one is kept free."""
    past = Past(tmp_path, clock)
    ready(past, "old")
    past.enqueue(past.transcript("now").user(RULE))

    first = claim(past)

    assert first is not None and first.kind == "finalize"
    assert claim(past) is None
    past.ledger.complete(first, "nothing.durable")
    last = claim(past)
    assert last is not None and last.kind == "backfill"


def test_everything_else_comes_first(tmp_path: Path, clock: FakeClock) -> None:
    """However long the archive has waited."""
    past = Past(tmp_path, clock)
    ready(past, "old")
    clock.advance(3600)
    past.enqueue(past.transcript("now").user(RULE))
    past.ledger.enqueue_store("consolidate", "-code", key="k", trigger="daily")

    kinds = []
    while job := claim(past):
        kinds.append(job.kind)
        past.ledger.complete(job, "nothing.durable")

    assert kinds == ["finalize", "consolidate", "backfill"]


def told_while_it_reads(past: Past, name: str) -> Callable[[Request], str]:
    """A model during whose first answer a fresh session ends."""

    def answer(request: Request) -> str:
        past.enqueue(past.transcript(name).user(RULE))
        return NOTHING

    return answer


def test_after_each_slice_it_makes_way_for_better_work(tmp_path: Path, clock: FakeClock) -> None:
    """And goes on from there, at no cost: nothing is asked twice."""
    past = Past(tmp_path, clock, config=with_workers(Config(), 1))
    past.model._script = [told_while_it_reads(past, "now"), NOTHING]
    past.session("old", *map(long, range(12)))

    (job,) = past.mine()

    attempts = past.ledger.records.attempts(job)
    assert [each.ending for each in attempts] == ["released", "completed"]
    assert (job.status, job.failures, job.attempt) == ("completed", 0, 2)
    asked = asked_about(past)
    assert 0 < asked.index(RULE) < len(asked) - 1, "the fresh session came between two slices"
    assert_read_once(past, *map(long, range(12)), RULE)


def test_it_goes_on_while_a_worker_is_free(tmp_path: Path, clock: FakeClock) -> None:
    """The other worker takes what is due."""
    past = Past(tmp_path, clock)
    past.model._script = [told_while_it_reads(past, "now"), NOTHING]
    past.session("old", *map(long, range(12)))

    (job,) = past.mine()

    assert [each.ending for each in past.ledger.records.attempts(job)] == ["completed"]


def test_it_makes_way_for_a_job_of_its_own_session(tmp_path: Path, clock: FakeClock) -> None:
    """That one waits for no worker but for the session; together they read each word once."""
    past = Past(tmp_path, clock)
    said = past.session("old", *map(long, range(12)))

    def resumed(request: Request) -> str:
        past.enqueue(said.user(TABS))
        return NOTHING

    past.model._script = [resumed, NOTHING]
    (job,) = past.mine()

    assert [each.ending for each in past.ledger.records.attempts(job)] == ["released", "completed"]
    assert job.outcome_code == "nothing.new"
    assert_read_once(past, *map(long, range(12)), TABS)


def test_one_that_crashed_and_runs_alone_makes_way_too(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While it runs nothing else may: a fresh session does not wait for the whole of it."""
    past = Past(tmp_path, clock)
    past.session("old", *map(long, range(12)))
    past.discover()
    past.die_at("slice.read", monkeypatch)
    past.model._script = [told_while_it_reads(past, "now"), NOTHING]

    past.work()

    (job,) = past.backfills()
    endings = [each.ending for each in past.ledger.records.attempts(job)]
    assert endings == ["crashed", "released", "completed"]


# -- a person's word -----------------------------------------------------------------------------


def test_a_pause_lets_the_slice_end_and_holds_past_a_restart(
    tmp_path: Path, clock: FakeClock
) -> None:
    """What waits goes on waiting; nothing is claimed and nothing made until it is started."""
    past = Past(tmp_path, clock)

    def paused(request: Request) -> str:
        past.ledger.archive.say("paused")
        return NOTHING

    past.model._script = [paused, NOTHING]
    past.session("old", *map(long, range(12)))
    past.session("newer", days=5)
    past.mine()
    read = past.cursor(past.transcript("old"))
    clock.advance(DAY)
    past.restart()

    past.discover()
    assert (past.work(), past.mined()) == (0, [])
    assert read > 0 and past.ledger.idle()
    past.ledger.archive.say("started")
    past.restart()
    past.work()

    assert sorted(past.mined()) == ["newer", "old"]


def test_where_calls_cost_a_person_has_to_start_it(tmp_path: Path, clock: FakeClock) -> None:
    """Auto is on by itself with a provider that costs nothing."""
    past = Past(tmp_path, clock, enabled="auto")
    past.session("old")
    assert past.mine() == []

    past.ledger.archive.say("started")
    past.work()
    assert past.mined() == ["old"]

    free = backfill.standing(past.ledger, Config(), {}, costs=False)
    assert free.state == "on"


@pytest.mark.parametrize(
    ("config", "environ", "reason"),
    [
        (Config(memory=MemorySettings(auto_extract=False)), {}, "extraction.off"),
        (Config(curation=CurationSettings(mode="manual")), {}, "curation.manual"),
        (Config(), {"MEMORYD_DISABLE": "1"}, "extraction.switched-off"),
        (Config(), {"MEMORYD_DISABLE_EXTRACTION": "1"}, "extraction.switched-off"),
    ],
)
def test_while_nothing_is_distilled_the_archive_waits(
    tmp_path: Path, clock: FakeClock, config: Config, environ: dict[str, str], reason: str
) -> None:
    """It was not said under the switch: nothing of it is passed over."""
    past = Past(tmp_path, clock)
    ready(past, "s1", "s2")
    on = past.config
    past.restart(config=replace(config, backfill=on.backfill), environ=environ)

    assert past.work() == 0
    assert backfill.room(past.place) == 0
    found = backfill.standing(past.ledger, past.config, past.environ, costs=True)
    assert (found.state, found.reason) == ("off", reason)

    past.restart(config=on, environ=dict.fromkeys(environ, ""))
    past.work()
    assert sorted(past.mined()) == ["s1", "s2"]


def test_it_is_off_where_the_configuration_says_so(tmp_path: Path, clock: FakeClock) -> None:
    """Whatever a person said before."""
    past = Past(tmp_path, clock, enabled=False)
    past.ledger.archive.say("started")
    past.session("old")

    assert past.mine() == []


# -- the budget ----------------------------------------------------------------------------------


def calls_of(past: World) -> tuple[int, int]:
    """How many sessions of old and of now the model was asked about."""
    asked = [each.messages[0].text for each in past.model.requests]
    return sum(text != TABS for text in asked), sum(text == TABS for text in asked)


def test_it_takes_half_of_what_the_day_leaves(tmp_path: Path, clock: FakeClock) -> None:
    """Two calls of ten are spent: four are its own today, and the rest stays for fresh sessions."""
    config = Config(provider=ProviderSettings(daily_calls=10))
    past = Past(tmp_path, clock, config=config)
    for number in range(2):
        past.finalize(past.transcript(f"now{number}").user(TABS))
    for number in range(8):
        past.session(f"old{number}")

    past.mine()

    assert calls_of(past) == (4, 2)
    found = backfill.standing(past.ledger, past.config, past.environ, costs=True)
    assert (found.state, found.reason) == ("on", "backfill.share-spent")
    for number in range(2, 6):
        past.finalize(past.transcript(f"now{number}").user(TABS))
    assert calls_of(past) == (4, 6)

    clock.advance(DAY)
    past.work()
    assert calls_of(past) == (8, 6)


def test_one_that_the_share_stops_waits_for_tomorrow_with_the_reason(
    tmp_path: Path, clock: FakeClock
) -> None:
    """Its words so far stay read; and it costs no failure."""
    config = Config(provider=ProviderSettings(daily_calls=4))
    past = Past(tmp_path, clock, config=config)
    past.session("old", *map(long, range(6)))

    (job,) = past.mine()

    assert (job.status, job.wait_reason, job.failures) == ("pending", "backfill.share-spent", 0)
    assert len(past.model.requests) == 2
    past.work_to_rest()
    assert_read_once(past, *map(long, range(6)))


def test_tokens_are_shared_like_calls(tmp_path: Path, clock: FakeClock) -> None:
    """What it booked is replaced by what it spent, of its own count too."""
    config = Config(provider=ProviderSettings(daily_tokens=40_000))
    past = Past(tmp_path, clock, config=config)
    for number in range(40):
        past.session(f"old{number}")

    past.mine()

    spent = past.ledger.budget.today(past.model.name)
    assert 0 < spent.backfill_tokens <= 20_000
    assert (spent.backfill_calls, spent.backfill_tokens) == (spent.calls, spent.tokens)


def test_money_is_a_bound_where_prices_are_known(tmp_path: Path, clock: FakeClock) -> None:
    """A day's money, and the archive's half of it."""
    provider = ProviderSettings(price_input=1000.0, price_output=1000.0, daily_cost=20.0)
    past = Past(tmp_path, clock, config=Config(provider=provider))
    for number in range(40):
        past.session(f"old{number}")

    past.mine()

    spent = past.ledger.budget.today(past.model.name)
    assert spent.cost == spent.backfill_cost == spent.tokens * 1000
    assert 0 < spent.cost <= 10_000_000
    assert len(past.model.requests) < 40
