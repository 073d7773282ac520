"""The daemon looks for old sessions in a thread of its own, and reads them beside what ends now."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest
from processes import PNPM, TABS, Gate, World

from memoryd.daemon import discovering
from memoryd.daemon.discovering import Discovering
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

    assert looked.wait(10)
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
    assert begun.wait(10)
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
    found._thread.join(10)

    monkeypatch.setattr(discovering, "discover", real)
    found.begin()

    assert looked.wait(10)
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
