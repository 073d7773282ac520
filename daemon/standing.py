"""What the daemon stands on, and whether it is still there: its home, its lock, its ledger.

A file that is removed under an open database lives on for whoever has it open, and for nobody else:
the daemon would go on writing what nobody finds again. So it looks now and then, keeps what it can,
says what happened and ends. In the place of a home that was taken away it makes nothing.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from pathlib import Path

from memoryd.jobs.schema import keep_copy
from memoryd.memory import last_ran, surroundings
from memoryd.memory.clock import Clock
from memoryd.memory.database_files import address, companions
from memoryd.memory.errors import HomeGone, LedgerError, LedgerMissing, MemorydError
from memoryd.memory.files import FILE_MODE, make_directory, temporary_name
from memoryd.memory.home import Home
from memoryd.memory.locks import FileLock
from memoryd.memory.log import logger

#: Between two looks. Four looks at the file system.
STANDING_SECONDS = 10.0
#: The first bytes of a write-ahead log (sqlite.org/fileformat2.html, 4.1).
_LOG_MAGIC = (b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83")

_Identity = tuple[int, int] | None


class Standing:
    """``lost_log``, then ``begin`` once the ledger is open, ``end`` when all went well; ``trouble``
    in between. ``lock`` is the home's, once it is held."""

    def __init__(self, home: Home, clock: Clock) -> None:
        self.home = home
        self.clock = clock
        self.lock: FileLock | None = None
        self._mark = home.root / "run" / "working"
        self._root: _Identity = None
        self._files: dict[Path, _Identity] = {}
        self._connection: sqlite3.Connection | None = None

    def lost_log(self) -> bool:
        """Whether a daemon died here and the log it left is gone: the ledger may be an older one.

        Asked before the ledger is opened, which makes a new log. Another program that closed it
        meanwhile leaves none either: then nothing is lost, and asking again costs a moment.
        """
        if not self._mark.exists():
            return False
        log = companions(self.home.ledger)[0]
        try:
            with log.open("rb") as file:
                head = file.read(4)
        except OSError:
            return True
        return bool(head) and head not in _LOG_MAGIC

    def begin(self) -> None:
        """Note what is there now, and that a daemon works here. Raises ``OSError``."""
        ledger = self.home.ledger
        # Held open from now on, for what it still has when nobody finds the file any more.
        self._connection = sqlite3.connect(address(ledger), uri=True, check_same_thread=False)
        self._connection.execute("select count(*) from sqlite_master").fetchone()
        self._root = _identity(self.home.root)
        self._files = {path: _identity(path) for path in (ledger, *companions(ledger))}
        self.mark()
        former = surroundings.moved_from(self.home)
        if former is None:
            last_ran.note(self.home.root)
        elif surroundings.is_same_home(former, self.home):
            logger().warning("home.copied", former=str(former), place=str(self.home.root))
        else:
            logger().warning("home.moved", former=str(former), place=str(self.home.root))
            last_ran.note(self.home.root)

    def mark(self) -> None:
        """Say that a daemon works here, again where that was removed. Raises ``OSError``."""
        if self._mark.exists():
            return
        make_directory(self._mark.parent)
        os.close(os.open(self._mark, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, FILE_MODE))

    def end(self) -> None:
        """Close what is held; an orderly end leaves no mark."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if self._root == _identity(self.home.root):
            self._mark.unlink(missing_ok=True)

    def trouble(self) -> MemorydError | None:
        """What was taken away under the daemon, which must end then; None: nothing.

        What it still has of the ledger is kept first.
        """
        home = self.home
        if _identity(home.root) != self._root:
            return HomeGone(
                f"the home {home.root} was removed, moved or replaced under the running daemon",
                hint="put it back and start memoryd again, or `memoryd setup` begins another;"
                " nothing was made in its place",
            )
        if self.lock is not None and not self.lock.is_in_place():
            return HomeGone(
                f"the lock {home.daemon_lock} was removed under the running daemon",
                hint="start memoryd again; nobody may remove it while memoryd runs",
            )
        gone = [path for path, was in self._files.items() if _identity(path) != was]
        if not gone:
            return None
        return self._without_ledger() if gone[0] == home.ledger else self._without_log(gone[0])

    def _without_ledger(self) -> MemorydError:
        home = self.home
        is_there = home.ledger.exists()
        copy = home.backups / f"memoryd-kept-{self.clock.now_ms()}.sqlite"
        kept = f"what it held is kept as {copy}"
        temporary = copy.with_name(temporary_name(copy.name))
        try:
            make_directory(home.backups)
            self._run("vacuum into ?", str(temporary))
            keep_copy(temporary, copy)
        except (OSError, sqlite3.Error) as error:
            temporary.unlink(missing_ok=True)
            kept = f"what it held could not be kept: {error}"
        if is_there:
            return LedgerError(
                f"the ledger {home.ledger} was replaced under the running daemon; {kept}",
                hint="start memoryd again to use the one that is there, or delete it and"
                " `memoryd doctor --fix` puts that copy in its place",
            )
        return LedgerMissing(
            f"the ledger {home.ledger} was removed under the running daemon; {kept}",
            hint="`memoryd doctor --fix` puts it back",
        )

    def _without_log(self, path: Path) -> MemorydError:
        with contextlib.suppress(sqlite3.Error):  # the next start finds what is wrong then
            self._run("pragma wal_checkpoint(full)")
        return LedgerError(
            f"{path} was removed or replaced under the running daemon",
            hint="start memoryd again; it belongs to the ledger, which has what was in it",
        )

    def _run(self, text: str, *values: str) -> None:
        if self._connection is not None:
            self._connection.execute(text, values).fetchall()


def _identity(path: Path) -> _Identity:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
