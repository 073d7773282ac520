"""Asking a provider: what each of its refusals costs, and how long the queue then waits."""

from __future__ import annotations

import threading
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from world import DAY, NOTHING, World, answer, fact

from memoryd.jobs.backfill import room, standing
from memoryd.jobs.doctor import examine
from memoryd.memory.config import Config, ProviderSettings
from memoryd.memory.errors import (
    BadAnswer,
    ProviderLimited,
    ProviderPermanent,
    ProviderUnavailable,
)
from memoryd.memory.providers.base import Reply, Request
from memoryd.memory.testing import FakeClock

HOUR = 3600
SAID = "Always run the linter before you commit."


class Away:
    """A provider that is away until a wall time, then answers; it counts how often it was asked."""

    name = "scripted"
    costs = True
    consolidates = True

    def __init__(self, clock: FakeClock, until_ms: int) -> None:
        self.clock, self.until_ms = clock, until_ms
        self.asked_in_vain: list[int] = []
        self.answered = 0

    def complete(self, request: Request) -> Reply:
        """Refuse before ``until_ms``, then find the one fact."""
        if self.clock.now_ms() < self.until_ms:
            self.asked_in_vain.append(self.clock.now_ms())
            raise ProviderUnavailable("no connection", free=True)
        self.answered += 1
        return Reply(answer(fact(SAID)), 10, 10)


def test_an_hour_without_a_provider_costs_no_failure(tmp_path: Path, clock: FakeClock) -> None:
    """Ten sessions wait; one of them asks an interval; then each is read once and all is kept."""
    provider = Away(clock, clock.now_ms() + HOUR * 1000)
    world = World(tmp_path, clock, provider=provider)
    jobs = []
    for number in range(10):
        folder = tmp_path / f"project-{number}"
        folder.mkdir()
        said = world.transcript(f"s{number}", cwd=folder).user(SAID)
        jobs.append(world.enqueue(said).job)
    begun = clock.now_ms()

    world.work_to_rest()

    rows = [world.job(job) for job in jobs]
    assert {(row.status, row.outcome_code, row.failures) for row in rows} == {
        ("completed", "notes.written", 0)
    }
    assert provider.answered == 10
    times = provider.asked_in_vain
    assert min(later - one for one, later in pairwise(times)) >= 15_000
    assert len(provider.asked_in_vain) <= 9  # 15 s doubling: 0, 15, 45, 105, 225 ... 3,600 s
    assert clock.now_ms() - begun < 3 * HOUR * 1000
    for number in range(10):
        folder = tmp_path / f"project-{number}"
        assert (world.bodies(folder), len(world.commits(folder))) == ([SAID], 1)


def test_a_waiting_job_says_what_it_waits_for(tmp_path: Path, clock: FakeClock) -> None:
    """``list`` shows the reason and the time; the queue's breaker says it for all."""
    world = World(tmp_path, clock, [ProviderUnavailable("no connection")])

    job = world.finalize(world.transcript().user(SAID))

    assert (job.shown_status, job.wait_reason, job.failures) == (
        "waiting",
        "provider.unavailable",
        0,
    )
    breaker = world.ledger.breakers.of("scripted")
    assert breaker is not None
    assert (breaker.state, breaker.until) == ("open", clock.now_ms() + 15_000)
    assert job.run_at == breaker.until + 1  # after those that only wait


def test_others_do_not_ask_while_the_breaker_is_open(tmp_path: Path, clock: FakeClock) -> None:
    """A job that comes later waits with the first, without a call of its own."""
    world = World(tmp_path, clock, [ProviderUnavailable("no connection")])
    world.finalize(world.transcript("s1").user(SAID))

    late = world.finalize(world.transcript("s2").user(SAID))

    assert late.wait_reason == "provider.unavailable"
    assert len(world.model.requests) == 1


@pytest.mark.parametrize("error", [ProviderUnavailable("timeout"), ProviderLimited("too large")])
def test_a_question_that_is_never_answered_does_not_hold_up_the_others(
    tmp_path: Path, clock: FakeClock, error: Exception
) -> None:
    """The oldest job's is too much for the provider: the others go first, and it is asked less."""

    def of_one(request: Request) -> str:
        if "The endless one." in request.prompt:
            asked.append(clock.now_ms())
            raise error
        return NOTHING

    asked: list[int] = []
    world = World(tmp_path, clock, [of_one])
    endless = world.enqueue(world.transcript("s0").user("The endless one.")).job
    assert endless is not None
    begun = clock.now_ms()
    clock.advance(0.001)
    others = [world.enqueue(world.transcript(f"s{n}").user(SAID)).job for n in range(1, 9)]
    world.work()
    assert len(asked) == 1

    while clock.now_ms() < begun + DAY * 1000:
        clock.advance(max(1, (world.ledger.next_due_ms() or 0) - clock.now_ms()) / 1000)
        world.work()
        if len(asked) == 2:
            assert all(job and world.job(job).status == "completed" for job in others)
        if len(asked) < 10:  # sessions go on ending, and each of their answers closes the breaker
            world.enqueue(world.transcript(f"later-{len(asked)}").user(SAID))
            world.work()

    assert world.job(endless).failures == 0
    assert len(asked) <= 8 + 24


