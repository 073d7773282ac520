"""What a person changed in a store since its last commit, sorted by what is to become of it.

A file counts once it has been still for a minute; nothing is decided here on one that is not. What
is a plan's is ours, whoever finds it first; what cannot be read was not deleted.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from memoryd.memory.baseline import Baseline, blob_id
from memoryd.memory.conflicts import conflict_of
from memoryd.memory.errors import NoteError, StoreError
from memoryd.memory.files import sha256
from memoryd.memory.notes import ARCHIVE, parse
from memoryd.memory.store import TOMBSTONES, Store
from memoryd.memory.theirs import has_secret
from memoryd.memory.vanished import (
    Moved,
    Trail,
    is_empty,
    is_kept_elsewhere,
)

#: How long a file (or, for a deletion, its folder) must have been left alone.
STILL_MS = 60_000


@dataclass
class Found:
    """The changed files of a store, by path, sorted by what is to become of them.

    ``known`` is what ``HEAD`` has (path: blob), ``listed`` what the folders show. ``planned`` are
    ours; ``vanished`` are at their path no more: then ``moved``, ``waiting`` or ``gone``.
    """

    known: dict[str, str]
    listed: frozenset[str]
    edits: dict[str, bytes | None] = field(default_factory=dict)
    blobs: dict[str, str] = field(default_factory=dict)
    planned: list[str] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    secret: list[str] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    vanished: list[str] = field(default_factory=list)
    moved: list[Moved] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    emptied: list[str] = field(default_factory=list)


def look(baseline: Baseline, now_ms: int, planned: Collection[str]) -> Found:
    """Sort what differs from ``HEAD``; ``planned`` are sha256 of files that plans leave.

    Nothing is changed. Raises ``BaselineError`` and ``StoreError`` where that cannot be seen.
    """
    store = baseline.store
    found = Found(baseline.files(), frozenset(store.paths()))
    # Where case does not count, git takes Foo.md for foo.md: the folders say how a name is written.
    renamed = found.known.keys() ^ found.listed
    for path in sorted({*baseline.changed_paths(), *renamed}):
        _sort(store, found, path, now_ms, planned)
    new = {path: blob for path, blob in found.blobs.items() if path not in found.known}
    trail = Trail(baseline, {path: found.known[path] for path in found.vanished}, new)
    for path in found.vanished:
        _trace(trail, found, path, now_ms)
    return found


def _sort(store: Store, found: Found, path: str, now_ms: int, planned: Collection[str]) -> None:
    try:
        data = store.read(path)
    except StoreError:
        found.unreadable.append(path)
        return
    is_note = not store.is_profile and path != TOMBSTONES
    if is_note and path not in found.known and (data is None or path not in found.listed):
        return  # it came or went at this moment: the next look finds it
    if is_note and (data is None or path not in found.listed):
        (found.unreadable if is_kept_elsewhere(store, path) else found.vanished).append(path)
        return
    if path not in found.known and conflict_of(path) in found.listed:
        found.unreadable.append(path)
        return
    if data is not None:
        found.blobs[path] = blob_id(data)
    if is_note and path in found.known and is_empty(data):
        found.emptied.append(path)
    _file(store, found, path, data, now_ms, planned)


def _file(
    store: Store,
    found: Found,
    path: str,
    data: bytes | None,
    now_ms: int,
    planned: Collection[str],
) -> None:
    """Say what is to become of a changed file."""
    if data is not None and sha256(data) in planned:
        found.planned.append(path)
    elif not is_still(store, path, now_ms):
        found.waiting.append(path)
    elif has_secret(data, path):
        found.secret.append(path)
    else:
        found.edits[path] = data


def _trace(trail: Trail, found: Found, path: str, now_ms: int) -> None:
    """Say whether a note that is not at ``path`` any more was moved, by us or by a person."""
    here = trail.here(path)
    if any(other in found.planned for other in here) or _is_archived(trail.baseline, found, path):
        return  # ours: the plan commits both sides
    moved = next((Moved(path, other) for other in here if other in found.edits), None)
    if here and moved is None:
        found.waiting.append(path)
        return
    moved = moved or trail.elsewhere(path)
    if moved is None:
        found.gone.append(path)
    elif here or is_still(trail.baseline.store, path, now_ms):
        found.moved.append(moved)
    else:
        found.waiting.append(path)


def _is_archived(baseline: Baseline, found: Found, path: str) -> bool:
    """Whether a plan that stands put the note into the archive, there under another file's name."""
    copies = [other for other in found.planned if other.startswith(f"{ARCHIVE}/")]
    names = {_name(baseline.store.read(other), other) for other in copies}
    name = _name(baseline.show("HEAD", path), path) if names else None
    return name is not None and name in names


def _name(data: bytes | None, path: str) -> str | None:
    try:
        return None if data is None else parse(data, path).name
    except NoteError:
        return None


def is_still(store: Store, path: str, now_ms: int) -> bool:
    """Whether the file, or the folder it is gone from, was left alone for a minute.

    A time of change in the future (a clock was set back since) counts as past.
    """
    return all(abs(now_ms - at) >= STILL_MS for at in store.changed_at_ms(path))
