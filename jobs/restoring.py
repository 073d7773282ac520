"""The way back from a database that cannot be used: put aside, never deleted, and begun again.

For the ledger the newest copy that is whole takes its place, or a new one where there is none; what
was done since is found again (``recovering.py``). The session history is begun anew; the daemon
reads again what the transcripts still say (``rebuilding.py``). The caller holds the home's lock.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from memoryd.jobs import backups, schema
from memoryd.jobs.ledger import Ledger
from memoryd.jobs.workplace import open_ledger
from memoryd.memory.clock import Clock
from memoryd.memory.config import Config
from memoryd.memory.database_files import address, companions, one_line, put_aside
from memoryd.memory.errors import (
    HistoryDamaged,
    HistoryError,
    LedgerDamaged,
    LedgerError,
    LedgerMissing,
)
from memoryd.memory.files import make_database_file, temporary_name
from memoryd.memory.home import Home


def ledger_trouble(home: Home, clock: Clock) -> LedgerError | None:
    """What is wrong with the ledger when it is read whole; None: nothing. Raises ``HomeError``."""
    ledger = Ledger(home.ledger, home.prepare(), clock)
    try:
        ledger.open(check=True)
    except LedgerError as error:
        return error
    finally:
        ledger.close()
    return None


def history_trouble(home: Home, clock: Clock) -> HistoryError | None:
    """What is wrong with the session history when it is read whole; None: nothing."""
    from memoryd.sessions.history import History

    try:
        with History(home.session_history, clock) as history:
            history.database.check()
    except HistoryError as error:
        return error
    return None


def restore_ledger(home: Home, config: Config, clock: Clock) -> Iterator[str]:
    """Put a ledger in the place of one that is damaged or gone; what was done, in lines.

    Raises ``LedgerError`` for what a copy cannot mend, ``HomeError``, ``OSError``.
    """
    trouble = ledger_trouble(home, clock)
    if isinstance(trouble, LedgerDamaged) and (moved := list(_clear_beside(home.ledger, clock))):
        yield from moved  # the ledger itself may be whole
        trouble = ledger_trouble(home, clock)
    if trouble is None:
        return
    if not isinstance(trouble, LedgerDamaged | LedgerMissing):
        raise trouble
    for old, new in put_aside(home.ledger, clock.now_ms()):
        yield f"{old} is kept as {new.name}: {trouble.message}"
    yield from _put_back(home, clock)
    ledger = open_ledger(home, config, clock, check=True)
    ledger.close()
    yield "what was done since is taken from the stores' histories; the rest is read again"


def _clear_beside(path: Path, clock: Clock) -> Iterator[str]:
    """Move aside what is no file where the log or the shared memory of a database should be."""
    for each in companions(path):
        if os.path.lexists(each) and (each.is_symlink() or not each.is_file()):
            aside = each.with_name(f"{path.name}.damaged-{clock.now_ms()}{each.name[-4:]}")
            each.rename(aside)
            yield f"{each} was no file and is kept as {aside.name}"


def _put_back(home: Home, clock: Clock) -> Iterator[str]:
    for copy in backups.copies(home.backups, clock.now_ms()):
        if trouble := _trouble_of(copy):
            yield f"{copy} cannot be used: {trouble}"
            continue
        _place(copy, home.ledger)
        yield f"{copy.name} is the ledger now"
        return
    # Without a copy that can be used the next open begins a new one; it refuses where it sees any.
    make_database_file(home.ledger)
    _begin(home.ledger)
    yield "no copy of it can be used: a new ledger is begun"


def _begin(path: Path) -> None:
    """Have an empty ledger be more than an empty file, which is taken for a lost one."""
    with contextlib.closing(sqlite3.connect(path)) as made:
        made.execute("pragma journal_mode = wal")


def _trouble_of(copy: Path) -> str:
    """Why a copy is no ledger that this memoryd can read; empty where it is one."""
    try:
        with contextlib.closing(sqlite3.connect(address(copy), uri=True)) as opened:
            found = str(opened.execute("pragma quick_check(1)").fetchone()[0])
            version = int(opened.execute("pragma user_version").fetchone()[0])
    except sqlite3.Error as error:
        return one_line(str(error))
    if found != "ok":
        return one_line(found)
    if not 0 < version <= len(schema.MIGRATIONS):
        return f"it has schema {version}, this memoryd knows {len(schema.MIGRATIONS)}"
    return ""


def _place(copy: Path, ledger: Path) -> None:
    """Have a copy be the ledger, marked as older than the memory; the copy stays. Whole or not."""
    temporary = ledger.with_name(temporary_name(ledger.name))
    try:
        shutil.copyfile(copy, temporary)
        with contextlib.closing(sqlite3.connect(temporary)) as opened:
            opened.execute("pragma journal_mode = delete")
            opened.execute(f"pragma application_id = {schema.TO_RECOVER}")
            opened.commit()
        schema.keep_copy(temporary, ledger)
    finally:
        temporary.unlink(missing_ok=True)


def restore_history(home: Home, clock: Clock) -> Iterator[str]:
    """Begin a session history anew in the place of one that is damaged; what was done, in lines.

    Raises ``HistoryError`` for what that cannot mend, ``OSError``.
    """
    trouble = history_trouble(home, clock)
    beside = partial(_clear_beside, home.session_history, clock)
    if isinstance(trouble, HistoryDamaged) and (moved := list(beside())):
        yield from moved
        trouble = history_trouble(home, clock)
    if trouble is None:
        return
    if not isinstance(trouble, HistoryDamaged):
        raise trouble
    for old, new in put_aside(home.session_history, clock.now_ms()):
        yield f"{old} is kept as {new.name}: {trouble.message}"
    yield "a new session history is begun: what the transcripts still say is read again, by and by"


def copy_where_stale(home: Home, config: Config, clock: Clock) -> Iterator[str]:
    """Copy the ledger where that was not done for a day. Raises ``LedgerError``, ``DiskFull``."""
    found = backups.copies(home.backups, clock.now_ms())
    made_ms = found[0].stat().st_mtime_ns // 1_000_000 if found else 0
    if not home.ledger.exists() or clock.now_ms() - made_ms < backups.DAY_MS:
        return
    ledger = open_ledger(home, config, clock)
    try:
        made = backups.back_up(ledger, home.backups)
    finally:
        ledger.close()
    yield f"the ledger is copied to {made}"
