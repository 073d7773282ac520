"""The counters that came with imported notes, kept where the ledger counts for itself."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict

from memoryd.jobs.ledger import Ledger
from memoryd.memory.importing.counters import Counted

_KEEP = """
insert into usage (store, note, shown, used, last_used_at)
values (:store, :note, :shown, :used, :last_used_at)
on conflict (store, note) do nothing
"""


def keep_counters(ledger: Ledger, counters: Iterable[Counted]) -> int:
    """Take over ``counters`` for the notes that have none yet; how many that were."""
    with ledger.db.writing():
        return sum(ledger.db.change(_KEEP, **asdict(each)) for each in counters)
