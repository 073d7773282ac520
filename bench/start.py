"""A start upon thousands of stale jobs and hundreds of envelopes, beside one upon an empty home.

Each home is opened by ``memoryd run``; ``--stale`` jobs were running when their daemon died, of
sessions that are gone since, and ``--envelopes`` tell of one session each. Prints one JSON object:
seconds to READY of both, and until all was worked off. Exits 1 where a job was lost or failed.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from memoryd.daemon.client import Client
from memoryd.jobs.ledger import Ledger
from memoryd.memory.clock import SystemClock
from memoryd.memory.home import Home

PATIENCE_SECONDS = 600.0
_STALE = """
with recursive number(n) as (select 1 union all select n + 1 from number where n < :rows)
insert into job (id, home, kind, idempotency_key, serial_key, agent, session, trigger, reason,
    cutoff, payload, priority, status, run_at, attempt, max_failures, created_at, updated_at,
    started_at, lease_owner, lease_expires_at)
select printf('01700000-0000-7000-8000-%012x', n), :home, 'finalize', 'stale:' || n,
    'session:claude-code/stale-' || n, 'claude-code', 'stale-' || n, 'hook', 'end', 1000, '{}', 10,
    'running', n, 1, 5, n, n, n, 'dead', :now + 100000
from number
"""


def main() -> int:
    """Measure both starts and print the result. Returns the exit code."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--stale", type=int, default=3000)
    options.add_argument("--envelopes", type=int, default=500)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="m") as folder:
        empty, _, _ = start(Path(folder) / "empty", 0, 0)
        ready, done, counts = start(Path(folder) / "full", chosen.stale, chosen.envelopes)
    result = {
        "what": "a start",
        "stale": chosen.stale,
        "envelopes": chosen.envelopes,
        "ready_empty_s": round(empty, 2),
        "ready_s": round(ready, 2),
        "worked_off_s": round(done, 1),
        "jobs": counts,
    }
    sys.stdout.write(json.dumps(result) + "\n")
    return 0 if counts == {"completed": chosen.stale + chosen.envelopes} else 1


def start(root: Path, stale: int, envelopes: int) -> tuple[float, float, dict[str, int]]:
    """Seconds to READY, seconds until the queue rests, and the jobs by status then."""
    home = Home(root / "home")
    root.mkdir()
    if stale:
        fill(home, stale)
    for number in range(envelopes):
        drop(home, root, number)
    address = root / "notify"
    environ = {**os.environ, "HOME": str(root), "MEMORYD_HOME": str(home.root)}
    command = [sys.executable, "-m", "memoryd.cli.main", "run"]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notified:
        notified.bind(str(address))
        notified.settimeout(PATIENCE_SECONDS)
        began = time.perf_counter()
        with (root / "log").open("wb") as log:
            daemon = subprocess.Popen(
                command, env=environ | {"NOTIFY_SOCKET": str(address)}, stderr=log, cwd=root
            )
        while b"READY=1" not in notified.recv(4096):
            pass
        ready = time.perf_counter() - began
        rested, counts = False, {}
        while not rested or sum(counts.values()) < stale + envelopes:
            rested = bool(Client(home.socket(environ)).wait(None, PATIENCE_SECONDS))
            counts = counts_of(home)
        done = time.perf_counter() - began
        daemon.send_signal(signal.SIGTERM)
        daemon.wait()
    return ready, done, counts


def fill(home: Home, stale: int) -> None:
    """A ledger whose daemon died with all of these running."""
    identity = home.prepare()
    ledger = Ledger(home.ledger, identity, SystemClock()).open()
    with ledger.db.writing():
        ledger.db.change(_STALE, rows=stale, home=identity, now=ledger.clock.now_ms())
    ledger.close()


def drop(home: Home, root: Path, number: int) -> None:
    """The envelope of a session of two messages."""
    home.prepare()
    session, project = f"e-{number}", root / "code"
    project.mkdir(exist_ok=True)
    transcript = root / f"{session}.jsonl"
    asked = {"role": "user", "content": f"Please remember that I prefer tabs, take {number}."}
    line = {"type": "user", "message": asked, "cwd": str(project), "sessionId": session}
    line |= {"uuid": f"{number:08d}-0000-4000-8000-000000000000"}
    transcript.write_text(json.dumps(line | {"timestamp": "2026-01-05T09:00:00.000Z"}) + "\n")
    said = {"version": 1, "agent": "claude-code", "event": "session-end", "session": session}
    said |= {"transcript": str(transcript), "cwd": str(project), "reason": "other"}
    said |= {"cutoff": transcript.stat().st_size, "time_ms": 1_767_603_600_000, "switches": []}
    (home.inbox / f"{number + 1}-{session}.json").write_text(json.dumps(said))


def counts_of(home: Home) -> dict[str, int]:
    """The jobs by status."""
    ledger = Ledger(home.ledger, home.prepare(), SystemClock()).open()
    try:
        return ledger.records.counts()
    finally:
        ledger.close()


if __name__ == "__main__":
    raise SystemExit(main())
