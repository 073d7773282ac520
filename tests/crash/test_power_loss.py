"""The power is cut right after each point: only what was synced is there, and that is enough."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest
from matrix import Case, Trap, in_child, warm
from power import Disk, NoDisk
from test_matrix import ALL

from memoryd.cli import hook
from memoryd.jobs.ledger import Ledger
from memoryd.memory import seams
from memoryd.memory.testing import FakeClock


@pytest.fixture(scope="module")
def disk() -> Iterator[Disk]:
    """A disk whose power can be cut, where one can be made."""
    try:
        made = Disk()
    except NoDisk as error:
        pytest.skip(f"no disk whose power can be cut: {error}")
    yield made
    made.remove()


@pytest.mark.slow
def test_what_enqueue_and_the_hook_answered_for_is_there(disk: Disk) -> None:
    """The promise is given when they return: the row and the envelope outlive the power."""
    home = disk.place / "promised"
    home.mkdir()
    path = home / "memoryd.sqlite"
    Ledger(path, "home", FakeClock()).open().close()
    disk.sync()

    def promise() -> None:
        ledger = Ledger(path, "home", FakeClock()).open()
        asked = {"cutoff": 1, "transcript": "/t", "cwd": "/c", "trigger": "cli"}
        ledger.enqueue("finalize", "codex", "s-1", **asked)
        disk.cut()
        os.kill(os.getpid(), signal.SIGKILL)

    def tell() -> None:
        hook.write(str(home), {"version": 1})
        disk.cut()
        os.kill(os.getpid(), signal.SIGKILL)

    assert in_child(tell) is None
    disk.restore()
    assert [each.read_bytes() for each in (home / "inbox").iterdir()] == [b'{"version":1}\n']
    assert in_child(promise) is None
    disk.restore()

    ledger = Ledger(path, "home", FakeClock()).open()
    assert [job.session for job in ledger.records.jobs()] == ["s-1"]
    ledger.close()


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", ["finalize", "consolidate"])
def test_what_was_synced_is_enough(
    disk: Disk, tmp_path_factory: pytest.TempPathFactory, kind: str
) -> None:
    """Nothing is lost or doubled; the suite cuts at every eighth point, `make matrix` at each."""
    warm()
    case = Case(kind, tmp_path_factory.mktemp(kind), disk=disk)
    after = case.reached()[1]
    reached = [point for point in seams.POINTS if after[point]]
    problems = {}

    for point in reached if ALL else reached[::8]:
        trap = Trap(point, after[point], "cut")
        found = case.fall_into(trap, fsck=True)
        if found:
            problems[str(trap)] = found

    assert not problems, "\n".join(f"{trap}: {found}" for trap, found in problems.items())
