"""What the daemon does at intervals, in its one clock thread."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from memoryd.memory.clock import Clock


@dataclass
class _Duty:
    name: str
    every: float
    do: Callable[[], None]
    due: float


class Schedule:
    """Duties with an interval each (monotonic seconds). A missed turn is one turn, not many."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._duties: list[_Duty] = []

    def add(self, name: str, every: float, do: Callable[[], None], *, first: float = 0.0) -> None:
        """Call ``do`` every ``every`` seconds, first ``first`` seconds from now."""
        self._duties.append(_Duty(name, every, do, self._clock.monotonic() + first))

    def run_due(self) -> float:
        """Do what is due; the seconds until something next is. A duty that fails is logged."""
        from memoryd.memory.log import logger

        for duty in self._duties:
            if self._clock.monotonic() < duty.due:
                continue
            duty.due = self._clock.monotonic() + duty.every
            try:
                duty.do()
            except Exception:  # noqa: BLE001 - thread top: one failing duty must not end the others
                logger().exception("duty.failed", duty=duty.name)
        soonest = min((duty.due for duty in self._duties), default=self._clock.monotonic() + 60)
        return max(0.0, soonest - self._clock.monotonic())
