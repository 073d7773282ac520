"""What a daemon stands on is taken away under it: it says so, keeps what it can, and ends."""

from __future__ import annotations

import os
import shutil
import sqlite3
from pathlib import Path

import pytest
from processes import TABS, Running, World

from memoryd.daemon.client import Client
from memoryd.daemon.lifecycle import Daemon, lock_home
from memoryd.memory.config import load
from memoryd.memory.home import Home

pytestmark = pytest.mark.slow


def ends(world: World, daemon: Running, place: Path | None = None) -> tuple[int, str]:
    """Ring the daemon, which is found at ``place`` by now; how it ended, and what it said last."""
    Client(Home(place or world.home.root).socket(world.environ)).ring()
    code = daemon.ended()
    text = daemon.log.read_text()
    assert "Traceback" not in text and '"exception"' not in text, text
    said = [line for line in text.splitlines() if not line.startswith("{")]
    assert len(said) == 2 and said[0].startswith("memoryd: "), text
    assert world.children() == []
    return code, "\n".join(said)


def distil_one(world: World) -> None:
    """A session is distilled while the daemon runs."""
    world.envelope(world.claude(TABS))
    world.answer("run", "--once")


def test_a_home_that_is_moved_away_ends_the_daemon_and_is_not_made_again(world: World) -> None:
    """With 78, after which no service manager starts it again; back in its place it goes on."""
    moved = world.root / "elsewhere"
    with world.daemon() as daemon:
        distil_one(world)
        world.home.root.rename(moved)
        world.envelope_at(moved, world.claude("Another word.", session="s-2"), "s-2")

        code, said = ends(world, daemon, moved)

    assert code == 78
    assert f"the home {world.home.root} was removed, moved or replaced" in said
    assert not world.home.root.exists()
    assert len(list((moved / "inbox").glob("*.json"))) == 1
    moved.rename(world.home.root)
    world.answer("run", "--once")
    assert sorted(job.session for job in world.jobs()) == ["s-1", "s-2"]


def test_a_home_that_is_deleted_ends_the_daemon(world: World) -> None:
    """Nothing is made in its place. A stop at the same moment is a stop all the same."""
    with world.daemon() as daemon:
        world.home.root.rename(world.root / "gone")
        shutil.rmtree(world.root / "gone", ignore_errors=True)
        daemon.stop()

    assert daemon.process.returncode in (0, 78)
    assert not world.home.root.exists()
    assert world.children() == []


def test_a_ledger_that_is_deleted_is_kept_and_put_back_by_the_command_that_is_named(
    world: World,
) -> None:
    """No job is lost, and no envelope that came meanwhile."""
    with world.daemon() as daemon:
        distil_one(world)
        before = [job.id for job in world.jobs()]
        world.home.ledger.unlink()
        world.envelope(world.claude("Another word.", session="s-2"), "s-2")

        code, said = ends(world, daemon)

    assert code == 1
    assert "was removed under the running daemon; what it held is kept as" in said
    assert "`memoryd doctor --fix`" in said
    asked = world.run("status")
    assert (asked.returncode, asked.stdout) == (1, "")
    assert "`memoryd doctor --fix`" in asked.stderr and len(asked.stderr.splitlines()) == 2
    again = world.run("run")
    assert again.returncode == 1 and "`memoryd doctor --fix`" in again.stderr
    mended = world.run("doctor", "--fix")
    assert mended.returncode == 0, mended.stdout + mended.stderr
    assert "memoryd-kept-" in mended.stdout
    world.answer("run", "--once")
    assert before[0] in [job.id for job in world.jobs()]
    assert sorted(job.session for job in world.jobs()) == ["s-1", "s-2"]


def test_a_ledger_that_is_replaced_ends_the_daemon(world: World) -> None:
    """What is there now is used at the next start; what was there is kept."""
    with world.daemon() as daemon:
        copy = world.root / "copy.sqlite"
        with sqlite3.connect(world.home.ledger) as opened:
            opened.execute("vacuum into ?", (str(copy),))
        opened.close()
        distil_one(world)
        copy.rename(world.home.ledger)

        code, said = ends(world, daemon)

    assert code == 1 and "was replaced under the running daemon" in said
    (kept,) = world.home.backups.glob("memoryd-kept-*.sqlite")
    with sqlite3.connect(kept) as opened:
        assert opened.execute("select count(*) from job").fetchone() == (1,)
    opened.close()


@pytest.mark.parametrize("end", ["-wal", "-shm"])
def test_a_log_that_is_deleted_costs_nothing(world: World, end: str) -> None:
    """What was in it is in the ledger when the daemon has ended."""
    with world.daemon() as daemon:
        distil_one(world)
        world.home.ledger.with_name(f"memoryd.sqlite{end}").unlink()

        code, said = ends(world, daemon)

    assert code == 1 and f"memoryd.sqlite{end} was removed or replaced" in said
    assert world.job().outcome_code == "notes.written"
    assert world.run("doctor").returncode == 0


def test_a_log_that_is_deleted_after_a_crash_is_missed(world: World) -> None:
    """The ledger is older than the memory then: what was done is not done again."""
    with world.daemon() as daemon:
        with sqlite3.connect(world.home.ledger) as opened:
            opened.execute("pragma wal_checkpoint(truncate)")
        opened.close()
        distil_one(world)
        daemon.stop(9)
    for path in world.home.root.glob("memoryd.sqlite-*"):
        path.unlink()
    with sqlite3.connect(world.home.ledger) as opened:
        assert opened.execute("select count(*) from cursor").fetchone() == (0,)
    opened.close()
    notes, commits = world.notes(), world.commits()
    world.envelope(world.claude(TABS, "Another word."))

    with world.daemon() as daemon:
        world.answer("run", "--once")

    told = [event for event in daemon.events() if event["event"] == "ledger.recovered"]
    assert [event["cursors"] for event in told] == [1]
    assert (world.notes(), world.commits()) == (notes, commits)
    with world.ledger() as ledger:
        assert ledger.cursor("claude-code", "s-1") == 4


def test_a_daemon_whose_socket_is_removed_listens_anew(world: World) -> None:
    """At its next look, with the folder and its own mark in it; no other answers for it."""
    daemon = Daemon(world.home, world.environ)
    lock = daemon.standing.lock = lock_home(world.home)
    daemon._open(load(world.home.config_file))
    daemon.api.start()
    try:
        shutil.rmtree(world.home.root / "run")
        deaf = world.run("status").stdout
        daemon._look_around()

        assert f"none answers; process {os.getpid()} works here for" in deaf
        assert world.client.ring()
        assert (world.home.root / "run" / "working").exists()
    finally:
        daemon.api.stop()
        daemon.standing.end()
        daemon.place.close()
        lock.release()
