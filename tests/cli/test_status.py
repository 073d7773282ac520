"""``memoryd status`` for a person, and ``--watch`` on a terminal of its own."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from memoryd.cli import watch
from memoryd.cli.common import size
from memoryd.cli.main import cli
from memoryd.cli.status_beside import seen_beside
from memoryd.cli.status_text import _stores, lines_of
from memoryd.cli.watch import Screen, _fitting
from memoryd.daemon import service_record
from memoryd.daemon.client import Client
from memoryd.jobs.workplace import open_ledger
from memoryd.memory.clock import SystemClock
from memoryd.memory.config import Config
from memoryd.memory.home import Home
from memoryd.sessions.history import History

PATIENCE_SECONDS = 60.0


def status_of(home: Home, *words: str) -> Any:
    """What ``memoryd status --json`` prints."""
    done = CliRunner().invoke(cli, ["--home", str(home.root), "status", "--json", *words])
    assert done.exit_code == 0, done.output
    return json.loads(done.output)


def text_of(values: dict[str, Any]) -> list[str]:
    """The report as lines."""
    return lines_of(values)


def enqueue(home: Home, session: str) -> str:
    """A job in the home's ledger; its id."""
    ledger = open_ledger(home, Config(), SystemClock())
    job = ledger.enqueue(
        "finalize",
        "claude-code",
        session,
        cutoff=1,
        transcript="/t",
        cwd="/code",
        trigger="cli",
    ).job
    ledger.close()
    assert job is not None
    return job.id


def test_an_empty_home_says_little(home: Home) -> None:
    """Nothing is shown that is empty."""
    labels = [line[:10].strip() for line in text_of(status_of(home))]

    assert labels == ["home", "daemon", "jobs", "provider", "disk"]


def test_everything_there_is_has_its_line(home: Home) -> None:
    """Aligned: a label, then what there is to say."""
    now = int(time.time() * 1000)
    later, old = now + 7_200_500, "x" * 28 + "5f3a9c21"
    none = {"calls": 0, "input_tokens": 0, "output_tokens": 0}
    some = {"calls": 4, "input_tokens": 1000, "output_tokens": 234}
    ended = {"jobs": {"completed": 9}, "attempts": {"completed": 9, "failed": 1}}
    restart = {"upgraded_to": "0.2", "restart_for": ["queue.workers"]}
    workers = {**restart, "workers": 2, "busy": 1, "free": 1, "working": ["a"], "reloads": 0}
    away = {"state": "open", "reason": "provider.unavailable", "since": now, "until": later}
    stopped = {"state": "stopped", "detail": "401", "since": now, "until": 0}
    values = status_of(home) | {
        "counts": {"pending": 1, "completed": 9, "waiting": 3},
        "kinds": {"finalize": {"pending": 1, "completed": 9}, "extract": {"waiting": 3}},
        "waits": [{"reason": "budget.spent", "jobs": 3, "first_at": later, "last_at": later}],
        "oldest": [{"status": "pending", "job": old, "kind": "finalize", "since": now - 61_000}],
        "done": [
            {"hours": 1, "jobs": {}, "attempts": {}, **none},
            {"hours": 24, **ended, **some},
        ],
        "provider": "openai",
        "calls_today": 4,
        "spending": [{"provider": "openai", "calls": 4, "tokens": 1234, "cost": 20_000}],
        "breakers": [{"provider": "anthropic", **stopped}, {"provider": "openai", **away}],
        "locks": [
            {"lock": "daemon", "pid": 1, "since": 0},
            {"lock": "-code", "pid": 77, "since": now - 700_000},
            {"lock": "-new", "pid": 78, "since": now},
        ],
        "daemon": {"pid": 12, "version": "0.1", "started_at": now - 3_600_000, **workers}
        | {"last_sweep_at": now - 12_000},
    }

    text = "\n".join(text_of(values))

    assert (
        "daemon    pid 12, version 0.1, up 1h, 1 of 2 workers busy\n"
        "restart   needed: version 0.2 is installed, queue.workers changed\n"
        "looked    sweep 12s ago\n" in text
    )
    assert "jobs      1 pending, 3 waiting, 9 completed\n" in text
    assert "                    pending  waiting  completed\n" in text
    assert "          extract   -        3        -\n" in text
    assert "waiting   3: today's budget is spent, next in 2h\n" in text
    assert "oldest    pending finalize 5f3a9c21 for 1m\n" in text
    assert "last hour" not in text
    assert "last day  9 completed; 10 attempts; 4 calls, 1234 tokens\n" in text
    assert "budget    today 4 of 200 calls, 0 of 500000 tokens, money 0.02\n" in text
    assert "breaker   anthropic is not asked any more: 401\n" in text
    assert "breaker   openai: the provider does not answer, since " in text
    assert "lock      -code is held by process 77 for 11m" in text and "-new" not in text


