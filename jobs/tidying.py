"""The daily tidying: finished rows past their retention, and what killed writers left behind."""

from __future__ import annotations

from pathlib import Path

from memoryd.jobs import taken
from memoryd.jobs.retention import Which
from memoryd.jobs.workplace import Workplace
from memoryd.memory.errors import StoreBusy, StoreError
from memoryd.memory.files import old_leftovers
from memoryd.memory.log import logger
from memoryd.memory.store import Store
from memoryd.memory.written import any_written

#: A write takes milliseconds; whoever has not finished one for this long is dead.
LEFT_MS = 24 * 3600 * 1000
#: What a million rows leave to do, the next days do: the clock's other duties wait meanwhile.
LONGEST_SECONDS = 5.0


def tidy(place: Workplace) -> None:
    """Delete what is past its retention, and temporary files that nobody will finish."""
    ledger = place.ledger
    until = place.clock.monotonic() + LONGEST_SECONDS

    def enough() -> bool:
        return place.clock.monotonic() >= until

    which = Which(keep=place.config.queue.keep_finished)
    pruned = {
        "jobs": sum(ledger.retention.prune(which, enough).values()),
        "injections": ledger.usage.prune(),
        "leftovers": _clear(place),
        "taken": taken.let_go(place.home, ledger.db),
    }
    ledger.archive.prune()
    pruned["bytes"] = ledger.retention.shrink(enough)
    if any(pruned.values()):
        logger().info("home.tidied", **pruned)


def _clear(place: Workplace) -> int:
    """Those beside the home's own files, beside the projects' and in their stores."""
    home, before_ms = place.home, place.clock.now_ms() - LEFT_MS
    folders = (home.root, home.backups, *home.projects.glob("*/"))
    cleared = sum(_clear_folder(folder, before_ms) for folder in folders)
    return cleared + sum(_clear_store(store, before_ms) for store in Store.all(home))


def _clear_folder(folder: Path, before_ms: int) -> int:
    left = old_leftovers(folder, before_ms)
    for each in left:
        each.unlink(missing_ok=True)
    return len(left)


def _clear_store(store: Store, before_ms: int) -> int:
    """None while a plan stands half applied: its own say how far it came (``written.py``)."""
    if store.is_profile or not store.root.is_dir():
        return 0
    try:
        with store.writer_lock():
            if any_written(store):
                return 0
            return sum(_clear_folder(folder, before_ms) for folder in store.places())
    except StoreBusy:
        return 0  # the next day will do
    except (StoreError, OSError) as error:
        logger().warning("store.unusable", store=store.key, reason=str(error))
        return 0
