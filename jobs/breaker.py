"""Whom not to ask at the moment, for the whole queue: a breaker a provider.

``open``: it did not answer, or answered with a limit; one job an interval, or when the limit lifts,
may try again, the others wait at no cost.
``stopped``: asking cannot help (bad credentials, unknown model) until a person changes something.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

from memoryd.jobs import retry
from memoryd.jobs import statements as sql
from memoryd.jobs.database import Database
from memoryd.jobs.job import check_code
from memoryd.jobs.rows import made
from memoryd.memory.clock import Clock
from memoryd.memory.errors import ProviderLimited
from memoryd.memory.text import clip

DETAIL_CHARACTERS = 500
_FOR_EVER_MS = 1 << 62


@dataclass(frozen=True)
class Breaker:
    """Why a provider is not asked: ``open`` until a time, or ``stopped`` until a person acts."""

    provider: str
    state: str
    #: Times in a row that it was asked in vain.
    strikes: int
    #: Wall ms before which nobody asks; 0 where it is stopped.
    until: int
    #: A code: ``provider.unavailable``, ``provider.limited`` or ``provider.permanent``.
    reason: str
    #: What it said, redacted and bounded.
    detail: str
    #: Wall ms of the first time in vain.
    since: int


class Breakers:
    """The breakers of one ledger."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self.db = db
        self.clock = clock

    def of(self, provider: str) -> Breaker | None:
        """Why the provider is not asked at the moment, None when it is."""
        rows = self.db.rows(
            "select provider, state, strikes, until, reason, detail, since from breaker"
            " where provider = :provider",
            provider=provider,
        )
        return next(iter(made(Breaker, rows)), None)

    def trip(self, provider: str, reason: str, detail: str, lifts_ms: int = 0) -> int:
        """The provider did not answer: nobody asks it before the wall time that comes back.

        15 s, doubling with each failure in a row up to 1 h; later where it said that a limit lifts
        at ``lifts_ms``, but within a day, since its clock or ours may be wrong. One that is stopped
        stays stopped.
        """
        now = self.clock.now_ms()
        with self.db.writing():
            known = self.of(provider)
            strikes = known.strikes + 1 if known else 1
            lifts_ms = min(lifts_ms, now + retry.LIMITED_MAX_SECONDS * 1000)
            until = max(now + _wait_ms(strikes - 1), lifts_ms)
            if known is None or known.state == "open":
                since = known.since if known else now
                self._keep(Breaker(provider, "open", strikes, until, reason, detail, since))
        return until

    def stop(self, provider: str, reason: str, detail: str) -> None:
        """Asking cannot help until a person acts: nobody asks until ``resume``."""
        now = self.clock.now_ms()
        with self.db.writing():
            known = self.of(provider)
            since = known.since if known else now
            self._keep(Breaker(provider, "stopped", 1, 0, reason, detail, since))

    def _keep(self, breaker: Breaker) -> None:
        check_code(breaker.reason)
        clipped = replace(breaker, detail=clip(breaker.detail, DETAIL_CHARACTERS))
        self.db.change(sql.KEEP_BREAKER, **asdict(clipped))

    def is_time(self, breaker: Breaker) -> bool:
        """Whether somebody may ask again. Held for longer than we ever do: a clock stepped."""
        now = self.clock.now_ms()
        return breaker.until <= now or breaker.until > now + _longest_ms(breaker)

    def may_probe(self, breaker: Breaker) -> bool:
        """Whether this caller is the one that may ask again; only one an interval is told so."""
        now = self.clock.now_ms()
        with self.db.writing():
            won = self.db.change(
                sql.PROBE,
                provider=breaker.provider,
                now=now,
                next=now + _wait_ms(breaker.strikes),
                horizon=now + _longest_ms(breaker),
            )
        return won > 0

    def answered(self, probed: Breaker) -> int:
        """The provider answers again: wake who waited for it, but not who asked in vain.

        ``probed`` is the breaker as it was before the probe. Who waits does so until then, or until
        the next probe; who asked in vain is due a moment later than either (``calls.py``).
        """
        now = self.of(probed.provider)
        return self._wake(probed.provider, probed.until, now.until if now else 0)

    def resume(self, provider: str) -> int:
        """A person may have changed something: wake who waited, or asked in vain."""
        return self._wake(provider, _FOR_EVER_MS, 0)

    def _wake(self, provider: str, until: int, next_until: int) -> int:
        now = self.clock.now_ms()
        with self.db.writing():
            self.db.change("delete from breaker where provider = :provider", provider=provider)
            return self.db.change(sql.WAKE, now=now, until=until, next=next_until)


def _longest_ms(breaker: Breaker) -> int:
    """The longest that nobody asks at all."""
    limited = breaker.reason == ProviderLimited.code
    return 1000 * (retry.LIMITED_MAX_SECONDS if limited else retry.UNAVAILABLE_MAX_SECONDS)


def _wait_ms(times: int) -> int:
    """How long nobody asks, the ``times``-th time in a row (from 0)."""
    first, longest = retry.UNAVAILABLE_FIRST_SECONDS, retry.UNAVAILABLE_MAX_SECONDS
    return retry.doubling(first, longest, times) * 1000