ALONE: dict[str, tuple[dict[str, Any], str]] = {
    "it died at its work": (
        {"counts": {"running": 2}, "worker_died": True},
        "died      who worked on the 2 running jobs: taken up again at the next start",
    ),
    "a person stopped it": ({"service_stopped": True}, "you stopped it: `memoryd service start`"),
    "another process works": (
        {"counts": {"running": 1}, "locks": [{"lock": "daemon", "pid": 77, "since": 0}]},
        "daemon    none answers; process 77 works here for ",
    ),
    "damage keeps it from starting": ({"history_trouble": "page 3"}, ": page 3: `memoryd doctor"),
}


@pytest.mark.parametrize("why", ALONE)
def test_where_no_daemon_answers_it_is_said_why(home: Home, why: str) -> None:
    """And what to do about it."""
    changes, expected = ALONE[why]

    text = "\n".join(text_of(status_of(home) | changes))

    assert expected in text
    assert ("start it with `memoryd run`" in text) == (why[0] in "id")


def test_what_keeps_a_daemon_from_running_is_looked_at(home: Home) -> None:
    """The lock of one that died, the service that was stopped, a damaged session history."""
    well = seen_beside(home, alone=True)
    with History(home.session_history, SystemClock()):
        pass
    assert seen_beside(home, alone=True) == well == seen_beside(home, alone=False)

    home.daemon_lock.write_text("4194303\n")
    service_record.write(home, service_record.Record(stopped=True))
    data = bytearray(home.session_history.read_bytes())
    data[8192:12288] = b"\x5a" * 4096
    home.session_history.write_bytes(data)

    seen = seen_beside(home, alone=True)

    assert seen["worker_died"] and seen["service_stopped"]
    assert seen["history_trouble"].lower().count("page 3") and "\n" not in seen["history_trouble"]


def test_a_daemon_that_drains_says_for_how_long(home: Home) -> None:
    """And no more than that once the time is over."""
    now = int(time.time() * 1000)
    daemon = {"pid": 12, "started_at": now, "reloads": 0}
    values = status_of(home)

    for until, said in ((now + 13_900, "stopping, in 13s at most"), (now - 5000, "stopping")):
        line = text_of(values | {"daemon": daemon | {"stopping_until": until}})[1]
        assert line.endswith(said)


def test_a_daemon_of_an_older_version_is_shown_as_far_as_it_tells(home: Home) -> None:
    """After an upgrade, until it is restarted: no key of this version is asked of it."""
    new = {
        "kinds",
        "waits",
        "oldest",
        "done",
        "spending",
        "daily_cost",
        "breakers",
        "locks",
        "disk",
    }
    daemon = {"pid": 12, "started_at": 0, "reloads": 0, "working": [], "last_sweep_at": None}
    values = {key: value for key, value in status_of(home).items() if key not in {*new, "disk"}}

    assert text_of(values | {"daemon": daemon})[2] == "jobs      none"


@pytest.mark.parametrize(
    ("count", "said"),
    [(0, "0 B"), (999, "999 B"), (1400, "1.4 kB"), (52_000_000_000, "52 GB"), (9e15, "9000 TB")],
)
def test_sizes_are_said_in_one_unit(count: int, said: str) -> None:
    """Short, and as precise as anybody wants to know."""
    assert size(int(count)) == said


def test_metrics_need_a_daemon_and_stand_alone(home: Home) -> None:
    """Refused with what to do, before anything is printed."""
    for words, told in ((("--metrics",), "no daemon answers"), (("--metrics", "--json"), "alone")):
        done = CliRunner().invoke(cli, ["--home", str(home.root), "status", *words])
        assert told in str(done.exception) and done.output == ""


@contextmanager
def terminal(home: Home, rows: int = 24) -> Iterator[tuple[int, int]]:
    """``memoryd status --watch`` on a terminal of its own: its pid and the other end."""
    child, end = pty.fork()
    if not child:
        code = 70
        try:
            sys.stdout = os.fdopen(1, "w")
            resize(1, rows)
            cli.main(["--home", str(home.root), "status", "--watch"], standalone_mode=False)
            code = 0
        except SystemExit as left:
            code = int(left.code or 0)
        finally:
            os._exit(code)
    try:
        yield child, end
    finally:
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        os.close(end)


def resize(descriptor: int, rows: int) -> None:
    """Say that the window has so many rows."""
    import termios

    termios.tcsetwinsize(descriptor, (rows, 80))


def read_until(end: int, wanted: str) -> str:
    """What the terminal was sent, up to ``wanted``."""
    said = ""
    while wanted not in said:
        ready, _, _ = select.select([end], [], [], PATIENCE_SECONDS)
        assert ready, said
        said += os.read(end, 4096).decode()
    return said


