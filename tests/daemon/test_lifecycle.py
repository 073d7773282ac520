"""The daemon as a process: one a home, ready, drained, reloaded, stopped; nothing left behind."""

from __future__ import annotations

import os
import signal
import socket
import sys

import pytest
from processes import PNPM, TABS, Gate, World

pytestmark = pytest.mark.slow


# -- one daemon a home ---------------------------------------------------------------------------


def test_a_second_daemon_names_the_first(world: World) -> None:
    """Exit code 1, one line with the pid, one with what to do; the first goes on."""
    with world.daemon() as first:
        done = world.run("run")

        assert done.returncode == 1
        said, hint = done.stderr.splitlines()
        assert said == (
            f"memoryd: memoryd already runs on {world.home.root} (pid {first.process.pid})"
        )
        assert "memoryd status" in hint
        assert world.client.status() is not None
        assert first.stop() == 0


@pytest.mark.parametrize("left", ["999999999\n", "own", "", "no pid \x00"])
def test_what_a_crash_leaves_never_blocks_a_start(world: World, left: str) -> None:
    """A stale, reused or unreadable pid, and a socket that nobody listens on, are replaced."""
    world.home.prepare()
    world.home.daemon_lock.write_text(f"{os.getpid()}\n" if left == "own" else left)
    path = world.home.socket(world.environ)
    if left:
        with socket.socket(socket.AF_UNIX) as nobody:
            nobody.bind(str(path))
    else:
        path.write_text("no socket")

    with world.daemon() as daemon:
        assert world.home.daemon_lock.read_text() == f"{daemon.process.pid}\n"
        status = world.client.status()

    assert status is not None
    assert status["daemon"]["pid"] == daemon.process.pid


def test_a_killed_daemon_is_followed_by_the_next(world: World) -> None:
    """SIGKILL frees the home with the process; what it had taken on is done by the next."""
    with world.daemon() as killed:
        assert killed.stop(signal.SIGKILL) == -signal.SIGKILL
    world.envelope(world.claude(TABS))

    with world.daemon() as following:
        assert world.client.ring()
        assert world.client.wait(None, 60.0)
        assert following.stop() == 0

    assert world.job().outcome_code == "notes.written"


# -- what systemd is told ------------------------------------------------------------------------


def test_the_daemon_is_ready_however_many_projects_there_are(world: World) -> None:
    """READY does not wait for the watches of 1,000 projects; they come after it."""
    world.home.prepare()
    for number in range(1000):
        (world.home.projects / f"code-{number}" / "memory" / "user").mkdir(parents=True)

    with world.daemon() as daemon:
        assert "READY=1" in daemon.said
        world.envelope(world.claude(TABS))
        assert world.client.ring()
        assert world.client.wait(None, 60.0)
        assert daemon.stop() == 0

    assert world.job().outcome_code == "notes.written"
    assert "watch.polling" not in {event["event"] for event in daemon.events()}


def test_systemd_hears_of_every_step(world: World) -> None:
    """READY with the pid and a status, the watchdog's feed, STOPPING before the end."""
    with world.daemon(WATCHDOG_USEC="100000") as daemon:
        assert daemon.heard("MAINPID=") == f"MAINPID={daemon.process.pid}"
        assert daemon.heard("STATUS=") == f"STATUS=working {world.home.root}"
        assert daemon.heard("WATCHDOG=") == "WATCHDOG=1"

        daemon.process.send_signal(signal.SIGTERM)

        assert daemon.heard("STOPPING=") == "STOPPING=1"
        assert daemon.ended() == 0
    assert not world.home.socket(world.environ).exists()
    assert [event["event"] for event in daemon.events()] == ["daemon.started", "daemon.stopped"]


# -- signals -------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_the_attempt_in_flight_finish(world: World, number: int) -> None:
    """The daemon claims nothing more, waits for what it works on, and ends with 0."""
    gate = Gate(world, "[queue]\nworkers = 1")
    world.envelope(world.claude(TABS))
    world.envelope(world.claude(PNPM, session="s-2"), "s-2")
    with world.daemon() as daemon:
        gate.wait_until_asked()

        daemon.process.send_signal(number)
        daemon.heard("STOPPING=1")
        gate.answer()

        assert daemon.ended() == 0
    assert sorted((job.status, job.attempt) for job in world.jobs()) == [
        ("completed", 1),
        ("pending", 0),
    ]
    assert world.children() == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_leaves_at_once(world: World, number: int) -> None:
    """The job in flight goes back at no cost, and the provider's program ends with the daemon."""
    gate = Gate(world)
    world.envelope(world.claude(TABS))
    with world.daemon() as daemon:
        gate.wait_until_asked()
        daemon.process.send_signal(number)
        daemon.heard("STOPPING=1")

        daemon.process.send_signal(number)

        assert daemon.ended() == 0
    assert_given_back(world)


def test_the_drain_has_an_end(world: World) -> None:
    """What has not finished by then is given back as after a second signal."""
    gate = Gate(world, "[queue]\ndrain_seconds = 0")
    world.envelope(world.claude(TABS))
    with world.daemon() as daemon:
        gate.wait_until_asked()

        assert daemon.stop() == 0

    assert_given_back(world)


