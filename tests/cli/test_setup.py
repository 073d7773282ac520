"""`memoryd setup`: every step asked, done once, left out on request."""

from __future__ import annotations

import json
import os
import pty
import shlex
import subprocess
import sys
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
    """No service manager, settings that are no JSON: said, and exit code 1."""
    monkeypatch.setenv("PATH", "/nothing")
    (person / ".claude" / "settings.json").write_text("{")

    done = steps("--yes")

    assert (done["hooks"]["state"], done["service"]["state"]) == ("failed", "failed")
    assert done["home"]["state"] == "did"
    assert run("--yes").exit_code == 1
    assert (person / ".claude" / "settings.json").read_text() == "{"


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
        assert process.wait(timeout=15) == 0, said
    os.close(side)
    os.close(main)

    assert said.count("Do it?") == 3
    assert "hooks: left out" in said
    assert (person / ".memoryd" / "home.json").exists()
    assert not (person / ".claude" / "settings.json").exists()
    assert (person / ".config/systemd/user/memoryd.service").exists()
