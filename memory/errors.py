"""Every error memoryd raises on purpose, in one tree.

::

    MemorydError                      a message for a person, and a hint: what to do next
    ├── BadEnvelope                   an envelope that cannot be read: it goes to inbox/bad
    ├── UsageError                    the request names nothing that exists, or two things at once
    ├── ConfigError                   the configuration cannot be used (``run`` exits 78)
    ├── HomeError                     the home cannot be made, read or written
    │   ├── HomeLocked                another process holds the home's lock
    │   ├── HomeForeign               it is another user's
    │   └── HomeGone                  it went away under the daemon (``run`` exits 78)
    ├── IntegrationError              an agent's settings cannot be read or edited
    ├── ServiceError                  systemd or launchd refused, failed or is missing
    ├── LedgerError                   the ledger cannot be used
    │   ├── LedgerDamaged             what stands in its place is no whole ledger
    │   ├── LedgerMissing             there was one: its backups are there and it is not
    │   ├── LedgerNewer               a newer memoryd wrote it
    │   └── LedgerNetworked           its home lies on a network file system
    ├── HistoryError                  the session history cannot be used
    │   ├── HistoryDamaged            what stands in its place is no whole session history
    │   └── HistoryNewer              a newer memoryd wrote it
    ├── StoreError                    a store of markdown cannot be used
    │   ├── StoreBusy                 its writer lock is held elsewhere: snooze
    │   ├── StoreHeld                 a mass disappearance, held until a person decides
    │   │   ├── StoreDetached         its history has something else checked out: snooze
    │   │   └── BaselineMissing       its history is gone: snooze
    │   ├── DiskFull                  no room, or no quota, to write: snooze
    │   ├── NoteError                 one file is not a note we may rewrite
    │   ├── BaselineError             git refused or failed
    │   │   ├── BaselineLocked        a git is at work there, or one died: snooze
    │   │   └── BaselineUnusable      git is missing or the repository damaged: snooze
    │   └── UndoConflict              what undo would restore was changed since
    ├── TranscriptError               a transcript cannot be read
    │   ├── TranscriptGone            it is not there any more
    │   ├── TranscriptBusy            its agent holds the database it is in: snooze
    │   └── TranscriptForeign         nothing in it is its agent's: the job fails at once
    ├── ProviderError                 the provider did not answer
    │   ├── ProviderUnavailable       no connection, timeout, 5xx: snooze, costs no failure
    │   ├── ProviderLimited           429, quota, budget spent: snooze until ``until_ms``
    │   ├── ProviderPermanent         bad credentials, unknown model: the provider's queue stops
    │   └── BadAnswer                 an answer that is no answer: a failure
    ├── PlanUnreadable                what a slice is to become cannot be read: it is read again
    ├── CursorUnreadable              how far a session was distilled cannot be read: its jobs wait
    └── LeaseLost                     another attempt owns the job now: stop, record nothing
"""

from __future__ import annotations


class MemorydError(Exception):
    """A fault that a person or the retry policy can act on.

    ``message`` is one line that says what is wrong; ``hint`` says what to do next and may be empty.
    ``code`` is the operational code kept in the ledger (``[a-z0-9][a-z0-9._-]{0,79}``).
    """

    code = "error"

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class UsageError(MemorydError):
    """The request names nothing that exists, or more than one thing."""

    code = "usage"


class BadEnvelope(MemorydError):
    """A file in the inbox that is no envelope we know. Kept in ``inbox/bad`` for a person."""

    code = "envelope.unreadable"


class ConfigError(MemorydError):
    """The configuration cannot be used. ``problems`` lists every fault found, one line each."""

    code = "config.unusable"

    def __init__(self, message: str, *, hint: str = "", problems: tuple[str, ...] = ()) -> None:
        super().__init__(message, hint=hint)
        self.problems = problems


class HomeError(MemorydError):
    """The home directory cannot be made, read or written."""

    code = "home.unusable"


class HomeLocked(HomeError):
    """Another process holds the home's lock. ``pid`` is what it wrote there, 0 if unreadable."""

    code = "home.locked"

    def __init__(self, message: str, *, hint: str = "", pid: int = 0) -> None:
        super().__init__(message, hint=hint)
        self.pid = pid


class HomeForeign(HomeError):
    """The home belongs to another user: what we made in it would be none of theirs."""

    code = "home.foreign"


class HomeGone(HomeError):
    """The home was removed, moved or replaced while a daemon worked it."""

    code = "home.gone"


class ServiceError(MemorydError):
    """The service file or the program that manages services (systemd, launchd) cannot be used."""

    code = "service.failed"


class IntegrationError(MemorydError):
    """The settings of an agent cannot be read, understood or edited. They are left as they are."""

    code = "integration.failed"


