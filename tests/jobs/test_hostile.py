"""Jobs that kill their worker, hang, flood memory, or find nobody: fifty others finish beside them.

Each life of the worker is a process of its own, forked from this one, and really dies; the test
starts the next, as a service manager does. Only the clock is not real.
"""

from __future__ import annotations

import os
import resource
import signal
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from world import NOTHING, World

from memoryd.daemon.lifecycle import EXIT_STUCK, Daemon
from memoryd.daemon.notify import Notifier
from memoryd.jobs.job import Job
from memoryd.jobs.keeper import STUCK_AFTER_SECONDS
from memoryd.memory.errors import ProviderUnavailable
from memoryd.memory.providers.base import Reply, Request
from memoryd.memory.testing import FakeClock

DAY_MS = 86_400_000
OTHERS = 50
#: So many lives are enough for the two that end them, five times each, and for all retries.
LIVES = 60


class Hostile:
    """A provider that does to its worker what the session says."""

    name = "scripted"
    costs = True
    consolidates = True

    def __init__(self, clock: FakeClock, away_until_ms: int) -> None:
        self.clock = clock
        self.away_until_ms = away_until_ms
        self.world: World | None = None

    def complete(self, request: Request) -> Reply:
        """Die, hang, flood, be away, or find nothing."""
        said = request.messages[0].text
        if said == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if said == "hang":
            self._hang()
        if said == "flood":
            _flood()
        if said == "away" and self.clock.now_ms() < self.away_until_ms:
            raise ProviderUnavailable("no connection", free=True)
        return Reply(NOTHING, 10, 10)

    def _hang(self) -> None:
        """Until the daemon's own look at what is stuck, which does not come back."""
        assert self.world is not None
        self.clock.advance(600 + STUCK_AFTER_SECONDS)
        daemon = SimpleNamespace(keeper=self.world.keeper, notifier=Notifier({}))
        Daemon._end_if_stuck(cast(Any, daemon))


def _flood() -> None:
    """Take all the memory there is: somewhat more than now."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (1 << 27), hard))
    try:
        taken = []
        while True:
            taken.append(bytearray(1 << 24))
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _world(folder: Path, now_ms: int, away_until_ms: int) -> World:
    clock = FakeClock(now_ms)
    provider = Hostile(clock, away_until_ms)
    provider.world = World(folder, clock, provider=provider)
    return provider.world


def _life(folder: Path, now_ms: int, away_until_ms: int) -> int:
    """A process that rescues what its predecessor left and works what is ready; its exit code."""
    pid = os.fork()
    if pid == 0:
        code = 3
        try:
            world = _world(folder, now_ms, away_until_ms)
            world.ledger.rescue(everything=True)
            world.work()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.mark.slow
@pytest.mark.timeout(60)
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="bounds memory by /proc")
def test_each_hostile_job_ends_as_it_should_and_fifty_others_finish_beside_it(
    tmp_path: Path, clock: FakeClock
) -> None:
    """Killed and stuck: failed after five crashes; memory: five failures; away a week: done."""
    begun = clock.now_ms()
    world = _world(tmp_path, begun, begun + 7 * DAY_MS)
    jobs: dict[str, Job] = {}
    for name in ("kill", "hang", "flood", "away", *(f"other {n}" for n in range(OTHERS))):
        job = world.enqueue(world.transcript(name.replace(" ", "-")).user(name)).job
        assert job is not None
        jobs[name] = job
    ends: Counter[int] = Counter()

    now = begun
    ended = ("completed", "failed")
    while any(world.job(jobs[name]).status not in ended for name in jobs if name != "away"):
        world.place.close()
        code = _life(tmp_path, now, begun + 7 * DAY_MS)
        ends[code] += 1
        assert sum(ends.values()) < LIVES, ends
        due = world.ledger.next_due_ms()
        now = now + 1000 if code else max(now + 1, due or 0)
        world.clock.step((now - world.clock.now_ms()) / 1000)

    assert now < begun + DAY_MS
    assert (ends[-signal.SIGKILL], ends[EXIT_STUCK], ends[3]) == (5, 5, 0)
    rows = {name: world.job(job) for name, job in jobs.items()}
    assert {(row.status, row.failures) for name, row in rows.items() if "other" in name} == {
        ("completed", 0)
    }
    for name, code, why in (
        ("kill", "attempt.crashed", "died"),
        ("hang", "attempt.crashed", "stood still"),
        ("flood", "attempt.error", "MemoryError"),
    ):
        row = rows[name]
        assert (row.status, row.failures, row.error_code) == ("failed", 5, code)
        assert why in str(row.error_detail)
    assert (rows["away"].shown_status, rows["away"].failures) == ("waiting", 0)

    world.work_to_rest()

    row = world.job(jobs["away"])
    assert (row.status, row.failures) == ("completed", 0)
    assert world.clock.now_ms() >= begun + 7 * DAY_MS
