"""The day's budget: every call is booked before it is sent and settled after.

A day is the local calendar day. Providers that cost nothing have no budget.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from memoryd.jobs import retry
from memoryd.jobs import statements as sql
from memoryd.jobs.database import Database
from memoryd.jobs.rows import made
from memoryd.memory.clock import Clock, local_date, next_local_midnight_ms


@dataclass(frozen=True)
class Spent:
    """A day's calls, tokens and money (millionths), and how much of each was the backfill's."""

    calls: int = 0
    tokens: int = 0
    cost: int = 0
    backfill_calls: int = 0
    backfill_tokens: int = 0
    backfill_cost: int = 0


class Budget:
    """Calls, tokens and money of each provider and day."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self.db = db
        self.clock = clock
        self._rng = random.Random()

    def reserve(
        self,
        provider: str,
        tokens: int,
        max_calls: int,
        max_tokens: int,
        *,
        cost: int = 0,
        max_cost: int = 0,
        share: float | None = None,
    ) -> str | None:
        """Book one call of about ``tokens`` for today; None when the day's budget is spent.

        ``cost`` and ``max_cost`` are money in millionths, 0 for no bound. With ``share`` it is a
        backfill's: bounded by that share of what the day's other work has left, of each. The day
        comes back, for ``settle``: a call may end after midnight.
        """
        day = local_date(self.clock.now_ms())
        bounds = {"max_calls": max_calls, "max_tokens": max_tokens, "max_cost": max_cost}
        if share is not None:
            bounds["share"] = share  # type: ignore[assignment]
        with self.db.writing():
            self.db.change(
                "insert into budget (day, provider, calls, tokens) values (:day, :provider, 0, 0)"
                " on conflict (day, provider) do nothing",
                day=day,
                provider=provider,
            )
            booked = self.db.change(
                sql.RESERVE if share is None else sql.RESERVE_BACKFILL,
                day=day,
                provider=provider,
                tokens=tokens,
                cost=cost,
                **bounds,
            )
        return day if booked else None

    def settle(
        self,
        provider: str,
        reserved: int,
        spent: int,
        day: str | None = None,
        *,
        cost: int = 0,
        paid: int = 0,
        backfill: bool = False,
    ) -> None:
        """Replace a reservation of ``reserved`` tokens by what the call really took.

        ``day`` is what ``reserve`` answered, today when None; ``cost`` what was booked, ``paid``
        what it was, money in millionths; ``backfill`` as it was reserved.
        """
        with self.db.writing():
            self.db.change(
                sql.SETTLE,
                tokens=reserved,
                spent=spent,
                cost=cost,
                paid=paid,
                backfill=int(backfill),
                day=day or local_date(self.clock.now_ms()),
                provider=provider,
            )

    def spent(self, provider: str) -> tuple[int, int]:
        """Calls and tokens of the provider today."""
        today = self.today(provider)
        return today.calls, today.tokens

    def today(self, provider: str) -> Spent:
        """All that was booked with the provider today."""
        rows = self.db.rows(
            "select calls, tokens, cost, backfill_calls, backfill_tokens, backfill_cost"
            " from budget where day = :day and provider = :provider",
            day=local_date(self.clock.now_ms()),
            provider=provider,
        )
        return next(iter(made(Spent, rows)), Spent())

    def next_day_ms(self) -> int:
        """When the budget is whole again: the next midnight, spread over ten minutes."""
        midnight = next_local_midnight_ms(self.clock.now_ms())
        return midnight + int(self._rng.uniform(0, retry.SPREAD_SECONDS) * 1000)
