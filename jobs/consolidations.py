"""What the ledger keeps of a store's consolidations: when the last one ran, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass

from memoryd.jobs.database import Database
from memoryd.jobs.rows import made

_RAN = """
insert into consolidation (store, last_run_at, outcome, empty_runs)
values (:store, :at, :outcome, :empty)
on conflict (store) do update set last_run_at = excluded.last_run_at, outcome = excluded.outcome,
    empty_runs = case when excluded.empty_runs = 0 then 0 else consolidation.empty_runs + 1 end
"""
_LOOKED = """
insert into consolidation (store, looked_at) values (:store, :at)
on conflict (store) do update set looked_at = excluded.looked_at
"""
_COLUMNS = "store, last_run_at, outcome, looked_at, empty_runs"


@dataclass(frozen=True)
class Consolidation:
    """The consolidations of one store. Times are wall milliseconds, 0 for never.

    ``looked_at`` is when the daily check last counted its sessions, ``empty_runs`` how many runs
    in a row changed nothing.
    """

    store: str
    last_run_at: int = 0
    outcome: str | None = None
    looked_at: int = 0
    empty_runs: int = 0


class Consolidations:
    """The table ``consolidation`` of one ledger."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def of(self, store: str) -> Consolidation:
        """What is known of ``store``; zeros where it was never consolidated."""
        found = self._db.rows(f"select {_COLUMNS} from consolidation where store = :s", s=store)
        return next(iter(made(Consolidation, found)), Consolidation(store))

    def all(self) -> list[Consolidation]:
        """Every store that was ever looked at, the longest ago first."""
        rows = self._db.rows(f"select {_COLUMNS} from consolidation order by last_run_at, store")
        return made(Consolidation, rows)

    def looked(self, store: str, at_ms: int) -> None:
        """The daily check counted the sessions of ``store``."""
        with self._db.writing():
            self._db.change(_LOOKED, store=store, at=at_ms)

    def ran(self, store: str, at_ms: int, outcome: str, *, empty: bool) -> None:
        """A consolidation ended. Runs in the caller's transaction."""
        self._db.change(_RAN, store=store, at=at_ms, outcome=outcome, empty=int(empty))
