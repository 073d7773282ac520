"""What the doctor looks at in the work that goes on: workers, locks, and who keeps them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from memoryd.jobs.figures import Figures
from memoryd.jobs.looking import Look
from memoryd.memory.errors import LedgerError
from memoryd.memory.health import Finding
from memoryd.memory.holders import Holder, holders
from memoryd.memory.home import Home
from memoryd.memory.ids import short
from memoryd.memory.locks import FileLock

#: A job that a free worker could take for so long is one that nobody takes.
IDLE_MS = 60 * 1000
#: A lock that is held for so long is held by a process that hangs.
HELD_MS = 10 * 60 * 1000
#: A daemon that starts holds the lock before it listens; what lasts longer is none.
DEAF_MS = 30 * 1000
#: What a lock that is no store's is of.
_WHOSE = {"daemon": "of the home", "%inbox": "of the inbox"}
#: Where SQLite locks a ``-shm`` file for the one writer (``WALINDEX_LOCK_OFFSET`` of its format).
_WRITER_BYTE = 120


def workers(look: Look) -> Iterator[Finding]:
    """Jobs that nobody takes, though a worker is free; or that wait for a daemon."""
    now, figures = look.clock.now_ms(), Figures(look.ledger.db)
    if look.daemon is None:
        yield from _without_a_daemon(look, figures, now)
        return
    found = None if look.daemon.get("stopping_until") else figures.unclaimed_since(now)
    if found is None or not look.daemon.get("ready") or look.daemon.get("free", 0) < 1:
        return
    job, since = found
    if now - since > IDLE_MS:
        free, minutes = look.daemon["free"], (now - since) // 60_000
        what = f"job {short(job)} is ready for {minutes} minutes, and {free} workers are free"
        todo = f"restart the daemon (pid {look.daemon.get('pid')}); its log says what it did"
        yield Finding("workers.idle", "problem", what, todo)


def heard(look: Look) -> Iterator[Finding]:
    """A daemon that runs and does not answer, and what is in its socket's way."""
    socket = look.home.socket(look.environ)
    for path in (socket, socket.parent):
        if os.path.lexists(path) and path.is_dir() == (path == socket):
            what = f"{path} is in the way of the socket"
            todo = "move it elsewhere; a daemon that runs listens again by itself"
            yield Finding("socket.blocked", "problem", what, todo)
    holder, now = _deaf(look), look.clock.now_ms()
    if holder is None:
        return
    # `run --once` holds the lock and has no socket: it works.
    is_working = now - holder.since <= DEAF_MS or Figures(look.ledger.db).is_working(now)
    what = f"a daemon runs (pid {holder.pid}) and does not answer on its socket {socket}"
    todo = f"it listens anew by itself; if this stays, restart it: `ps -p {holder.pid}` shows it"
    yield Finding("daemon.deaf", "warning" if is_working else "problem", what, todo)


def _deaf(look: Look) -> Holder | None:
    """Who holds the home's lock while no daemon answers."""
    if look.daemon is not None:
        return None
    return next((each for each in holders(look.home) if each.lock == "daemon"), None)


def _without_a_daemon(look: Look, figures: Figures, now: int) -> Iterator[Finding]:
    """Jobs that wait for one, or that were in the hands of one that died."""
    jobs, since = figures.waiting_for_a_worker(now)
    renewed = figures.is_working(now) and not holder_died(look.home)
    if renewed or is_worked(look.home):
        what = "another process than a daemon works here, or one that does not answer"
        yield Finding("workers.ok", "ok", what)
        return
    said = [f"the process that worked on {left} died"] if (left := _jobs(figures.running())) else []
    if jobs and now - since > IDLE_MS:
        said.append(f"{_jobs(jobs)} ready, the first for {(now - since) // 60_000} minutes")
    if said:
        todo = "start one with `memoryd run` or `memoryd service install`: nothing is lost"
        what = f"{', '.join(said)}, and no daemon answers"
        yield Finding("daemon.absent", "warning", what, todo)
    else:
        yield Finding("workers.ok", "ok", "no daemon answers, and no job has waited for one")


def _jobs(count: int) -> str:
    return f"{count} job{'s' if count > 1 else ''}" if count else ""


def holder_died(home: Home) -> bool:
    """Whether who last worked the home died at it: the lock has a name in it and nobody holds it.

    One who leaves takes the name out.
    """
    return not is_worked(home) and FileLock(home.daemon_lock).holder() > 0


def is_worked(home: Home) -> bool:
    """Whether a process holds the home's lock."""
    return any(each.lock == "daemon" for each in holders(home))


def held_locks(look: Look) -> Iterator[Finding]:
    """Locks that a process keeps; the home's own is a running daemon's."""
    for holder in holders(look.home):
        held = look.clock.now_ms() - holder.since
        if held > HELD_MS and not (holder.lock == "daemon" and _answers(look, holder)):
            whose = _WHOSE.get(holder.lock, f"of the store {holder.lock}")
            what = f"process {holder.pid} holds the lock {whose} for {held // 60_000} minutes"
            todo = f"`ps -p {holder.pid}` shows what it is; end it if it hangs: nothing is lost"
            yield Finding("lock.held", "problem", what, todo)


def _answers(look: Look, holder: Holder) -> bool:
    return look.daemon is not None and look.daemon.get("pid") == holder.pid


def write_lock(look: Look) -> Iterator[Finding]:
    """Who keeps others from writing the ledger, as far as the system tells."""
    keepers = ledger_writers(look.home)
    if not keepers:
        return
    try:
        with look.ledger.db.writing():
            return  # it was a write like any other
    except LedgerError as error:
        pids = ", ".join(map(str, keepers))
        what = f"process {pids} keeps the ledger's write lock: {error.message}"
        todo = f"`ps -p {keepers[0]}` shows what it is; end it if it hangs: nothing is lost"
        yield Finding("ledger.locked", "problem", what, todo)


def ledger_writers(home: Home) -> list[int]:
    """The other processes that hold the ledger's write lock; none where nobody tells (macOS).

    The file is not opened: closing it would give back the locks that this process has on it.
    """
    try:
        inode = home.ledger.with_name(f"{home.ledger.name}-shm").lstat().st_ino
        table = Path("/proc/locks").read_text("ascii", errors="replace")
    except OSError:
        return []
    return sorted({pid for line in table.splitlines() if (pid := _writer(line, inode))})


def _writer(line: str, inode: int) -> int:
    """The pid in ``1: POSIX ADVISORY WRITE pid major:minor:inode first last``; 0 for another."""
    fields = line.split()
    if len(fields) != 8 or fields[1] != "POSIX" or fields[3] != "WRITE":
        return 0
    pid, place, first, last = fields[4:]
    numbers = (pid, place.rpartition(":")[2], first, last.replace("EOF", "9" * 18))
    if not all(number.isdigit() for number in numbers):
        return 0
    pid_, inode_, first_, last_ = map(int, numbers)
    ours = pid_ == os.getpid() or inode_ != inode
    return 0 if ours or not first_ <= _WRITER_BYTE <= last_ else pid_
