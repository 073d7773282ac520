"""Giving a note another name: its file moves, and what links to it follows, in one step to undo.

Links are ``[[name]]`` in a body and the names in ``supersedes``, ``superseded_by`` and
``contradicts``, the archive's included. Nothing else of any file changes, and no tombstone is
made: a note that was renamed was not forgotten. A note that cannot be parsed, or in which the
scanner finds a secret, is left as it is and named.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from memoryd.memory import header, notes
from memoryd.memory.asking import note_name
from memoryd.memory.baseline import Baseline
from memoryd.memory.changing import WAIT_SECONDS, Change, Planned, lift, none_planned
from memoryd.memory.clock import Clock
from memoryd.memory.errors import NoteError, StoreError, UsageError
from memoryd.memory.head import Head, name_key
from memoryd.memory.heads import Heads
from memoryd.memory.listing import named, require_free_file, unreadable
from memoryd.memory.notes import TYPES, file_name, type_of
from memoryd.memory.scanner import verdicts
from memoryd.memory.store import TOMBSTONES, Store
from memoryd.memory.theirs import has_secret
from memoryd.memory.tombstones import Forgotten

_LISTS = ("supersedes", "contradicts")


@dataclass(frozen=True)
class Renamed:
    """The note under its new name. All are paths; ``id`` is what ``undo`` takes.

    ``relinked`` are the notes whose links were changed; ``left`` those that may hold a link and
    could not be written.
    """

    type: str
    name: str
    former_name: str
    path: str
    former_path: str
    relinked: tuple[str, ...]
    left: tuple[str, ...]
    commit: str
    id: str


def rename_note(
    store: Store, name: str, new_name: object, *, clock: Clock, planned: Planned = none_planned
) -> Renamed:
    """Rename the live note ``name`` (or ``type/name``); its type, words and dates stay.

    Raises ``UsageError`` when no note or several are called so, when the new name is blank, taken
    or holds a secret; ``NoteError`` when the note cannot be parsed; ``StoreBusy`` and
    ``BaselineError``.
    """
    wanted = note_name(new_name)
    if "secret" in verdicts(wanted):
        raise UsageError("the new name holds a secret", hint="choose another")
    with Heads(store) as heads, store.writer_lock(WAIT_SECONDS):
        baseline = Baseline(store)
        baseline.ensure()
        heads.refresh(whole=True)
        head = named(heads.named(name), name)
        path = _new_path(store, heads, head, wanted)
        change = Change(baseline, clock.now_ms(), planned)
        renamed = _rename(change, heads, head, wanted, path)
        heads.saved(change.paths)
    return renamed


def _new_path(store: Store, heads: Heads, head: Head, name: str) -> str:
    if not head.readable:
        raise unreadable(head)
    path = f"{head.type}/{file_name(name)}"
    own = {head.path, path} if _is_begun(store, head, name, path) else {head.path}
    for each in heads.named(name):
        if each.key == name_key(name) and each.path not in own:
            raise UsageError(
                f"{each.type}/{each.name} has this name", hint="choose another, or delete that one"
            )
    require_free_file((each for each in heads.at(path) if each.path not in own), path, name)
    return path


def _is_begun(store: Store, head: Head, name: str, path: str) -> bool:
    """Whether a rename that died has written its new file: as this one would write it."""
    data, there = store.read(head.path), store.read(path)
    if data is None or there is None or path == head.path:
        return False
    renamed = notes.update(data, name=name)
    return there in (renamed, relink(renamed, path, head.name, name))


def _rename(change: Change, heads: Heads, head: Head, name: str, path: str) -> Renamed:
    if head.name == name and head.path == path:
        raise UsageError(f"the note is called {name!r} already")
    data = change.read(head.path) or b""
    change.put(path, notes.update(data, name=name), like=head.path)
    if path != head.path:
        change.put(head.path, None)
    relinked: list[str] = []
    left: list[str] = []
    if _is_meant(heads, head):
        for each, linked in _relinked(change, head.name, name):
            if linked is None:
                left.append(each)
            else:
                change.put(each, linked)
                relinked.append(each)
    lift(change, Forgotten(name))
    title = f"Rename {head.path} to {path}"
    made = change.carry_out(title, ("Memoryd-Source", "tool"))
    return Renamed(
        head.type,
        name,
        head.name,
        path,
        head.path,
        tuple(each for each in relinked if each != path),
        tuple(left),
        made.commit,
        made.id,
    )


def _is_meant(heads: Heads, head: Head) -> bool:
    """Whether links to the name mean this note: of one name in two types the first type counts."""
    same = [each for each in heads.named(head.name) if each.name == head.name]
    return min(TYPES.index(type_of(each.path)) for each in (head, *same)) == TYPES.index(head.type)


def _relinked(change: Change, old: str, new: str) -> Iterator[tuple[str, bytes | None]]:
    """The notes that link to ``old``, with their new bytes; None for one that is left."""
    mark = old.encode()
    plain = re.fullmatch(r"[\w .-]+", old) is not None  # written as it is, wherever it stands
    for path in {*change.store.paths(), *change.paths} - {TOMBSTONES}:
        try:
            data = change.read(path)
        except StoreError:  # a link or a folder: no note of ours
            continue
        if data is None or (plain and mark not in data):
            continue
        try:
            linked = relink(data, path, old, new)
        except NoteError:
            if mark in data:
                yield path, None
            continue
        if linked != data:
            yield path, None if has_secret(data) else linked


def relink(data: bytes, path: str, old: str, new: str) -> bytes:
    """A note's bytes with its links to ``old`` made links to ``new``; all else is kept.

    Raises ``NoteError`` when the header cannot be parsed.
    """
    note = notes.parse(data, path)
    changes: dict[str, notes.Value] = {}
    for key in _LISTS:
        items: tuple[str, ...] = getattr(note, key)
        if old in items:
            changes[key] = tuple(dict.fromkeys(new if each == old else each for each in items))
    if note.superseded_by == old:
        changes["superseded_by"] = new
    parts = header.split(notes.update(data, **changes))
    link = re.compile(rb"\[\[([ \t]*)" + re.escape(old.encode()) + rb"([ \t]*)\]\]")
    body = link.sub(lambda found: b"[[" + found[1] + new.encode() + found[2] + b"]]", parts.body)
    return replace(parts, body=body).join()