def test_a_limit_with_a_time_is_waited_for(tmp_path: Path, clock: FakeClock) -> None:
    """The provider said when; the job runs then, and no failure is counted."""
    lifts = clock.now_ms() + 7 * 60_000
    world = World(tmp_path, clock, [ProviderLimited("429", until_ms=lifts), answer(fact(SAID))])
    job = world.finalize(world.transcript().user(SAID))
    assert (job.wait_reason, job.run_at) == ("provider.limited", lifts + 1)

    clock.advance(7 * 60)
    assert world.work() == 0
    clock.advance(0.001)
    world.work()

    assert (world.job(job).outcome_code, world.job(job).failures) == ("notes.written", 0)
    assert world.bodies() == [SAID]


def test_a_limit_without_a_time_lasts_an_hour(tmp_path: Path, clock: FakeClock) -> None:
    """Nobody knows better."""
    world = World(tmp_path, clock, [ProviderLimited("429"), NOTHING])

    job = world.finalize(world.transcript().user(SAID))

    assert (job.wait_reason, job.failures) == ("provider.limited", 0)
    assert job.run_at == clock.now_ms() + HOUR * 1000 + 1


def test_a_limit_a_month_away_is_looked_at_again_within_a_day(
    tmp_path: Path, clock: FakeClock
) -> None:
    """A wait longer than a day would look like a clock that stepped."""
    far = clock.now_ms() + 30 * DAY * 1000
    world = World(tmp_path, clock, [ProviderLimited("quota", until_ms=far)])

    job = world.finalize(world.transcript().user(SAID))

    assert clock.now_ms() + (DAY - 2) * 1000 < job.run_at <= clock.now_ms() + DAY * 1000


def test_a_limit_holds_the_whole_queue_until_it_lifts(tmp_path: Path, clock: FakeClock) -> None:
    """One job met it; those that come meanwhile wait with it, and then all are read."""
    lifts = clock.now_ms() + 7 * 60_000
    script = [ProviderLimited("429: slow down", until_ms=lifts), NOTHING]
    world = World(tmp_path, clock, script)
    first = world.finalize(world.transcript().user(SAID))
    clock.advance(60)
    others = [world.finalize(world.transcript(f"s{n}").user(SAID)) for n in range(2, 6)]

    assert len(world.model.requests) == 1
    rows = [world.job(job) for job in (first, *others)]
    assert {(row.wait_reason, row.failures) for row in rows} == {("provider.limited", 0)}
    assert [row.run_at - lifts for row in rows] == [1, 0, 0, 0, 0]
    breaker = world.ledger.breakers.of("scripted")
    assert breaker is not None
    assert (breaker.state, breaker.reason, breaker.until) == ("open", "provider.limited", lifts)
    assert breaker.detail == "429: slow down"

    clock.advance(6 * 60 + 0.001)
    world.work()

    assert {world.job(job).status for job in (first, *others)} == {"completed"}
    assert len(world.model.requests) == 6
    assert world.ledger.breakers.of("scripted") is None