def test_watching_ends_with_the_terminal_as_it_was(home: Home) -> None:
    """Ctrl-C: exit code 0, the cursor back, and what was seen last is still there to be read."""
    enqueue(home, "s1")
    with terminal(home) as (child, end):
        drawn = read_until(end, "\x1b[J")

        os.write(end, b"\x03")
        left = read_until(end, "1 pending")

        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert drawn.startswith("\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[H") and "1 pending" in drawn
    assert "\x1b[?7h\x1b[?25h\x1b[?1049l" in left


def test_watching_fits_the_window_and_follows_its_size(home: Home) -> None:
    """What does not fit is counted; a bigger window shows it at once. SIGTERM restores too."""
    with terminal(home, rows=3) as (child, end):
        small = read_until(end, "\x1b[J")

        resize(end, 40)
        os.kill(child, signal.SIGWINCH)
        big = read_until(end, "disk")
        os.kill(child, signal.SIGTERM)
        read_until(end, "\x1b[?1049l")

        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 128 + signal.SIGTERM
    assert "more lines" in small and small.count("\r\n") == 2
    assert "more lines" not in big


def test_a_watch_that_is_put_aside_gives_the_terminal_back_meanwhile(home: Home) -> None:
    """Ctrl-Z, and back: it takes its screen again and draws it anew."""
    with terminal(home) as (child, end):
        read_until(end, "\x1b[J")

        os.kill(child, signal.SIGTSTP)
        read_until(end, "\x1b[?1049l")
        assert os.WIFSTOPPED(os.waitpid(child, os.WUNTRACED)[1])
        os.kill(child, signal.SIGCONT)

        assert "\x1b[?1049h" in read_until(end, "\x1b[J")


class _Enough(Exception):
    """The test has seen what it wanted."""


def test_watching_goes_on_through_a_restart_of_the_daemon(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is told of changes by the daemon, looks at the files while there is none, never hotly."""
    from_daemon = status_of(home) | {"daemon": {"pid": 1}}
    answers = iter([from_daemon, None, from_daemon])
    asked: list[int] = []
    rests: list[float] = []
    shown: list[Any] = []

    def changes(client: Client, after: int, seconds: float) -> int:
        asked.append(after)
        return 7

    monkeypatch.setattr(Client, "status", lambda self: next(answers))
    monkeypatch.setattr(Client, "changes", changes)
    monkeypatch.setattr(watch, "_rest", rests.append)

    def show(values: dict[str, Any]) -> None:
        shown.append(values["daemon"])
        if len(shown) == 3:
            raise _Enough

    monkeypatch.setattr(watch, "look", lambda home: {"daemon": None})
    with pytest.raises(_Enough):
        watch._follow(home, show, 2.0)

    assert shown == [{"pid": 1}, None, {"pid": 1}]
    assert asked == [0]
    assert len(rests) == 3 and watch.ALONE_SECONDS in rests and max(rests[:1]) > 0.5


def test_without_a_terminal_there_is_a_block_or_a_line_for_each_look(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing drives a terminal there; with --json each line is an object."""

    def enough(seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(watch, "_rest", enough)
    plain, lines = (
        CliRunner().invoke(cli, ["--home", str(home.root), "status", "--watch", *more])
        for more in ([], ["--json"])
    )

    assert (plain.exit_code, lines.exit_code) == (0, 0)
    assert "\x1b" not in plain.output and plain.output.endswith("\n\n")
    assert json.loads(lines.output)["home"] == str(home.root)


def test_a_screen_too_small_for_anything_shows_one_line() -> None:
    """No size makes it fail."""
    lines = [str(number) for number in range(5)]

    assert [len(_fitting(lines, height)) for height in (0, 1, 2, 5, 9)] == [1, 1, 2, 5, 5]
    assert _fitting(lines, 3)[-1] == "... 3 more lines"


def test_a_window_that_changes_while_it_is_drawn_is_drawn_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Once more, whole; the handler itself writes nothing into what is being written."""
    screen = Screen(-1)
    written: list[str] = []

    def write(text: str) -> None:
        written.append(text)
        if len(written) == 1:
            screen._on_resize(signal.SIGWINCH, None)

    monkeypatch.setattr(screen, "_write", write)
    monkeypatch.setattr(os, "get_terminal_size", lambda descriptor: os.terminal_size((80, 24)))
    screen.draw(["one"])

    assert len(written) == 2 and all("one" in text for text in written)


def test_a_ledger_that_could_not_be_copied_is_said_in_one_line() -> None:
    """It may be damaged in a page that nothing reads while jobs go on."""
    reason = "the ledger cannot be used: *** in database main ***\nPage 30"

    lines = _stores({"uncopied_ledger": reason})

    assert lines == [f"ledger    not copied today: {reason.replace(chr(10), ' ')}"]
