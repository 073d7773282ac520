"""Ingestion against a ``json.loads`` loop over the same lines, and its memory at two sizes.

Writes a Claude Code transcript whose kept text is a tenth of its bytes, then, alternately in
processes of their own, reads it both ways. Prints one line of JSON: ``ratio`` is ingestion's time
over the loop's (budget 1.0: as fast or faster), ``rss_mb`` ingestion's peak resident memory at a
tenth of the size and at the whole (budget: the same).

    python bench/ingestion.py [--megabytes 200] [--rounds 3]
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

LINE_BYTES = 2200
KEPT_EVERY = 10
SENTENCES = (
    "The importer streams the archive in bounded slices, so memory stays flat. ",
    "Please run the tests with uv before every commit, and keep the log short! ",
    "I moved the parser behind a protocol; the old path /srv/app/parse.py is gone. ",
    "Why does the worker wait 30 s here? The lease should be extended by the heartbeat. ",
)


def write_transcript(path: Path, megabytes: int) -> None:
    """A transcript of about ``megabytes``: nine lines of tool output to one that was said."""
    output = "".join(f"test_{n:05d} PASSED [ {n % 100}%]\\n" for n in range(70))
    tool, said = [
        {
            "type": "user",
            "sessionId": "bench",
            "cwd": "/home/person/code/demo",
            "version": "2.1.230",
            "gitBranch": "main",
            "isSidechain": False,
            "userType": "external",
            "timestamp": "2026-01-05T09:00:00.000Z",
            "uuid": "",
            "message": {"role": "user", "content": content},
        }
        for content in (
            [{"tool_use_id": "toolu_1", "type": "tool_result", "content": output}],
            "",
        )
    ]
    with path.open("w") as file:
        number, ids = 0, random.Random(1)
        while file.tell() < megabytes * 1_000_000:
            number += 1
            line = tool
            if number % KEPT_EVERY == 0:
                line = said
                text = "".join(SENTENCES[(number + n) % 4] for n in range(24))
                said["message"]["content"] = f"{number}: {text}"
            line["uuid"] = str(uuid.UUID(int=ids.getrandbits(128), version=4))
            file.write(json.dumps(line, separators=(",", ":")) + "\n")


def loop(path: Path) -> float:
    """Seconds to ``json.loads`` each line."""
    started = time.perf_counter()
    with path.open("rb") as file:
        for line in file:
            json.loads(line)
    return time.perf_counter() - started


def ingestion(path: Path) -> float:
    """Seconds to ingest the transcript into a new session history, redaction included."""
    from memoryd.memory.clock import SystemClock
    from memoryd.memory.scanner import redact
    from memoryd.sessions.agents import adapter_for
    from memoryd.sessions.history import History
    from memoryd.sessions.ingest import ingest

    with (
        tempfile.TemporaryDirectory() as folder,
        History(Path(folder) / "sessions.sqlite", SystemClock()) as history,
    ):
        started = time.perf_counter()
        ingest(
            history,
            adapter_for("claude-code"),
            "claude-code",
            "bench",
            path,
            None,
            resolver=lambda cwd: cwd,
            exclude=lambda cwd: False,
            redact=redact,
        )
        return time.perf_counter() - started


def measure(how: str, path: Path) -> tuple[float, float]:
    """Run ``how`` in a process of its own: its seconds, and its peak resident megabytes."""
    command = [sys.executable, __file__, "--only", how, "--file", str(path)]
    answer = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return answer["seconds"], answer["rss_mb"]


def compare(megabytes: int, rounds: int) -> dict[str, object]:
    """Both ways, alternately, ``rounds`` times; medians."""
    with tempfile.TemporaryDirectory() as folder:
        small, whole = Path(folder) / "small.jsonl", Path(folder) / "whole.jsonl"
        write_transcript(small, max(1, megabytes // 10))
        write_transcript(whole, megabytes)
        loops, ours = [], []
        for _ in range(rounds):
            loops.append(measure("loop", whole)[0])
            ours.append(measure("ingestion", whole))
        loop_seconds = statistics.median(loops)
        our_seconds = statistics.median(seconds for seconds, _ in ours)
        return {
            "bench": "ingestion",
            "megabytes": megabytes,
            "json_loads_seconds": round(loop_seconds, 3),
            "ingestion_seconds": round(our_seconds, 3),
            "ratio": round(our_seconds / loop_seconds, 2),
            "rss_mb": [measure("ingestion", small)[1], max(rss for _, rss in ours)],
        }


def main() -> None:
    """Read the arguments, print the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=("loop", "ingestion"), help="(internal) one way, once")
    parser.add_argument("--file", type=Path, help="(internal) the transcript for --only")
    chosen = parser.parse_args()
    if chosen.only is None:
        result = compare(chosen.megabytes, chosen.rounds)
    else:
        seconds = {"loop": loop, "ingestion": ingestion}[chosen.only](chosen.file)
        unit = 1 if sys.platform == "darwin" else 1024
        rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1_000_000
        result = {"seconds": seconds, "rss_mb": round(rss, 1)}
    sys.stdout.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
