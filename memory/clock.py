"""Time as an argument: wall clock where it is written down, monotonic for durations."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """What every service takes instead of reading the time itself."""

    def now_ms(self) -> int:
        """Wall time, UTC, milliseconds since the epoch."""
        ...

    def monotonic(self) -> float:
        """Seconds on a clock that never steps back; only differences mean anything."""
        ...


class SystemClock:
    """The machine's clocks."""

    def now_ms(self) -> int:
        """Wall time, UTC, milliseconds since the epoch."""
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        """Seconds of ``CLOCK_MONOTONIC``."""
        return time.monotonic()


def local_date(now_ms: int) -> str:
    """The local calendar day of ``now_ms`` as ``YYYY-MM-DD``: what "a day" means everywhere.

    The zone is the machine's now: a process may run for weeks and travel meanwhile.
    """
    time.tzset()
    return time.strftime("%Y-%m-%d", time.localtime(now_ms / 1000))


def next_local_midnight_ms(now_ms: int) -> int:
    """Wall time (ms) of the next local midnight after ``now_ms``, daylight saving included."""
    time.tzset()
    day = time.localtime(now_ms / 1000)
    midnight = (day.tm_year, day.tm_mon, day.tm_mday + 1, 0, 0, 0, 0, 0, -1)
    return int(time.mktime(midnight) * 1000)


def iso(now_ms: int) -> str:
    """``now_ms`` as RFC 3339 UTC to the second, for people and file headers."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now_ms / 1000))


def instant_ms(text: str | None) -> int | None:
    """Milliseconds of a date or an instant as notes hold them (no zone: UTC); None for neither."""
    if not text:
        return None
    moment = datetime.fromisoformat(text)
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return int(aware.timestamp() * 1000)
