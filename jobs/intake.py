"""From envelopes to rows: the first half of a finished session's way.

Each envelope becomes its rows in one durable transaction and is unlinked only after. A crash in
between leaves both: the idempotency key stops a second job. What cannot be read goes to
``inbox/bad/`` for a person to look at; nothing is deleted unread.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from memoryd.jobs import envelope as envelopes
from memoryd.jobs.envelope import Envelope
from memoryd.jobs.ledger import Ledger
from memoryd.memory import own_calls, seams
from memoryd.memory.errors import BadEnvelope, TranscriptBusy, TranscriptError, UsageError
from memoryd.memory.files import make_directory, sync_directory, write_atomic
from memoryd.memory.home import Home
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

#: Of a file that is no envelope, what is kept where it holds a secret.
_LOOKED_AT_BYTES = envelopes.SIZE_LIMIT_BYTES

#: Finds a session's transcript where the hook was told none: (agent, session) -> path or None.
FindTranscript = Callable[[str, str], Path | None]


@dataclass(frozen=True)
class Taken:
    """What one look into the inbox did."""

    envelopes: int
    created: int
    bad: int
    excluded: int


def take_in(home: Home, ledger: Ledger, find: FindTranscript) -> Taken:
    """Turn every envelope in the inbox into rows, oldest first.

    ``find`` is asked only where an envelope names no transcript. Raises ``OSError`` when the inbox
    itself cannot be read.
    """
    total = created = bad = excluded = 0
    for path in _waiting(home.inbox):
        total += 1
        try:
            envelope = envelopes.read(path)
            if code := _excluded(envelope):
                ledger.exclude(envelope.agent, envelope.session, code)
                excluded += 1
            else:
                created += _insert(envelope, ledger, find)
        except FileNotFoundError:
            continue  # another process took it in
        except (BadEnvelope, UsageError) as error:
            logger().warning("envelope.unreadable", file=path.name, reason=error.code)
            _set_aside(path)
            bad += 1
            continue
        except (OSError, TranscriptBusy) as error:
            # It may be fine another time, and the others must not wait for it.
            reason = error.strerror if isinstance(error, OSError) else error.code
            logger().warning("envelope.left", file=path.name, reason=reason)
            continue
        seams.reach("envelope.inserted")
        path.unlink(missing_ok=True)
    return Taken(total, created, bad, excluded)


def _excluded(envelope: Envelope) -> str:
    """Why the session is never to be distilled, as a code; empty where it may be."""
    if own_calls.VARIABLE in envelope.switches or own_calls.is_own_place(envelope.cwd or ""):
        return "session.own"
    return "session.excluded" if _KILL_SWITCHES.intersection(envelope.switches) else ""


def _waiting(inbox: Path) -> list[Path]:
    """Whole envelopes, oldest first: a name starts with the nanosecond it was made in."""
    try:
        entries = list(inbox.iterdir())
    except FileNotFoundError:
        return []
    found = [path for path in entries if path.suffix == ".json" and path.name[0] != "."]
    return sorted(found, key=lambda path: (len(path.name.split("-")[0]), path.name))


def _insert(envelope: Envelope, ledger: Ledger, find: FindTranscript) -> int:
    """Enqueue what the envelope asks for; 1 when that made a job."""
    from memoryd.sessions.agents import adapter_for

    adapter = adapter_for(envelope.agent)  # refuses an agent that nothing here can read
    kind, reason = _EVENTS[envelope.event]
    transcript = Path(envelope.transcript) if envelope.transcript else None
    if transcript is None:
        transcript = find(envelope.agent, envelope.session)
    cutoff = envelope.cutoff
    if cutoff is None:
        cutoff = _end_of(adapter, transcript, envelope.session)
    made = ledger.enqueue(
        kind,
        envelope.agent,
        envelope.session,
        cutoff=cutoff,
        transcript=str(transcript or ""),
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
