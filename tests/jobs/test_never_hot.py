"""A provider that always fails, in whatever layer: asked a bounded number of times in a week."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from world import World

from memoryd.jobs import control
from memoryd.jobs import worker as workers
from memoryd.jobs.job import Job
from memoryd.jobs.keeper import LeaseKeeper
from memoryd.jobs.workplace import Workplace
from memoryd.memory.config import Config, ProviderSettings
from memoryd.memory.errors import (
    BadAnswer,
    LedgerError,
    ProviderLimited,
    ProviderPermanent,
    ProviderUnavailable,
)
from memoryd.memory.providers.base import Request
from memoryd.memory.testing import FakeClock

DAY = 86_400
WEEK = 7 * DAY
JOBS = 3
REQUEST = Request("system", "prompt", (), (), 10, 60)
#: 15 s doubling to an hour, then one an hour.
PROBES_OF_A_WEEK = 8 + WEEK // 3600


@pytest.fixture
def world(tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> World:
    """A home of three sessions, each of which needs one call."""
    spending = replace(ProviderSettings(), daily_calls=10_000, daily_tokens=10_000_000)
    world = World(tmp_path, clock, ["{}"], config=Config(provider=spending))

    def handler(job: Job, place: Workplace, keeper: LeaseKeeper) -> None:
        place.calls.ask(job, REQUEST)
        place.ledger.complete(job, "test.done")

    monkeypatch.setitem(workers.HANDLERS, "finalize", handler)
    for number in range(JOBS):
        world.enqueue(world.transcript(f"s{number}").user("Good morning."))
    return world


def a_week(world: World) -> list[Job]:
    """Work whatever is due for a week; every job as it is then."""
    end = world.clock.now_ms() + WEEK * 1000
    world.work()
    while (due := world.ledger.next_due_ms()) is not None and due < end:
        world.clock.advance(max(1, due - world.clock.now_ms()) / 1000)
        assert world.work() <= 2 * JOBS, "a hot loop"
    return world.ledger.records.jobs(limit=100)


def provider_raises(world: World, error: BaseException) -> None:
    """Each call ends with ``error``."""

    def complete(request: Request) -> Any:
        world.model.requests.append(request)
        raise error

    world.model.complete = complete  # type: ignore[method-assign]


@pytest.mark.parametrize(
    ("error", "reason", "most"),
    [
        (ProviderUnavailable("no connection"), "provider.unavailable", PROBES_OF_A_WEEK),
        (ProviderLimited("429", until_ms=1), "provider.limited", PROBES_OF_A_WEEK),
        (ProviderLimited("429"), "provider.limited", WEEK // 3600 + 1),
        (ProviderLimited("429", until_ms=10**15), "provider.limited", 8),
        (ProviderPermanent("401"), "provider.permanent", 1),
    ],
    ids=["away", "limited, lifts at once", "limited", "limited for ever", "refused"],
)
def test_what_is_waited_for_is_asked_once_an_interval_by_the_whole_queue(
    world: World, error: Exception, reason: str, most: int
) -> None:
    """However many jobs wait, and none of them has failed after a week."""
    provider_raises(world, error)

    jobs = a_week(world)

    assert most - 3 <= len(world.model.requests) <= most
    assert {(job.shown_status, job.wait_reason, job.failures) for job in jobs} == {
        ("waiting", reason, 0)
    }
    assert all(job.error_detail for job in jobs)


def in_the_provider(error: BaseException) -> Callable[[World, pytest.MonkeyPatch], None]:
    """The provider's own code goes wrong."""
    return lambda world, patch: provider_raises(world, error)


def in_redaction(world: World, patch: pytest.MonkeyPatch) -> None:
    """What the provider said cannot be made safe to keep."""

    def redact(text: str) -> tuple[str, int]:
        raise RecursionError(text)

    patch.setattr(control, "redact", redact)
    provider_raises(world, ProviderUnavailable("no connection"))


def in_booking(world: World, patch: pytest.MonkeyPatch) -> None:
    """The budget cannot be read: nothing is sent."""

    def reserve(*what: object, **more: object) -> str:
        raise OverflowError("too large to convert")

    patch.setattr(world.ledger.budget, "reserve", reserve)


def in_settling(world: World, patch: pytest.MonkeyPatch) -> None:
    """The call is over and cannot be booked."""

    def settle(*what: object, **more: object) -> None:
        raise LedgerError("the ledger is locked")

    patch.setattr(world.ledger.budget, "settle", settle)


def in_counting(world: World, patch: pytest.MonkeyPatch) -> None:
    """The answer is there and cannot be counted."""

    def count_call(*what: object) -> None:
        raise ValueError("negative")

    patch.setattr(world.ledger, "count_call", count_call)


@pytest.mark.parametrize(
    "layer",
    [
        in_the_provider(BadAnswer("prose")),
        in_the_provider(KeyError("choices")),
        in_the_provider(MemoryError()),
        in_redaction,
        in_booking,
        in_counting,
    ],
    ids=["answer", "provider", "memory", "redaction", "booking", "counting"],
)
def test_a_fault_in_any_layer_is_counted_until_the_job_is_given_up(
    world: World, monkeypatch: pytest.MonkeyPatch, layer: Callable[[World, Any], None]
) -> None:
    """Five attempts each, with pauses; then failed, with the reason."""
    layer(world, monkeypatch)

    jobs = a_week(world)

    assert len(world.model.requests) <= 5 * JOBS
    assert {(job.status, job.failures) for job in jobs} == {("failed", 5)}
    assert all(job.error_code and job.error_detail for job in jobs)


def test_what_can_be_asked_and_never_be_booked_waits_longer_each_time(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A ledger in the way is no job's fault; that each try is paid for makes the tries few."""
    in_settling(world, monkeypatch)

    jobs = a_week(world)

    assert len(world.model.requests) <= 20 * JOBS
    assert {(job.status, job.failures) for job in jobs} == {("pending", 0)}
    assert {job.wait_reason for job in jobs} == {"ledger.unusable"}


def test_a_request_that_cannot_be_built_is_counted_too(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No call is made; the words wait for a person's retry."""
    world = World(tmp_path, clock)

    def build(*what: object, **more: object) -> Request:
        raise UnicodeEncodeError("utf-8", "\ud83d", 0, 1, "surrogates not allowed")

    monkeypatch.setattr("memoryd.memory.prompt.build", build)
    said = world.transcript().user("Always run the linter before you commit.")
    job = world.finalize(said)

    world.work_to_rest()

    job = world.job(job)
    assert (job.status, job.failures, job.error_code) == ("failed", 5, "attempt.error")
    assert (world.model.requests, world.cursor(said)) == ([], 0)
