"""Saving into, listing and consolidating stores of 1,000 and of 10,000 notes.

Saves go into the two stores in turn, each in a commit of its own: by ``save_note``, as a person or
an agent saves, and by ``apply_plan``, as a job does; beside them one bare run of git (2 ms on a
quiet machine), so that a busy machine shows as such. Listing is the command, whole process;
consolidating is reading all that a model is to be shown, and what a person changed. Each runs in a
process of its own whose peak memory counts, git's beside it. With ``--processes N`` two processes
also save N notes each into one new store at once. Prints one JSON object.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from memoryd.memory.apply import apply_plan
from memoryd.memory.baseline import Baseline
from memoryd.memory.clock import SystemClock
from memoryd.memory.consolidation_material import gather
from memoryd.memory.files import sha256
from memoryd.memory.home import Home
from memoryd.memory.notes import TYPES, new_note
from memoryd.memory.plan import Operation, Plan, SliceRange
from memoryd.memory.saving import save_note
from memoryd.memory.store import Store

BUDGETS = {"save_ms": 50, "save_ratio": 2, "list_seconds": 1, "memory_mib": 200}
KEY = "home-ada-app"
SIZES = (1_000, 10_000)
MEMORYD = Path(sys.executable).parent / "memoryd"
_WARM_UP = 3


def main() -> int:
    """Measure and print the result. Returns the exit code."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--saves", type=int, default=40)
    options.add_argument("--processes", type=int, default=0, metavar="N")
    options.add_argument("--folder", help="where the stores are made; default: a temp folder")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory(dir=chosen.folder) as folder:
        stores = {size: build(Path(folder) / str(size), size) for size in SIZES}
        result: dict[str, object] = {"what": "a store of 10,000 notes", "budgets": BUDGETS}
        result |= apart(saving, stores, chosen.saves)
        result |= apart(listing, stores[SIZES[-1]])
        result |= apart(consolidating, stores[SIZES[-1]])
        if chosen.processes:
            result |= two_processes(Path(folder) / "two", chosen.processes)
    sys.stdout.write(json.dumps(result, indent=1) + "\n")
    return 0


def apart(work: Callable[..., dict[str, float]], *arguments: object) -> dict[str, float]:
    """What ``work`` measures, in a process of its own, with the peak memory of that process."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return pool.apply(_measured, (work, *arguments))


def _measured(work: Callable[..., dict[str, float]], *arguments: object) -> dict[str, float]:
    found = work(*arguments)
    for who, whose in (("", resource.RUSAGE_SELF), ("_git", resource.RUSAGE_CHILDREN)):
        peak = resource.getrusage(whose).ru_maxrss / 1024
        found[f"{work.__name__}{who}_mib"] = round(peak, 1)
    return found


def build(root: Path, size: int) -> Store:
    """A store of ``size`` notes of usual length, committed at once and packed."""
    home = Home(root)
    home.prepare()
    store = Store.for_project(home, KEY)
    files: dict[str, bytes | None] = {}
    for number in range(size):
        path, data = note(TYPES[number % 4], f"note-{number:05d}-about-a-thing")
        store.replace(path, data, found=None)
        files[path] = data
    Baseline(store).commit(files, "Start")
    Baseline(store).collect_garbage()
    store.write_index()
    return store


def note(kind: str, name: str) -> tuple[str, bytes]:
    """A note of some 400 bytes, its path first."""
    data = new_note(
        name=name,
        description=f"Where {name} is kept, and what to do about it",
        type=kind,  # type: ignore[arg-type]
        body=_words(name),
        created="2026-01-05T09:00:00Z",
        source="claude-code/0191",
    )
    return f"{kind}/{name}.md", data


def saving(stores: dict[int, Store], saves: int) -> dict[str, float]:
    """Median milliseconds of one save at each size, in turn, and of one bare run of git."""
    ways = {"save": _save, "apply": _apply}
    times: dict[tuple[str, int], list[float]] = {(way, size): [] for way in ways for size in SIZES}
    bare = []
    for number in range(saves + _WARM_UP):
        bare.append(_milliseconds(lambda: subprocess.run(["git", "version"], capture_output=True)))
        for (way, size), taken in times.items():
            name = f"{way}-{os.getpid()}-{number}"
            taken.append(_milliseconds(partial(ways[way], stores[size], name)))
    found = {"git_ms": round(statistics.median(bare), 1)}
    for way in ways:
        small, large = (statistics.median(times[way, size][_WARM_UP:]) for size in SIZES)
        found |= {f"{way}_ms_1000": round(small, 1), f"{way}_ms": round(large, 1)}
        found[f"{way}_ratio"] = round(large / small, 2)
    return found


def _save(store: Store, name: str) -> None:
    saved = save_note(
        store,
        type="user",
        name=name,
        description=f"Where {name} is kept",
        content=_words(name),
        clock=SystemClock(),
    )
    assert saved.written, saved.outcome


def _apply(store: Store, name: str) -> None:
    path, data = note("user", name)
    operation = Operation(KEY, path, None, sha256(data), data.decode(), "", f"c-{name}")
    made = Plan(f"job-{name}", SliceRange("claude-code", name, 1, 1), "rules", (operation,))
    apply_plan(store.home, made, clock=SystemClock(), wait_seconds=60)


def _words(name: str) -> str:
    """Some 400 characters that no other note says."""
    digest = hashlib.sha512(name.encode()).hexdigest()
    words = [digest[at : at + 6] for at in range(0, 120, 6)]
    return f"{name} is kept at {' '.join(words)}.\n\nBeside it: {' '.join(reversed(words))}."


def _milliseconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1000


def listing(store: Store) -> dict[str, float]:
    """Seconds to read every note, and of the whole command that lists them."""
    command = [str(MEMORYD), "--home", str(store.home.root), "memory", "list", "--project", KEY]
    read = min(_milliseconds(store.notes) for _ in range(3))
    listed = min(
        _milliseconds(lambda: subprocess.run(command, check=True, capture_output=True))
        for _ in range(3)
    )
    return {"read_seconds": round(read / 1000, 2), "list_seconds": round(listed / 1000, 2)}


def consolidating(store: Store) -> dict[str, float]:
    """Seconds to gather what a consolidation looks at, and to look for edits by hand."""
    baseline = Baseline(store)
    now_ms = SystemClock().now_ms()
    looked = min(_milliseconds(baseline.changed_paths) for _ in range(3))
    gathered = _milliseconds(
        lambda: gather(store, now_ms=now_ms, usage={}, sessions=(), by_person=lambda path: False)
    )
    return {
        "changes_seconds": round(looked / 1000, 2),
        "gather_seconds": round(gathered / 1000, 2),
    }


def two_processes(root: Path, each: int) -> dict[str, float]:
    """Seconds in which two processes save ``each`` notes into one store; how many are lost."""
    store = build(root, 1)
    context = multiprocessing.get_context("spawn")
    workers = [
        context.Process(target=_save_many, args=(store, prefix, each)) for prefix in ("one", "two")
    ]
    started = time.perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    seconds = time.perf_counter() - started
    kept = len(Baseline(store).files()) - 1
    return {"saved_by_two": kept, "lost": 2 * each - kept, "two_seconds": round(seconds, 1)}


def _save_many(store: Store, prefix: str, each: int) -> None:
    for number in range(each):
        _save(store, f"{prefix}-{number:04d}")


if __name__ == "__main__":
    raise SystemExit(main())
