"""`memoryd integrate`: what a person sees of it, and its exit codes."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from memoryd.cli.main import cli

TOKEN = "ghp_" + "aB3dE6gH9jK2mN5pQ8sT1vW4xY7zA0cD3fG6"


def run(*words: str) -> Result:
    """The command, in the home of this test's person."""
    return CliRunner().invoke(cli, ["integrate", *words])


def agents(*words: str) -> dict[str, dict[str, Any]]:
    """What ``--json`` says, by agent."""
    return {each["agent"]: each for each in json.loads(run(*words, "--json").output)["agents"]}


@pytest.fixture
def settings() -> Path:
    """Claude Code's settings, with something in them."""
    path = Path(os.environ["HOME"]) / ".claude" / "settings.json"
    path.parent.mkdir()
    path.write_text('{\n  "model": "big"\n}\n')
    return path


def test_agents_found_are_integrated_and_the_change_is_shown(settings: Path) -> None:
    """As a diff; the second time there is nothing to do; removing leaves the same bytes."""
    before = settings.read_bytes()

    done = run()

    assert done.exit_code == 0
    assert f"Claude Code: added  {settings}" in done.output
    assert "memoryd-hook claude-code session-end" in done.output
    assert "Codex" not in done.output
    assert "as it should be" in run().output
    assert "removed" in run("--remove").output
    assert settings.read_bytes() == before
    again = run("--remove").output
    assert "nothing of ours is in its settings" in again and "as it should be" not in again


def test_a_dry_run_says_so_and_writes_nothing(settings: Path) -> None:
    """Neither the settings nor a home."""
    before = settings.read_bytes()

    done = run("--dry-run")

    assert "would be added" in done.output and "nothing was written" in done.output
    assert settings.read_bytes() == before
    assert not (Path(os.environ["HOME"]) / ".memoryd").exists()


def test_json_says_what_became_of_each(settings: Path) -> None:
    """With stable keys."""
    found = agents()

    assert set(found) == {"claude-code"}
    assert found["claude-code"]["state"] == "added"
    assert found["claude-code"]["path"] == str(settings)


def test_refused_settings_are_a_failure_that_shows_what_to_add(settings: Path) -> None:
    """Exit code 1, and the file as it was."""
    settings.write_text("{ model: big }")

    done = run()

    assert done.exit_code == 1
    assert "NOT EDITED" in done.output and '"SessionEnd"' in done.output
    assert settings.read_text() == "{ model: big }"


def test_a_named_agent_that_is_not_here_is_a_failure() -> None:
    """Unasked, it is not mentioned."""
    assert run("codex").exit_code == 1
    assert run().exit_code == 0
    assert "no agent that memoryd knows is here" in run().output


def test_a_secret_in_the_settings_is_not_shown(settings: Path) -> None:
    """It stands beside the lines that change; it stays where it is."""
    settings.write_text(json.dumps({"env": {"GITHUB_TOKEN": TOKEN}}))

    assert TOKEN not in run().output
    assert TOKEN in settings.read_text()


def test_another_home_is_said_to_need_its_variable(settings: Path, tmp_path: Path) -> None:
    """A hook finds its home by the agent's environment alone."""
    done = run("--home", str(tmp_path / "other"))

    assert f"MEMORYD_HOME={tmp_path / 'other'}" in done.output
    assert "MEMORYD_HOME" not in run("--remove").output
