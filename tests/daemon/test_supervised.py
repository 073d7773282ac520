"""What the daemon does for a supervisor that knows no exit codes."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from memoryd.cli.run import run
from memoryd.daemon.supervised import (
    START_LIMIT,
    ended_well,
    exit_code,
    forgive,
    may_start,
)
from memoryd.memory.errors import HomeLocked
from memoryd.memory.home import Home
from memoryd.memory.locks import FileLock
from memoryd.memory.testing import FakeClock

LAUNCHD = {"MEMORYD_SUPERVISOR": "launchd"}


@pytest.mark.parametrize(
    ("environ", "codes"),
    [
        ({}, [0, 1, 70, 75, 78]),
        ({"MEMORYD_SUPERVISOR": "systemd"}, [0, 1, 70, 75, 78]),
        (LAUNCHD, [0, 1, 70, 75, 0]),
    ],
)
def test_a_configuration_that_cannot_be_used_ends_well_for_launchd(
    environ: dict[str, str], codes: list[int]
) -> None:
    """It would be started again for ever; what a restart may mend still ends badly."""
    assert [exit_code(code, environ) for code in (0, 1, 70, 75, 78)] == codes


@pytest.mark.parametrize(("supervisor", "code"), [("launchd", 0), ("systemd", 78), ("", 78)])
def test_run_tells_its_supervisor_in_words_it_knows(
    home: Home, monkeypatch: pytest.MonkeyPatch, supervisor: str, code: int
) -> None:
    """The line on standard error is the same."""
    monkeypatch.setenv("MEMORYD_SUPERVISOR", supervisor)
    home.config_file.write_text("nonsense = 1\n")

    done = CliRunner().invoke(run, ["--home", str(home.root)])

    assert done.exit_code == code
    assert "nonsense" in done.output


def test_run_stays_down_where_launchd_started_it_too_often(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever ended those before: here another daemon has the home."""
    monkeypatch.setenv("MEMORYD_SUPERVISOR", "launchd")
    with FileLock(home.daemon_lock) as lock:
        assert lock.acquire()
        done = [CliRunner().invoke(run, ["--home", str(home.root)]) for _ in range(START_LIMIT + 1)]

    assert [type(each.exception) for each in done[:-1]] == [HomeLocked] * START_LIMIT
    assert done[-1].exit_code == 0


def starts(home: Home, clock: FakeClock, times: int, environ: dict[str, str]) -> list[bool]:
    """Whether each of so many starts half a minute apart was allowed."""
    allowed = []
    for _ in range(times):
        allowed.append(may_start(home, environ, clock))
        clock.advance(30)
    return allowed


def test_launchd_gives_up_after_five_bad_starts(home: Home, clock: FakeClock) -> None:
    """Until a person starts it, or ten minutes have passed."""
    first = starts(home, clock, START_LIMIT + 2, LAUNCHD)
    forgive(home)
    by_hand = starts(home, clock, START_LIMIT + 1, LAUNCHD)
    clock.advance(600)

    assert first == [True] * START_LIMIT + [False] * 2
    assert by_hand == [True] * START_LIMIT + [False]
    assert may_start(home, LAUNCHD, clock)


def test_orderly_ends_are_no_bad_starts(home: Home, clock: FakeClock) -> None:
    """Who logs in and out all day is not locked out."""
    for _ in range(2 * START_LIMIT):
        assert may_start(home, LAUNCHD, clock)
        ended_well(home, LAUNCHD)


def test_systemd_and_people_count_for_themselves(home: Home, clock: FakeClock) -> None:
    """The unit has its own limit; a terminal needs none."""
    assert all(starts(home, clock, 20, {}))
    assert all(starts(home, clock, 20, {"MEMORYD_SUPERVISOR": "systemd"}))


@pytest.mark.parametrize("kept", ["", "no numbers \0", "9" * 5000, "99999999999999 " * 10])
def test_what_cannot_be_read_counts_for_nothing(home: Home, clock: FakeClock, kept: str) -> None:
    """Nor do starts in the future: a clock was set back."""
    (home.root / "run" / "starts").write_text(kept)

    assert may_start(home, LAUNCHD, clock)
