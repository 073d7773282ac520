"""The way back from a database that cannot be used: put aside, never deleted, and begun again.

The ledger is made anew from its own tables where they can be read whole. Else the newest copy that
is whole takes its place, or a new one where there is none, with what can be read of the damaged one
(``salvaging.py``); what was done since is found again (``recovering.py``). The session history is
begun anew; the daemon reads again what the transcripts still say (``rebuilding.py``). The caller
holds the home's lock.
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
from memoryd.jobs.salvaging import Salvaged, salvage
from memoryd.jobs.workplace import open_ledger
from memoryd.memory.clock import Clock
from memoryd.memory.config import Config
from memoryd.memory.database_files import (
    address,
    asides,
    companions,
    lost_note,
    one_line,
    put_aside,
)
from memoryd.memory.errors import (
    HistoryDamaged,
    HistoryError,
    LedgerDamaged,
    LedgerError,
    LedgerMissing,
)
from memoryd.memory.files import (
    FILE_MODE,
    make_database_file,
    sync_directory,
    temporary_name,
    write_atomic,
)
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
    yield from _put_back(home, clock, one_line(trouble.message))
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


def _put_back(home: Home, clock: Clock, why: str) -> Iterator[str]:
    """Have a ledger stand where the damaged one did, with all that the damaged one still says.

    What is in the way is put aside first, then read: whoever had it open and was answered is in
    it (``Database.writing``). One that somebody begins meanwhile is put aside and read as well.
    """
    aside = _left_aside(home, clock)
    while True:
        for old, new in put_aside(home.ledger, clock.now_ms() + len(aside)):
            yield f"{old} is kept as {new.name}: {why}"
            if old == home.ledger and new.is_file():
                aside.append(new)
        temporary = home.ledger.with_name(temporary_name(home.ledger.name))
        try:
            said = _build(home, clock, temporary, aside)
            if _take_place(temporary, home.ledger):
                yield from said
                return
        finally:
            for each in (temporary, *companions(temporary)):
                each.unlink(missing_ok=True)


def _left_aside(home: Home, clock: Clock) -> list[Path]:
    """What a repair that was killed put aside and did not read: it is younger than any copy."""
    if os.path.lexists(home.ledger):
        return []
    aside = max((path for path in asides(home.ledger) if path.is_file()), default=None)
    copies = backups.copies(home.backups, clock.now_ms())
    if aside is None or not aside.name.rpartition("-")[2].isdigit():
        return []
    at_ms = int(aside.name.rpartition("-")[2])
    return [] if copies and copies[0].stat().st_mtime_ns // 1_000_000 > at_ms else [aside]


def _build(home: Home, clock: Clock, temporary: Path, aside: list[Path]) -> list[str]:
    """Write the ledger that loses least: from the damaged one alone where that says all, else from
    the newest copy that is whole, else a new one, with what the damaged one says."""
    taken = _salvaged(home, clock, temporary, aside)
    if aside and taken.is_whole and taken.taken:
        return ["its tables could be read whole: they are the ledger now", *taken.lines()]
    said = []
    for copy in backups.copies(home.backups, clock.now_ms()):
        if trouble := _trouble_of(copy):
            said.append(f"{copy} cannot be used: {trouble}")
            continue
        taken = _salvaged(home, clock, temporary, aside, copy)
        said.append(f"{copy.name} is the ledger now")
        break
    else:
        said.append("no copy of it can be used: a new ledger is begun")
    if aside and taken.may_have_lost_exclusions:
        _note_lost(aside[-1], taken)
    return [*said, *taken.lines()]


def _salvaged(
    home: Home, clock: Clock, temporary: Path, aside: list[Path], copy: Path | None = None
) -> Salvaged:
    """Write a ledger to ``temporary`` from ``copy``, or a new one, and take in what is aside."""
    for each in (temporary, *companions(temporary)):
        each.unlink(missing_ok=True)
    if copy is None:
        make_database_file(temporary)
        _begin(temporary)
    else:
        shutil.copyfile(copy, temporary)
        temporary.chmod(FILE_MODE)
    ledger, done = Ledger(temporary, home.uuid(), clock).open(), Salvaged()
    try:
        last_seqs = _last_seqs(home, clock) if aside else {}
        for each in aside:
            done += salvage(each, ledger, last_seqs)
        # It is older than the memory: the next open tells it what was done since.
        ledger.db.rows(f"pragma application_id = {schema.TO_RECOVER}")
        ledger.db.rows("pragma wal_checkpoint(truncate)")
    finally:
        ledger.close()
    return done


def _last_seqs(home: Home, clock: Clock) -> dict[tuple[str, str], int]:
    from memoryd.sessions.history import History

    try:
        if home.session_history.is_file():
            with History(home.session_history, clock) as history:
                return history.last_seqs()
    except HistoryError:
        pass  # the step that mends it says so; no cursor is believed without it
    return {}


def _note_lost(aside: Path, taken: Salvaged) -> None:
    """Leave word beside a file that it may have had exclusions which nobody could read."""
    write_atomic(lost_note(aside), ("\n".join(taken.lines()) + "\n").encode())


def _begin(path: Path) -> None:
    """Have an empty ledger be more than an empty file, which is taken for a lost one."""
    with contextlib.closing(sqlite3.connect(path)) as made:
        made.execute("pragma auto_vacuum = incremental")
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


def _take_place(temporary: Path, ledger: Path) -> bool:
    """Have what was written be the ledger, whole or not; False where another one stands there."""
    with contextlib.closing(sqlite3.connect(temporary)) as opened:
        opened.execute("pragma journal_mode = delete")
    with temporary.open("rb") as written:
        os.fsync(written.fileno())
    try:
        os.link(temporary, ledger)
    except FileExistsError:
        return False
    except OSError:  # a file system without links
        temporary.replace(ledger)
    sync_directory(ledger.parent)
    return True


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
