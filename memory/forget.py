"""Forgetting because a person said so: the files go, tombstones come, in one commit.

Deleting takes one note away and leaves its older versions in the archive. Forgetting takes those
too, and reaches words that no note holds yet.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from memoryd.memory import seams
from memoryd.memory.baseline import Baseline, blob_id
from memoryd.memory.clock import Clock
from memoryd.memory.derived import follow_index
from memoryd.memory.edits import SpansOf, forgotten_files, unknown_spans, write_tombstones
from memoryd.memory.errors import NoteError, StoreError, UsageError
from memoryd.memory.home import Home
from memoryd.memory.ids import uuid7
from memoryd.memory.notes import ARCHIVE, Note, parse
from memoryd.memory.store import TOMBSTONES, Store
from memoryd.memory.text import fold, words
from memoryd.memory.theirs import commit_theirs, has_secret
from memoryd.memory.tombstones import Forgotten, Span, Tombstones


@dataclass(frozen=True)
class Deleted:
    """The note that was deleted: where it was, the commit, and the id that undoes it."""

    path: str
    commit: str
    id: str


@dataclass(frozen=True)
class Forgot:
    """What was forgotten: the paths of the notes, the commit, and the id that undoes it."""

    paths: tuple[str, ...]
    commit: str
    id: str


def delete_note(
    home: Home, store: Store, name: str, *, clock: Clock, spans: Iterable[Span] = ()
) -> Deleted:
    """Delete the note ``name`` (a name, ``type/name`` or a path) for good, as the person's wish.

    ``spans`` are the (message id, exact words) it stood on, where they are known, so that no other
    wording of them is learned again. History keeps the note: ``undo`` gives it back. Raises
    ``UsageError`` when no note or more than one has the name, and ``StoreBusy``.
    """
    baseline = Baseline(store)
    with store.writer_lock():
        baseline.ensure()
        path, data = _named(baseline, name)
        made = _forget(baseline, {path: data}, (), lambda _: spans, clock.now_ms())
    return Deleted(path, made.commit, made.id)


def forget(
    store: Store,
    paths: Collection[str],
    *,
    clock: Clock,
    spans: SpansOf = unknown_spans,
    said: Collection[Forgotten] = (),
) -> Forgot:
    """Forget the notes at ``paths`` and what else was ``said``, in one commit that ``undo`` undoes.

    ``spans`` gives the (message id, exact words) a note at a path stood on; ``said`` are words that
    are in no note: candidates in review, statements of a person. Raises ``UsageError`` when a path
    is no note's, and ``StoreBusy``; then nothing was written.
    """
    baseline = Baseline(store)
    with store.writer_lock():
        baseline.ensure()
        files = {path: _read(store, path) for path in paths}
        missing = [path for path, data in files.items() if data is None]
        if missing:
            raise UsageError(
                f"{store.key} has no {missing[0]!r} any more", hint="look again, then try again"
            )
        return _forget(baseline, files, said, spans, clock.now_ms())


def with_versions(notes: Sequence[Note], chosen: Iterable[Note]) -> list[Note]:
    """``chosen`` and all that they superseded: the archived notes of their names, and so on."""
    found = {note.path: note for note in chosen}
    waiting = list(found.values())
    while waiting:
        note = waiting.pop()
        for other in notes:
            if other.path not in found and other.archived and _superseded_by(other, note):
                found[other.path] = other
                waiting.append(other)
    return list(found.values())


def tells(note: Note, text: str) -> bool:
    """Whether a note holds ``text``: its words in a row, or all of them somewhere in it."""
    whole = f"{note.name}\n{note.description}\n{note.body}"
    return told(whole, text)


def told(whole: str, text: str) -> bool:
    """The same for any text. Case, accents and white space do not count."""
    wanted = fold(text).casefold()
    asked = set(words(text))
    return bool(wanted) and (
        wanted in fold(whole).casefold() or (bool(asked) and asked <= set(words(whole)))
    )


def _superseded_by(old: Note, new: Note) -> bool:
    named = {new.name, new.id, new.path}
    return old.superseded_by in named or bool({old.name, old.id, old.path} & set(new.supersedes))


def _forget(
    baseline: Baseline,
    notes: Mapping[str, bytes | None],
    said: Collection[Forgotten],
    spans: SpansOf,
    now_ms: int,
) -> Forgot:
    """Take the notes away and leave tombstones. The caller holds the writer lock."""
    store = baseline.store
    for path in notes:
        _keep(baseline, path, now_ms)
        found = store.digest(path)
        if found is not None and not store.remove(path, found=found):
            raise StoreError(f"{path} changed at this moment", hint="look at it, then try again")
        seams.reach("store.replaced")
    old = Tombstones.of(store)
    gone = [*forgotten_files(store, notes.items(), spans), *said]
    files = dict.fromkeys(notes, None) | write_tombstones(store, old, old.add(*gone, now_ms=now_ms))
    identity = uuid7(now_ms)
    shown = ", ".join(list(notes)[:3]) + (" ..." if len(notes) > 3 else "")
    title = f"Forget {shown or 'what was not kept yet'}"
    made = baseline.commit(files, title, {"Memoryd-Job": identity}, "person", now_ms=now_ms)
    seams.reach("store.committed")
    follow_index(store)
    return Forgot(tuple(notes), made, identity)


def _named(baseline: Baseline, name: str) -> tuple[str, bytes]:
    """The note called ``name``: in the store, else in ``HEAD`` (its file is gone already)."""
    here: dict[str, bytes] = {}
    gone: dict[str, bytes] = {}
    for path in {*baseline.store.paths(), *baseline.files()} - {TOMBSTONES}:
        data = _read(baseline.store, path)
        if data is not None and name in _names(path, data):
            here[path] = data
        elif data is None and path.endswith(f"/{name.rpartition('/')[2].removesuffix('.md')}.md"):
            gone[path] = baseline.show("HEAD", path) or b""
    live = {path: data for path, data in here.items() if not path.startswith(f"{ARCHIVE}/")}
    found = live or here or gone
    if len(found) != 1:
        raise UsageError(
            f"{len(found) or 'no'} notes of {baseline.store.key} are called {name!r}",
            hint=", ".join(sorted(found)) or "`memoryd memory list` shows them",
        )
    return next(iter(found.items()))


def _read(store: Store, path: str) -> bytes | None:
    try:
        return store.read(path)
    except StoreError:  # a link or a folder is no note to forget
        return b""


def _names(path: str, data: bytes) -> set[str]:
    try:
        note = parse(data, path)
    except NoteError:
        return {path, path.rpartition("/")[2].removesuffix(".md")}
    return {path, note.name, note.id}


def _keep(baseline: Baseline, path: str, now_ms: int) -> None:
    """Commit a person's uncommitted version first, so that undo can give it back."""
    data = baseline.store.read(path)
    if data is None or baseline.files(None, path).get(path) == blob_id(data) or has_secret(data):
        return
    commit_theirs(baseline, {path: data}, now_ms)
