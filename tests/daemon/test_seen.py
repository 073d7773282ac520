"""A running daemon, as it is seen: its status, its metrics, its changes, and by the doctor."""

from __future__ import annotations

import json
import threading
from typing import Any

from processes import PATIENCE_SECONDS, TABS, Gate, World

from memoryd.cli.status_text import lines_of
from memoryd.daemon.metrics import METRICS
from memoryd.jobs.doctor import examine
from memoryd.memory.clock import SystemClock


def seen(world: World) -> dict[str, Any]:
    """The report of the running daemon."""
    values = world.client.status()
    assert values is not None
    return values


def test_a_daemon_at_work_is_seen_from_every_side(world: World) -> None:
    """While it works and after; who watches is told at once; its log has the attempt's line."""
    gate = Gate(world)
    world.envelope(world.claude(TABS))
    with world.daemon() as daemon:
        gate.wait_until_asked()
        busy = seen(world)
        before = world.client.changes(0, 0)
        assert before is not None
        heard: list[int | None] = []
        watcher = threading.Thread(
            target=lambda: heard.append(world.client.changes(before, PATIENCE_SECONDS))
        )
        watcher.start()

        gate.answer()
        watcher.join()
        assert world.client.wait(None, PATIENCE_SECONDS)

        metrics = world.run("status", "--metrics").stdout
        text = "\n".join(lines_of(seen(world)))
        says = seen(world)["daemon"]
        found = {
            each.code for each in examine(world.home, SystemClock(), world.environ, daemon=says)
        }
        assert daemon.stop() == 0

    state = busy["daemon"]
    assert (state["workers"], state["busy"], state["free"]) == (2, 1, 1)
    assert busy["oldest"][0]["status"] == "running" and state["version"]
    assert [each["lock"] for each in busy["locks"]] == ["daemon"]
    assert heard[0] is not None and heard[0] > before
    assert 'memoryd_attempts_total{kind="finalize",ending="completed"} 1\n' in metrics
    assert 'memoryd_workers{state="free"} 2\n' in metrics
    assert all(f"# TYPE {each.name} {each.type}\n" in metrics for each in METRICS)
    assert "0 of 2 workers busy" in text and "last hour 1 completed; 1 attempt" in text
    assert {"workers.ok", "held.ok", "writing.ok"} <= found
    (line,) = [each for each in daemon.events() if each["event"] == "attempt.ended"]
    assert (line["ending"], line["messages"], line["calls"]) == ("completed", 2, 1)
    assert "tabs" not in json.dumps(line)
