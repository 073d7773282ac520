"""Claim and advance at 1,000 and at 1,000,000 finished rows, beside huey's dequeue and execute.

Three queues are worked in turn, one job each a round, on the same disk: our ledger with few
finished rows, our ledger with many, and ``SqliteHuey`` in its default mode. A job of ours is
claimed, records no plan, advances the cursor and completes; a task of huey's does nothing. Prints
one JSON object: medians in microseconds and the two ratios.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

from huey import SqliteHuey

from memoryd.jobs.ledger import Ledger
from memoryd.memory.clock import SystemClock
from memoryd.memory.plan import SliceRange

BUDGET_RATIO = 1.5
WARM_UP = 100
_FINISHED = """
with recursive number(n) as (select 1 union all select n + 1 from number where n < :rows)
insert into job (id, home, kind, idempotency_key, serial_key, agent, session, trigger, reason,
    cutoff, payload, priority, status, run_at, attempt, max_failures, outcome_code, created_at,
    updated_at, started_at, finished_at)
select printf('01700000-0000-7000-8000-%012x', n), 'home', 'finalize', 'old:' || n,
    'session:claude-code/old-' || n, 'claude-code', 'old-' || n, 'hook', 'end', 1000, '{}', 10,
    'completed', n, 1, 5, 'session.distilled', n, n, n, n
from number
"""


def main() -> int:
    """Measure ``--runs`` rounds and print the result. Returns the exit code."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--runs", type=int, default=3000)
    options.add_argument("--few", type=int, default=1000)
    options.add_argument("--many", type=int, default=1_000_000)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        few, many, huey = measure(Path(folder), chosen.runs, chosen.few, chosen.many)
    result = {
        "what": "claim and advance",
        "runs": chosen.runs,
        f"at_{chosen.few}_us": round(few, 1),
        f"at_{chosen.many}_us": round(many, 1),
        "ratio": round(many / few, 3),
        "budget_ratio": BUDGET_RATIO,
        "huey_us": round(huey, 1),
        "times_faster_than_huey": round(huey / many, 3),
    }
    sys.stdout.write(json.dumps(result) + "\n")
    return 0


def measure(folder: Path, runs: int, few: int, many: int) -> tuple[float, float, float]:
    """Median microseconds a job: few finished rows, many finished rows, huey."""
    rounds = runs + WARM_UP
    ledgers = [filled(folder / f"{rows}.sqlite", rows, rounds) for rows in (few, many)]
    huey = SqliteHuey("bench", filename=str(folder / "huey.sqlite"))
    nothing = huey.task()(_nothing)
    for _ in range(rounds):
        nothing()
    times = [(work(ledgers[0]), work(ledgers[1]), execute(huey)) for _ in range(rounds)]
    for ledger in ledgers:
        ledger.close()
    first, second, third = zip(*times[WARM_UP:], strict=True)
    return statistics.median(first), statistics.median(second), statistics.median(third)


def _nothing() -> None:
    """The task huey executes."""


def filled(path: Path, finished: int, waiting: int) -> Ledger:
    """A ledger with ``finished`` completed rows and ``waiting`` jobs of as many sessions."""
    ledger = Ledger(path, "home", SystemClock()).open()
    with ledger.db.writing():
        ledger.db.change(_FINISHED, rows=finished)
    with ledger.db.writing(durable=True):
        for number in range(waiting):
            ledger.enqueue(
                "finalize",
                "claude-code",
                f"new-{number}",
                cutoff=1000,
                transcript=f"/transcripts/{number}.jsonl",
                cwd="/code",
                trigger="hook",
            )
    ledger.db.rows("pragma wal_checkpoint(truncate)")
    return ledger


def work(ledger: Ledger) -> float:
    """Microseconds of one job of ours, from claim to completed."""
    started = time.perf_counter()
    job = ledger.claim("bench")
    if job is None:
        raise SystemExit("the queue ran dry")
    ledger.advance(job, SliceRange(job.agent, job.session, 1, 3), outcome="session.distilled")
    return (time.perf_counter() - started) * 1e6


def execute(huey: SqliteHuey) -> float:
    """Microseconds of one task of huey's, from dequeue to done."""
    started = time.perf_counter()
    task = huey.dequeue()
    if task is None:
        raise SystemExit("huey's queue ran dry")
    huey.execute(task)
    return (time.perf_counter() - started) * 1e6


if __name__ == "__main__":
    raise SystemExit(main())
