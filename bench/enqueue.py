"""Enqueue in this process against one raw durable commit of the same row.

Runs the two in turn on the same disk, so that its moods hit both, and prints one JSON object:
medians in microseconds, their ratio and the budget. The raw commit is what any durable queue must
pay: ``begin immediate``, one insert, ``commit``, WAL, synchronous=FULL, prepared by ``sqlite3``.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import statistics
import sys
import tempfile
import time
from pathlib import Path

from memoryd.jobs.ledger import Ledger
from memoryd.jobs.schema import MIGRATIONS
from memoryd.memory.clock import SystemClock

BUDGET_RATIO = 1.5
WARM_UP = 100
_INSERT = """
insert into job (id, home, kind, idempotency_key, serial_key, agent, session, trigger, reason,
    cutoff, payload, priority, status, run_at, max_failures, created_at, updated_at)
values (?, 'home', 'finalize', ?, ?, 'claude-code', ?, 'hook', 'end',
    1000, '{}', 10, 'pending', 0, 5, 0, 0)
"""


def main() -> int:
    """Measure ``--runs`` pairs and print the result. Returns the exit code."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--runs", type=int, default=3000)
    options.add_argument("--folder", help="where the two files are made; default: a temp folder")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory(dir=chosen.folder) as folder:
        raw, ours = measure(Path(folder), chosen.runs)
    result = {
        "what": "enqueue in process, durable",
        "runs": chosen.runs,
        "raw_commit_us": round(raw, 1),
        "enqueue_us": round(ours, 1),
        "ratio": round(ours / raw, 3),
        "budget_ratio": BUDGET_RATIO,
    }
    sys.stdout.write(json.dumps(result) + "\n")
    return 0


def measure(folder: Path, runs: int) -> tuple[float, float]:
    """Median microseconds of a raw commit and of ``Ledger.enqueue``, run in turn."""
    ledger = Ledger(folder / "ours.sqlite", "home", SystemClock()).open()
    plain = sqlite3.connect(folder / "raw.sqlite", isolation_level=None)
    plain.executescript(f"pragma journal_mode = wal; {MIGRATIONS[0]}")
    plain.execute("pragma synchronous = full")
    raw, ours = [], []
    for number in range(runs + WARM_UP):
        session = f"01890000-0000-7000-8000-{number:012d}"
        raw.append(commit(plain, session))
        ours.append(enqueue(ledger, session))
    plain.close()
    ledger.close()
    return statistics.median(raw[WARM_UP:]), statistics.median(ours[WARM_UP:])


def commit(plain: sqlite3.Connection, session: str) -> float:
    """Microseconds of one raw durable insert."""
    started = time.perf_counter()
    plain.execute("begin immediate")
    plain.execute(_INSERT, (session, f"finalize:{session}", f"session:{session}", session))
    plain.execute("commit")
    return (time.perf_counter() - started) * 1e6


def enqueue(ledger: Ledger, session: str) -> float:
    """Microseconds of one ``Ledger.enqueue``."""
    started = time.perf_counter()
    ledger.enqueue(
        "finalize",
        "claude-code",
        session,
        cutoff=1000,
        transcript=f"/home/person/.claude/projects/-code/{session}.jsonl",
        cwd="/code",
        trigger="hook",
        reason="end",
    )
    return (time.perf_counter() - started) * 1e6


if __name__ == "__main__":
    raise SystemExit(main())
