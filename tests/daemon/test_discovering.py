"""The daemon looks for old sessions in a thread of its own, and reads them beside what ends now."""

from __future__ import annotations

import os
import shutil
import threading
import time
from pathlib import Path

import pytest
from processes import PNPM, TABS, Gate, World

from memoryd.daemon import discovering
from memoryd.daemon.discovering import Discovering
from memoryd.daemon.lifecycle import Daemon
from memoryd.jobs.workplace import Workplace, open_workplace
from memoryd.memory.config import Config
from memoryd.memory.home import Home
from memoryd.memory.testing import FakeClock


@pytest.fixture
def place(home: Home, clock: FakeClock, tmp_path: Path) -> Workplace:
    """A home with one old session on the disk."""
    path = tmp_path / "person" / ".claude" / "projects" / "-code" / "s1.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text('{"type":"user","uuid":"u1","cwd":"/code","message":{"role":"user"}}\n')
    return open_workplace(home, Config(), clock, {"HOME": str(tmp_path / "person")})


def test_what_comes_after_a_look_is_told_once(place: Workplace) -> None:
    """What ended unheard is known only then."""
    looked = threading.Event()
    found = Discovering(lambda: place, looked.set)

    found.begin()

    assert looked.wait(60)
    found.stop()
    assert set(place.ledger.archive.known("claude-code")) == {"s1"}


def test_a_stop_ends_a_look_and_no_other_begins(
    place: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two sessions; what comes after a look is left out."""
    begun, told = threading.Event(), []

    def endless(*arguments: object, **named: object) -> object:
        begun.set()
        found._stopping.wait()
        return None

    monkeypatch.setattr(discovering, "discover", endless)
    found = Discovering(lambda: place, lambda: told.append(1))
    found.begin()
    found.begin()
    assert begun.wait(60)
    assert [each.name for each in threading.enumerate()].count("discovery") == 1

    found.stop()
    found.begin()

    assert told == []
    assert "discovery" not in [each.name for each in threading.enumerate()]


def test_a_look_that_fails_is_tried_again_by_the_next(
    place: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fault in one reader must not end the daemon."""

    def failing(*arguments: object, **named: object) -> object:
        raise RuntimeError("a fault of ours")

    real, looked = discovering.discover, threading.Event()
    monkeypatch.setattr(discovering, "discover", failing)
    found = Discovering(lambda: place, looked.set)
    found.begin()
    assert found._thread is not None
    found._thread.join(60)

    monkeypatch.setattr(discovering, "discover", real)
    found.begin()

    assert looked.wait(60)
    found.stop()


@pytest.mark.slow
def test_a_fresh_session_is_read_while_an_old_one_is(world: World) -> None:
    """One of the two workers was kept free for it."""
    gate = Gate(world, "[backfill]\nenabled = true\n")
    then = time.time() - 10 * 24 * 3600
    for number in range(3):
        os.utime(world.claude(TABS, session=f"old-{number}"), (then, then))
    with world.daemon():
        gate.wait_until_asked()
        world.hook(world.claude(PNPM, session="new"), "new")
        gate.wait_until_asked()

        running = [job.kind for job in world.jobs() if job.status == "running"]

    assert sorted(running) == ["backfill", "finalize"]


def test_a_history_deleted_under_the_daemon_is_built_again_between_two_jobs(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not while an attempt runs, which must find again what it wrote."""
    world.hook(world.claude(TABS))
    world.answer("run", "--once")
    daemon = Daemon(world.home, world.environ)
    daemon._open(Config())
    history = daemon.place.history
    try:
        before = history.messages("claude-code", "s-1", 0, 10)
        for path in world.home.root.glob("sessions.sqlite*"):
            path.unlink()

        with monkeypatch.context() as patched:
            patched.setattr(daemon.keeper, "alive", lambda: [world.job()])
            daemon._sweep()
        assert history.messages("claude-code", "s-1", 0, 10) == before
        assert not world.home.session_history.exists()

        daemon._sweep()
        assert daemon.discovering._thread is not None
        daemon.discovering._thread.join()
        assert world.home.session_history.exists()
        assert history.messages("claude-code", "s-1", 0, 10) == before
    finally:
        daemon.discovering.stop()
        daemon.place.close()


def test_a_home_that_was_removed_is_not_made_again_for_its_history(place: Workplace) -> None:
    """A daemon that has not noticed yet goes on without."""
    shutil.rmtree(place.home.root)

    assert not place.history.renew()
    assert not place.home.root.exists()