@pytest.mark.parametrize("wait_ms", [-60_000, 0, 20])
def test_a_limit_that_lifts_at_once_is_no_reason_to_ask_at_once(
    tmp_path: Path, clock: FakeClock, wait_ms: int
) -> None:
    """Asked again and again without a pause it would never lift."""
    script = [ProviderLimited("429", until_ms=clock.now_ms() + wait_ms)]
    world = World(tmp_path, clock, script)
    job = world.enqueue(world.transcript().user(SAID)).job
    waits = []

    for _ in range(4):
        world.work()
        waits.append((world.job(job).run_at - clock.now_ms()) // 1000)
        clock.advance(waits[-1] + 0.001)

    assert waits == [15, 30, 60, 120]
    assert len(world.model.requests) == 4


def test_bad_credentials_stop_the_queue_until_a_person_resumes(
    tmp_path: Path, clock: FakeClock
) -> None:
    """Jobs wait and cost nothing; nobody asks again, however long it takes; then all run."""
    script = [ProviderPermanent("the key was refused"), answer(fact(SAID))]
    world = World(tmp_path, clock, script)
    job = world.finalize(world.transcript().user(SAID))
    other = world.finalize(world.transcript("s2").user("Nothing to keep here at all."))
    for _ in range(5):
        clock.advance(HOUR)
        world.work()
    rows = [world.job(job), world.job(other)]
    assert {(row.shown_status, row.wait_reason) for row in rows} == {
        ("waiting", "provider.permanent")
    }
    assert {row.failures for row in rows} == {0}
    assert len(world.model.requests) == 1

    assert world.ledger.breakers.resume("scripted") == 2
    world.work()

    assert world.job(job).outcome_code == "notes.written"
    assert world.job(other).status == "completed"


def test_an_answer_that_fails_in_the_provider_is_a_failure(
    tmp_path: Path, clock: FakeClock
) -> None:
    """Retried after 15 s, 1 min, 4 min, 16 min; then given up, with the reason."""
    world = World(tmp_path, clock, [BadAnswer("the answer was empty")])
    job = world.finalize(world.transcript().user(SAID))
    begun = clock.now_ms()
    assert (job.shown_status, job.failures, job.error_code) == ("retrying", 1, "answer.unusable")

    world.work_to_rest()

    job = world.job(job)
    assert (job.status, job.failures, job.error_code) == ("failed", 5, "answer.unusable")
    waited = (clock.now_ms() - begun) / 1000
    assert 0.9 * (15 + 60 + 240 + 960) <= waited <= 1.1 * (15 + 60 + 240 + 960) + 1
    assert len(world.model.requests) == 5


def test_a_call_is_booked_before_it_is_sent_and_settled_after(
    tmp_path: Path, clock: FakeClock
) -> None:
    """Inside the call the whole reservation stands; afterwards what was really used."""
    seen: list[tuple[int, int]] = []

    def look(request: Request) -> str:
        seen.append(world.ledger.budget.spent("scripted"))
        return NOTHING

    world = World(tmp_path, clock, [look])
    job = world.finalize(world.transcript().user(SAID))

    (request,) = world.model.requests
    calls, reserved = seen[0]
    assert calls == 1
    assert reserved >= request.max_tokens + len(request.prompt) // 4
    (attempt,) = world.ledger.records.attempts(job)
    used = attempt.input_tokens + attempt.output_tokens
    assert (attempt.calls, world.ledger.budget.spent("scripted")) == (1, (1, used))
    assert 0 < used < reserved


def test_a_call_over_midnight_is_settled_on_the_day_it_was_booked(
    tmp_path: Path, clock: FakeClock
) -> None:
    """The new day's budget is whole."""

    def over_midnight(request: Request) -> str:
        clock.advance(DAY)
        return NOTHING

    world = World(tmp_path, clock, [over_midnight])
    world.finalize(world.transcript().user(SAID))

    assert world.ledger.budget.spent("scripted") == (0, 0)
    rows = world.ledger.db.rows("select day, calls, tokens from budget")
    assert [(day, calls) for day, calls, _ in rows] == [("2026-01-05", 1)]
    (request,) = world.model.requests
    assert rows[0][2] < request.max_tokens


def test_a_spent_budget_waits_for_the_next_day(tmp_path: Path, clock: FakeClock) -> None:
    """No failure; the wake is within ten minutes after midnight, and says what it waits for."""
    provider = replace(ProviderSettings(), daily_calls=1)
    world = World(tmp_path, clock, config=Config(provider=provider))
    world.finalize(world.transcript("s1").user(SAID))

    job = world.finalize(world.transcript("s2").user(SAID))

    assert (job.wait_reason, job.failures) == ("budget.spent", 0)
    midnight = 1_767_657_600_000  # 2026-01-06 00:00 UTC
    assert midnight <= job.run_at <= midnight + 600_000
    assert "1 call" in str(job.error_detail)


def test_a_free_provider_has_no_budget_and_no_breaker(tmp_path: Path, clock: FakeClock) -> None:
    """The rules are never counted."""
    provider = replace(ProviderSettings(), daily_calls=0)
    world = World(tmp_path, clock, config=Config(provider=provider))
    world.model.costs = False

    job = world.finalize(world.transcript().user(SAID))

    assert job.status == "completed"
    assert world.ledger.budget.spent("scripted") == (0, 0)


def test_no_more_calls_at_once_than_configured(tmp_path: Path, clock: FakeClock) -> None:
    """Three workers, one slot: the others wait their turn inside the call."""
    entered, leave = threading.Semaphore(0), threading.Semaphore(0)
    inside = most = 0
    guard = threading.Lock()

    def busy(request: Request) -> str:
        nonlocal inside, most
        with guard:
            inside += 1
            most = max(most, inside)
        entered.release()
        assert leave.acquire(timeout=60)
        with guard:
            inside -= 1
        return NOTHING

    settings = replace(ProviderSettings(), max_concurrency=1)
    world = World(tmp_path, clock, [busy], config=Config(provider=settings))
    for number in range(3):
        world.enqueue(world.transcript(f"s{number}").user(SAID))

    def work() -> None:
        world.worker.work_ready()
        world.place.close()

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(3):
        assert entered.acquire(timeout=60)
        leave.release()
    for thread in threads:
        thread.join(60)

    assert most == 1
    assert len(world.model.requests) == 3


@pytest.mark.parametrize(
    "error",
    [ProviderUnavailable("x", free=True), ProviderLimited("x"), ProviderPermanent("x")],
    ids=["no connection", "limited", "permanent"],
)
def test_a_refused_call_gives_its_tokens_back(
    tmp_path: Path, clock: FakeClock, error: Exception
) -> None:
    """The call is counted, what it would have cost is not."""
    world = World(tmp_path, clock, [error])

    world.finalize(world.transcript().user(SAID))

    assert world.ledger.budget.spent("scripted") == (1, 0)


@pytest.mark.parametrize("error", [ProviderUnavailable("too late"), BadAnswer("garbage")])
def test_a_call_that_was_sent_and_brought_nothing_keeps_its_reservation(
    tmp_path: Path, clock: FakeClock, error: Exception
) -> None:
    """Money too: a provider that is broken cannot be called past the day's budget."""
    settings = replace(ProviderSettings(), price_input=1.0, price_output=2.0)
    world = World(tmp_path, clock, [error], config=Config(provider=settings))

    world.finalize(world.transcript().user(SAID))

    (request,) = world.model.requests
    read = (len(request.system) + len(request.prompt)) // 3
    spent = world.ledger.budget.today("scripted")
    assert (spent.calls, spent.tokens) == (1, read + request.max_tokens)
    assert spent.cost == read + 2 * request.max_tokens


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"daily_tokens": 50}, "daily_tokens = 50"),
        ({"daily_calls": 0}, "daily_calls = 0"),
        ({"daily_cost": 0.0001, "price_output": 5.0}, "daily_cost = 0.0001"),
    ],
)
def test_a_call_that_fits_into_no_day_says_what_to_raise(
    tmp_path: Path, clock: FakeClock, settings: dict[str, float], named: str
) -> None:
    """It is not the day that is spent: waiting for the next one would help nothing."""
    config = Config(provider=replace(ProviderSettings(name="command"), **settings))  # type: ignore[arg-type]
    world = World(tmp_path, clock, [NOTHING], config=config)

    job = world.finalize(world.transcript().user("Always run the linter before you commit."))

    assert (job.wait_reason, job.failures) == ("budget.too-small", 0)
    assert named in str(job.error_detail)
    world.restart(config=Config())
    assert world.ledger.wake("budget.too-small") == 1
    world.work()
    assert world.job(job).status == "completed"


