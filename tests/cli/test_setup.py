"""`memoryd setup`: every step asked, done once, left out on request."""

from __future__ import annotations

import json
import os
import pty
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from memoryd.cli.main import cli

SYSTEMCTL = """
case "$2" in
    show)
        if [ "$3" = --property=Version ]; then echo Version=252; exit; fi
        if [ -e enabled ]; then echo UnitFileState=enabled; else echo UnitFileState=; fi
        if [ -e active ]; then echo ActiveState=active; echo SubState=running
        else echo ActiveState=inactive; echo SubState=dead; fi;;
    enable) : > enabled; : > active;;
    disable) rm -f enabled active;;
esac
"""


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The person's folder, with Claude Code in it; systemd is a script of ours."""
    folder = tmp_path / "manager"
    (folder / "bin").mkdir(parents=True)
    program = folder / "bin" / "systemctl"
    program.write_text(f"#!/bin/sh\ncd {shlex.quote(str(folder))}\n{SYSTEMCTL}")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder / 'bin'}:/usr/bin:/bin")
    monkeypatch.setattr(sys, "platform", "linux")
    home = Path(os.environ["HOME"])
    (home / ".claude").mkdir()
    return home


def run(*words: str) -> Result:
    """The command, without a terminal."""
    return CliRunner().invoke(cli, ["setup", *words])


def steps(*words: str) -> dict[str, dict[str, Any]]:
    """What ``--json`` says, by step."""
    return {each["step"]: each for each in json.loads(run(*words, "--json").stdout)["steps"]}


def tree(folder: Path) -> dict[str, bytes]:
    """Every file below ``folder``."""
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_without_a_terminal_it_says_what_it_would_do(person: Path) -> None:
    """Exit code 2, and nothing is done."""
    done = run()

    assert done.exit_code == 2
    assert "nothing was done" in done.output
    assert "memoryd-hook claude-code stop" in done.output
    assert tree(person) == {}
    assert {each["state"] for each in steps().values()} == {"would", "shown"}


def test_a_script_takes_every_step_and_a_second_time_none(person: Path) -> None:
    """Each says how it is undone."""
    done = run("--yes")

    assert done.exit_code == 0, done.output
    assert (person / ".memoryd" / "home.json").exists()
    assert "memoryd-hook" in (person / ".claude" / "settings.json").read_text()
    assert (person / ".config/systemd/user/memoryd.service").exists()
    assert done.output.count("to undo it") == 3
    before = tree(person)
    again = steps("--yes")
    assert {name: each["state"] for name, each in again.items()} == {
        "home": "done",
        "hooks": "done",
        "service": "done",
        "backfill": "shown",
        "provider": "shown",
    }
    assert tree(person) == before


def test_a_step_can_be_left_out(person: Path) -> None:
    """The others are taken."""
    done = run("--yes", "--skip", "service", "--skip", "hooks")

    assert done.exit_code == 0
    assert not (person / ".config").exists()
    assert not (person / ".claude" / "settings.json").exists()
    assert (person / ".memoryd").exists()


