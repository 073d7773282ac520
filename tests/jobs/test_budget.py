"""The day's budget: booked before, settled after, whole again at local midnight."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from builders import open_ledger

from memoryd.jobs.budget import Budget
from memoryd.memory.testing import FakeClock

HOUR = 3600


@pytest.fixture
def budget(tmp_path: Path, clock: FakeClock) -> Budget:
    """The budget of an empty ledger, on 2026-01-05 09:00 UTC."""
    return open_ledger(tmp_path, clock).budget


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Local time with daylight saving, whatever zone files the machine has."""
    monkeypatch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def test_calls_are_refused_when_the_day_has_no_more(budget: Budget) -> None:
    """The last one that fits is booked, the next is not, and nothing is booked for it."""
    assert budget.reserve("openai", 10, max_calls=2, max_tokens=1000)
    assert budget.reserve("openai", 10, max_calls=2, max_tokens=1000)

    assert budget.reserve("openai", 10, max_calls=2, max_tokens=1000) is None
    assert budget.spent("openai") == (2, 20)


def test_tokens_are_refused_when_the_day_has_no_more(budget: Budget) -> None:
    """To the last token."""
    assert budget.reserve("openai", 600, max_calls=9, max_tokens=1000)

    assert budget.reserve("openai", 401, max_calls=9, max_tokens=1000) is None
    assert budget.reserve("openai", 400, max_calls=9, max_tokens=1000)


def test_settling_replaces_the_guess_by_what_was_spent(budget: Budget) -> None:
    """More or less than was booked; the call stays counted."""
    first = budget.reserve("openai", 600, 9, 10_000)
    budget.settle("openai", 600, 250, first)
    second = budget.reserve("openai", 100, 9, 10_000)
    budget.settle("openai", 100, 175, second)

    assert budget.spent("openai") == (2, 425)


def test_a_settlement_never_makes_a_day_negative(budget: Budget) -> None:
    """A wrong one costs no more than itself."""
    budget.reserve("openai", 10, 9, 1000)
    budget.settle("openai", 600, 0)

    assert budget.spent("openai") == (1, 0)


def test_a_call_that_ends_after_midnight_is_settled_on_its_own_day(
    budget: Budget, clock: FakeClock
) -> None:
    """Else the new day would begin with a debt, or with a gift."""
    clock.advance(15 * HOUR - 1)
    day = budget.reserve("openai", 600, 9, 1000)
    clock.advance(2)
    budget.reserve("openai", 500, 9, 1000)

    budget.settle("openai", 600, 100, day)

    assert budget.spent("openai") == (1, 500)
    clock.step(-2)
    assert budget.spent("openai") == (1, 100)


def test_providers_have_a_budget_each(budget: Budget) -> None:
    """One that is spent leaves the other alone."""
    assert budget.reserve("openai", 10, 1, 1000)
    assert budget.reserve("openai", 10, 1, 1000) is None

    assert budget.reserve("anthropic", 10, 1, 1000)


def test_a_budget_survives_a_restart(budget: Budget, tmp_path: Path, clock: FakeClock) -> None:
    """It is in the file."""
    budget.reserve("openai", 10, 1, 1000)

    assert open_ledger(tmp_path, clock).budget.spent("openai") == (1, 10)


@pytest.mark.usefixtures("berlin")
def test_the_budget_is_whole_again_at_local_midnight(budget: Budget, clock: FakeClock) -> None:
    """The person's day, not UTC's: 10:00 in Berlin is 14 hours before it."""
    assert budget.reserve("openai", 10, 1, 1000)

    clock.advance(14 * HOUR - 1)
    assert budget.reserve("openai", 10, 1, 1000) is None
    clock.advance(1)
    assert budget.reserve("openai", 10, 1, 1000)


@pytest.mark.usefixtures("berlin")
def test_who_waits_for_the_next_day_is_spread_over_ten_minutes(
    budget: Budget, clock: FakeClock
) -> None:
    """Else all jobs would ask at once at midnight."""
    midnight = clock.now_ms() + 14 * HOUR * 1000

    wakes = [budget.next_day_ms() - midnight for _ in range(200)]

    assert min(wakes) >= 0 and max(wakes) <= 600_000
    assert max(wakes) - min(wakes) > 300_000
