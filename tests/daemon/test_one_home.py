"""One home, whoever comes: two daemons in one moment, hooks at any moment of a daemon's life."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from processes import HOOK, PATIENCE_SECONDS, TABS, World

from memoryd.daemon import lifecycle
from memoryd.daemon.upgrade import EXIT_UPGRADED
from memoryd.memory.errors import HomeLocked
from memoryd.memory.home import Home
from memoryd.memory.locks import FileLock

sys.path.append(str(Path(__file__).parent.parent / "jobs"))

from forked import together


@pytest.mark.slow
def test_of_two_daemons_started_at_one_moment_exactly_one_serves(world: World) -> None:
    """The other exits with 1 and names its pid."""
    world.home.prepare()
    one, other = world.start(), world.start()
    try:
        try:
            one.heard("READY=1")
            serving, refused = one, other
        except AssertionError:
            other.heard("READY=1")
            serving, refused = other, one

        assert refused.ended() == 1
        said, _hint = refused.log.read_text().splitlines()
        assert said.endswith(
            f"memoryd already runs on {world.home.root} (pid {serving.process.pid})"
        )
        assert world.client.status() is not None
        assert serving.stop() == 0
    finally:
        one.close()
        other.close()


def test_of_two_that_take_the_home_at_one_moment_the_loser_names_the_winner(home: Home) -> None:
    """Again and again, whatever an older one left in the file."""
    for _ in range(5):
        home.daemon_lock.write_text("999999999\n")
        done = os.pipe()

        def take(done: tuple[int, int] = done) -> list[int]:
            try:
                lock = lifecycle.lock_home(home)
            except HomeLocked as error:
                os.write(done[1], b"x")
                return [os.getpid(), error.pid]
            os.read(done[0], 1)
            lock.release()
            return [os.getpid(), 0]

        found = together(take, take)

        (winner,) = [pid for pid, named in found if not named]
        assert [named for _, named in found if named] == [winner]
        for end in done:
            os.close(end)


def test_a_winner_is_given_time_to_write_its_pid(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has the lock already; what the file says is of a daemon that is long gone."""
    held = FileLock(home.daemon_lock)
    assert held.acquire()
    home.daemon_lock.write_text("999999999\n")
    acquire = FileLock.acquire

    def late(lock: FileLock, timeout: float = 0.0) -> bool:
        if timeout:
            home.daemon_lock.write_text(f"{os.getpid()}\n")
        return acquire(lock, timeout / 50)

    monkeypatch.setattr(FileLock, "acquire", late)

    with pytest.raises(HomeLocked, match=rf"\(pid {os.getpid()}\)"):
        lifecycle.lock_home(home)


#: A daemon that finds itself upgraded once a file is there.
UPGRADED = """
import pathlib, sys
from memoryd.daemon import lifecycle
from memoryd.daemon.upgrade import EXIT_UPGRADED
from memoryd.daemon.upgrade import Upgrades

lifecycle.LOOK_SECONDS, upgraded = 0.05, pathlib.Path(sys.argv[1])
Upgrades.due = lambda self: "99" if upgraded.exists() else None
Upgrades.take = lambda self, version: True
sys.argv = ["memoryd", "run"]
from memoryd.cli.main import main
main()
"""


@pytest.mark.slow
def test_hooks_at_every_moment_of_a_daemon_lose_nothing(world: World) -> None:
    """While it is stopped, starts, works, drains and ends for an upgrade, and has ended: each
    session is read once."""
    upgraded = world.root / "upgraded"
    agents = [fire(world, f"stopped-{n}") for n in range(3)]
    command = (sys.executable, "-c", UPGRADED, str(upgraded))
    daemon = world.start(command, MEMORYD_SUPERVISOR="systemd")
    try:
        agents += [fire(world, f"starting-{n}") for n in range(3)]
        daemon.heard("READY=1")
        agents += [fire(world, f"working-{n}") for n in range(3)]
        upgraded.touch()
        agents += [fire(world, f"ending-{n}") for n in range(3)]
        assert daemon.ended() == EXIT_UPGRADED
        agents += [fire(world, "ended")]
        assert [agent.wait(PATIENCE_SECONDS) for agent in agents] == [0] * 13
    finally:
        daemon.close()

    done = world.answer("run", "--once")

    assert done["by"] == "self"
    jobs = world.jobs()
    assert len({job.session for job in jobs}) == len(jobs) == 13
    assert {(job.status, job.failures) for job in jobs} == {("completed", 0)}
    assert list(world.home.inbox.glob("*.json")) == []


def fire(world: World, session: str) -> subprocess.Popen[bytes]:
    """The installed hook of a session that ended, begun; its input is there already."""
    said = world.root / f"{session}.json"
    about = {"session_id": session, "transcript_path": str(world.claude(TABS, session=session))}
    said.write_text(json.dumps(about | {"cwd": str(world.project)}))
    with said.open("rb") as stdin:
        return subprocess.Popen(
            [str(HOOK), "claude-code", "session-end"], stdin=stdin, env=world.environ
        )
