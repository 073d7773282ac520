"""The daily tidying: finished rows past their retention, and what killed writers left behind."""

from __future__ import annotations

from memoryd.jobs.workplace import Workplace
from memoryd.memory.files import old_leftovers
from memoryd.memory.log import logger

#: A write takes milliseconds; whoever has not finished one for this long is dead.
LEFT_MS = 24 * 3600 * 1000


def tidy(place: Workplace) -> None:
    """Delete what is past its retention, and temporary files that nobody will finish."""
    ledger = place.ledger
    pruned = {
        "jobs": ledger.prune(place.config.queue.keep_finished),
        "injections": ledger.usage.prune(),
        "leftovers": _clear(place),
    }
    ledger.archive.prune()
    pruned["bytes"] = ledger.retention.shrink()
    if any(pruned.values()):
        logger().info("home.tidied", **pruned)


def _clear(place: Workplace) -> int:
    """Those beside the home's own files and the projects'; a store clears its own at each write."""
    home, before_ms = place.home, place.clock.now_ms() - LEFT_MS
    folders = (home.root, home.backups, *home.projects.glob("*/"))
    left = [each for folder in folders for each in old_leftovers(folder, before_ms)]
    for each in left:
        each.unlink(missing_ok=True)
    return len(left)
