"""What this process has counted since it started. Only grows; a new process begins at zero."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field

from memoryd.jobs.accounts import Account


@dataclass
class Counted:
    """The counters, by their labels. Seconds are monotonic, money is in the currency's units."""

    attempts: Counter[tuple[str, str]] = field(default_factory=Counter)
    seconds: dict[str, float] = field(default_factory=dict)
    failures: Counter[str] = field(default_factory=Counter)
    calls: Counter[str] = field(default_factory=Counter)
    tokens: Counter[tuple[str, str]] = field(default_factory=Counter)
    cost: dict[str, float] = field(default_factory=dict)
    facts: Counter[str] = field(default_factory=Counter)
    notes: int = 0
    messages: int = 0


class Counters:
    """Counts attempts as they end, from any thread."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._counted = Counted()

    def count(self, done: Account, provider: str, cost: int) -> None:
        """One attempt ended, its calls made to ``provider`` for ``cost`` millionths of money."""
        with self._guard:
            into = self._counted
            into.attempts[done.kind, done.ending] += 1
            into.seconds[done.kind] = into.seconds.get(done.kind, 0.0) + done.seconds
            if done.ending == "failed":
                into.failures[done.code or "attempt.error"] += 1
            if done.calls:
                into.calls[provider] += done.calls
                into.tokens[provider, "input"] += done.input_tokens
                into.tokens[provider, "output"] += done.output_tokens
                into.cost[provider] = into.cost.get(provider, 0.0) + cost / 1_000_000
            into.facts.update(done.facts)
            into.notes += done.notes
            into.messages += done.messages

    def read(self) -> Counted:
        """A copy that stands still."""
        with self._guard:
            now = self._counted
            return Counted(
                Counter(now.attempts),
                dict(now.seconds),
                Counter(now.failures),
                Counter(now.calls),
                Counter(now.tokens),
                dict(now.cost),
                Counter(now.facts),
                now.notes,
                now.messages,
            )
