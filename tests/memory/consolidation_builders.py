"""Builders for tests of consolidation: a store, what is gathered of it, what is decided."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import count
from typing import Any

from store_builders import make_store, write_bytes

from memoryd.memory.apply import apply_plan
from memoryd.memory.baseline import Baseline
from memoryd.memory.config import CurationSettings
from memoryd.memory.consolidation import Consolidated, Material, Use, decide, gather
from memoryd.memory.consolidation_answer import Proposals, parse_proposals
from memoryd.memory.home import Home
from memoryd.memory.notes import Note, new_note, parse
from memoryd.memory.plan import Plan
from memoryd.memory.store import Store
from memoryd.memory.testing import FakeClock

NOW = FakeClock().now_ms()


def store_with(home: Home, notes: Mapping[str, str | bytes]) -> Store:
    """A store whose committed notes are these: path without ``.md`` to body, or to whole file."""
    store = make_store(home)
    paths = [put(store, path, body) for path, body in notes.items()]
    if paths:
        Baseline(store).commit(paths, "Start", now_ms=NOW)
    return store


def put(store: Store, path: str, body: str | bytes, **more: Any) -> str:
    """Write a note (described by its name's words); its path comes back."""
    kind, _, name = path.rpartition("/")
    if isinstance(body, str):
        values = {"name": name, "description": f"On {name.replace('-', ' ')}", **more}
        body = new_note(type=parse(b"", f"{kind}/x.md").type, body=body, **values)
    return write_bytes(store, f"{path}.md", body)


def gathered(
    store: Store,
    *,
    usage: Mapping[str, Use] | None = None,
    sessions: Sequence[tuple[str, str]] = (("2026-01-04", "s1"),),
    person: Collection[str] = (),
    **more: Any,
) -> Material:
    """What consolidation looks at; ``person`` are the paths a person changed last."""
    return gather(
        store,
        now_ms=NOW,
        usage=usage or {},
        sessions=sessions,
        by_person=lambda path: path in person,
        **more,
    )


def proposed(**plan: Any) -> Proposals:
    """An answer with these keys."""
    return parse_proposals(json.dumps(plan))


def a_merge(into: str, *supersedes: str, content: str, description: str = "") -> dict[str, Any]:
    """One merge of an answer."""
    return {
        "into": into,
        "supersedes": list(supersedes),
        "description": description or f"On {into.replace('-', ' ')}",
        "content": content,
    }


def decided(
    material: Material,
    proposals: Proposals | None = None,
    *,
    forgotten: Callable[[str, str], bool] = lambda name, statement: False,
    **more: Any,
) -> Consolidated:
    """What is decided, in mode auto unless told otherwise."""
    numbers = count(1)
    return decide(
        material,
        proposals,
        forgotten=forgotten,
        new_id=lambda: f"c{next(numbers)}",
        source="consolidate job-1",
        **{"settings": CurationSettings(), **more},
    )


def reasons(done: Consolidated) -> list[str]:
    """The reason of each candidate, in order."""
    return [candidate.reason for candidate in done.candidates]


def applied(home: Home, store: Store, done: Consolidated) -> dict[str, Note]:
    """Apply what was decided; every note by path without ``.md``."""
    plan = Plan("job-1", None, "scripted", done.operations, subject=done.subject)
    apply_plan(home, plan, clock=FakeClock())
    return notes_of(store)


def notes_of(store: Store) -> dict[str, Note]:
    """Every note of the store by path without ``.md``."""
    return {note.path.removesuffix(".md"): note for note in store.notes()}
