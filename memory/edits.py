"""What a person did in a store by hand, taken into the baseline as theirs.

An edit counts once its file has been still for a minute, so that no half-written thought becomes
history. A deleted note leaves a tombstone; one that turns up elsewhere was moved, and one put back
lifts its tombstone. Many notes gone at once are no decision but an accident until a person says
otherwise: the store is held. A file that matches a plan is ours, whoever finds it first.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace

from memoryd.memory import seams
from memoryd.memory.baseline import Baseline, blob_id
from memoryd.memory.errors import StoreError, StoreHeld
from memoryd.memory.files import sha256
from memoryd.memory.store import TOMBSTONES, Store
from memoryd.memory.theirs import commit_theirs, has_secret
from memoryd.memory.tombstones import Forgotten, Span, Tombstones

#: How long a file (or, for a deletion, its folder) must have been left alone.
STILL_MS = 60_000

#: Notes gone at once that hold a store: this many, or a third of it where that is three or more.
MASS_NOTES = 20
MASS_SHARE = 3
MASS_AT_LEAST = 3


#: The (message id, exact words) a note at a path stands on, as far as they are known.
SpansOf = Callable[[str], Iterable[Span]]


def _unknown(path: str) -> Iterable[Span]:
    return ()


@dataclass(frozen=True)
class EditsOutcome:
    """What was committed, and what was left and why. All are paths.

    ``forgotten`` were deleted and have tombstones; ``moved`` turned up elsewhere; ``waiting`` are
    not still yet; ``secret`` hold a secret; ``unreadable`` are links, folders or too large.
    """

    commit: str | None = None
    edited: tuple[str, ...] = ()
    forgotten: tuple[str, ...] = ()
    moved: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    secret: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()


@dataclass
class _Found:
    """The changed files of a store, sorted by what is to become of them."""

    known: dict[str, str]
    edits: dict[str, bytes | None] = field(default_factory=dict)
    blobs: dict[str, str] = field(default_factory=dict)
    planned: list[str] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    secret: list[str] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    vanished: list[str] = field(default_factory=list)
    moved: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)


def commit_person_edits(
    store: Store,
    *,
    now_ms: int,
    planned: Collection[str] = (),
    spans: SpansOf = _unknown,
    accept_vanished: bool = False,
    wait_seconds: float = 0.0,
) -> EditsOutcome:
    """Commit what a person changed in ``store`` and has left alone for a minute.

    ``planned`` are the sha256 of the files that standing plans leave; ``spans`` gives the words a
    note at a path stood on, so that a deleted one is not learned from them again.
    ``accept_vanished`` is a person's word that what vanished was meant to, at once. Raises
    ``StoreBusy`` when another still writes after ``wait_seconds``, ``StoreHeld`` (nothing was
    committed) and ``BaselineError``.
    """
    baseline = Baseline(store)
    if not baseline.exists() and not store.root.exists():
        return EditsOutcome()
    with store.writer_lock(wait_seconds):
        baseline.ensure()
        found = _look(baseline, now_ms, planned)
        if not accept_vanished:
            _require_no_mass(store, found)
        forgotten = [path for path in found.gone if accept_vanished or _still(store, path, now_ms)]
        found.waiting += [path for path in found.gone if path not in forgotten]
        files = found.edits | dict.fromkeys(forgotten) | dict.fromkeys(found.moved)
        if not store.is_profile:
            files |= _tombstones(baseline, found, forgotten, spans, now_ms)
        made = commit_theirs(baseline, files, now_ms) if files else None
        if made:
            seams.reach("store.committed")
            store.refresh_index()
    return EditsOutcome(
        made,
        tuple(found.edits),
        tuple(forgotten),
        tuple(found.moved),
        tuple(sorted(found.waiting)),
        tuple(found.secret),
        tuple(found.unreadable),
    )


def require_not_held(store: Store) -> None:
    """Raise ``StoreHeld`` where so much vanished that a person must decide; nothing is changed."""
    baseline = Baseline(store)
    if not baseline.exists() or store.is_profile:
        return
    if store.root.is_dir():
        found = _look(baseline, 0, ())
    else:
        found = _Found(baseline.files())
        found.gone = [path for path in found.known if path != TOMBSTONES]
    _require_no_mass(store, found)


def put_back(store: Store) -> tuple[str, ...]:
    """Write every note that vanished back as ``HEAD`` has it; their paths come back."""
    baseline = Baseline(store)
    with store.writer_lock():
        baseline.ensure()
        gone = _look(baseline, 0, ()).gone
        for path in gone:
            data = baseline.show("HEAD", path)
            if data is not None:
                store.replace(path, data, found=None)
        store.refresh_index()
    return tuple(gone)


def forgotten_files(
    store: Store, files: Iterable[tuple[str, bytes | None]], spans: SpansOf = _unknown
) -> list[Forgotten]:
    """What the tombstones of these files say; a name that another note still has is left out."""
    names = {note.name for note in store.notes()}
    made = [Forgotten.of_file(path, data, spans(path)) for path, data in files if data is not None]
    return [replace(each, name="") if each.name in names else each for each in made]


def _look(baseline: Baseline, now_ms: int, planned: Collection[str]) -> _Found:
    found = _Found(baseline.files())
    for path in baseline.changed_paths():
        _sort(baseline.store, found, path, now_ms, planned)
    for path in found.vanished:
        _trace(baseline.store, found, path, now_ms)
    return found


def _sort(store: Store, found: _Found, path: str, now_ms: int, planned: Collection[str]) -> None:
    try:
        data = store.read(path)
    except StoreError:
        found.unreadable.append(path)
        return
    is_note = not store.is_profile and path != TOMBSTONES
    if data is None and is_note:
        found.vanished.append(path)
        return
    if data is not None:
        found.blobs[path] = blob_id(data)
    if data is not None and sha256(data) in planned:
        found.planned.append(path)
    elif not _still(store, path, now_ms):
        found.waiting.append(path)
    elif has_secret(data):
        found.secret.append(path)
    else:
        found.edits[path] = data


def _trace(store: Store, found: _Found, path: str, now_ms: int) -> None:
    """Say whether a note that is not at ``path`` any more was moved, by us or by a person."""
    name = path.rpartition("/")[2]
    elsewhere = [
        other
        for other, blob in found.blobs.items()
        if other not in found.known
        and (blob == found.known[path] or other.rpartition("/")[2] == name)
    ]
    if any(other in found.planned for other in elsewhere):
        return  # ours: the plan commits both sides
    if elsewhere and not any(other in found.edits for other in elsewhere):
        found.waiting.append(path)
    elif elsewhere:
        found.moved.append(path)
    elif _in_another_store(store, name, found.known[path]):
        (found.moved if _still(store, path, now_ms) else found.waiting).append(path)
    else:
        found.gone.append(path)


def _in_another_store(store: Store, name: str, blob: str) -> bool:
    for root in store.home.projects.glob("*/memory"):
        other = Store.for_project(store.home, root.parent.name)
        if other.key == store.key:
            continue
        for path in other.paths_named(name):
            try:
                data = other.read(path)
            except StoreError:  # unreadable there is not moved there
                continue
            if data is not None and blob_id(data) == blob:
                return True
    return False


def _still(store: Store, path: str, now_ms: int) -> bool:
    """Left alone for a minute; a time of change in the future (a clock was set) counts as past."""
    return abs(now_ms - store.changed_at_ms(path)) >= STILL_MS


def _require_no_mass(store: Store, found: _Found) -> None:
    gone = len(found.gone)
    total = sum(1 for path in found.known if path != TOMBSTONES)
    if gone >= MASS_NOTES or (gone >= MASS_AT_LEAST and gone * MASS_SHARE >= total):
        raise StoreHeld(
            f"{gone} of {total} notes of {store.key} vanished at once",
            hint=f"`memoryd memory restore --project {store.key}` puts them back,"
            " with --let-go it forgets them",
        )


def _tombstones(
    baseline: Baseline, found: _Found, forgotten: list[str], spans: SpansOf, now_ms: int
) -> dict[str, bytes | None]:
    """Write the tombstones of what was deleted, and lift those of what was put back."""
    store = baseline.store
    back = [
        Forgotten.of_file(path, data)
        for path, data in found.edits.items()
        if data is not None and path != TOMBSTONES and path not in found.known
    ]
    if not back and not forgotten:
        return {}
    old = Tombstones.of(store)
    files = ((path, baseline.show("HEAD", path)) for path in forgotten)
    gone = forgotten_files(store, files, spans)
    new = old.lift(*back).add(*gone, now_ms=now_ms)
    return write_tombstones(store, old, new)


def write_tombstones(store: Store, old: Tombstones, new: Tombstones) -> dict[str, bytes | None]:
    """Put ``new`` in the place of ``old``; what is to be committed of it comes back.

    Raises ``StoreError`` when the file changed meanwhile.
    """
    if new.data != old.data:
        found = store.digest(TOMBSTONES)
        if (store.read(TOMBSTONES) or b"") != old.data or not store.replace(
            TOMBSTONES, new.data, found=found
        ):
            raise StoreError(f"the tombstones of {store.key} changed meanwhile", hint="try again")
        seams.reach("store.replaced")
    return {TOMBSTONES: store.read(TOMBSTONES)}
