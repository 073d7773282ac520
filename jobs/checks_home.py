"""What the doctor looks at around the queue: the home, its disk, its databases and their copies."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from memoryd.jobs import lost_log
from memoryd.jobs.backups import DAY_MS, copies
from memoryd.jobs.looking import Look
from memoryd.memory import surroundings
from memoryd.memory.clock import iso
from memoryd.memory.database_files import asides, lost_note
from memoryd.memory.errors import MemorydError
from memoryd.memory.health import Finding
from memoryd.memory.home import Home

#: Copies of the ledger are made daily; a newest one that is older is named.
STALE_COPY_MS = 3 * DAY_MS
#: A clock that is so far from what the ledger was written at is named.
BEHIND_MS = DAY_MS
AHEAD_MS = 5 * 365 * DAY_MS
#: No memoryd ran before: 2025-01-01.
_EARLIEST_MS = 1_735_689_600_000


def modes(look: Look) -> Iterator[Finding]:
    """Permissions and owners that are not as was promised."""
    key = look.config.provider.api_key_file
    yield from surroundings.folders(look.home)
    yield from surroundings.owners(look.home)
    yield from surroundings.modes(look.home, *([Path(key).expanduser()] if key else []))


def disk(look: Look) -> Iterator[Finding]:
    """A disk that has no room, or is not to be written."""
    yield from surroundings.disk(look.home)


def place(look: Look) -> Iterator[Finding]:
    """A home that was moved or copied."""
    yield from surroundings.standing(look.home)


def words(look: Look) -> Iterator[Finding]:
    """A session history that cannot be used."""
    if look.history is None:
        yield Finding("words.ok", "ok", "there is no session history yet")


def copied(look: Look) -> Iterator[Finding]:
    """A ledger that has no copy of these days, and what was put aside."""
    now_ms, home = look.clock.now_ms(), look.home
    found = copies(home.backups, now_ms)
    since = found[0] if found else home.identity
    age_ms = now_ms - since.stat().st_mtime_ns // 1_000_000
    if age_ms > STALE_COPY_MS:
        days = age_ms // DAY_MS
        what = f"the newest copy of the ledger is {days} days old" if found else "no copy yet"
        todo = "the daemon makes one a day; `memoryd doctor --fix` makes one now"
        yield Finding("backup.stale", "warning", f"{home.backups}: {what}", todo)
    elif not found:
        what = "there is no copy of the ledger yet: the daemon makes the first"
        yield Finding("backups.ok", "ok", what)
    yield from _aside(home)


def log(look: Look) -> Iterator[Finding]:
    """A log of the ledger that was lost, until a person has looked."""
    # Opening it may be what notices; where it cannot be opened, another check says so.
    with contextlib.suppress(MemorydError):
        _ = look.ledger
    ledger = look.home.ledger
    since = lost_log.since(ledger)
    if since is not None:
        what = (
            f"the log {ledger.name}-wal was taken away after memoryd had ended uncleanly: what was"
            f" written to the ledger since {since} may be missing"
        )
        todo = (
            "what hooks told is taken in again; `memoryd enqueue` for what you had enqueued"
            f" yourself from elsewhere; then delete {lost_log.note(ledger)}"
        )
        yield Finding("log.lost", "warning", what, todo)


def _aside(home: Home) -> Iterator[Finding]:
    """One finding for a database and what belongs to it, also where that is all there is."""
    sets: dict[str, list[str]] = {}
    for path in sorted(home.root.glob("*.sqlite.damaged-*")):
        first = path.name.removesuffix("-wal").removesuffix("-shm").removesuffix("-lost")
        sets.setdefault(first, []).append(path.name)
    for names in sets.values():
        what = f"{home.root / names[0]}{''.join(f' and {each}' for each in names[1:])}"
        todo = "delete what you do not miss"
        yield Finding("database.aside", "warning", f"{what}: put aside", todo)
    for path in asides(home.ledger):
        if lost_note(path).exists():
            what = f"not all that was excluded could be read in {path}: it may be read now"
            todo = f"`memoryd sessions forget` for what must not be; then delete {lost_note(path)}"
            yield Finding("exclusions.lost", "warning", what, todo)


def clock(look: Look) -> Iterator[Finding]:
    """A clock that cannot be right: before memoryd was made, or far from what the ledger says."""
    now_ms = look.clock.now_ms()
    written_ms = int(look.ledger.db.rows("select max(updated_at) from job")[0][0] or 0)
    is_behind = now_ms < max(_EARLIEST_MS, written_ms - BEHIND_MS)
    if is_behind or (written_ms and now_ms > written_ms + AHEAD_MS):
        against = f"; the ledger was last written at {iso(written_ms)}" if written_ms else ""
        what = f"the clock says {iso(now_ms)}{against}"
        yield Finding("clock.off", "problem", what, "set the clock: nothing is lost meanwhile")
