"""What the notes of a store say at the moment a plan is applied, not when it was decided.

Two sessions may hear the same at once: each was decided on notes that did not say it yet.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from memoryd.memory.baseline import Baseline, blob_id
from memoryd.memory.errors import NoteError, StoreError
from memoryd.memory.files import sha256
from memoryd.memory.known import sayings
from memoryd.memory.notes import ARCHIVE, Note, parse
from memoryd.memory.store import Store

#: File systems tell the time less finely than the clock.
_SLACK_MS = 2000


def said_since(
    baseline: Baseline, since_ms: int, *, except_for: Collection[str], planned: Collection[str]
) -> frozenset[str]:
    """The keys (``values.sense_key``) of what current notes say that changed since then.

    Not those at the paths ``except_for``, and not what another plan left without a commit
    (``planned``, sha256 of files): that plan may yet be given up.
    """
    paths = [
        path
        for path in _notes_in(baseline.store)
        if not path.startswith(f"{ARCHIVE}/")
        and path not in except_for
        and max(baseline.store.changed_at_ms(path)) >= since_ms - _SLACK_MS
    ]
    return frozenset(key for note in _read(baseline, paths, planned) for key in sayings(note))


def said_anywhere(baseline: Baseline, *, planned: Collection[str]) -> frozenset[str]:
    """The keys of what any note says, the archive included; ``planned`` as in ``said_since``."""
    notes = _read(baseline, list(_notes_in(baseline.store)), planned)
    return frozenset(key for note in notes for key in sayings(note))


def _notes_in(store: Store) -> Iterator[str]:
    return (path for path in store.paths() if "/" in path)


def _read(baseline: Baseline, paths: list[str], planned: Collection[str]) -> Iterator[Note]:
    for path in paths:
        try:
            data = baseline.store.read(path)
            if data is None or (
                sha256(data) in planned and not _is_committed(baseline, path, data)
            ):
                continue
            yield parse(data, path)
        except (NoteError, StoreError):  # what nobody can read says nothing
            continue


def _is_committed(baseline: Baseline, path: str, data: bytes) -> bool:
    return baseline.files(None, path).get(path) == blob_id(data)
