"""`memoryd backfill`, as a person types it."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from processes import PNPM, TABS, World

from memoryd.jobs.archive import home_made_ms

#: A provider that costs and has nothing to say.
PAID = """
[provider]
name = "command"
command = ["sh", "-c", "cat >/dev/null; echo '{\\"facts\\": []}'"]
price_input = 3.0
price_output = 15.0
"""


def aged(path: Path, days: float) -> Path:
    """``path``, last changed so many days ago."""
    then = time.time() - days * 24 * 3600
    os.utime(path, (then, then))
    return path


def test_it_is_foretold_and_then_mined(world: World) -> None:
    """With the rules it goes by itself; `run --once` does a day's work."""
    world.home.prepare()
    aged(world.claude(TABS), 10)
    aged(world.codex(PNPM), 20)

    told = world.answer("backfill", "preview")
    before = world.jobs()
    worked = world.answer("run", "--once")
    status = world.answer("backfill", "status")

    assert (told["state"], told["all"]["sessions"], before) == ("on", 2, [])
    assert told["next"][0]["session"] == "s-1"
    assert told["all"] == {"sessions": 2, "calls": 0, "tokens": 0, "cost": None}
    assert list(told["projects"].values()) == [2]
    assert worked["attempts"] == 2
    assert {each["agent"]: each["mined"] for each in status["agents"]} == {
        "claude-code": 1,
        "codex": 1,
    }
    assert (status["today"]["sessions"], status["waiting"]["sessions"]) == (2, 0)
    assert len(world.notes()) == 2
    assert "backfill  on" in world.run("backfill", "status").stdout


def test_where_calls_cost_it_waits_for_a_start(world: World) -> None:
    """The preview says the price; pause and start are kept, and say what they did."""
    world.configure(PAID)
    aged(world.claude(TABS), 10)

    told = world.answer("backfill", "preview")
    text = world.run("backfill", "preview").stdout
    assert world.answer("run", "--once")["attempts"] == 0
    started = world.answer("backfill", "start")
    worked = world.answer("run", "--once")
    paused = world.answer("backfill", "pause")

    assert (told["state"], told["reason"]) == ("off", "backfill.not-started")
    assert (told["all"]["calls"], told["all"]["cost"] > 0) == (1, True)
    assert "about 1 call " in text and "memoryd backfill start" in text
    assert (started["state"], started["reason"]) == ("on", "")
    assert worked["attempts"] == 1
    assert (paused["state"], paused["jobs"]) == ("paused", 0)
    assert world.answer("backfill", "status")["state"] == "paused"
    assert world.answer("status")["backfill"]["state"] == "paused"


def test_a_start_against_the_configuration_is_refused(world: World) -> None:
    """With what to do about it."""
    world.configure("[backfill]\nenabled = false\n")

    done = world.run("backfill", "start")

    assert done.returncode == 1
    assert "enabled = false" in done.stderr
    assert world.answer("backfill", "status")["reason"] == "backfill.disabled"


def test_what_is_set_aside_is_named_and_tried_again(world: World) -> None:
    """A transcript nobody can read."""
    world.home.prepare()
    aged(world.claude(TABS), 10)
    world.answer("backfill", "status")
    with world.ledger() as ledger:
        (row,) = ledger.archive.rows(home_made_ms(world.home))
        job = ledger.enqueue_backfill(row, cutoff=row.at_most, per_day=9)
        assert job is not None
        for _ in range(3):
            claimed = ledger.claim("test", only=job.id) or ledger.records.job(job.id)
            ledger.fail(claimed, "transcript.unreadable", "", base_seconds=0)

    status = world.answer("backfill", "status")
    text = world.run("backfill", "status").stdout
    found = world.answer("doctor")["findings"]
    reset = world.answer("backfill", "reset")

    (aside,) = status["set_aside"]
    assert (aside["session"], aside["code"]) == ("s-1", "transcript.unreadable")
    assert "set aside claude-code/s-1: transcript.unreadable" in text
    codes = {each["code"] for each in found}
    assert "backfill.set-aside" in codes and "job.failed" not in codes
    assert reset == {"set_aside": 1, "sessions": 1}
    assert world.answer("backfill", "status")["waiting"]["sessions"] == 1


