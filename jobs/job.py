"""A job as the ledger keeps it, and the fixed properties of each kind."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from memoryd.memory.text import without_surrogates

Status = Literal["pending", "running", "completed", "failed", "cancelled"]
KindName = Literal["finalize", "extract", "consolidate", "backfill"]

#: Operational codes: outcomes, errors, reasons to wait. Never free text.
CODE = re.compile(r"[a-z0-9][a-z0-9._-]{0,79}")

#: What each status means and who moves a job out of it.
STATUSES: dict[Status, str] = {
    "pending": "waits for a worker; with failures it is retrying, snoozed it is waiting",
    "running": "a worker holds its lease",
    "completed": "done; the outcome code says what came of it; pruned past retention",
    "failed": "gave up after its failures; stays until a person retries or prunes it",
    "cancelled": "called off by a person, an exclusion or a merge; pruned past retention",
}


@dataclass(frozen=True)
class Kind:
    """What a kind of job may take."""

    name: KindName
    #: Smaller runs first.
    priority: int
    #: Failures of its own after which the job is given up.
    max_failures: int
    #: Seconds of the monotonic clock one slice, or one consolidation, may take.
    limit_seconds: float
    #: What it works on, and what one at a time may run for.
    about: Literal["session", "store", "archived session"] = "session"


KINDS: dict[str, Kind] = {
    "finalize": Kind("finalize", priority=10, max_failures=5, limit_seconds=600),
    "extract": Kind("extract", priority=20, max_failures=3, limit_seconds=600),
    "consolidate": Kind(
        "consolidate", priority=40, max_failures=3, limit_seconds=900, about="store"
    ),
    "backfill": Kind(
        "backfill", priority=50, max_failures=3, limit_seconds=600, about="archived session"
    ),
}


class Job(NamedTuple):
    """One row of the table ``job``. Times are wall milliseconds; ``cutoff`` is bytes.

    A tuple, for each claim and each request makes one: a frozen dataclass takes ten times as long.
    """

    id: str
    home: str
    kind: str
    idempotency_key: str | None
    serial_key: str
    #: Project key once ingestion has found it, else None.
    project: str | None
    agent: str
    session: str
    #: Who made the job: ``hook``, ``sweep``, ``cli``, ``archive``.
    trigger: str
    #: The agent's own word for why (``other``, ``clear``, ``stop`` ...), a code.
    reason: str
    #: Bytes of whole lines the job may read.
    cutoff: int
    #: Small JSON object; never transcript text.
    payload: str
    priority: int
    status: Status
    run_at: int
    #: Why a snoozed job waits, None when it does not.
    wait_reason: str | None
    #: Ordinal of the last claim. With ``id`` it is the fencing token.
    attempt: int
    #: Attempts that ended badly by the job's own fault, crashes included.
    failures: int
    #: How many of the failures were attempts that died with their process.
    crashes: int
    max_failures: int
    #: Snoozes in a row since the job last got anywhere.
    snoozes: int
    #: The slice being worked (``seq``, inclusive), for ``retry --skip``.
    slice_first: int | None
    slice_last: int | None
    lease_owner: str | None
    lease_expires_at: int | None
    outcome_code: str | None
    error_code: str | None
    #: Bounded and redacted.
    error_detail: str | None
    created_at: int
    updated_at: int
    started_at: int | None
    finished_at: int | None

    @property
    def shown_status(self) -> str:
        """The status in a person's words: ``retrying`` and ``waiting`` are kinds of pending."""
        if self.status == "pending" and self.wait_reason is not None:
            return "waiting"
        if self.status == "pending" and self.failures:
            return "retrying"
        return self.status

    @property
    def at_rest(self) -> bool:
        """Whether nothing happens to it by itself soon: finished, waiting, or to be retried."""
        if self.status == "pending":
            return self.wait_reason is not None or self.failures > 0
        return self.status != "running"


#: Columns of ``job`` in the order of ``Job``, for every ``select`` and ``returning``.
COLUMNS = ", ".join(Job._fields)


def job_from_row(row: tuple[Any, ...]) -> Job:
    """A ``Job`` from a row selected as ``COLUMNS``."""
    return Job._make(row)


#: What a row has that was just made, by column; ``None`` stands in all that are not named here.
_NEW: dict[str, object] = {
    "status": "pending",
    "attempt": 0,
    "failures": 0,
    "crashes": 0,
    "snoozes": 0,
}


def new_job(values: Mapping[str, object]) -> Job:
    """The row that an insert of ``values`` made, without reading its 32 columns back.

    ``now`` among them is when it was made and when it is due.
    """
    now = values["now"]
    made = {**_NEW, **values, "run_at": now, "created_at": now, "updated_at": now}
    return job_from_row(tuple(map(made.get, Job._fields)))


#: Longest name or path that a row holds.
TEXT_CHARACTERS = 4096


def is_keepable(*texts: str) -> bool:
    """Whether a row can hold these names and paths: not too long, valid UTF-8, no NUL."""
    return all(map(_is_keepable, texts))


def _is_keepable(text: str) -> bool:
    if len(text) > TEXT_CHARACTERS or "\0" in text:
        return False
    return text.isascii() or text == without_surrogates(text)


@lru_cache(maxsize=1024)
def check_code(code: str) -> str:
    """``code`` itself. Raises ``ValueError`` when it is not an operational code."""
    if not CODE.fullmatch(code):
        raise ValueError(f"not an operational code: {code[:100]!r}")
    return code


def serial_key(agent: str, session: str) -> str:
    """What at most one running job may hold: one session's words are read by one at a time."""
    return f"session:{agent}/{session}"


def store_key(store: str) -> str:
    """The same for work on a whole store, by the store's key."""
    return f"store:{store}"
