"""Breakers: whom the whole queue does not ask, and who may try."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders import again, claim, make_job, open_ledger

from memoryd.jobs.breaker import Breaker, Breakers
from memoryd.jobs.ledger import Ledger
from memoryd.memory.testing import FakeClock

AWAY = "provider.unavailable"


@pytest.fixture
def ledger(tmp_path: Path, clock: FakeClock) -> Ledger:
    """An empty ledger."""
    return open_ledger(tmp_path, clock)


@pytest.fixture
def breakers(ledger: Ledger) -> Breakers:
    """Its breakers, all closed."""
    return ledger.breakers


def standing(breakers: Breakers) -> Breaker:
    """The breaker of ``openai``, which there must be."""
    breaker = breakers.of("openai")
    assert breaker is not None
    return breaker


def test_a_provider_that_answers_has_no_breaker(breakers: Breakers) -> None:
    """And one provider's trouble is not another's."""
    breakers.trip("openai", AWAY, "refused")

    assert breakers.of("anthropic") is None


def test_each_silence_in_a_row_doubles_the_wait_up_to_an_hour(
    breakers: Breakers, clock: FakeClock
) -> None:
    """15 s, 30 s ... 1 h; ``since`` keeps the first, for ``doctor``."""
    began = clock.now_ms()
    waits = []
    for _ in range(11):
        until = breakers.trip("openai", AWAY, "refused")
        assert standing(breakers).until == until
        waits.append((until - clock.now_ms()) // 1000)
        clock.advance(3600)

    assert waits == [15, 30, 60, 120, 240, 480, 960, 1920, 3600, 3600, 3600]
    assert standing(breakers).since == began


def test_one_job_an_interval_may_probe(ledger: Ledger, tmp_path: Path, clock: FakeClock) -> None:
    """Of two workers that saw the same breaker only one is told to ask."""
    other = open_ledger(tmp_path, clock)
    ledger.breakers.trip("openai", AWAY, "refused")
    seen = standing(ledger.breakers)
    assert not ledger.breakers.may_probe(seen), "too early"

    clock.advance(15)
    assert ledger.breakers.may_probe(seen)
    assert not other.breakers.may_probe(seen)
    assert standing(other.breakers).until == clock.now_ms() + 30_000

    clock.advance(30)
    assert other.breakers.may_probe(seen)


def test_a_probe_time_too_far_ahead_counts_as_past(breakers: Breakers, clock: FakeClock) -> None:
    """The clock was stepped back; the provider must not stay unasked for years."""
    breakers.trip("openai", AWAY, "refused")
    clock.step(-7200)

    assert breakers.may_probe(standing(breakers))


def test_an_answer_wakes_who_waited_for_the_provider(ledger: Ledger, clock: FakeClock) -> None:
    """At once, and nobody who waits for something else; and the next trouble starts at 15 s."""
    later = clock.now_ms() + 1_000_000
    away = make_job(ledger, "away", run_at=later, wait_reason=AWAY)
    bad_key = make_job(ledger, "key", run_at=later, wait_reason="provider.permanent")
    busy = make_job(ledger, "busy", run_at=later, wait_reason="store.busy")
    for _ in range(3):
        ledger.breakers.trip("openai", AWAY, "refused")

    assert ledger.breakers.resume("openai") == 2

    assert ledger.breakers.of("openai") is None
    assert {claim(ledger).id, claim(ledger).id} == {away.id, bad_key.id}
    assert again(ledger, busy).run_at == later
    assert ledger.breakers.trip("openai", AWAY, "refused") == clock.now_ms() + 15_000


def test_a_stopped_provider_is_not_probed_until_a_person_acts(
    breakers: Breakers, clock: FakeClock
) -> None:
    """Asking with a bad key again and again gets a person locked out."""
    breakers.stop("openai", "provider.permanent", "401")
    clock.advance(48 * 3600)

    assert not breakers.may_probe(standing(breakers))
    assert (standing(breakers).state, standing(breakers).reason) == (
        "stopped",
        "provider.permanent",
    )

    breakers.resume("openai")
    assert breakers.of("openai") is None


def test_a_late_silence_does_not_reopen_a_stopped_provider(
    breakers: Breakers, clock: FakeClock
) -> None:
    """Another worker's call was still out when the key was refused."""
    breakers.stop("openai", "provider.permanent", "401")

    until = breakers.trip("openai", AWAY, "timeout")

    assert until == clock.now_ms() + 30_000
    assert (standing(breakers).state, standing(breakers).detail) == ("stopped", "401")


def test_a_breaker_holds_a_code_and_a_bounded_detail(breakers: Breakers) -> None:
    """The detail is a provider's answer: of any length."""
    breakers.trip("openai", AWAY, "x" * 100_000)
    assert len(standing(breakers).detail) == 500

    with pytest.raises(ValueError, match="not an operational code"):
        breakers.stop("openai", "No such key!", "")
    assert standing(breakers).state == "open"


def test_a_breaker_survives_a_restart(breakers: Breakers, tmp_path: Path, clock: FakeClock) -> None:
    """A daemon that restarts in an outage does not start asking anew."""
    breakers.trip("openai", AWAY, "refused")
    breakers.trip("openai", AWAY, "refused")

    assert standing(open_ledger(tmp_path, clock).breakers) == standing(breakers)
