"""A daemon that is killed leaves its provider's programs; the next one ends them."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
from processes import World

from memoryd.memory.config import QueueSettings

#: A program that begins a session of its own, says so and never ends.
_SCRIPT = "setsid sh -c 'echo $$ > {pid}; echo asked > {asked}; exec sleep 300' & exec sleep 300"
#: Between two looks at a lease, where nothing else is configured.
_BEAT_SECONDS = QueueSettings().heartbeat_seconds


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or ") Z" not in stat.read_text()


@pytest.mark.slow
def test_a_job_that_is_called_off_leaves_no_program(world: World) -> None:
    """Not at the next beat, in half a minute: `memoryd cancel` rings the daemon."""
    pid, asked = world.root / "pid", world.root / "asked"
    os.mkfifo(asked)
    script = world.root / "program"
    script.write_text(_SCRIPT.format(pid=pid, asked=asked))
    world.configure(f'[provider]\nname = "command"\ncommand = ["sh", "{script}"]\n')
    world.envelope(world.claude("Always run the linter before you commit."))
    with world.daemon() as daemon:
        assert asked.read_text() == "asked\n"
        begun, seen = time.monotonic(), 0

        world.answer("cancel", world.job().id)
        while (world.client.status() or {})["daemon"]["working"]:
            seen = world.client.changes(seen, _BEAT_SECONDS) or seen
            assert time.monotonic() - begun < _BEAT_SECONDS / 2

        assert not _runs(int(pid.read_text()))
        daemon.stop()
    assert [each["ending"] for each in daemon.events() if each["event"] == "attempt.ended"] == [
        "lost"
    ]


@pytest.mark.slow
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_no_program_is_left_of_a_daemon_that_ended(world: World, end: signal.Signals) -> None:
    """Killed: with the next start. Stopped: when it has left, whatever the program still did."""
    pid, asked = world.root / "pid", world.root / "asked"
    os.mkfifo(asked)
    script = world.root / "program"
    script.write_text(_SCRIPT.format(pid=pid, asked=asked))
    world.configure(
        f'[provider]\nname = "command"\ncommand = ["sh", "{script}"]\n[queue]\ndrain_seconds = 0\n'
    )
    world.envelope(world.claude("Always run the linter before you commit."))
    with world.daemon() as daemon:
        assert asked.read_text() == "asked\n"
        program = int(pid.read_text())
        daemon.stop(end)
    assert _runs(program) is (end == signal.SIGKILL)

    if end == signal.SIGKILL:
        world.configure("")
        with world.daemon():
            assert not _runs(program)
