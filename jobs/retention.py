"""How long finished jobs stay, and that the file gives back what they took.

A job goes with its attempt log, in batches that leave the write lock free between them. What
outlives it stays: candidates, the cursor, what is known of its session. A job whose plan stands
stays until that is settled, and what is pending or running always.

Pages that became free are given back to the disk a few at a time. A file made before memoryd did so
can only be written anew as a whole, which keeps everybody else waiting: that is done once, where
much of it is free, little is left to write, and no job runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from memoryd.jobs import statements as sql
from memoryd.jobs.database import Database

BATCH = 1000
MIB = 1 << 20
#: What stays free for the rows to come, so that the file does not shrink and grow all day.
SPARE_BYTES = MIB
#: Given back in one transaction.
STEP_PAGES = 500
#: A file is written anew when so much of it is free, which is more than a quarter, and so little
#: is not: that takes a second or two, and others give up after five.
REWRITE_FREE_BYTES = 8 * MIB
REWRITE_MOST_BYTES = 256 * MIB
#: Later than any time a row can hold.
NEVER_MS = 1 << 62
_INCREMENTAL = 2


#: Whether there is no time left.
Enough = Callable[[], bool]


def _never() -> bool:
    return False


@dataclass(frozen=True)
class Which:
    """Finished jobs: of these ``statuses``, past the newest ``keep`` of them, and ended before."""

    statuses: frozenset[str] = frozenset({"completed", "cancelled"})
    keep: int = 0
    before_ms: int = NEVER_MS


class Retention:
    """What goes from one ledger, and what its file gives back. Methods raise ``LedgerError``."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def would_go(self, which: Which) -> dict[str, int]:
        """How many jobs of each status ``prune`` would delete."""
        bounds = self._bounds(which)
        found = {
            status: int(self._db.rows(sql.COUNT_PRUNED[status], **bounds)[0][0])
            for status in self._named(which)
            if bounds
        }
        return {status: count for status, count in found.items() if count}

    def prune(self, which: Which, enough: Enough = _never) -> dict[str, int]:
        """Delete these jobs and their attempts, the oldest first; how many of each status went.

        ``enough`` is asked before each batch: the next call goes on where it says so.
        """
        bounds, gone = self._bounds(which), dict.fromkeys(sql.FINISHED, 0)
        for status in self._named(which) if bounds else ():
            after = bounds
            while after and not enough():
                after, count = self._prune_batch(status, after)
                gone[status] += count
            if after:
                break
        return {status: count for status, count in gone.items() if count}

    def _prune_batch(
        self, status: str, bounds: Mapping[str, object]
    ) -> tuple[Mapping[str, object], int]:
        """Delete the oldest of one status; how the next batch is bounded (empty: there is none)."""
        with self._db.writing():
            rows = self._db.rows(sql.PRUNE[status], **bounds, batch=BATCH)
            for identifier, _ in rows:
                self._db.change("delete from attempt_log where job_id = :id", id=identifier)
        if len(rows) < BATCH:
            return {}, len(rows)
        # What was looked at and stays is not looked at again.
        low_at, low_id = max((int(at), str(identifier)) for identifier, at in rows)
        return {**bounds, "low_at": low_at, "low_id": low_id}, len(rows)

    def _named(self, which: Which) -> list[str]:
        return [status for status in sql.FINISHED if status in which.statuses]

    def _bounds(self, which: Which) -> Mapping[str, object]:
        """The statements' values; none where nothing goes."""
        named = {status: int(status in which.statuses) for status in sql.FINISHED}
        newest = self._db.rows(sql.NEWEST_PRUNED, **named, keep=which.keep)
        if not newest:
            return {}
        high_at, high_id = newest[0]
        low = {"low_at": -1, "low_id": ""}
        return low | {"high_at": high_at, "high_id": high_id, "before": which.before_ms}

    # -- the file --------------------------------------------------------------------------------

    def shrink(self, enough: Enough = _never) -> int:
        """Give free pages back to the disk; how many bytes smaller the file becomes.

        ``enough`` is asked before each step.
        """
        size, before = self._number("page_size"), self._number("page_count")
        if self._number("auto_vacuum") == _INCREMENTAL:
            self._step_by_step(SPARE_BYTES // size, enough)
        elif self._is_worth_writing_anew(size, before):
            self._db.rows(f"pragma auto_vacuum = {_INCREMENTAL}")
            self._db.rows("vacuum")
        given = (before - self._number("page_count")) * size
        if given > 0:
            # Only with the log copied back does the file itself get shorter.
            self._db.rows("pragma wal_checkpoint(passive)")
        return max(given, 0)

    def _step_by_step(self, spare: int, enough: Enough) -> None:
        free = self._number("freelist_count")
        while free > spare and not enough():
            self._db.to_the_end(f"pragma incremental_vacuum({min(STEP_PAGES, free - spare)})")
            left = self._number("freelist_count")
            if left >= free:
                return  # others make pages free as fast as this gives them back
            free = left

    def _is_worth_writing_anew(self, size: int, pages: int) -> bool:
        free = self._number("freelist_count")
        if free * 4 <= pages or free * size < REWRITE_FREE_BYTES:
            return False
        if (pages - free) * size > REWRITE_MOST_BYTES:
            return False
        return not self._db.rows("select 1 from job where status = 'running' limit 1")

    def _number(self, pragma: str) -> int:
        return int(self._db.rows(f"pragma {pragma}")[0][0])
