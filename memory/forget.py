"""Forgetting a note because a person said so: the file goes, a tombstone comes, in one commit."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from memoryd.memory import seams
from memoryd.memory.baseline import Baseline, blob_id
from memoryd.memory.clock import Clock
from memoryd.memory.edits import forgotten_files, write_tombstones
from memoryd.memory.errors import NoteError, StoreError, UsageError
from memoryd.memory.home import Home
from memoryd.memory.ids import uuid7
from memoryd.memory.notes import ARCHIVE, parse
from memoryd.memory.store import TOMBSTONES, Store
from memoryd.memory.theirs import commit_theirs, has_secret
from memoryd.memory.tombstones import Span, Tombstones


@dataclass(frozen=True)
class Deleted:
    """The note that was deleted: where it was, the commit, and the id that undoes it."""

    path: str
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
        now_ms = clock.now_ms()
        _keep(baseline, path, now_ms)
        found = store.digest(path)
        if found is not None and not store.remove(path, found=found):
            raise StoreError(f"{path} changed at this moment", hint="look at it, then try again")
        seams.reach("store.replaced")
        old = Tombstones.of(store)
        gone = forgotten_files(store, [(path, data)], lambda _: spans)
        files = {path: None, **write_tombstones(store, old, old.add(*gone, now_ms=now_ms))}
        identity = uuid7(now_ms)
        title = f"Forget {path}"
        made = baseline.commit(files, title, {"Memoryd-Job": identity}, "person", now_ms=now_ms)
        seams.reach("store.committed")
        store.refresh_index()
    return Deleted(path, made, identity)


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
