"""What every attempt works with, put together once by whoever owns the process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from memoryd.jobs.calls import Calls
from memoryd.jobs.ledger import Ledger
from memoryd.jobs.schema import TO_RECOVER
from memoryd.memory.clock import Clock
from memoryd.memory.config import Config
from memoryd.memory.home import Home

if TYPE_CHECKING:
    from memoryd.memory.providers.base import Provider
    from memoryd.sessions.history import History


@dataclass(frozen=True)
class Workplace:
    """One home, opened: its ledger, its session history, and the provider of its configuration."""

    home: Home
    config: Config
    clock: Clock
    environ: Mapping[str, str]
    ledger: Ledger
    history: History
    calls: Calls

    def close(self) -> None:
        """Close what this thread opened."""
        self.ledger.close()
        self.history.close()


def needs_recovery(ledger: Ledger) -> bool:
    """Whether the ledger is new or was put back, and was not told what was done since."""
    return int(ledger.db.rows("pragma application_id")[0][0]) == TO_RECOVER


def open_ledger(home: Home, config: Config, clock: Clock, *, check: bool = False) -> Ledger:
    """The ledger of ``home``, made where there never was one. One that is new, or was put back from
    a copy, is told what the stores know. Raises ``LedgerError``, ``HomeError``.
    """
    identity = home.prepare()
    ledger = Ledger(home.ledger, identity, clock, lease_seconds=config.queue.lease_seconds)
    ledger.open(check=check)
    if needs_recovery(ledger):
        from memoryd.jobs.recovering import recover

        recover(home, ledger, clock)
    return ledger


def look_into_ledger(home: Home, config: Config, clock: Clock) -> Ledger | None:
    """The ledger of ``home``, opened for reading alone; None where it must first be made, migrated
    or told what the stores know. Raises ``LedgerError``, ``HomeError``.
    """
    home.require_own()
    ledger = Ledger(home.ledger, home.uuid(), clock, lease_seconds=config.queue.lease_seconds)
    return ledger if ledger.db.look() else None


def open_workplace(
    home: Home,
    config: Config,
    clock: Clock,
    environ: Mapping[str, str],
    *,
    provider: Provider | None = None,
    check: bool = False,
) -> Workplace:
    """Open everything an attempt needs; ``provider`` replaces the configured one (tests).

    Raises ``HomeError``, ``LedgerError``, ``ConfigError``.
    """
    from memoryd.memory import own_calls
    from memoryd.memory.providers.registry import make
    from memoryd.sessions.history import History

    ledger = open_ledger(home, config, clock, check=check)
    history = History(home.session_history, clock)
    history.open()
    chosen = provider or make(config.provider, environ, own_calls.folder(home))
    calls = Calls(ledger, chosen, config.provider, share=config.backfill.share)
    return Workplace(home, config, clock, environ, ledger, history, calls)


def find_transcript(environ: Mapping[str, str], agent: str, session: str) -> Path | None:
    """Where ``agent`` keeps the transcript of ``session``, None where it has none.

    Raises ``UsageError`` for an agent that is not known.
    """
    from memoryd.sessions.agents import adapter_for
    from memoryd.sessions.places import place_of

    return place_of(adapter_for(agent), environ, session)
