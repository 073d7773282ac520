"""From `integrate` to a note: the agent's own event, by the entry that was put in its settings."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import pytest
from processes import PATIENCE_SECONDS, TABS, World

pytestmark = pytest.mark.slow

CODEX = "019b8f2a-4c00-7d31-a5e2-6b0f93c1d7e8"
SETTINGS = {"claude-code": ".claude/settings.json", "codex": ".codex/hooks.json"}


def end_session(world: World, agent: str, settings: Path) -> None:
    """A session with one thing said, ended as the agent ends it: a shell runs the entry."""
    transcript = world.codex(TABS) if agent == "codex" else world.claude(TABS)
    said = {
        "session_id": CODEX if agent == "codex" else "s-1",
        "transcript_path": str(transcript),
        "cwd": str(world.project),
        "hook_event_name": "SessionEnd",
        "permission_mode": "default",
        "reason": "other",
    }
    ((group,), *_) = [json.loads(settings.read_text())["hooks"]["SessionEnd"]]
    (handler,) = group["hooks"]
    done = subprocess.run(
        ["/bin/sh", "-c", handler["command"]],
        input=json.dumps(said).encode(),
        env=world.environ,
        capture_output=True,
        timeout=PATIENCE_SECONDS,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.parametrize("daemon", ["stopped", "running", "killed"])
@pytest.mark.parametrize("agent", sorted(SETTINGS))
def test_an_integrated_agents_session_end_becomes_a_note(
    world: World, agent: str, daemon: str
) -> None:
    """Whatever the daemon was doing; then the settings are as they were, to the byte."""
    settings = Path(world.environ["HOME"]) / SETTINGS[agent]
    settings.parent.mkdir()
    before = b'{\n    "theme": "dark",\n    "hooks": {}\n}'
    settings.write_bytes(before)
    assert world.answer("integrate", agent)["agents"][0]["state"] == "added"

    if daemon == "stopped":
        end_session(world, agent, settings)
        world.answer("run", "--once")
    else:
        with world.daemon() as running:
            if daemon == "killed":
                assert running.stop(signal.SIGKILL) == -signal.SIGKILL
            end_session(world, agent, settings)
            world.answer("run", "--once")

    assert (world.job().agent, world.job().outcome_code) == (agent, "notes.written")
    assert list(world.notes()) == ["feedback/prefer-tabs-over-spaces.md"]
    assert world.answer("integrate", agent, "--remove")["agents"][0]["state"] == "removed"
    assert settings.read_bytes() == before
