"""Many hooks at once while no daemon runs, then what a start makes of them.

``--hooks`` processes of the installed hook are started as fast as this one can, each with the end
of a session of its own. Every one must exit with 0 and leave its envelope; then the inbox is taken
in as a starting daemon does. Prints one JSON object and exits 1 where anything was lost: the
promise, not the time, is what is checked.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path

from memoryd.jobs.intake import take_in
from memoryd.jobs.ledger import Ledger
from memoryd.memory.clock import SystemClock
from memoryd.memory.home import Home

_HOOK = Path(sys.executable).with_name("memoryd-hook")


def main() -> int:
    """Start ``--hooks`` hooks and count what they left. Returns the exit code."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--hooks", type=int, default=500)
    hooks = options.parse_args().hooks
    with tempfile.TemporaryDirectory() as folder:
        result = measure(Path(folder), hooks)
    sys.stdout.write(json.dumps(result) + "\n")
    kept = result["envelopes"] == result["jobs"] == hooks and result["exited_0"] == hooks
    return 0 if kept else 1


def measure(folder: Path, hooks: int) -> dict[str, object]:
    """What ``hooks`` hooks at once leave in a new home, and how long each took from its start."""
    home = Home(folder / "home")
    transcript = folder / "transcript.jsonl"
    transcript.write_text('{"type":"user","text":"hello"}\n' * 2_000 + '{"half')
    environ = {**os.environ, "MEMORYD_HOME": str(home.root)}
    seconds, codes = _run_all(hooks, transcript, environ)
    envelopes = len(list(home.inbox.glob("*.json")))
    left = sorted(path.name for path in home.inbox.glob(".*.tmp"))
    ledger = Ledger(home.ledger, home.prepare(), SystemClock()).open()
    started = time.perf_counter()
    taken = take_in(home, ledger, lambda agent, session: None)
    took = time.perf_counter() - started
    jobs = ledger.records.counts().get("pending", 0)
    ledger.close()
    errors = home.logs / "hook-errors.log"
    return {
        "what": "hooks at once, no daemon running",
        "hooks": hooks,
        "exited_0": codes.count(0),
        "envelopes": envelopes,
        "unfinished_files": len(left),
        "said_late": len(errors.read_text().splitlines()) if errors.exists() else 0,
        "median_s": round(sorted(seconds)[hooks // 2], 3),
        "slowest_s": round(max(seconds), 3),
        "taken_in": taken.envelopes,
        "jobs": jobs,
        "intake_s": round(took, 3),
    }


def _run_all(
    hooks: int, transcript: Path, environ: dict[str, str]
) -> tuple[list[float], list[int]]:
    """Seconds from start to exit of each, and the exit codes, in the order of their ends."""
    started: dict[int, float] = {}
    seconds, codes, group = [], [], 0
    for number in range(hooks):
        said = json.dumps(
            {
                "session_id": f"01234567-89ab-7def-8123-{number:012d}",
                "transcript_path": str(transcript),
                "cwd": str(transcript.parent),
                "hook_event_name": "SessionEnd",
                "reason": "other",
            }
        ).encode()
        reading, writing = os.pipe()
        os.write(writing, said)
        os.close(writing)
        began = time.perf_counter()
        command = [str(_HOOK), "claude-code", "session-end"]
        actions = [(os.POSIX_SPAWN_DUP2, reading, 0)]
        # A group of their own: whoever runs this may have other children.
        pid = os.posix_spawn(command[0], command, environ, file_actions=actions, setpgroup=group)
        started[pid], group = began, group or pid
        os.close(reading)
    while started:
        pid, status = os.waitpid(-group, 0)
        seconds.append(time.perf_counter() - started.pop(pid))
        codes.append(os.waitstatus_to_exitcode(status))
    return seconds, codes


if __name__ == "__main__":
    raise SystemExit(main())
