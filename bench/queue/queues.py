"""The queues that are compared, each behind the same three steps.

What a step gives for its price differs. Ours: a synced row with a key that stops a second one; a
lease, an attempt in the log, a cursor that moves with the job's end. ``SqliteHuey`` in its default
mode syncs both, and deletes a task before it runs. ``persist-queue``'s queue with acknowledgement
syncs all three of its steps. ``litequeue`` syncs none of its own.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, Protocol

from memoryd.jobs.ledger import Ledger
from memoryd.memory.clock import SystemClock
from memoryd.memory.plan import SliceRange

_FINISHED = """
with recursive number(n) as (select 1 union all select n + 1 from number where n < :rows)
insert into job (id, home, kind, idempotency_key, serial_key, agent, session, trigger, reason,
    cutoff, payload, priority, status, run_at, attempt, max_failures, outcome_code, created_at,
    updated_at, started_at, finished_at)
select printf('01700000-0000-7000-8000-%012x', n), 'home', 'finalize',
    'finalize:claude-code/' || printf('01700000-0000-7000-8000-%012x', n) || '@1000',
    'session:claude-code/old-' || n, 'claude-code', 'old-' || n, 'hook', 'end', 1000, '{}', 10,
    'completed', n, 1, 5, 'notes.written', n, n, n, n
from number
"""


class Queue(Protocol):
    """What is done with each of them."""

    def enqueue(self, number: int) -> None:
        """Add one job, known by its number."""

    def work(self) -> bool:
        """Take the next job, do nothing, and record that it is done; False where none is left."""


class Ours:
    """The ledger of a home with so many finished jobs."""

    def __init__(self, path: Path, finished: int) -> None:
        self.ledger = filled(path, finished)

    def enqueue(self, number: int) -> None:
        """As the command line and the socket do."""
        session = f"01890000-0000-7000-8000-{number:012x}"
        self.ledger.enqueue(
            "finalize",
            "claude-code",
            session,
            cutoff=1000,
            transcript=f"/home/person/.claude/projects/-code/{session}.jsonl",
            cwd="/code",
            trigger="hook",
            reason="end",
        )

    def work(self) -> bool:
        """A claim, and the advance past a session's last slice, which ends its job."""
        job = self.ledger.claim("bench")
        if job is None:
            return False
        part = SliceRange(job.agent, job.session, 1, 3)
        self.ledger.advance(job, part, outcome="notes.written")
        return True


def filled(path: Path, finished: int) -> Ledger:
    """A ledger with ``finished`` completed rows, its indexes made after them: that is faster."""
    Ledger(path, "home", SystemClock()).open().close()
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        for pragma in ("synchronous = off", "cache_size = -200000"):
            database.execute(f"pragma {pragma}")
        indexes = database.execute(
            "select name, sql from sqlite_master where type = 'index' and sql is not null"
            " and tbl_name = 'job'"
        ).fetchall()
        database.execute("begin")
        for name, _ in indexes:
            database.execute(f"drop index {name}")
        database.execute(_FINISHED, {"rows": finished})
        for _, text in indexes:
            database.execute(text)
        database.execute("commit")
        database.execute("pragma wal_checkpoint(truncate)")
    return Ledger(path, "home", SystemClock()).open()


class Huey:
    """``SqliteHuey`` in its default mode."""

    def __init__(self, path: Path) -> None:
        from huey import SqliteHuey

        self.huey = SqliteHuey("bench", filename=str(path))
        self.task: Callable[[str], Any] = self.huey.task()(_nothing)

    def enqueue(self, number: int) -> None:
        """A call of a task, with what a job must know as its argument."""
        self.task(_message(number))

    def work(self) -> bool:
        """What its consumer does."""
        task = self.huey.dequeue()
        if task is None:
            return False
        self.huey.execute(task)
        return True


class Litequeue:
    """``litequeue`` as its own documentation uses it."""

    def __init__(self, path: Path) -> None:
        from litequeue import LiteQueue

        self.queue = LiteQueue(path)

    def enqueue(self, number: int) -> None:
        """One message."""
        self.queue.put(_message(number))

    def work(self) -> bool:
        """Lock the next, and say that it is done."""
        message = self.queue.pop()
        if message is None:
            return False
        self.queue.done(message.message_id)
        return True


class PersistQueue:
    """``persist-queue``'s SQLite queue with acknowledgement."""

    def __init__(self, path: Path) -> None:
        import persistqueue

        self.queue = persistqueue.SQLiteAckQueue(str(path))
        self.empty = persistqueue.exceptions.Empty

    def enqueue(self, number: int) -> None:
        """One item."""
        self.queue.put(_message(number))

    def work(self) -> bool:
        """Take the next, and acknowledge it."""
        try:
            item = self.queue.get(block=False)
        except self.empty:
            return False
        self.queue.ack(item)
        return True


def _nothing(message: str) -> None:
    """The task huey executes."""


def _message(number: int) -> str:
    """What the others carry: as many bytes as a hook tells us."""
    session = f"01890000-0000-7000-8000-{number:012x}"
    told = {"agent": "claude-code", "session": session, "cutoff": 1000, "cwd": "/code"}
    return json.dumps(told | {"transcript": f"/home/person/.claude/projects/-code/{session}.jsonl"})
