"""How long to wait and when to give up: pure decisions, no clock and no database."""

from __future__ import annotations

import random
from dataclasses import dataclass

from memoryd.jobs.job import Job, Status

#: Longest wait after a failure of the job's own.
RETRY_MAX_SECONDS = 3600
#: First and longest wait for a provider that is away.
UNAVAILABLE_FIRST_SECONDS = 15
UNAVAILABLE_MAX_SECONDS = 3600
#: Longest time that a provider's limit is taken on its word: less than a job may wait, a day.
LIMITED_MAX_SECONDS = 24 * 3600 - 1
#: First and longest wait for a writer lock held elsewhere, and for git, disk or repository.
BUSY_FIRST_SECONDS = 15
BUSY_MAX_SECONDS = 600
#: Longest wait where what stood in the way let the provider be asked first: each try is paid for.
PAID_MAX_SECONDS = 24 * 3600 - 1
#: Wakes at the start of a day are spread over this long.
SPREAD_SECONDS = 600


@dataclass(frozen=True)
class Decision:
    """What becomes of a job whose attempt ended badly."""

    status: Status
    run_at: int


def after_failure(job: Job, now_ms: int, rng: random.Random, base_seconds: int = 15) -> Decision:
    """Retry ``min(1 h, base * 4^(failures-1))`` later with 10 % jitter, or give up.

    ``job`` is the row before the failure is counted.
    """
    failures = job.failures + 1
    if failures >= job.max_failures:
        return Decision("failed", now_ms)
    delay = min(RETRY_MAX_SECONDS, base_seconds * 4 ** (failures - 1))
    return Decision("pending", now_ms + int(delay * rng.uniform(0.9, 1.1) * 1000))


def after_crash(job: Job, now_ms: int, base_seconds: int = 15) -> Decision:
    """At once after a first crash; then as after a failure, so that poison cannot spin."""
    failures = job.failures + 1
    if failures >= job.max_failures:
        return Decision("failed", now_ms)
    if job.crashes == 0:
        return Decision("pending", now_ms)
    delay = min(RETRY_MAX_SECONDS, base_seconds * 4 ** (failures - 2))
    return Decision("pending", now_ms + int(delay * 1000))


def doubling(first_seconds: int, longest_seconds: int, times: int) -> int:
    """Seconds to wait the ``times``-th time in a row (from 0): doubles up to the longest."""
    return min(longest_seconds, first_seconds << min(times, 30))
