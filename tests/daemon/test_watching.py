"""A person at work in the files of a real daemon: it follows, holds, says so, and goes on."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable

import pytest
from processes import MEMORYD, PATIENCE_SECONDS, PNPM, TABS, World

from memoryd.jobs.job import Job

pytestmark = pytest.mark.slow

RULES = (TABS, PNPM, "Please remember that I prefer short functions.")


def until(true: Callable[[], object], what: str) -> None:
    """Ask until it is so; asking takes its time, so nothing sleeps."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not true():
        assert time.monotonic() < end, what


def daemon(world: World, key: str) -> object:
    """What the daemon says of itself."""
    status = world.client.status()
    return status and status["daemon"][key]


def work_off(world: World) -> None:
    """Let the daemon take in and finish what there is."""
    assert world.client.ring()
    assert world.client.wait(None, PATIENCE_SECONDS)


def test_a_job_of_a_held_store_goes_on_by_itself_when_the_notes_are_back(world: World) -> None:
    """It waits at no cost; status says why; the index stays; nobody has to ask again."""
    world.envelope(world.claude(*RULES))
    with world.daemon() as running:
        work_off(world)
        store = world.store()
        until(lambda: daemon(world, "watching") == "events", "it does not watch")
        index = (store.root / "MEMORY.md").read_bytes()
        folders = [path for path in store.root.iterdir() if path.is_dir()]
        for folder in folders:
            folder.rename(world.root / folder.name)
        until(lambda: daemon(world, "held_stores"), "it is not held")

        world.envelope(world.claude("I always use ruff for linting.", session="s-2"), "s-2")
        work_off(world)
        assert waiting(world, "s-2").wait_reason == "store.held"
        assert (store.root / "MEMORY.md").read_bytes() == index
        said = world.run("status").stdout
        assert f"held      {store.key}: 3 of 3 notes" in said

        for folder in folders:
            (world.root / folder.name).rename(folder)
        until(lambda: waiting(world, "s-2").status == "completed", "the job does not go on")
        assert daemon(world, "held_stores") == {}
        assert running.stop() == 0
    assert [event["event"] for event in running.events()].count("store.held") == 1
    assert waiting(world, "s-2").failures == 0


def waiting(world: World, session: str) -> Job:
    """The job of a session."""
    (found,) = [job for job in world.jobs() if job.session == session]
    return found


def test_a_damaged_note_is_shown_by_status(world: World) -> None:
    """With its path and the reason, as long as it is damaged."""
    world.envelope(world.claude(TABS))
    with world.daemon():
        work_off(world)
        (path,) = world.notes()
        place = world.store().root / path
        whole = place.read_bytes()
        until(lambda: daemon(world, "watching") == "events", "it does not watch")

        place.write_bytes(b"---\nname: cut off")
        until(lambda: daemon(world, "unreadable_notes"), "it is not said")
        assert f"{path}: the header is not closed" in world.run("status").stdout
        place.write_bytes(whole)

        until(lambda: not daemon(world, "unreadable_notes"), "it is still said")


@pytest.mark.skipif(sys.platform != "linux", reason="only inotify has such a limit")
def test_beyond_the_systems_limit_the_daemon_polls_and_says_so_once(world: World) -> None:
    """The real limit, in a user namespace of the daemon's own."""
    limit = "echo 20 >/proc/sys/user/max_inotify_watches"
    if subprocess.run(["unshare", "-Ur", "sh", "-c", limit], capture_output=True).returncode:
        pytest.skip("no user namespaces here")
    world.home.prepare()
    for number in range(30):
        (world.home.projects / f"p{number}" / "memory" / "user").mkdir(parents=True)
    command = ["unshare", "-Ur", "sh", "-c", f'{limit}; exec "$@"', "sh", *MEMORYD, "run"]

    with world.daemon(command) as running:
        until(lambda: daemon(world, "watching") == "polling", "it does not poll")
        assert running.stop() == 0

    events = [event["event"] for event in running.events()]
    assert events.count("watch.polling") == 1
