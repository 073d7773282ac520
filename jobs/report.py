"""What ``status`` says of a home, from its files alone: with or without a daemon."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from memoryd.jobs.breaker import Breaker
from memoryd.jobs.consolidations import Consolidation
from memoryd.jobs.ledger import Ledger
from memoryd.memory.config import Config, switched_off
from memoryd.memory.home import Home

_SWITCHES = ("", "EXTRACTION", "CONSOLIDATION", "RECALL", "JUDGE")


@dataclass(frozen=True)
class Report:
    """One look at the queue. Times are wall milliseconds."""

    home: str
    counts: dict[str, int]
    waiting: dict[str, int]
    #: Extracts that came too soon, over all sessions: their words waited for the next job.
    throttled: int
    #: Candidates that wait for a person's word.
    in_review: int
    oldest_pending_at: int | None
    next_due_at: int | None
    inbox: int
    bad_envelopes: int
    provider: str
    calls_today: int
    tokens_today: int
    daily_calls: int
    daily_tokens: int
    breaker: Breaker | None
    #: The stores that were ever looked at, the longest ago consolidated first.
    consolidations: list[Consolidation]
    switches: tuple[str, ...]


def report(home: Home, ledger: Ledger, config: Config, environ: Mapping[str, str]) -> Report:
    """Look at the ledger and the inbox."""
    calls, tokens = ledger.budget.spent(config.provider.name)
    return Report(
        home=str(home.root),
        counts=ledger.records.counts(),
        waiting=ledger.records.waiting(),
        throttled=ledger.records.throttled(),
        in_review=ledger.records.count_in_review(),
        oldest_pending_at=ledger.records.oldest_pending(),
        next_due_at=ledger.next_due_ms(),
        inbox=_count(home.inbox),
        bad_envelopes=_count(home.inbox / "bad"),
        provider=config.provider.name,
        calls_today=calls,
        tokens_today=tokens,
        daily_calls=config.provider.daily_calls,
        daily_tokens=config.provider.daily_tokens,
        breaker=ledger.breakers.of(config.provider.name),
        consolidations=ledger.consolidations.all(),
        switches=switches_on(environ),
    )


def switches_on(environ: Mapping[str, str]) -> tuple[str, ...]:
    """The kill switches that are set in ``environ``, by name."""
    on = []
    for switch in _SWITCHES:
        name = "MEMORYD_DISABLE" + (f"_{switch}" if switch else "")
        if switched_off({name: environ.get(name, "")}, switch or "EXTRACTION"):
            on.append(name)
    return tuple(on)


def _count(folder: Path) -> int:
    try:
        return sum(1 for path in folder.iterdir() if path.suffix == ".json")
    except FileNotFoundError:
        return 0
