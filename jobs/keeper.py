"""Keeping leases: one thread extends the lease of every attempt alive in this process.

An attempt whose slice is over its limit is no longer extended: its lease runs out and the fence
refuses whatever it still tries to record. One that is still there a minute later is stuck in a
call that nothing can interrupt; the daemon then ends itself (``stuck``). One that lost its lease,
because it was called off or another has the job, is told so at the next beat.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from memoryd.jobs.job import KINDS, Job
from memoryd.jobs.ledger import Ledger
from memoryd.memory.clock import Clock
from memoryd.memory.errors import LeaseLost

#: How long after its limit an attempt may still be there before the process gives up on it.
STUCK_AFTER_SECONDS = 60.0


@dataclass
class _Held:
    job: Job
    #: Monotonic second at which the current slice is over its limit.
    limit: float
    on_lost: Callable[[], None]
    lost: bool = False
    slices: int = 0


class LeaseKeeper:
    """The attempts alive in this process. A service: ``start``, then ``stop``."""

    def __init__(self, ledger: Ledger, clock: Clock, heartbeat_seconds: float) -> None:
        self.ledger = ledger
        self.clock = clock
        self.heartbeat_seconds = heartbeat_seconds
        self._guard = threading.Lock()
        #: By attempt: one that was called off may still be in its call when the next one begins.
        self._held: dict[tuple[str, int], _Held] = {}
        #: Attempts that ended while the ledger could not be used: nobody wrote down how.
        self._unsettled: list[Job] = []
        self._stopping = threading.Event()
        #: The next beat is due now.
        self._hurry = threading.Event()
        self._thread: threading.Thread | None = None
        # A laptop that slept looks like leases that ran out: any rescue here renews ours instead.
        ledger.alive = lambda: [held.job for held in self._within_limits()] + self._unsettled

    def start(self) -> None:
        """Begin to extend leases; returns at once."""
        self._stopping.clear()
        self._thread = threading.Thread(target=self._run, name="leases", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread; safe unstarted and twice."""
        self._stopping.set()
        self._hurry.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def hold(self, job: Job, on_lost: Callable[[], None] = lambda: None) -> None:
        """Extend this attempt's lease from now on; ``on_lost`` is called once when it is lost."""
        with self._guard:
            self._held[job.id, job.attempt] = _Held(job, self._limit(job), on_lost)

    def new_slice(self, job: Job) -> None:
        """The attempt begins another slice: its limit counts anew."""
        with self._guard:
            held = self._held.get((job.id, job.attempt))
            if held is not None:
                held.limit = self._limit(job)
                held.slices += 1

    def slices(self, job: Job) -> int:
        """How many slices the attempt has begun."""
        with self._guard:
            held = self._held.get((job.id, job.attempt))
            return 0 if held is None else held.slices

    def seconds_left(self, job: Job) -> float:
        """How long the attempt's slice may still take; less than 0 when it is over its limit."""
        with self._guard:
            held = self._held.get((job.id, job.attempt))
            return 0.0 if held is None else held.limit - self.clock.monotonic()

    def drop(self, job: Job) -> None:
        """The attempt ended."""
        with self._guard:
            self._held.pop((job.id, job.attempt), None)

    def leave(self, job: Job) -> None:
        """The attempt ended and the ledger cannot be told: no rescue takes it for a crash."""
        with self._guard:
            self._unsettled = [*self._unsettled, job]

    def give_back_left(self) -> None:
        """Return what was left so, at no cost. Raises ``LedgerError`` while that cannot be."""
        for job in list(self._unsettled):
            with suppress(LeaseLost):
                self.ledger.release(job)
            with self._guard:
                self._unsettled = [each for each in self._unsettled if each is not job]

    def alive(self) -> list[Job]:
        """The attempts held now."""
        with self._guard:
            return [held.job for held in self._held.values()]

    def renew_soon(self) -> None:
        """Have the thread beat now instead of waiting; returns at once."""
        self._hurry.set()

    def renew(self) -> None:
        """Extend every lease once; called before a rescue too, so that none of ours is rescued."""
        for held in self._within_limits():
            if not self.ledger.heartbeat(held.job):
                held.lost = True
                held.on_lost()

    def stuck(self) -> list[Job]:
        """Attempts that are a minute over their limit and still there."""
        now = self.clock.monotonic()
        with self._guard:
            return [
                held.job for held in self._held.values() if now >= held.limit + STUCK_AFTER_SECONDS
            ]

    def overdue(self) -> list[Job]:
        """Attempts that are over their limit and still there."""
        now = self.clock.monotonic()
        with self._guard:
            return [held.job for held in self._held.values() if now >= held.limit]

    def _limit(self, job: Job) -> float:
        return self.clock.monotonic() + KINDS[job.kind].limit_seconds

    def _within_limits(self) -> list[_Held]:
        now = self.clock.monotonic()
        with self._guard:
            return [held for held in self._held.values() if not held.lost and now < held.limit]

    def _run(self) -> None:
        from memoryd.memory.log import failed

        while not self._stopped_in(self.heartbeat_seconds):
            try:
                self.renew()
            except Exception as error:  # noqa: BLE001 - thread top: the beats go on
                failed("lease.renew_failed", error)
        self.ledger.close()

    def _stopped_in(self, seconds: float) -> bool:
        """Wait for the next beat; whether the thread is to end instead."""
        self._hurry.wait(seconds)
        self._hurry.clear()
        return self._stopping.is_set()
