"""What the daemon does at intervals, in its one clock thread.

Intervals are monotonic seconds, which stand still while the machine sleeps. What the duties look
for goes by the wall clock: leases, due jobs, dates. So the time by which the wall clock went ahead
of the monotonic one between two looks, a sleep or a clock that was set, counts as passed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from memoryd.memory.clock import Clock

#: The wall clock ahead of the monotonic one by less than this is being slewed, or a busy machine.
AHEAD_SECONDS = 5.0


@dataclass
class _Duty:
    name: str
    every: float
    do: Callable[[], None]
    due: float
    runs: int = 0
    failures: int = 0


class Schedule:
    """Duties with an interval each (seconds awake or asleep). A missed turn is one, not many."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._duties: list[_Duty] = []
        self._seen = (clock.now_ms(), clock.monotonic())

    def add(self, name: str, every: float, do: Callable[[], None], *, first: float = 0.0) -> None:
        """Call ``do`` every ``every`` seconds, first ``first`` seconds from now."""
        self._duties.append(_Duty(name, every, do, self._clock.monotonic() + first))

    def run_due(self) -> float:
        """Do what is due; the seconds until something next is. A duty that fails is logged."""
        from memoryd.memory.log import failed

        self._count_sleep()
        for duty in self._duties:
            if self._clock.monotonic() < duty.due:
                continue
            duty.due = self._clock.monotonic() + duty.every
            duty.runs += 1
            try:
                duty.do()
            except Exception as error:  # noqa: BLE001 - thread top: the others go on
                duty.failures += 1
                failed("duty.failed", error, duty=duty.name)
        soonest = min((duty.due for duty in self._duties), default=self._clock.monotonic() + 60)
        return max(0.0, soonest - self._clock.monotonic())

    def _count_sleep(self) -> None:
        """Bring every duty nearer by what the wall clock went ahead since the last look."""
        wall, awake = self._seen
        self._seen = (self._clock.now_ms(), self._clock.monotonic())
        ahead = (self._seen[0] - wall) / 1000 - (self._seen[1] - awake)
        if ahead >= AHEAD_SECONDS:
            for duty in self._duties:
                duty.due -= ahead

    def counts(self) -> dict[str, tuple[int, int]]:
        """How often each duty was begun, and how often it failed, by its name."""
        return {duty.name: (duty.runs, duty.failures) for duty in self._duties}
