"""Rows that no code of ours would have written stop nobody, are named, and are set aside."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from archives import RULE
from builders import enqueue
from test_salvaging import change
from world import World, answer, fact

from memoryd.cli.common import age, table, when
from memoryd.jobs import doctor
from memoryd.jobs.doctor import examine
from memoryd.jobs.looking import Check, Look
from memoryd.jobs.repairing import repair
from memoryd.jobs.report import report
from memoryd.memory.testing import FakeClock

#: A statement that spoils a row, and what is named.
SPOILT = {
    "insert into budget (day, provider, calls, tokens) values ('2026-01-05', 'rules', 'abc', 1)": (
        "budget"
    ),
    "update job set agent = x'ff00'": "job",
    "update job set id = x'00ff'": "job",
    "update job set agent = cast(x'ff00' as text)": "job",
    "update job set created_at = 'long ago'": "job",
    "update job set finished_at = x'ff'": "job",
    "insert into consolidation values ('s', 'abc', x'ff', 0, 'abc')": "consolidation",
    "insert into daily_run (name, day, at) values ('backup', '2026-01-01', 'abc')": "daily_run",
    "insert into breaker values ('rules', 'open', 'x', 'y', 'z', x'ff', 'w')": "breaker",
    "update rollout set cwd = x'ff' where excluded is not null": "rollout",
}


@pytest.mark.parametrize("statement", SPOILT)
def test_a_spoilt_row_is_left_out_named_and_set_aside(
    tmp_path: Path, clock: FakeClock, statement: str
) -> None:
    """The other job is listed all along; what is taken out is kept, and excluded stays excluded."""
    world = World(tmp_path, clock)
    enqueue(world.ledger, "good", cutoff=10)
    clock.advance(1)
    enqueue(world.ledger, "bad", cutoff=10)
    world.ledger.exclude("claude-code", "private", "session.excluded")
    path = world.home.ledger
    change(
        path, statement + (" where session = 'bad'" if statement.startswith("update job") else "")
    )

    def named() -> list[str]:
        found = examine(world.home, world.clock, world.environ)
        assert "check.failed" not in {each.code for each in found}
        return [each.what for each in found if each.code == "row.unusable"]

    if "as text" not in statement:  # SQLite's own reading stops there
        assert "good" in {job.session for job in world.ledger.records.jobs()}
        assert report(world.home, world.ledger, world.config, world.environ)
        assert world.ledger.budget.today("rules").calls == 0
        (what,) = named()
        assert SPOILT[statement] in what

    done = repair(world.home, world.clock, world.environ)

    assert [each.what for each in done if each.left] == [] and named() == []
    (kept,) = world.home.backups.glob("rows-*.jsonl")
    assert json.loads(kept.read_text())["table"] == SPOILT[statement]
    assert "good" in {job.session for job in world.ledger.records.jobs()}
    rollout = world.ledger.records.rollout("claude-code", "private")
    assert rollout is not None and rollout.excluded == "session.excluded"


def test_where_a_cursor_was_set_aside_the_commits_say_where_it_was(
    tmp_path: Path, clock: FakeClock
) -> None:
    """Else all its session said would be shown to a model again."""
    world = World(tmp_path, clock, [answer(fact(RULE))])
    world.finalize(world.transcript("s1").user(RULE))
    change(world.home.ledger, "update cursor set seq = 'abc'")

    repair(world.home, world.clock, world.environ)

    world.restart()
    assert world.ledger.cursor("claude-code", "s1") == 1


def test_a_check_that_cannot_look_is_a_finding_and_the_others_look(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it met: what is wrong elsewhere is found all the same."""
    world = World(tmp_path, clock)

    def stumbles(look: Look) -> list[doctor.Finding]:
        raise TypeError("'<' not supported")

    def looks(look: Look) -> list[doctor.Finding]:
        return []

    checks = (Check("one.ok", "one", stumbles), Check("two.ok", "two", looks))
    monkeypatch.setattr(doctor, "CHECKS", checks)

    found = examine(world.home, world.clock, world.environ)

    assert [each.code for each in found] == ["check.failed", "two.ok"]
    assert "one.ok" in found[0].what and "TypeError: '<' not" in found[0].what


@pytest.mark.parametrize("value", ["abc", b"\xff", 1 << 80, -(1 << 62)])
def test_a_time_that_is_none_is_shown_as_unknown(value: object) -> None:
    """A table holds anything, too."""
    assert (age(value), when(value)) == ("?", "?")  # type: ignore[arg-type]
    assert str(value).split()[0] in table(["what"], [[value]])
