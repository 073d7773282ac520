"""FreeCode's counters: how often each note was shown and used, out of ``.graph/usage.json``."""

from __future__ import annotations

import json
from dataclasses import dataclass

from memoryd.memory.importing.planning import ImportPlan
from memoryd.memory.importing.sources import Source
from memoryd.memory.importing.walk import read_file

_VERSION = 1
_LARGEST = 2**53


@dataclass(frozen=True)
class Counted:
    """What is known of one note: ``note`` is its ``type/name``, ``last_used_at`` wall ms or 0."""

    store: str
    note: str
    shown: int
    used: int
    last_used_at: int


def counted(plan: ImportPlan) -> list[Counted]:
    """The counters of the notes that are there now, under the names they have here."""
    known = {
        reading.source: usage_of(reading.source)
        for reading in plan.target.readings
        if reading.source.kind == "freecode"
    }
    found = []
    for item in plan.items:
        if item.verdict not in {"create", "imported"} or item.draft is None:
            continue
        there = f"{item.draft.note.type}/{item.draft.called}"
        counters = known.get(item.source, {}).get(there)
        if counters is not None:
            found.append(Counted(plan.target.store.key, item.draft.note.id, *counters))
    return found


def usage_of(source: Source) -> dict[str, tuple[int, int, int]]:
    """``type/name`` to (shown, used, last used ms). What cannot be read counts as nothing."""
    path = source.root / ".graph" / "usage.json"
    read = read_file("usage.json", str(path))
    try:
        values = json.loads(read.data or b"{}")
    except (ValueError, RecursionError):
        return {}
    entries = values.get("entries") if isinstance(values, dict) else None
    if not isinstance(entries, dict) or values.get("version") != _VERSION:
        return {}
    found = {}
    for note, entry in entries.items():
        if isinstance(entry, dict):
            shown, used, last = (_count(entry.get(key)) for key in _KEYS)
            if shown or used:
                found[note] = (shown, used, last)
    return found


_KEYS = ("injectedCount", "useCount", "lastUsedAt")


def _count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    return int(value) if 0 <= value <= _LARGEST else 0