def assert_given_back(world: World) -> None:
    """The job is pending as if it had never been claimed, and no process is left."""
    job = world.job()
    assert (job.status, job.attempt, job.failures) == ("pending", 1, 0)
    assert (job.wait_reason, job.lease_owner) == (None, None)
    assert world.children() == []


# -- configuration -------------------------------------------------------------------------------


def test_sighup_reads_the_configuration_again(world: World) -> None:
    """The next job is worked under the new one; a file that cannot be used changes nothing."""
    with world.daemon() as daemon:
        world.configure("[memory]\nauto_extract = false\n")
        daemon.process.send_signal(signal.SIGHUP)
        assert "read again" in daemon.heard(f"STATUS=working {world.home.root}, ")

        world.envelope(world.claude(TABS))
        assert world.client.ring()
        assert world.client.wait(None, 60.0)
        refused = world.job().outcome_code

        world.configure("[memory]\nauto_extrakt = true\n")
        daemon.process.send_signal(signal.SIGHUP)
        assert "auto_extract" in daemon.heard("STATUS=the configuration is kept")
        status = world.client.status()
        assert daemon.stop() == 0

    assert refused != "notes.written"
    assert status is not None
    assert status["daemon"]["reloads"] == 1
    kept = [event for event in daemon.events() if event["event"] == "config.kept"]
    assert kept[0]["problems"] == ["unknown key memory.auto_extrakt; did you mean auto_extract?"]


@pytest.mark.parametrize("once", [(), ("--once",)])
def test_an_unusable_configuration_is_78_before_anything_is_claimed(
    world: World, once: tuple[str, ...]
) -> None:
    """The job stays as it was, and every problem is said."""
    world.envelope(world.claude(TABS))
    world.run("status")
    world.configure("[queue]\nworker = 2\n[provider]\nname = 'open-ai'\n")

    done = world.run("run", *once)

    assert done.returncode == 78
    assert "did you mean workers?" in done.stderr
    assert "provider.name must be one of rules, openai" in done.stderr
    assert "memoryd config check" in done.stderr
    assert (world.job().status, world.job().attempt) == ("pending", 0)


# -- a stuck attempt -----------------------------------------------------------------------------


def test_an_attempt_that_nothing_can_end_ends_the_daemon(world: World) -> None:
    """Exit code 70 with no child left; the next start counts the failure."""
    gate = Gate(world)
    impatient = (
        "import dataclasses, sys\n"
        "from memoryd.daemon import lifecycle\n"
        "from memoryd.jobs import job, keeper\n"
        "limits = {n: dataclasses.replace(k, limit_seconds=0) for n, k in job.KINDS.items()}\n"
        "job.KINDS.update(limits)\n"
        "keeper.STUCK_AFTER_SECONDS = 0.5\n"
        # Or no call would be begun.
        "keeper.LeaseKeeper.seconds_left = lambda self, job: 1000.0\n"
        "lifecycle.STUCK_LOOK_SECONDS = 0.1\n"
        "sys.argv = ['memoryd', 'run']\n"
        "from memoryd.cli.main import main\n"
        "main()\n"
    )
    world.envelope(world.claude(TABS))
    with world.daemon((sys.executable, "-c", impatient)) as daemon:
        gate.wait_until_asked()

        assert daemon.ended() == 70
        assert "code 70" in daemon.heard("STATUS=an attempt is stuck")
    assert world.children() == []

    world.configure("")
    with world.daemon() as following:
        assert world.client.wait(None, 60.0)
        assert following.stop() == 0
    job = world.job()
    assert (job.status, job.failures, job.crashes) == ("completed", 1, 1)


# -- trouble while it runs -----------------------------------------------------------------------


def test_a_ledger_that_cannot_be_used_is_said_once_a_while(world: World) -> None:
    """Workers wait between two looks instead of spinning; what is due is done when it is back."""
    damaged = (
        "import sys\n"
        "from memoryd.daemon import lifecycle\n"
        "from memoryd.jobs.ledger import Ledger\n"
        "from memoryd.memory.errors import LedgerError\n"
        "from memoryd.memory import log\n"
        "lifecycle.TROUBLE_SECONDS, log.AGAIN_SECONDS = 0.2, 0\n"
        "claim, left = Ledger.claim, [1, 2, 3]\n"
        "def refused(self, *arguments, **named):\n"
        "    if left and self.records.counts():\n"
        "        left.pop()\n"
        "        raise LedgerError('the disk is full')\n"
        "    return claim(self, *arguments, **named)\n"
        "Ledger.claim = refused\n"
        "sys.argv = ['memoryd', 'run']\n"
        "from memoryd.cli.main import main\n"
        "main()\n"
    )
    world.configure("[queue]\nworkers = 1\n")
    with world.daemon((sys.executable, "-c", damaged)) as daemon:
        world.envelope(world.claude(TABS))
        assert world.client.ring()
        assert world.client.wait(None, 60.0)
        assert daemon.stop() == 0

    said = [event for event in daemon.events() if event["event"] == "work.interrupted"]
    assert [event["reason"] for event in said] == ["the disk is full"] * 3
    assert world.job().outcome_code == "notes.written"