def test_a_backfill_whose_share_no_call_fits_into_says_so(tmp_path: Path, clock: FakeClock) -> None:
    """Half of what is enough for a call is not."""
    settings = ProviderSettings(name="command", daily_tokens=6_000)
    world = World(tmp_path, clock, config=Config(provider=settings))

    found = standing(world.ledger, world.config, world.environ, costs=True)
    started = world.ledger.archive.say("started")
    asked = standing(world.ledger, world.config, world.environ, costs=True)

    assert started is None and found.reason == "backfill.not-started"
    assert (asked.state, asked.reason) == ("on", "budget.too-small")
    assert room(world.place) == 0


def test_the_doctor_names_a_budget_that_no_call_fits_into(tmp_path: Path, clock: FakeClock) -> None:
    """Before any job has to wait for it."""
    world = World(tmp_path, clock)
    said = {}
    for tokens in (50, 6_000, 500_000):
        text = f'[provider]\nname = "command"\ncommand = ["true"]\ndaily_tokens = {tokens}\n'
        world.home.config_file.write_text(text)
        findings = examine(world.home, clock, world.environ)
        said[tokens] = [(each.severity, each.what) for each in findings if "budget" in each.code]

    assert said[50][0][0] == "problem" and "daily_tokens = 50 " in said[50][0][1]
    assert said[6_000][0][0] == "warning" and "share = 0.5" in said[6_000][0][1]
    assert [level for level, _ in said[500_000]] == ["ok"]
