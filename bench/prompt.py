"""The hook's prompt event, answered by a running daemon, against an empty Python of the same kind.

Makes a home whose sessions hold something that was decided, runs ``memoryd run`` on it, and times
in turn an empty Python, a prompt that asks back to nothing and one that does. Prints one line of
JSON: medians in milliseconds, and their ratios to the empty Python's.

    .venv/bin/python bench/prompt.py [--runs 40] [--sessions 200]
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

MEMORYD = [sys.executable, "-m", "memoryd.cli.main"]
HOOK = [str(Path(sys.executable).with_name("memoryd-hook")), "claude-code", "prompt"]
ASKED = "What did we decide about the zebra lease?"
WAIT_SECONDS = 60


def main() -> int:
    """Measure ``--runs`` of each in turn and print the result. Returns the exit code."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--runs", type=int, default=40)
    options.add_argument("--sessions", type=int, default=200)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="p", dir="/tmp") as folder:
        found = measure(Path(folder), chosen.sessions, chosen.runs)
    empty, other, back = found
    result = {
        "what": "prompt hook with a daemon, whole process",
        "sessions": chosen.sessions,
        "empty_ms": round(empty, 1),
        "other_prompt_ms": round(other, 1),
        "asks_back_ms": round(back, 1),
        "other_ratio": round(other / empty, 2),
        "asks_back_ratio": round(back / empty, 2),
    }
    sys.stdout.write(json.dumps(result) + "\n")
    return 0


def measure(folder: Path, sessions: int, runs: int) -> tuple[float, float, float]:
    """Median milliseconds of an empty Python, of another prompt and of one that asks back."""
    code, home = folder / "code", folder / "home"
    code.mkdir()
    person = folder / "person"
    write_sessions(person / ".claude" / "projects" / "code", code, sessions)
    environ = {**os.environ, "HOME": str(person), "MEMORYD_HOME": str(home)}
    settings = "[backfill]\nmin_idle_hours = 0\nper_day = 100000\n"
    home.mkdir()
    (home / "config.toml").write_text(settings, "utf-8")
    subprocess.run([*MEMORYD, "run", "--once"], env=environ, check=True, capture_output=True)
    daemon = subprocess.Popen(
        [*MEMORYD, "run"], env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        until = time.monotonic() + WAIT_SECONDS
        while not fire(ASKED, code, environ)[1] and time.monotonic() < until:
            pass  # it is not listening yet
        times: tuple[list[float], list[float], list[float]] = ([], [], [])
        for _ in range(runs):
            times[0].append(milliseconds([sys.executable, "-c", "pass"], environ))
            times[1].append(fire("Extend the zebra lease.", code, environ)[0])
            took, printed = fire(ASKED, code, environ)
            if b"thirty" not in printed:
                raise SystemExit("a prompt that asks back was not answered")
            times[2].append(took)
    finally:
        daemon.terminate()
        daemon.wait()
    empty, other, back = (statistics.median(each) for each in times)
    return empty, other, back


def write_sessions(folder: Path, code: Path, sessions: int) -> None:
    """``sessions`` transcripts of Claude Code, in one of which something was decided."""
    folder.mkdir(parents=True)
    for number in range(sessions):
        said = f"Step {number}: look at the importer and say what is slow there."
        if number == sessions // 2:
            said = "We decided that the zebra lease is extended every thirty seconds."
        line = {
            "type": "user",
            "uuid": f"{number:08d}-0000-4000-8000-000000000000",
            "sessionId": f"s{number}",
            "cwd": str(code),
            "timestamp": "2026-01-05T09:00:00.000Z",
            "message": {"role": "user", "content": said},
        }
        path = folder / f"s{number}.jsonl"
        path.write_text(json.dumps(line) + "\n", "utf-8")
        os.utime(path, (1_770_000_000, 1_770_000_000))


def fire(prompt: str, code: Path, environ: dict[str, str]) -> tuple[float, bytes]:
    """Run the hook for a prompt: wall milliseconds, and what it printed."""
    said = {"session_id": "now", "cwd": str(code), "prompt": prompt}
    started = time.perf_counter()
    done = subprocess.run(
        HOOK, input=json.dumps(said).encode(), env=environ, check=True, capture_output=True
    )
    return (time.perf_counter() - started) * 1000, done.stdout


def milliseconds(command: list[str], environ: dict[str, str]) -> float:
    """Wall time of ``command`` from spawn to exit."""
    started = time.perf_counter()
    subprocess.run(command, input=b"", env=environ, check=True, capture_output=True)
    return (time.perf_counter() - started) * 1000


if __name__ == "__main__":
    raise SystemExit(main())
