"""An archive of 3,000 sessions discovered, mined by the real daemon under kills, and checked.

Makes the archive below FOLDER where it is not there yet (``generate.py``), an empty home beside it,
and measures: seconds of the first discovery, seconds and peak resident memory of mining it all by
``memoryd run``, which is killed at ten random moments, and ingestion against a ``json.loads`` loop
over the same lines. Then holds the home against the manifest. Exits 1 where a session is not found
or not through, a statement is not kept just once, something is damaged, or discovery or memory is
over its budget.

    python bench/archive/run.py [--folder FOLDER] [--sessions 3000] [--bytes 2GB] [--kills 10]
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from check import Verdict, check
from generate import add_arguments, generate
from loads import compare
from mining import MEMORYD, Mined, environment, mine, prepare

DISCOVERY_SECONDS = 30.0
RESIDENT_MIB = 250.0
#: Faults of one kind that are named.
_NAMED = 5


def main() -> int:
    """Read the arguments, do it all, print a table. Returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_arguments(parser)
    parser.add_argument("--folder", type=Path, help="where the archive is kept for the next run")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--workers", type=int, default=3, help="one of them is never the archive's")
    parser.add_argument("--ratio-bytes", type=int, default=40_000_000, help="read of each agent's")
    chosen = parser.parse_args()
    if chosen.folder is not None:
        return measure(chosen.folder.resolve(), chosen)
    with tempfile.TemporaryDirectory(prefix="memoryd-archive-") as folder:
        return measure(Path(folder).resolve(), chosen)


def measure(folder: Path, chosen: argparse.Namespace) -> int:
    """Run everything on the archive in ``folder``; 1 where something is not as it must be."""
    manifest = generate(folder, chosen.sessions, chosen.bytes, chosen.seed)
    home, log = folder / "home", folder / "daemon.log"
    shutil.rmtree(home, ignore_errors=True)
    log.unlink(missing_ok=True)
    prepare(home, chosen.workers)
    environ = environment(folder / "person", home)
    discovery = discover(environ)
    sessions = manifest["counts"]["sessions"]
    mined = mine(home, environ, sessions, kills=chosen.kills, seed=chosen.seed, log=log)
    verdict = check(manifest, home)
    ratio = compare(manifest, chosen.ratio_bytes)
    show(manifest, discovery, mined, verdict, ratio)
    missed = (
        discovery["sessions"] != sessions,
        discovery["seconds"] > DISCOVERY_SECONDS,
        mined.peak_mib > RESIDENT_MIB,
        bool(verdict.faults()),
    )
    return int(any(missed))


def discover(environ: dict[str, str]) -> dict[str, Any]:
    """The first discovery, as a command in a process of its own: sessions found, and seconds."""
    command = [str(MEMORYD), "backfill", "status", "--json"]
    started = time.perf_counter()
    done = subprocess.run(command, env=environ, check=True, capture_output=True, cwd="/")
    seconds = round(time.perf_counter() - started, 2)
    agents = json.loads(done.stdout)["agents"]
    found = {each["agent"]: each["waiting"] for each in agents}
    return {"sessions": sum(found.values()), "seconds": seconds, "by_agent": found}


def show(
    manifest: dict[str, Any],
    discovery: dict[str, Any],
    mined: Mined,
    verdict: Verdict,
    ratio: dict[str, Any],
) -> None:
    """Print what was measured and found, a line each."""
    counts, faults = manifest["counts"], verdict.faults()
    rows = {
        "archive": ", ".join(f"{value} {name}" for name, value in counts.items()),
        "discovered": f"{discovery['sessions']} sessions in {discovery['seconds']} s",
        "mined": f"{mined.sessions} sessions in {mined.seconds:.0f} s, {mined.kills} kills",
        "each tenth": ", ".join(f"{seconds:g} s" for seconds in mined.curve),
        "peak resident": f"{mined.peak_mib:.0f} MiB, and {mined.git_mib:.0f} MiB of git beside it",
        "ingestion": f"{ratio['ratio']} of json.loads {ratio['by_agent']}",
        "facts kept": f"{verdict.kept} of {counts['facts']}",
    }
    rows |= {name: str(len(found)) for name, found in faults.items()}
    sys.stdout.write("".join(f"{name:14} {said}\n" for name, said in rows.items()))
    for name, found in faults.items():
        sys.stderr.write("".join(f"{name}: {each}\n" for each in found[:_NAMED]))


if __name__ == "__main__":
    raise SystemExit(main())
