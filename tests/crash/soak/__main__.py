"""``make soak MINUTES=10``: real processes under seeded blows, and the invariants at the end.

``python -m soak MINUTES [SEED]`` (from ``tests/crash``). The seed is printed first, and again with
whatever went wrong; the home is then kept for looking at. Exit code 1 when an invariant is broken.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent))

import invariants
from matrix import in_child, warm

from soak.chaos import Chaos, look
from soak.clock import SteppedClock
from soak.drain import drain, watch_retries
from soak.places import Places, make_places
from soak.processes import fork, opened, prepare
from soak.sessions import People

#: Between two looks of whoever strikes.
TICK_SECONDS = 0.05
#: Between two lines about how it goes.
REPORT_SECONDS = 30.0


def say(text: str) -> None:
    """Tell whoever watches."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> int:
    """Run one soak; the exit code."""
    minutes = float(sys.argv[1])
    seed = int(sys.argv[2]) if len(sys.argv) > 2 and sys.argv[2] else random.randrange(10**9)
    say(f"soak of {minutes:g} minutes, SEED={seed}")
    shared = Path("/dev/shm")
    parent = shared if os.access(shared, os.W_OK) else None
    root = Path(tempfile.mkdtemp(prefix="memoryd-soak-", dir=parent))
    places = make_places(root)
    if not places.mounted:
        say("no disk of its own could be mounted (that takes root): it is never full")
    warm()
    os.environ["TZ"] = "UTC"
    time.tzset()
    in_child(lambda: _make(places))
    people, done = _run(places, minutes * 60, random.Random(seed))
    say("at rest: draining")
    problems = _end(places, people)
    _tell(places, done + people.done)
    if problems:
        say(f"\nBROKEN, SEED={seed}; the home is kept: {places.home.root}")
        say("\n".join(f"- {each}" for each in problems[:40]))
        return 1
    say(f"every invariant held, SEED={seed}")
    _remove(places)
    return 0


def _make(places: Places) -> None:
    prepare(places)
    opened(places).close()
    invariants.watch(places.home.ledger)
    watch_retries(places)


def _run(places: Places, seconds: float, rng: random.Random) -> tuple[People, Counter[str]]:
    clock = SteppedClock(places.clock)
    chaos, people = Chaos(places, rng, clock), People(places, rng, clock)
    began = told = time.monotonic()
    try:
        while time.monotonic() < began + seconds:
            chaos.tend()
            people.go_on(chaos.open_jobs())
            if "edit" in chaos.strike():
                people.edit()
            if time.monotonic() - told > REPORT_SECONDS:
                told = time.monotonic()
                say(f"{told - began:.0f} s: {_counted(chaos.done + people.done)}")
            select.select([], [], [], TICK_SECONDS)
    finally:
        chaos.stop()
    return people, chaos.done


def _end(places: Places, people: People) -> list[str]:
    """Let all come to rest; what does not hold then."""
    people.tell()
    problems = [f"{people.silent} tellings were never made"] if people.silent else []
    ended = os.waitpid(fork(places, lambda: drain(places)), 0)[1]
    if ended:
        problems.append(f"the drain failed, see {places.log}")
    home = places.home.root
    return problems + invariants.broken(home, people.expected, places.calls)


def _tell(places: Places, done: Counter[str]) -> None:
    say(f"did: {_counted(done)}")
    jobs = look(places, "select kind, status, count(*) from job group by 1, 2 order by 1, 2")
    say("jobs: " + ", ".join(f"{kind} {status} {count}" for kind, status, count in jobs))
    endings = look(
        places,
        "select ending || iif(ending in ('failed', 'snoozed'), ' ' || detail, ''), count(*)"
        " from attempt_log group by 1 order by 1",
    )
    say("attempts: " + ", ".join(f"{ending} {count}" for ending, count in endings))
    for fault, times in sorted(_unexpected(places).items()):
        say(f"unexpected, {times} times: {fault}")
    throttled = "(select coalesce(sum(throttled), 0) from rollout)"
    total = look(places, f"select count(*) + {throttled} from job")
    again = look(places, "select count(*) from watched_retry")
    say(f"all jobs: {total[0][0]}, of them asked for again: {again[0][0]}")


def _unexpected(places: Places) -> Counter[str]:
    """What ended an attempt and has no code of its own, as the log has it."""
    found: Counter[str] = Counter()
    for line in places.log.read_text("utf-8", "replace").splitlines():
        if '"attempt.error"' in line:
            with contextlib.suppress(ValueError):  # two processes wrote at once
                found[str(json.loads(line).get("exception", ""))[-300:]] += 1
    return found


def _counted(done: Counter[str]) -> str:
    return ", ".join(f"{count} {what}" for what, count in sorted(done.items()))


def _remove(places: Places) -> None:
    if places.mounted:
        subprocess.run(["umount", str(places.root / "disk")], check=False)
    shutil.rmtree(places.root, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
