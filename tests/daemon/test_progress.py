"""What a daemon that is opened and not run does at its turns: feed, reload, tidy."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from memoryd.daemon.lifecycle import Daemon
from memoryd.jobs.job import KINDS, Job
from memoryd.memory.config import load
from memoryd.memory.home import Home
from memoryd.memory.testing import FakeClock


@pytest.fixture
def listener(tmp_path: Path) -> Iterator[socket.socket]:
    """Where systemd would listen."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "n"))
        listening.setblocking(False)
        yield listening


@pytest.fixture
def daemon(tmp_path: Path, home: Home, clock: FakeClock) -> Iterator[Daemon]:
    """A daemon whose home is open."""
    environ = {"NOTIFY_SOCKET": str(tmp_path / "n"), "WATCHDOG_USEC": "180000000"}
    made = Daemon(home, environ, clock)
    made._open(load(home.config_file))
    yield made
    made.leaving.end()  # or what a stop begins would end this process a minute later
    made.place.close()


def heard(listener: socket.socket) -> list[str]:
    """What was said so far."""
    said = []
    while True:
        try:
            said.append(listener.recv(1000).decode())
        except BlockingIOError:
            return said


def attempt(daemon: Daemon) -> Job:
    """An attempt that the daemon works on."""
    ledger = daemon.place.ledger
    ledger.enqueue(
        *("finalize", "claude-code", "s-1"),
        cutoff=9,
        transcript="/gone.jsonl",
        cwd="",
        trigger="cli",
    )
    job = ledger.claim("worker")
    assert job is not None
    daemon.keeper.hold(job)
    return job


def test_the_watchdog_is_fed_by_progress_alone(
    daemon: Daemon, listener: socket.socket, clock: FakeClock
) -> None:
    """Not while an attempt is over its limit, though the clock thread goes on."""
    job = attempt(daemon)
    daemon._feed_watchdog()
    fed = heard(listener)
    clock.advance(KINDS[job.kind].limit_seconds)
    with capture_logs() as logs:
        daemon._feed_watchdog()
    hungry = heard(listener)
    daemon.keeper.drop(job)
    daemon._feed_watchdog()

    assert (fed, hungry, heard(listener)) == (["WATCHDOG=1"], [], ["WATCHDOG=1"])
    assert [(entry["event"], entry["jobs"]) for entry in logs] == [("watchdog.unfed", [job.id])]


def test_the_watchdog_waits_longer_than_a_stuck_attempt_is_given(daemon: Daemon) -> None:
    """The daemon ends itself first, with a code that says why."""
    from memoryd.daemon.lifecycle import STUCK_LOOK_SECONDS
    from memoryd.jobs.keeper import STUCK_AFTER_SECONDS

    fed_every = daemon.notifier.watchdog_seconds

    assert fed_every is not None
    # Fed last just before the limit: killed when the whole time is over.
    assert 2 * fed_every - fed_every > STUCK_AFTER_SECONDS + STUCK_LOOK_SECONDS


def test_a_stop_says_until_when_it_may_take(daemon: Daemon, clock: FakeClock) -> None:
    """The drain ends by then; before, there is no such time."""
    assert daemon.status()["daemon"]["stopping_until"] is None

    daemon._say_stopping()

    drain_ms = int(daemon.place.config.queue.drain_seconds * 1000)
    assert daemon.status()["daemon"]["stopping_until"] == clock.now_ms() + drain_ms


def test_a_reload_uses_what_it_can_and_names_what_needs_a_restart(
    daemon: Daemon, listener: socket.socket
) -> None:
    """Leases, beats and the drain are others at once; threads are not."""
    daemon.home.config_file.write_text(
        "[queue]\nworkers = 5\nlease_seconds = 90\nheartbeat_seconds = 20\ndrain_seconds = 7\n"
    )

    daemon._reload()

    assert daemon.place.ledger.lease_ms == 90_000
    assert daemon.keeper.heartbeat_seconds == 20
    assert daemon.doorbell._consumer.shutdown_timeout == 7
    assert daemon.status()["daemon"]["restart_for"] == ["queue.workers"]
    assert heard(listener)[-1].endswith("read again, but queue.workers: restart")

    daemon.home.config_file.write_text("")
    daemon._reload()

    assert daemon.status()["daemon"]["restart_for"] == []


def test_tidying_is_done_once_a_date(
    daemon: Daemon, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By every start and every look of the day together."""
    tidied: list[int] = []
    monkeypatch.setattr(
        "memoryd.daemon.lifecycle.tidy", lambda place: tidied.append(place.clock.now_ms())
    )

    for _ in range(30):
        daemon._tidy()
        clock.advance(3600)

    assert len(tidied) == 2
    assert [run.name for run in daemon.place.ledger.daily_runs.all()] == ["tidy"]


def test_what_a_command_took_in_before_the_daemon_looked_is_rung_for(
    daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job of the envelope waits, and nobody else has heard of it; also where looking fails."""
    rung: list[str] = []
    monkeypatch.setattr(daemon, "_end_if_taken_away", lambda: False)
    monkeypatch.setattr(daemon.doorbell, "ring", lambda: rung.append("rung"))
    daemon._on_inbox()
    shutil.rmtree(daemon.home.inbox)
    daemon.home.inbox.touch()

    with pytest.raises(NotADirectoryError):
        daemon._on_inbox()

    assert rung == ["rung", "rung"]
