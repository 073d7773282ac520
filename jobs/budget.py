"""The day's budget: every call is booked before it is sent and settled after.

A day is the local calendar day. Providers that cost nothing have no budget.
"""

from __future__ import annotations

import random

from memoryd.jobs import retry
from memoryd.jobs import statements as sql
from memoryd.jobs.database import Database
from memoryd.memory.clock import Clock, local_date, next_local_midnight_ms


class Budget:
    """Calls and tokens of each provider and day."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self.db = db
        self.clock = clock
        self._rng = random.Random()

    def reserve(self, provider: str, tokens: int, max_calls: int, max_tokens: int) -> str | None:
        """Book one call of about ``tokens`` for today; None when the day's budget is spent.

        The day comes back, for ``settle``: a call may end after midnight.
        """
        day = local_date(self.clock.now_ms())
        with self.db.writing():
            self.db.change(
                "insert into budget (day, provider, calls, tokens) values (:day, :provider, 0, 0)"
                " on conflict (day, provider) do nothing",
                day=day,
                provider=provider,
            )
            booked = self.db.change(
                sql.RESERVE,
                day=day,
                provider=provider,
                tokens=tokens,
                max_calls=max_calls,
                max_tokens=max_tokens,
            )
        return day if booked else None

    def settle(self, provider: str, reserved: int, spent: int, day: str | None = None) -> None:
        """Replace a reservation of ``reserved`` tokens by what the call really took.

        ``day`` is what ``reserve`` answered, today when None.
        """
        with self.db.writing():
            self.db.change(
                sql.SETTLE,
                reserved=reserved,
                spent=spent,
                day=day or local_date(self.clock.now_ms()),
                provider=provider,
            )

    def spent(self, provider: str) -> tuple[int, int]:
        """Calls and tokens of the provider today."""
        rows = self.db.rows(
            "select calls, tokens from budget where day = :day and provider = :provider",
            day=local_date(self.clock.now_ms()),
            provider=provider,
        )
        return (int(rows[0][0]), int(rows[0][1])) if rows else (0, 0)

    def next_day_ms(self) -> int:
        """When the budget is whole again: the next midnight, spread over ten minutes."""
        midnight = next_local_midnight_ms(self.clock.now_ms())
        return midnight + int(self._rng.uniform(0, retry.SPREAD_SECONDS) * 1000)
