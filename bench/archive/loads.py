"""Ingestion of an archive's sessions against a ``json.loads`` loop over the same lines.

Of each agent that writes lines as many sessions are read as come to so many bytes, with both ways
in turn, each in a process of its own.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

AGENTS = ("claude-code", "codex", "gemini-cli", "qwen-code", "cursor")
ROUNDS = 3


def compare(manifest: dict[str, Any], size: int) -> dict[str, Any]:
    """Seconds of ingestion over seconds of the loop: of all agents' lines, and of each agent's."""
    times: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for agent in AGENTS:
            listing = Path(folder) / f"{agent}.json"
            listing.write_text(json.dumps(_sessions(manifest, agent, size)), "utf-8")
            runs = [
                (measure("loop", listing), measure("ingestion", listing)) for _ in range(ROUNDS)
            ]
            loops, ours = zip(*runs, strict=True)
            times[agent] = {"loop": statistics.median(loops), "ours": statistics.median(ours)}
    loops, ours = (sum(each[how] for each in times.values()) for how in ("loop", "ours"))
    by_agent = {agent: round(each["ours"] / each["loop"], 2) for agent, each in times.items()}
    return {"ratio": round(ours / loops, 2), "by_agent": by_agent}


def _sessions(manifest: dict[str, Any], agent: str, size: int) -> list[tuple[str, str, str]]:
    found, left = [], size
    for each in manifest["sessions"]:
        lines = each["transcript"].endswith(".jsonl")
        if lines and each["agent"] == agent and each["kind"] == "root" and each["bytes"] <= left:
            found.append((agent, each["session"], each["transcript"]))
            left -= each["bytes"]
    return found


def measure(how: str, listing: Path) -> float:
    """Run ``how`` over the sessions of ``listing`` in a process of its own: its seconds."""
    command = [sys.executable, __file__, how, str(listing)]
    return float(subprocess.run(command, check=True, capture_output=True).stdout)


def loop(sessions: list[tuple[str, str, str]]) -> float:
    """Seconds to ``json.loads`` each line; one that is none costs what it costs."""
    started = time.perf_counter()
    for _, _, transcript in sessions:
        with Path(transcript).open("rb") as file:
            for line in file:
                _loads(line)
    return time.perf_counter() - started


def _loads(line: bytes) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None


def ingestion(sessions: list[tuple[str, str, str]]) -> float:
    """Seconds to ingest them into a new session history, redaction included."""
    from memoryd.memory.clock import SystemClock
    from memoryd.memory.scanner import redact
    from memoryd.sessions.agents import adapter_for
    from memoryd.sessions.history import History
    from memoryd.sessions.ingest import ingest

    with (
        tempfile.TemporaryDirectory() as folder,
        History(Path(folder) / "sessions.sqlite", SystemClock()) as history,
    ):

        def take_in(agent: str, session: str, transcript: str, cutoff: int | None) -> None:
            """Ingest one, as a backfill does."""
            ingest(
                history,
                adapter_for(agent),
                agent,
                session,
                Path(transcript),
                cutoff,
                resolver=lambda cwd: cwd,
                exclude=lambda cwd: False,
                redact=redact,
            )

        agent, _, transcript = sessions[0]
        take_in(
            agent, "before", transcript, 50_000
        )  # what loads with the first line, once a daemon
        started = time.perf_counter()
        for each in sessions:
            take_in(*each, None)
        return time.perf_counter() - started


if __name__ == "__main__":
    given = json.loads(Path(sys.argv[2]).read_text("utf-8"))
    sys.stdout.write(str({"loop": loop, "ingestion": ingestion}[sys.argv[1]](given)))