def test_a_warning_names_the_agent_that_deletes_first(world: World) -> None:
    """In status, preview and doctor, with the setting that decides it."""
    world.configure("[backfill]\nper_day = 1\n")
    for number in range(3):
        aged(world.claude(TABS, session=f"s-{number}"), 29.8)

    status = world.answer("backfill", "status")
    text = world.run("backfill", "preview").stdout
    found = world.answer("doctor")["findings"]

    (warned,) = status["at_risk"]
    assert (warned["agent"], warned["sessions"]) == ("claude-code", 2)
    assert "claude-code deletes 2 sessions before their turn" in text
    (finding,) = [each for each in found if each["code"] == "backfill.at-risk"]
    assert "cleanupPeriodDays" in finding["todo"] and finding["severity"] == "warning"


def test_status_tells_the_old_sessions_that_are_not_read_apart(world: World) -> None:
    """Those that are left out are not waiting; and what is late goes any day."""
    world.configure("[backfill]\nmax_age_days = 50\nper_day = 1\n")
    for number, days in enumerate([40, 40, 60, 0.1]):
        aged(world.claude(TABS, session=f"s-{number}"), days)
    os.utime(world.home.identity, (time.time() + 60, time.time() + 60))

    text = world.run("backfill", "status").stdout
    said = world.run("status").stdout

    assert "before their turn, the first any day now" in text
    assert "0 old sessions read, 2 wait for their turn, 1 still too young, 1 too old;" in said


@pytest.mark.slow
def test_a_daemon_mines_what_it_finds_and_stops_at_a_pause(world: World) -> None:
    """It looks by itself when it begins; a pause is kept past its restart."""
    aged(world.claude(TABS), 10)
    with world.daemon():
        done = world.client.wait(None, 0)
        while not world.answer("backfill", "status")["agents"][0]["mined"]:
            world.client.events(0, 1)
        world.answer("backfill", "pause")
    aged(world.claude(PNPM, session="s-2"), 10)

    with world.daemon():
        status = world.answer("backfill", "status")
        assert (status["state"], status["waiting"]["sessions"]) == ("paused", 1)
        world.answer("backfill", "start")
        while world.answer("backfill", "status")["agents"][0]["mined"] < 2:
            world.client.events(1, 1)
    assert done is True
    assert len(world.notes()) == 2


def test_status_counts_hooks_and_the_sweep_apart(world: World) -> None:
    """A person sees whether the hooks work; where they are installed and silent, it is said."""
    world.hook(world.claude(TABS))
    world.run("run", "--once")
    for number in range(3):
        aged(world.claude(PNPM, session=f"unheard-{number}"), 45 / (24 * 60))
    made = time.time() - 24 * 3600
    os.utime(world.home.identity, (made, made))
    world.run("run", "--once")

    (told,) = world.answer("status")["told"]

    assert told == {"agent": "claude-code", "hook": 1, "sweep": 3, "heard": 1}
    assert (
        "claude-code, ended in 7 days: 1 told by hooks, 3 found by the sweep"
        in world.run("status").stdout
    )
    assert world.answer("status")["unheard"] == []


def test_hooks_that_were_never_heard_are_named(world: World) -> None:
    """They stand in the settings, and the sweep alone finds the ends."""
    for number in range(3):
        aged(world.claude(PNPM, session=f"unheard-{number}"), 45 / (24 * 60))
    world.run("integrate", "claude-code")
    world.home.prepare()
    made = time.time() - 24 * 3600
    os.utime(world.home.identity, (made, made))
    world.run("run", "--once")

    status = world.answer("status")
    found = world.answer("doctor")["findings"]

    assert status["unheard"] == ["claude-code"]
    assert "those of claude-code were not heard" in world.run("status").stdout
    assert "hook.unheard" in {each["code"] for each in found}