def test_a_step_that_fails_does_not_stop_the_others(
    person: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Settings that are no JSON: said, and exit code 1."""
    monkeypatch.setenv("PATH", "/nothing")
    (person / ".claude" / "settings.json").write_text("{")

    done = steps("--yes")

    assert (done["hooks"]["state"], done["service"]["state"]) == ("failed", "shown")
    assert done["home"]["state"] == "did"
    assert run("--yes").exit_code == 1
    assert (person / ".claude" / "settings.json").read_text() == "{"


def test_a_script_does_not_fail_where_nothing_starts_services(
    person: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a container: what to do instead is said, each time; no agent is no hook that is done."""
    monkeypatch.setenv("PATH", "/nothing")
    shutil.rmtree(person / ".claude")

    done = steps("--yes")

    assert (done["hooks"]["state"], done["service"]["state"]) == ("shown", "shown")
    assert "`memoryd run`" in done["service"]["text"]
    assert "`--skip service`" in done["service"]["text"]
    assert run("--yes").exit_code == 0


def test_a_step_that_is_only_shown_does_not_fail(
    person: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without --yes nothing was to be done: what stands in the way is said."""
    monkeypatch.setenv("PATH", "/nothing")

    done = run()

    assert done.exit_code == 2
    assert "FAILED" not in done.output
    assert "service: for you to know\n" in done.output and "run `memoryd run`" in done.output


@pytest.mark.slow
def test_a_person_is_asked_step_by_step(person: Path) -> None:
    """On a terminal: yes to the home, no to the hooks, yes to the service."""
    main, side = pty.openpty()
    program = Path(sys.executable).with_name("memoryd")
    with subprocess.Popen(
        [program, "setup"], stdin=side, stdout=subprocess.PIPE, env=dict(os.environ)
    ) as process:
        os.write(main, b"y\nn\ny\n")
        assert process.stdout is not None
        said = process.stdout.read().decode()
        assert process.wait(timeout=60) == 0, said
    os.close(side)
    os.close(main)

    assert said.count("Do it?") == 3
    assert "hooks: left out" in said
    assert (person / ".memoryd" / "home.json").exists()
    assert not (person / ".claude" / "settings.json").exists()
    assert (person / ".config/systemd/user/memoryd.service").exists()


PAID = '[provider]\nname = "command"\ncommand = ["true"]\n'


def old_session(person: Path) -> Path:
    """One that Claude Code kept from before memoryd."""
    path = person / ".claude" / "projects" / "-code" / "s1.jsonl"
    path.parent.mkdir(parents=True)
    said = {"role": "user", "content": "Always run the linter first."}
    line = {"type": "user", "uuid": "u1", "cwd": str(person), "message": said}
    path.write_text(json.dumps(line) + "\n")
    then = time.time() - 10 * 24 * 3600
    os.utime(path, (then, then))
    return path


def test_old_sessions_are_read_by_themselves_where_that_is_free(person: Path) -> None:
    """It says how many, and how that is stopped; nothing is written to find out."""
    old_session(person)
    before = tree(person)

    shown = steps()["backfill"]

    assert shown["state"] == "shown"
    assert "1 session" in shown["text"]
    assert tree(person) == before


def test_a_script_never_starts_what_costs_money(person: Path) -> None:
    """It is shown with the command that does."""
    old_session(person)
    (person / ".memoryd").mkdir()
    (person / ".memoryd" / "config.toml").write_text(PAID)

    done = steps("--yes")["backfill"]

    assert done["state"] == "shown"
    assert "memoryd backfill start" in done["text"] and "about 1 call " in done["text"]
    status = json.loads(CliRunner().invoke(cli, ["backfill", "status", "--json"]).stdout)
    assert (status["state"], status["reason"]) == ("off", "backfill.not-started")


@pytest.mark.slow
def test_a_person_who_says_yes_starts_it(person: Path) -> None:
    """And a second time there is nothing to ask."""
    old_session(person)
    (person / ".memoryd").mkdir()
    (person / ".memoryd" / "config.toml").write_text(PAID)
    main, side = pty.openpty()
    program = Path(sys.executable).with_name("memoryd")
    words = ["setup", "--skip", "hooks", "--skip", "service"]
    with subprocess.Popen(
        [program, *words], stdin=side, stdout=subprocess.PIPE, env=dict(os.environ)
    ) as process:
        os.write(main, b"y\ny\n")
        assert process.stdout is not None
        said = process.stdout.read().decode()
        assert process.wait(timeout=60) == 0, said
    os.close(side)
    os.close(main)

    assert "backfill: done" in said and "memoryd backfill pause" in said
    status = json.loads(CliRunner().invoke(cli, ["backfill", "status", "--json"]).stdout)
    assert status["state"] == "on"
    assert steps("--skip", "hooks", "--skip", "service")["backfill"]["state"] == "shown"
