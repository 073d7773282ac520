"""The hook's whole process against an empty Python of the same environment.

Runs the two in turn, so that the machine's moods hit both, and prints one JSON object: medians in
milliseconds, their ratio and the budget. Nothing is asserted: numbers are read by a person.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BUDGET_RATIO = 1.3


def main() -> int:
    """Measure ``--runs`` pairs and print the result. Returns the exit code."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--runs", type=int, default=60)
    runs = options.parse_args().runs
    with tempfile.TemporaryDirectory() as folder:
        empty, hook = measure(Path(folder), runs)
    result = {
        "what": "hook, whole process",
        "runs": runs,
        "empty_ms": round(empty, 2),
        "hook_ms": round(hook, 2),
        "ratio": round(hook / empty, 3),
        "budget_ratio": BUDGET_RATIO,
    }
    sys.stdout.write(json.dumps(result) + "\n")
    return 0


def measure(folder: Path, runs: int) -> tuple[float, float]:
    """Median milliseconds of an empty Python and of the hook, run in turn, ``runs`` times."""
    transcript = folder / "transcript.jsonl"
    transcript.write_text('{"type":"user","text":"hello"}\n' * 20_000 + '{"half')
    said = json.dumps(
        {
            "session_id": "01234567-89ab-7def-8123-456789abcdef",
            "transcript_path": str(transcript),
            "cwd": str(folder),
            "hook_event_name": "SessionEnd",
            "reason": "other",
        }
    ).encode()
    environ = {**os.environ, "MEMORYD_HOME": str(folder / "home")}
    empty_command = [sys.executable, "-c", "pass"]
    hook_command = [
        str(Path(sys.executable).with_name("memoryd-hook")),
        "claude-code",
        "session-end",
    ]
    empty, hook = [], []
    for _ in range(runs):
        empty.append(milliseconds(empty_command, said, environ))
        hook.append(milliseconds(hook_command, said, environ))
    written = len(list((folder / "home" / "inbox").glob("*.json")))
    if written != runs:
        raise SystemExit(f"the hook wrote {written} envelopes in {runs} runs")
    return statistics.median(empty), statistics.median(hook)


def milliseconds(command: list[str], said: bytes, environ: dict[str, str]) -> float:
    """Wall time of ``command`` from spawn to exit, with ``said`` on its standard input."""
    started = time.perf_counter()
    subprocess.run(command, input=said, env=environ, check=True)
    return (time.perf_counter() - started) * 1000


if __name__ == "__main__":
    raise SystemExit(main())
