"""Copies of the ledger in ``backups/``: made daily and before each migration, kept for a while.

| file | made | kept |
|---|---|---|
| ``memoryd-<date>.sqlite`` | daily, under the local date | the newest ``DAILY_KEPT`` |
| ``memoryd-schema<n>-<time>-<pid>.sqlite`` | before a migration (``schema.py``) | the newest \
``MIGRATED_KEPT`` |

A ledger that is not whole is never copied, so damage rotates no good copy away; a nearly full disk
gets none. A copy has its name only when it is on disk as a whole.

The session history has no copies. The transcripts say again what it says, as far as their agents
keep them; it is the one file out of which forgotten words must vanish, and a copy would keep them;
and it may be gigabytes.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from memoryd.jobs import schema
from memoryd.memory.clock import local_date
from memoryd.memory.errors import DiskFull, LedgerError, MemorydError
from memoryd.memory.files import full_disk, is_full, make_directory, temporary_name
from memoryd.memory.log import logger

if TYPE_CHECKING:
    from memoryd.jobs.ledger import Ledger

DAILY_KEPT = 7
MIGRATED_KEPT = 3
#: Of the copies together; the oldest go first, the newest never.
KEPT_BYTES = 2 << 30
#: What is left of the disk beside a copy, at least.
ROOM_BYTES = 256 << 20
#: A copy that takes longer is given up: 100 MB take about a second.
LIMIT_SECONDS = 30.0
DAY_MS = 24 * 3600 * 1000

_DAILY = re.compile(r"memoryd-\d{4}-\d\d-\d\d\.sqlite")


def back_up(ledger: Ledger, backups: Path) -> Path:
    """Copy the ledger under today's local date and let go of what is past its time; the copy.

    Raises ``LedgerDamaged`` (the copies that are there stay), ``DiskFull`` and ``LedgerError``.
    """
    now_ms = ledger.clock.now_ms()
    copy = backups / f"memoryd-{local_date(now_ms)}.sqlite"
    temporary = copy.with_name(temporary_name(copy.name))
    try:
        make_directory(backups)
        _require_room(backups, ledger.db.path)
        ledger.db.copy_into(temporary, LIMIT_SECONDS)
        schema.keep_copy(temporary, copy)
        for each in outlived(copies(backups, now_ms), copy):
            each.unlink(missing_ok=True)
    except OSError as error:
        said = f"the ledger could not be copied to {backups}: {error.strerror}"
        raise full_disk(said) if is_full(error) else LedgerError(said) from error
    finally:
        temporary.unlink(missing_ok=True)
    return copy


def back_up_daily(ledger: Ledger, backups: Path) -> str:
    """Copy the ledger where that was not done on this local date; empty, or why it could not be.

    A copy that fails is logged.
    """
    try:
        if ledger.daily_runs.once("backup", lambda: back_up(ledger, backups)):
            logger().info("ledger.copied")
    except MemorydError as error:
        logger().error("ledger.uncopied", code=error.code, reason=str(error))
        return str(error)
    return ""


def copies(backups: Path, now_ms: int) -> list[Path]:
    """The copies of the ledger that are there, the newest first.

    One of tomorrow or later, from when the clock was wrong, counts as the oldest.
    """
    horizon = now_ms + DAY_MS

    def age(path: Path) -> tuple[bool, int, str]:
        made_ms = path.stat().st_mtime_ns // 1_000_000
        return made_ms > horizon, -made_ms, path.name

    return sorted(schema.copies(backups), key=age)


def outlived(newest_first: Iterable[Path], made: Path) -> list[Path]:
    """Which copies are past their time now that ``made`` is there."""
    left = {True: DAILY_KEPT, False: MIGRATED_KEPT}
    room, gone = KEPT_BYTES, []
    for each in sorted(newest_first, key=lambda path: path != made):
        daily = _DAILY.fullmatch(each.name) is not None
        left[daily] -= 1
        room -= each.stat().st_size
        if each != made and (left[daily] < 0 or room < 0):
            gone.append(each)
    return gone


def renewed(ledger: Ledger) -> Iterator[str]:
    """Have no daily copy hold what was just forgotten: a new one takes their place.

    What still holds it comes back, as lines for a person: copies of another kind are theirs.
    """
    backups = ledger.db.path.parent / "backups"
    if not backups.is_dir():
        return
    daily = [path for path in backups.glob("memoryd-*.sqlite") if _DAILY.fullmatch(path.name)]
    made = None
    try:
        if daily:
            made = back_up(ledger, backups)
            for each in daily:
                if each != made:
                    each.unlink(missing_ok=True)
    except (MemorydError, OSError) as error:
        said = error.message if isinstance(error, MemorydError) else error.strerror
        yield f"no new copy of the ledger could be made: {said}"
    for path in sorted((*backups.rglob("*.sqlite"), *backups.glob("rows-*.jsonl"))):
        if path != made:
            yield f"{path} is a copy from before; delete it if it must not stay"


def _require_room(backups: Path, ledger: Path) -> None:
    free, size = shutil.disk_usage(backups).free, ledger.stat().st_size
    if free < size + ROOM_BYTES:
        raise DiskFull(
            f"the disk of {backups} has {free >> 20} MB left: the ledger is not copied",
            hint=f"make room: a copy needs {(size + ROOM_BYTES) >> 20} MB",
        )
