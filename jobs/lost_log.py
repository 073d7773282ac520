"""A ledger whose log was taken away after an unclean end: it is as it was at its last checkpoint.

| file beside the ledger | what it says |
|---|---|
| ``<ledger>.log-lost-new`` | it was seen, and the ledger is not told of it yet |
| ``<ledger>.log-lost`` | since when something may be missing; a person deletes it |

Opening the ledger makes a new log, and with it goes what shows that one was lost. So it is written
down first. Then the envelopes that were taken in lately are put back, and it is said in the ledger,
where it stands until the stores' histories were asked (``recovering.py``). A process that dies in
between leaves the rest to the next one that opens it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from memoryd.jobs.schema import TO_RECOVER
from memoryd.jobs.taken import put_back
from memoryd.memory import database_files
from memoryd.memory.clock import iso
from memoryd.memory.files import sync_directory, write_atomic
from memoryd.memory.log import logger

if TYPE_CHECKING:
    from peewee import SqliteDatabase


def note(ledger: Path) -> Path:
    """Where it stands since when something may be missing."""
    return ledger.with_name(f"{ledger.name}.log-lost")


def _new(ledger: Path) -> Path:
    return ledger.with_name(f"{ledger.name}.log-lost-new")


def is_untold(ledger: Path) -> bool:
    """Whether a log was lost of which the ledger does not know. Raises ``OSError``."""
    return database_files.is_log_lost(ledger) or os.path.lexists(_new(ledger))


def notice(ledger: Path) -> None:
    """Write down, before the ledger is opened, that its log was lost. Raises ``OSError``."""
    if not database_files.is_log_lost(ledger):
        return
    # The file itself is written to by checkpoints alone.
    since = iso(ledger.stat().st_mtime_ns // 1_000_000)
    write_atomic(_new(ledger), f"{since}\n".encode())
    logger().error(
        "ledger.log-lost",
        file=str(database_files.companions(ledger)[0]),
        since=since,
        hint="what was written to the ledger since then may be missing: `memoryd doctor`",
    )


def tell(ledger: Path, opened: SqliteDatabase) -> None:
    """Have the open ledger know what was noticed. Raises ``OSError`` and what peewee raises."""
    new, known = _new(ledger), note(ledger)
    if not os.path.lexists(new):
        return
    put_back(ledger.parent / "inbox")
    opened.execute_sql("pragma synchronous = full")
    opened.execute_sql(f"pragma application_id = {TO_RECOVER}")
    opened.execute_sql("pragma synchronous = normal")
    if known.exists():  # what was lost before counts from earlier on
        new.unlink(missing_ok=True)
    else:
        new.replace(known)
    sync_directory(ledger.parent)


def since(ledger: Path) -> str | None:
    """Since when something may be missing, as a time in UTC; None: nothing. Raises ``OSError``."""
    try:
        with note(ledger).open("rb") as file:
            return file.read(40).decode("ascii", "replace").strip() or "an unknown time"
    except FileNotFoundError:
        return None
