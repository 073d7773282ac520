"""An attempt that lost its lease asks nobody any more: its call is stopped, the worker goes on."""

from __future__ import annotations

import os
import select
import signal
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from world import NOTHING, World

from memoryd.jobs.accounts import Account
from memoryd.jobs.keeper import LeaseKeeper
from memoryd.jobs.worker import Worker
from memoryd.memory.config import ProviderSettings
from memoryd.memory.errors import (
    BadAnswer,
    LeaseLost,
    ProviderError,
    ProviderLimited,
    ProviderPermanent,
    ProviderUnavailable,
)
from memoryd.memory.providers.base import Reply, Request
from memoryd.memory.providers.registry import make
from memoryd.memory.testing import FakeClock

SAID = "Always run the linter before you commit."
REQUEST = Request("the system", "the prompt", (), (), 100, 60)
#: The first time it says its process id and does not end; then it answers at once.
PROGRAM = f"[ -e asked ] && exec echo '{NOTHING}'; : > asked; echo $$ > $FIFO; exec sleep 300"
HEARTBEAT_SECONDS = 0.05
#: Far longer than two heartbeats, far shorter than the program sleeps.
PATIENCE_SECONDS = 20


class Cancelled:
    """A provider whose answer nobody wants any more when it fails with ``error``, or answers."""

    name = "scripted"
    costs = True
    consolidates = True

    def __init__(self, error: ProviderError | None) -> None:
        self.error, self.asked = error, 0

    def complete(self, request: Request) -> Reply:
        """The call is called off while it is made."""
        self.asked += 1
        request.off.call()
        if self.error is not None:
            raise self.error
        return Reply(NOTHING, 1, 1)


@pytest.mark.parametrize("way", ["cancelled", "asked for again", "excluded"])
def test_the_program_of_a_job_that_is_called_off_ends_and_its_worker_goes_on(
    tmp_path: Path, clock: FakeClock, way: str
) -> None:
    """A program that sleeps for minutes is gone at the next beat; no failure, no breaker."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    settings = ProviderSettings(name="command", command=("sh", "-c", PROGRAM))
    provider = make(settings, {**os.environ, "FIFO": str(fifo)}, tmp_path / "calls")
    world = World(tmp_path, clock, provider=provider)
    first = world.enqueue(world.transcript("s1").user(SAID)).job
    clock.advance(1)
    second = world.enqueue(world.transcript("s2").user(SAID)).job
    assert first is not None and second is not None
    told: list[Account] = []
    keeper = LeaseKeeper(world.ledger, clock, HEARTBEAT_SECONDS)
    worker = Worker(lambda: world.place, keeper, told=told.append)
    thread = threading.Thread(target=worker.work_ready, daemon=True)
    keeper.start()
    thread.start()
    program = _said(fifo)
    try:
        if way == "excluded":
            world.ledger.exclude("claude-code", "s1", "session.forgotten")
        else:
            assert world.ledger.cancel(world.job(first))
        if way == "asked for again":
            assert world.ledger.retry(world.job(first))
        thread.join(PATIENCE_SECONDS)

        assert not thread.is_alive()
        with pytest.raises(ProcessLookupError):
            os.kill(program, 0)
    finally:
        with suppress(ProcessLookupError):
            os.kill(program, signal.SIGKILL)
        keeper.stop()

    assert told[0].ending == "lost"
    assert world.job(first).status == ("completed" if way == "asked for again" else "cancelled")
    assert world.job(second).status == "completed"
    assert world.job(first).failures == 0
    assert world.ledger.breakers.of("command") is None


def _said(fifo: Path) -> int:
    """The process id that the program says."""
    reading = os.open(fifo, os.O_RDWR | os.O_NONBLOCK)
    try:
        assert select.select([reading], [], [], PATIENCE_SECONDS)[0]
        return int(os.read(reading, 64))
    finally:
        os.close(reading)


@pytest.mark.parametrize(
    "error",
    [
        ProviderUnavailable("killed"),
        ProviderLimited("no more"),
        ProviderPermanent("the key is wrong"),
        BadAnswer("half an answer"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_how_a_call_ended_that_was_called_off_says_nothing_about_the_provider(
    tmp_path: Path, clock: FakeClock, error: ProviderError
) -> None:
    """The attempt is lost; the queue does not wait; what was sent stays booked; no other is sent.

    Another attempt at the job is not called off with it.
    """
    provider = Cancelled(error)
    world = World(tmp_path, clock, provider=provider)
    job = world.enqueue(world.transcript().user(SAID)).job
    assert job is not None
    calls = world.place.calls
    calls.begun(job)

    for _ in range(2):
        with pytest.raises(LeaseLost):
            calls.ask(job, REQUEST)

    assert provider.asked == 1
    assert world.ledger.breakers.of("scripted") is None
    spent, tokens = world.ledger.budget.spent("scripted")
    assert (spent, tokens > 0) == (1, not error.free)
    provider.error, other = None, job._replace(attempt=job.attempt + 1)
    calls.begun(other)
    assert calls.ask(other, REQUEST).text == NOTHING
