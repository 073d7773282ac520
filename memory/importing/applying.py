"""Writing what an import decided: one commit a store, under its writer lock, undone in one step.

It is decided again under the lock, on what the store is then. A crash before the commit leaves
files that are known by their ``source``; the next import finds them as it would have left them and
commits them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass

from memoryd.memory import seams
from memoryd.memory.baseline import Author, Baseline
from memoryd.memory.clock import Clock
from memoryd.memory.edits import require_not_held
from memoryd.memory.errors import StoreError
from memoryd.memory.ids import uuid7
from memoryd.memory.importing.planning import ImportPlan, Item, Options, Target, decide
from memoryd.memory.importing.stock import IMPORTED, digest
from memoryd.memory.projects import record

_WAIT_SECONDS = 5.0


@dataclass(frozen=True)
class Imported:
    """What an import did: the id that undoes it, each store's commit, and what was decided.

    A store in which nothing was new has no commit.
    """

    id: str
    commits: dict[str, str]
    plans: tuple[ImportPlan, ...]


def apply_import(targets: Sequence[Target], options: Options, *, clock: Clock) -> Imported:
    """Write what is new of ``targets``; called again it writes nothing.

    Raises ``StoreBusy`` when a store is being written and ``StoreHeld`` when too much vanished from
    one (then nothing was done), and ``StoreError`` where one cannot be written.
    """
    now_ms = clock.now_ms()
    identity = uuid7(now_ms)
    ordered = sorted(targets, key=lambda target: target.store.root)
    commits: dict[str, str] = {}
    plans = []
    with contextlib.ExitStack() as locks:
        for target in ordered:
            locks.enter_context(target.store.writer_lock(_WAIT_SECONDS))
        for target in ordered:
            require_not_held(target.store)
        for target in ordered:
            plan = decide(target, options, now_ms)
            plans.append(plan)
            made = _write(plan, identity, now_ms)
            if made is not None:
                commits[target.store.key] = made
    for target in ordered:
        if target.store.key in commits:
            record(target.store.home, target.project)
    return Imported(identity, commits, tuple(plans))


def _write(plan: ImportPlan, identity: str, now_ms: int) -> str | None:
    store = plan.target.store
    baseline = Baseline(store)
    items = [*plan.created, *_unfinished(plan, baseline)]
    if not items:
        return None
    baseline.ensure()
    files: dict[str, bytes | None] = {}
    for item in plan.created:
        assert item.draft is not None
        if not store.replace(item.path, item.draft.data, found=None):
            raise StoreError(f"{item.path} appeared at this moment", hint="import again")
        seams.reach("store.replaced")
    for item in items:
        assert item.draft is not None
        files[item.path] = item.draft.data
    made = baseline.commit(
        files, _subject(items), _trailers(items, identity), _author(items), now_ms=now_ms
    )
    seams.reach("store.committed")
    store.refresh_index()
    return made


def _unfinished(plan: ImportPlan, baseline: Baseline) -> list[Item]:
    """What an import wrote that crashed before its commit."""
    known = baseline.files()
    return [
        item
        for item in plan.items
        if item.verdict == "imported" and item.draft is not None and item.path not in known
    ]


def _author(items: Sequence[Item]) -> Author:
    """Notes out of a folder are a person's words; those of an agent's memory are not."""
    return "person" if all(item.source.kind == "folder" for item in items) else "memoryd"


def _subject(items: Sequence[Item]) -> str:
    kinds = " and ".join(sorted({item.source.kind for item in items}))
    return f"Import {len(items)} note{'s' if len(items) > 1 else ''} from {kinds}"


def _trailers(items: Sequence[Item], identity: str) -> list[tuple[str, str]]:
    origins = sorted(item.draft.origin for item in items if item.draft)
    kinds = sorted({item.source.kind for item in items})
    return [
        ("Memoryd-Job", identity),
        *(("Memoryd-Source", f"import {kind}") for kind in kinds),
        (IMPORTED, " ".join(map(digest, origins))),
    ]
