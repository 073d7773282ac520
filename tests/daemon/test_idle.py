"""A daemon with nothing to do does nothing, and wakes by itself when there is something."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from processes import PNPM, TABS, Gate, Running, World

pytestmark = pytest.mark.slow


def switches(daemon: Running) -> int:
    """How often the daemon's threads have gone to sleep."""
    name = "voluntary_ctxt_switches:"
    tasks = Path(f"/proc/{daemon.process.pid}/task").iterdir()
    lines = [line for task in tasks for line in (task / "status").read_text().splitlines()]
    return sum(int(line.split()[1]) for line in lines if line.startswith(name))


def next_feed(daemon: Running) -> None:
    """Wait until the watchdog is fed once more."""
    daemon.said.clear()
    daemon.heard("WATCHDOG=1")


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_an_idle_daemon_does_not_poll(world: World) -> None:
    """Over a second all its threads together wake a handful of times, the watchdog included."""
    world.envelope(world.claude(TABS))
    with world.daemon(WATCHDOG_USEC="2000000") as daemon:
        assert world.client.ring()
        assert world.client.wait(None, 60.0)
        next_feed(daemon)
        next_feed(daemon)
        before = switches(daemon)
        next_feed(daemon)
        woken = switches(daemon) - before
        assert daemon.stop() == 0

    assert woken <= 10


def test_an_envelope_is_its_own_ring(world: World) -> None:
    """Dropped while the daemon runs, it becomes a completed job with no ring and no sweep."""
    gate = Gate(world)
    world.envelope(world.claude(TABS))
    with world.daemon() as daemon:
        gate.wait_until_asked()
        gate.answer()
        assert world.client.ring()
        assert world.client.wait(None, 60.0)
        before = world.client.status()

        world.envelope(world.claude(PNPM, session="s-2"), "s-2")
        gate.wait_until_asked()
        gate.answer()
        assert world.client.wait(None, 60.0)

        after = world.client.status()
        assert daemon.stop() == 0
    assert before is not None
    assert after is not None
    assert after["daemon"]["watching"] == "events"
    assert after["daemon"]["last_sweep_at"] == before["daemon"]["last_sweep_at"] is not None
    assert {job.session: job.outcome_code for job in world.jobs()} == {
        "s-1": "nothing.durable",
        "s-2": "nothing.durable",
    }
