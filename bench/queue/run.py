"""Enqueue, claim and advance, and drain: our ledger at three sizes beside three other queues.

All are worked in turn on the same disk, one step each a round, so that its moods hit all alike;
then each is drained, some hundred jobs at a time, in turn, by one worker; ours and huey's also by
two, which is what the daemon has where nobody says otherwise. ``pip install -e '.[bench]'`` brings
the other queues. Prints one JSON object: microseconds and jobs a second, by queue. Exits 1 where a
step of ours costs more than 1.5 times as much at the most rows as at the fewest, or huey drains
faster.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from queues import Huey, Litequeue, Ours, PersistQueue, Queue

BUDGET_RATIO = 1.5
WARM_UP = 100
CHUNK = 200
OURS = "memoryd, {:,} finished"
HUEY = "SqliteHuey"


def main() -> int:
    """Measure and print the result. Returns the exit code."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--runs", type=int, default=3000, help="rounds of one step each")
    options.add_argument("--drained", type=int, default=4000, help="jobs that are drained")
    options.add_argument("--rows", type=int, nargs="+", default=[1_000, 100_000, 1_000_000])
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        queues = opened(Path(folder), chosen.rows)
        steps = step_by_step(queues, chosen.runs)
        drains = drain(queues, chosen.drained)
        shared = {name: queues[name] for name in (OURS.format(chosen.rows[-1]), HUEY)}
        drains_by_two = drain(shared, chosen.drained, workers=2)
    few, many = OURS.format(chosen.rows[0]), OURS.format(chosen.rows[-1])
    ratios = {step: round(costs[many] / costs[few], 3) for step, costs in steps.items()}
    ahead = [round(rates[many] / rates[HUEY], 3) for rates in (drains, drains_by_two)]
    result = {
        "runs": chosen.runs,
        "us": {
            step: {name: round(us, 1) for name, us in cost.items()} for step, cost in steps.items()
        },
        "drained_a_second": {name: round(rate) for name, rate in drains.items()},
        "drained_a_second_by_two": {name: round(rate) for name, rate in drains_by_two.items()},
        "most_rows_to_fewest": ratios,
        "budget_ratio": BUDGET_RATIO,
        "drain_to_huey": ahead[0],
        "drain_to_huey_by_two": ahead[1],
    }
    sys.stdout.write(json.dumps(result, indent=1) + "\n")
    return 0 if max(ratios.values()) <= BUDGET_RATIO and min(ahead) > 1 else 1


def opened(folder: Path, rows: list[int]) -> dict[str, Queue]:
    """Every queue, by the name it is shown under."""
    ours = {OURS.format(count): Ours(folder / f"{count}.sqlite", count) for count in rows}
    return {
        **ours,
        HUEY: Huey(folder / "huey.sqlite"),
        "litequeue": Litequeue(folder / "litequeue.sqlite"),
        "persist-queue": PersistQueue(folder / "persist"),
    }


def step_by_step(queues: Mapping[str, Queue], runs: int) -> dict[str, dict[str, float]]:
    """Median microseconds of one enqueue and of one job from claim to done, by queue."""
    enqueues: dict[str, list[float]] = {name: [] for name in queues}
    works: dict[str, list[float]] = {name: [] for name in queues}
    for number in range(runs + WARM_UP):
        for name, queue in queues.items():
            started = time.perf_counter()
            queue.enqueue(number)
            between = time.perf_counter()
            if not queue.work():
                raise SystemExit(f"{name} ran dry")
            enqueues[name].append((between - started) * 1e6)
            works[name].append((time.perf_counter() - between) * 1e6)
    return {
        step: {name: statistics.median(us[WARM_UP:]) for name, us in costs.items()}
        for step, costs in (("enqueue", enqueues), ("claim and advance", works))
    }


def drain(queues: Mapping[str, Queue], jobs: int, workers: int = 1) -> dict[str, float]:
    """Jobs a second from the first claim until none is left, by queue."""
    for queue in queues.values():
        for number in range(jobs):
            queue.enqueue((workers << 32) + number)
    seconds = dict.fromkeys(queues, 0.0)
    done = dict.fromkeys(queues, 0)
    left = dict(queues)
    with ThreadPoolExecutor(workers) as threads:
        while left:
            for name, queue in list(left.items()):
                started = time.perf_counter()
                # persist-queue's connection is of one thread.
                at_once = threads.map if workers > 1 else map
                worked = sum(at_once(work_some, [queue] * workers))
                seconds[name] += time.perf_counter() - started
                done[name] += worked
                if not worked:
                    del left[name]
    if set(done.values()) != {jobs}:
        raise SystemExit(f"not all were drained: {done}")
    return {name: jobs / took for name, took in seconds.items()}


def work_some(queue: Queue) -> int:
    """Work ``CHUNK`` jobs; how many there were."""
    for worked in range(CHUNK):
        if not queue.work():
            return worked
    return CHUNK


if __name__ == "__main__":
    raise SystemExit(main())
