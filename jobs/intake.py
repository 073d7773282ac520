"""From envelopes to rows: the first half of a finished session's way.

Envelopes become rows a few at a time, each few in one durable transaction, and leave the inbox only
after (``taken.py`` keeps them a while). A crash in between leaves both: the idempotency key stops a
second job, and an extract, which has none, finds nothing new. Whoever else looks meanwhile (the
sweep, a ring, a command) waits until the few are gone: an extract may be worked within
milliseconds, and would be made again. What cannot be read goes to ``inbox/bad/`` for a person to
look at; nothing is deleted unread. What a hook wrote and was killed before it could name it is
taken in too, once no hook can be at it any more.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from memoryd.jobs import envelope as envelopes
from memoryd.jobs.envelope import Envelope
from memoryd.jobs.ledger import Ledger
from memoryd.jobs.taken import keep
from memoryd.memory import own_calls, seams
from memoryd.memory.errors import (
    BadEnvelope,
    InboxBusy,
    LedgerError,
    MemorydError,
    TranscriptBusy,
    TranscriptError,
    UsageError,
)
from memoryd.memory.files import make_directory, sync_directory, write_atomic
from memoryd.memory.home import Home
from memoryd.memory.locks import FileLock
from memoryd.memory.log import logger

if TYPE_CHECKING:
    from memoryd.sessions.adapter import Adapter

#: Event of an agent -> kind of job and the reason that stands in its row.
_EVENTS = {
    "session-end": ("finalize", "end"),
    "stop": ("extract", "stop"),
    "pre-compact": ("extract", "compact"),
}
#: Switches of the agent's environment under which a session is never distilled.
_KILL_SWITCHES = frozenset({"MEMORYD_DISABLE", "MEMORYD_DISABLE_EXTRACTION"})

#: Envelopes that share a transaction: a thousand at once are not a thousand syncs, and whoever
#: waits for the write lock waits for milliseconds.
BATCH = 50
#: How long one that makes rows of envelopes waits for another; longer than for the write lock.
WAIT_SECONDS = 10.0
#: How long a command does, which a person waits for: the others are done within a second.
COMMAND_WAIT_SECONDS = 2.0
#: A hook is done within a second; one that left its file unnamed for so long was killed.
UNNAMED_MS = 60_000

#: Of a file that is no envelope, what is kept where it holds a secret.
_LOOKED_AT_BYTES = envelopes.SIZE_LIMIT_BYTES
#: The file a hook writes before it has its name (``cli/hook.py``).
_UNNAMED = re.compile(r"\.\d+-\d+-[0-9a-f]{8}\.json\.tmp")

#: Finds a session's transcript where the hook was told none: (agent, session) -> path or None.
FindTranscript = Callable[[str, str], Path | None]


@dataclass(frozen=True)
class Taken:
    """What one look into the inbox did."""

    envelopes: int
    created: int
    bad: int
    excluded: int


@dataclass(frozen=True)
class _Asked:
    """What one envelope asks for, with all that had to be looked up for it."""

    path: Path
    envelope: Envelope
    #: Why the session is never to be distilled; then the rest is of no interest.
    excluded: str
    transcript: str = ""
    cutoff: int = 0


def take_in(
    home: Home,
    ledger: Ledger,
    find: FindTranscript,
    *,
    set_aside: bool = True,
    wait_seconds: float = WAIT_SECONDS,
) -> Taken:
    """Turn every envelope in the inbox into rows, oldest first.

    ``find`` is asked only where an envelope names no transcript. What cannot be read stays where it
    is for whoever only looks (not ``set_aside``). Raises ``OSError`` when the inbox itself cannot
    be read, ``InboxBusy`` when another process keeps it for more than ``wait_seconds``, and
    ``LedgerError``.
    """
    _name_unnamed(home.inbox, ledger.clock.now_ms() - UNNAMED_MS)
    waiting = _waiting(home.inbox)
    created = bad = excluded = 0
    for first in range(0, len(waiting), BATCH):
        some = waiting[first : first + BATCH]
        # Transcripts are looked at before the write lock is taken.
        asked, unreadable = _read(some, find)
        seams.before("envelope.inserted")
        with _alone(home, wait_seconds) if asked else contextlib.nullcontext():
            asked = [each for each in asked if each.path.exists()]  # others were taken in meanwhile
            made, refused = _insert(ledger, asked)
            seams.reach("envelope.inserted")
            _remove(each.path for each in asked if each.path not in refused)
        for path in (*unreadable, *refused) if set_aside else ():
            _set_aside(path)
        created += made
        bad += len(unreadable) + len(refused)
        excluded += sum(1 for each in asked if each.excluded)
    return Taken(len(waiting), created, bad, excluded)


@contextlib.contextmanager
def _alone(home: Home, wait_seconds: float) -> Iterator[None]:
    """Be the only one who makes rows of envelopes, from looking whether they lie there still until
    they are gone."""
    lock = FileLock(home.inbox_lock)
    try:
        taken = lock.acquire(wait_seconds)
    except OSError as error:
        raise LedgerError(
            f"the lock {lock.path} cannot be taken: {error.strerror}",
            hint="check who owns the home and that the disk has room",
        ) from error
    if not taken:
        raise InboxBusy(
            f"the inbox is being taken in by process {lock.holder() or 'unknown'}",
            hint="try again in a moment",
        )
    with lock:
        yield


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        seams.before("envelope.removed")
        keep(path)
        seams.reach("envelope.removed")


def _read(paths: list[Path], find: FindTranscript) -> tuple[list[_Asked], list[Path]]:
    """What the envelopes ask for, and those that are none; what has to wait is in neither."""
    asked, bad = [], []
    for path in paths:
        try:
            asked.append(_look_up(path, find))
        except FileNotFoundError:
            continue  # another process took it in
        except (BadEnvelope, UsageError) as error:
            _tell_unreadable(path, error)
            bad.append(path)
        except (OSError, TranscriptBusy) as error:
            # It may be fine another time, and the others must not wait for it.
            reason = error.strerror if isinstance(error, OSError) else error.code
            logger().warning("envelope.left", file=path.name, reason=reason)
    return asked, bad


def _tell_unreadable(path: Path, error: MemorydError) -> None:
    logger().warning("envelope.unreadable", file=path.name, reason=error.code)


def _name_unnamed(inbox: Path, before_ms: int) -> None:
    """Give a whole envelope the name that its hook had no time to give; half a one is removed."""
    try:
        left = [each for each in inbox.iterdir() if _UNNAMED.fullmatch(each.name)]
    except FileNotFoundError:
        return
    for path in left:
        with contextlib.suppress(OSError):  # another process, or its hook after all, was faster
            if path.lstat().st_mtime_ns // 1_000_000 >= before_ms:
                continue
            try:
                envelopes.read(path)
            except BadEnvelope as error:
                _tell_unreadable(path, error)
                path.unlink()
                continue
            path.replace(inbox / path.name[1 : -len(".tmp")])


def _excluded(envelope: Envelope) -> str:
    """Why the session is never to be distilled, as a code; empty where it may be."""
    if own_calls.VARIABLE in envelope.switches or own_calls.is_own_place(envelope.cwd or ""):
        return "session.own"
    return "session.excluded" if _KILL_SWITCHES.intersection(envelope.switches) else ""


def is_empty(inbox: Path) -> bool:
    """Whether no envelope waits there. Raises ``OSError`` where it cannot be looked at."""
    return not _waiting(inbox)


def _waiting(inbox: Path) -> list[Path]:
    """Whole envelopes, oldest first: a name starts with the nanosecond it was made in."""
    try:
        entries = list(inbox.iterdir())
    except FileNotFoundError:
        return []
    found = [path for path in entries if path.suffix == ".json" and path.name[0] != "."]
    return sorted(found, key=lambda path: (len(path.name.split("-")[0]), path.name))


def _look_up(path: Path, find: FindTranscript) -> _Asked:
    """What the envelope in ``path`` asks for. Raises what reading it and its transcript may."""
    from memoryd.sessions.agents import adapter_for

    envelope = envelopes.read(path)
    if code := _excluded(envelope):
        return _Asked(path, envelope, code)
    adapter = adapter_for(envelope.agent)  # refuses an agent that nothing here can read
    transcript = Path(envelope.transcript) if envelope.transcript else None
    if transcript is None:
        transcript = find(envelope.agent, envelope.session)
    cutoff = envelope.cutoff
    if cutoff is None:
        cutoff = _end_of(adapter, transcript, envelope.session)
    return _Asked(path, envelope, "", str(transcript or ""), cutoff)


def _insert(ledger: Ledger, asked: list[_Asked]) -> tuple[int, list[Path]]:
    """Make the rows in one transaction: how many jobs, and which envelopes no row can hold."""
    created = 0
    refused: list[Path] = []
    if not asked:
        return created, refused
    with ledger.db.writing(durable=True):
        for each in asked:
            try:
                created += _insert_one(ledger, each)
            except UsageError as error:  # before anything of it was written
                _tell_unreadable(each.path, error)
                refused.append(each.path)
    return created, refused


def _insert_one(ledger: Ledger, asked: _Asked) -> int:
    """Enqueue what the envelope asks for; 1 when that made a job."""
    envelope = asked.envelope
    if asked.excluded:
        ledger.exclude(envelope.agent, envelope.session, asked.excluded)
        return 0
    kind, reason = _EVENTS[envelope.event]
    made = ledger.enqueue(
        kind,
        envelope.agent,
        envelope.session,
        cutoff=asked.cutoff,
        transcript=asked.transcript,
        cwd=envelope.cwd or "",
        trigger="hook",
        reason=reason,
        payload={"why": envelope.reason} if envelope.reason else {},
    )
    return int(made.created)


def _redact_file(path: Path) -> None:
    """Blot out in place what the scanner finds in the file; a link or a folder stays as it is."""
    if path.is_symlink() or not path.is_file():
        return
    try:
        with path.open("rb") as file:
            data = file.read(_LOOKED_AT_BYTES)
    except FileNotFoundError:  # another process set it aside
        return
    clean, secrets = _without_secrets(data.decode("utf-8", "replace"))
    if secrets:
        write_atomic(path, clean.encode("utf-8", "replace"))


def _without_secrets(text: str) -> tuple[str, int]:
    from memoryd.memory.scanner import redact

    return redact(text)


def _end_of(adapter: Adapter, transcript: Path | None, session: str) -> int:
    """Where the transcript ends now; 0 for one that is gone or that nothing here can read.

    Raises ``TranscriptBusy``: the envelope then waits until it can be said.
    """
    try:
        return adapter.end(transcript, session) if transcript else 0
    except TranscriptBusy:
        raise
    except TranscriptError:
        return 0


def _set_aside(path: Path) -> None:
    """Keep a file that is no envelope for a person to look at, without the secrets in it."""
    bad = path.parent / "bad"
    make_directory(bad)
    _redact_file(path)
    with contextlib.suppress(FileNotFoundError):  # another process set it aside
        path.replace(bad / _without_secrets(path.name)[0])
    sync_directory(bad)
    sync_directory(path.parent)
