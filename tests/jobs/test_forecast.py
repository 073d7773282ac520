"""What backfill would do: counts, turns, prices, and whose sessions are deleted too soon."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from archives import TABS, Past
from world import DAY

from memoryd.jobs.forecast import (
    Forecast,
    deletes_when,
    first_forecast,
    forecast,
    projects_of,
    total,
)
from memoryd.jobs.report import report
from memoryd.memory.clock import local_date, next_local_midnight_ms
from memoryd.memory.config import BackfillSettings, Config, ProviderSettings
from memoryd.memory.projects import Resolver
from memoryd.memory.testing import FakeClock

PRICED = ProviderSettings(
    name="anthropic", model="m", price_input=3.0, price_output=15.0, daily_calls=20
)


def look(past: Past, config: Config | None = None) -> Forecast:
    """A discovery, and what it leads to."""
    past.discover()
    return forecast(past.home, past.ledger, config or past.config, past.environ)


def test_every_session_is_counted_once(tmp_path: Path, clock: FakeClock) -> None:
    """By its agent, and how far it has come."""
    past = Past(tmp_path, clock, min_idle_hours=48, max_age_days=25)
    past.session("mined", days=9)
    past.session("mined-and-deleted", days=9)
    past.mine()
    past.transcript("mined-and-deleted").path.unlink()
    past.session("young", days=1)
    past.session("old", days=26)
    past.session("waiting", days=8)
    past.session("deleted", days=7)
    past.discover()
    past.transcript("deleted").path.unlink()
    past.enqueue(past.session("told", days=3))

    found = look(past)

    assert {name: count for name, count in found.counts["claude-code"].items() if count} == {
        "mined": 2,
        "young": 1,
        "old": 1,
        "waiting": 1,
        "gone": 1,
    }
    assert found.fresh == {"claude-code": 1}
    brief = report(past.home, past.ledger, past.config, past.environ).backfill
    assert (brief.mined, brief.waiting, brief.young, brief.old, brief.gone) == (2, 1, 1, 1, 1)
    assert [each.row.session for each in found.turns] == ["waiting"]


def test_what_was_forgotten_is_not_fresh(tmp_path: Path, clock: FakeClock) -> None:
    """Nobody is to read it any more."""
    past = Past(tmp_path, clock)
    past.session("s1", days=3)
    past.session("s2", days=3)
    past.discover()

    past.ledger.exclude("claude-code", "s1", "session.forgotten")

    assert look(past).fresh == {}


def test_what_an_agent_may_have_deleted_already_goes_any_day(clock: FakeClock) -> None:
    """It is there still, so the date would be one that is past."""
    now = clock.now_ms()

    assert deletes_when(now - 1, now) == "any day now"
    assert deletes_when(now + 1, now) == local_date(now + 1)


def test_looking_makes_no_job(tmp_path: Path, clock: FakeClock) -> None:
    """And asks nobody."""
    past = Past(tmp_path, clock)
    past.session("s1")

    look(past)

    assert past.backfills() == []
    assert past.model.requests == []


def test_the_pace_of_a_day_is_that_of_the_configuration(tmp_path: Path, clock: FakeClock) -> None:
    """What today has had already counts."""
    past = Past(tmp_path, clock, per_day=3)
    for number in range(4):
        past.session(f"s{number}")
    past.mine()
    for number in range(4, 10):
        past.session(f"s{number}")

    found = look(past)

    assert past.ledger.archive.made_today() == 3
    assert [each.day for each in found.turns] == [1, 1, 1, 2, 2, 2, 3]
    tomorrow = next_local_midnight_ms(clock.now_ms())
    assert found.through_at == tomorrow + 3 * DAY * 1000 - 1


def test_calls_and_tokens_bound_the_pace_where_they_cost(tmp_path: Path, clock: FakeClock) -> None:
    """Half of twenty calls a day."""
    past = Past(tmp_path, clock)
    for number in range(25):
        past.session(f"s{number:02}")
    config = replace(past.config, provider=PRICED)

    found = look(past, config)

    assert [each.day for each in found.turns] == [0] * 10 + [1] * 10 + [2] * 5
    takes = total(found.turns)
    assert (takes.sessions, takes.calls) == (25, 25)
    assert takes.tokens * 3 < takes.cost < takes.tokens * 15
    free = look(past, replace(past.config, provider=ProviderSettings()))
    assert (total(free.turns).calls, total(free.turns).tokens) == (0, 0)


def test_a_longer_transcript_takes_more(tmp_path: Path, clock: FakeClock) -> None:
    """A tenth of its bytes are words, 12,000 characters a call."""
    past = Past(tmp_path, clock)
    long = past.transcript("long").tool_result("x" * 1_300_000)
    past.aged(long, TABS, days=9)
    past.session("short", days=8)
    config = replace(past.config, provider=PRICED)

    found = {each.row.session: each.price for each in look(past, config).turns}

    assert (found["long"].calls, found["short"].calls) == (11, 1)


def test_a_warning_names_what_is_deleted_before_its_turn(tmp_path: Path, clock: FakeClock) -> None:
    """One a day: the third of Claude Code's comes too late; Codex keeps its own."""
    past = Past(tmp_path, clock, per_day=1)
    for number in range(3):
        past.session(f"s{number}", days=29.5 - number / 10)
        past.session(f"0199c3a0-0000-7000-8000-00000000000{number}", agent="codex", days=40)

    (warned,) = look(past).at_risk

    assert (warned.agent, warned.sessions, warned.keeps_days) == ("claude-code", 2, 30)
    assert warned.first_at == clock.now_ms() + int(0.6 * DAY * 1000)


def test_while_it_is_paused_all_of_them_are_at_risk(tmp_path: Path, clock: FakeClock) -> None:
    """It is never their turn."""
    past = Past(tmp_path, clock)
    for number in range(3):
        past.session(f"s{number}")
    assert look(past).at_risk == []

    past.ledger.archive.say("paused")
    found = look(past)

    assert (found.standing.state, found.through_at) == ("paused", None)
    assert [each.sessions for each in found.at_risk] == [3]


def test_projects_are_counted(tmp_path: Path, clock: FakeClock) -> None:
    """By their keys, the most sessions first."""
    past = Past(tmp_path, clock)
    other = tmp_path / "other"
    other.mkdir()
    past.session("s1")
    past.session("s2")
    past.aged(past.transcript("s3", cwd=other), TABS, days=10)

    found = projects_of(look(past).turns)

    keys = [Resolver(past.home).resolve(str(path)).key for path in (past.project, other)]
    assert list(found.items()) == [(keys[0], 2), (keys[1], 1)]


def test_without_a_home_all_is_archive(tmp_path: Path, clock: FakeClock) -> None:
    """Nothing is written to find out."""
    past = Past(tmp_path, clock)
    past.session("s1")
    past.session("just-now", days=0)
    config = Config(backfill=BackfillSettings())

    found = first_forecast(past.home, config, past.environ, clock.now_ms())

    assert found.counts["claude-code"]["waiting"] == 1
    assert found.counts["claude-code"]["young"] == 1
    assert found.standing.state == "on"
    paid = replace(config, provider=PRICED)
    found = first_forecast(past.home, paid, past.environ, clock.now_ms())
    assert (found.standing.state, found.standing.reason) == ("off", "backfill.not-started")