class LedgerError(MemorydError):
    """The ledger is damaged, from a newer version, or cannot be opened."""

    code = "ledger.unusable"


class InboxBusy(LedgerError):
    """Another process makes rows of what lies in the inbox, and does not come to an end."""

    code = "inbox.busy"


class LedgerDamaged(LedgerError):
    """What stands in the ledger's place is no whole ledger."""

    code = "ledger.damaged"


class LedgerMissing(LedgerError):
    """There was a ledger, as its backups say, and it is gone or empty."""

    code = "ledger.missing"


class LedgerNewer(LedgerError):
    """A newer memoryd laid the ledger out."""

    code = "ledger.newer"


class LedgerNetworked(LedgerError):
    """The ledger lies on a network file system, where SQLite's log cannot work."""

    code = "home.network"


class HistoryError(MemorydError):
    """The session history is damaged, from a newer version, or cannot be opened."""

    code = "history.unusable"


class HistoryDamaged(HistoryError):
    """What stands in the session history's place is no whole session history."""

    code = "history.damaged"


class HistoryNewer(HistoryError):
    """A newer memoryd laid the session history out."""

    code = "history.newer"


class StoreError(MemorydError):
    """A store of markdown cannot be used."""

    code = "store.unusable"


class StoreBusy(StoreError):
    """The store's writer lock is held by another process."""

    code = "store.busy"


class StoreHeld(StoreError):
    """Too many notes vanished at once; nothing is written until a person has looked."""

    code = "store.held"


class StoreDetached(StoreHeld):
    """A person has another branch or an old commit checked out in the store, until they end it."""

    code = "store.detached"


class BaselineMissing(StoreHeld):
    """The history there was is gone; nothing is written until a person has put it back."""

    code = "baseline.missing"


#: What a job waits for that a person's hand ends, whenever that is.
HELD_CODES = (StoreHeld.code, StoreDetached.code, BaselineMissing.code)


class DiskFull(StoreError):
    """The disk, or the person's share of it, has no room left."""

    code = "disk.full"


class NoteError(StoreError):
    """A file whose header could not be parsed. Such a file is never written by us."""

    code = "note.unreadable"


class BaselineError(StoreError):
    """git refused or failed."""

    code = "baseline.failed"


class BaselineLocked(BaselineError):
    """A lock file stands in the way: another git is at work, or one died. No job's fault."""

    code = "baseline.locked"


class BaselineUnusable(BaselineError):
    """git is missing, too old or killed at its limit, or the repository is damaged.

    No job's fault: whoever meets it waits until a person has mended what ``hint`` names.
    """

    code = "baseline.unusable"


class UndoConflict(StoreError):
    """A file that undo would restore has been changed since. Nothing was done."""

    code = "undo.conflict"


class TranscriptError(MemorydError):
    """A transcript cannot be read."""

    code = "transcript.unreadable"


class TranscriptGone(TranscriptError):
    """The transcript is not there any more."""

    code = "transcript.gone"


class TranscriptBusy(TranscriptError):
    """The agent holds the database its transcripts are in; another time will do."""

    code = "transcript.busy"


class TranscriptForeign(TranscriptError):
    """Not one line of it is what its agent writes: another agent's, or no transcript at all."""

    code = "transcript.foreign"


class ProviderError(MemorydError):
    """The provider did not give an answer. See the four kinds below.

    ``free`` says that nothing can have been spent on the call: it was never read, or was refused.
    """

    code = "provider.failed"
    free = False


class ProviderUnavailable(ProviderError):
    """No connection, timeout, 408, 5xx or 529: the job snoozes, no failure is counted."""

    code = "provider.unavailable"

    def __init__(self, message: str, *, hint: str = "", free: bool = False) -> None:
        super().__init__(message, hint=hint)
        self.free = free


class ProviderLimited(ProviderError):
    """429, quota or budget. ``until_ms`` is the wall time (ms) it lifts, None when unknown."""

    code = "provider.limited"
    free = True

    def __init__(self, message: str, *, hint: str = "", until_ms: int | None = None) -> None:
        super().__init__(message, hint=hint)
        self.until_ms = until_ms


class ProviderPermanent(ProviderError):
    """Bad credentials or an unknown model: asking again cannot help."""

    code = "provider.permanent"
    free = True


class BadAnswer(ProviderError):
    """The whole answer was unusable, the corrective retry included."""

    code = "answer.unusable"


class PlanUnreadable(MemorydError):
    """What stands as a plan in the ledger is none."""

    code = "plan.unreadable"


class CursorUnreadable(MemorydError):
    """How far a session was distilled cannot be read in the ledger."""

    code = "cursor.unreadable"


class LeaseLost(MemorydError):
    """The fence refused: job, attempt and status no longer match. Never logged as an error."""

    code = "lease.lost"
