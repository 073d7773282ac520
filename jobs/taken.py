"""Envelopes whose rows only the ledger's log has yet: kept, in case somebody deletes that.

They lie in ``inbox/taken/`` until the ledger file itself has all that was committed before they
came there, and go back into the inbox where the log is lost (``lost_log.py``). Taken in twice they
do no harm: an end is known by its idempotency key, and a checkpoint finds nothing new.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

from memoryd.memory.files import write_atomic
from memoryd.memory.home import Home

if TYPE_CHECKING:
    from memoryd.jobs.database import Database


def keep(envelope: Path) -> None:
    """Move an envelope that became a row out of the inbox; remove it where it cannot be kept.

    What the scanner finds in it is blotted out first. Raises ``OSError``.
    """
    from memoryd.memory.scanner import redact

    kept = envelope.parent / "taken" / envelope.name
    try:
        data = envelope.read_bytes()
        clean, secrets = redact(data.decode("utf-8", "replace"))
        if not secrets:
            envelope.replace(kept)
            return
        write_atomic(kept, clean.encode("utf-8", "replace"))
    except OSError:
        pass  # the row stands: keeping it is for a rarer fault than this one
    envelope.unlink(missing_ok=True)


def let_go(home: Home, db: Database) -> int:
    """Write the log into the ledger, and remove what was kept for its sake; how many envelopes.

    None while a reader keeps the log from being written in full. Raises ``LedgerError``,
    ``OSError``.
    """
    kept = list((home.inbox / "taken").glob("*.json"))
    if not kept:
        return 0
    busy, frames, written = db.rows("pragma wal_checkpoint(passive)")[0]
    if busy or frames != written:
        return 0
    for each in kept:
        each.unlink(missing_ok=True)
    return len(kept)


def put_back(inbox: Path) -> None:
    """Have all that is kept be taken in once more. Raises ``OSError``."""
    for each in (inbox / "taken").glob("*.json"):
        with contextlib.suppress(FileNotFoundError):  # another process was faster
            each.replace(inbox / each.name)
