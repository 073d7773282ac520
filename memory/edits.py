"""What a person did in a store by hand, taken into the baseline as theirs.

An edit counts once its file has been still for a minute, so that no half-written thought becomes
history. A deleted note leaves a tombstone; one that turns up elsewhere was moved, and one put back
lifts its tombstone. Many notes gone at once are no decision but an accident until a person says
otherwise: the store is held. A file that matches a plan is ours, whoever finds it first.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from memoryd.memory import seams
from memoryd.memory.baseline import Baseline
from memoryd.memory.clock import instant_ms
from memoryd.memory.errors import NoteError, StoreError
from memoryd.memory.files import sha256
from memoryd.memory.found import Found, is_still, look
from memoryd.memory.notes import parse
from memoryd.memory.store import TOMBSTONES, Store
from memoryd.memory.theirs import commit_theirs
from memoryd.memory.tombstones import Forgotten, Span, Tombstones, added_and_taken, with_lines
from memoryd.memory.vanished import Moved, is_empty, is_mass, require_folder, require_no_mass

#: How long a file (or, for a deletion, its folder) must have been left alone.
STILL_MS = 60_000

#: How far ahead of the clock and the history a note's own date may be.
_NEAR_MS = 24 * 3600 * 1000

#: How long after the time in its header a note that was saved is on disk.
_SAVED_WITHIN_MS = 2_000

#: The (message id, exact words) a note at a path stands on, as far as they are known.
SpansOf = Callable[[str], Iterable[Span]]


def unknown_spans(path: str) -> Iterable[Span]:
    """Nothing is known of what any note stands on."""
    return ()


@dataclass(frozen=True)
class EditsOutcome:
    """What was committed, and what was left and why. All but ``moved`` are paths.

    ``forgotten`` were deleted and have tombstones; ``moved`` turned up elsewhere; ``waiting`` are
    not still yet; ``secret`` hold a secret; ``unreadable`` are links, folders, too large, kept by
    a cloud drive or its conflicted copies of other notes.
    """

    commit: str | None = None
    edited: tuple[str, ...] = ()
    forgotten: tuple[str, ...] = ()
    moved: tuple[Moved, ...] = ()
    waiting: tuple[str, ...] = ()
    secret: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()


def commit_person_edits(
    store: Store,
    *,
    now_ms: int,
    planned: Collection[str] = (),
    spans: SpansOf = unknown_spans,
    accept_vanished: bool = False,
    wait_seconds: float = 0.0,
) -> EditsOutcome:
    """Commit what a person changed in ``store`` and has left alone for a minute.

    ``planned`` are the sha256 of the files that standing plans leave; ``spans`` gives the words a
    note at a path stood on, so that a deleted one is not learned from them again.
    ``accept_vanished`` is a person's word that a mass disappearance was meant. Raises
    ``StoreBusy`` when another still writes after ``wait_seconds``, ``StoreHeld`` (nothing was
    committed) and ``BaselineError``.
    """
    baseline = Baseline(store)
    if not store.root.is_dir() and not accept_vanished:
        # Not made anew: a person who moves the folder back would find another in its place.
        require_folder(baseline)
        return EditsOutcome()
    with store.writer_lock(wait_seconds):
        baseline.ensure()
        found = look(baseline, now_ms, planned)
        if not accept_vanished:
            require_no_mass(store, _accidents(baseline, found), found.known)
        forgotten = [
            path for path in found.gone if accept_vanished or is_still(store, path, now_ms)
        ]
        found.waiting += [path for path in found.gone if path not in forgotten]
        moved = dict.fromkeys(each.path for each in found.moved)
        files = found.edits | dict.fromkeys(forgotten) | moved
        if not store.is_profile:
            files |= _tombstones(baseline, found, forgotten, spans, now_ms)
        ours = _unfinished(baseline, found, files) if baseline.head() else {}
        made = None
        if ours or files:
            seams.before("edits.committed")
        if ours:
            subject = f"Save {', '.join(list(ours)[:3])}"
            made = baseline.commit(ours, subject, author="memoryd", now_ms=now_ms)
            files = {path: data for path, data in files.items() if path not in ours}
        made = commit_theirs(baseline, files, now_ms) if files else made
        if made:
            seams.reach("edits.committed")
            store.refresh_index()
    return EditsOutcome(
        made,
        tuple(found.edits),
        tuple(forgotten),
        _with_names(baseline, found),
        tuple(sorted(found.waiting)),
        tuple(found.secret),
        tuple(found.unreadable),
    )


def _unfinished(
    baseline: Baseline, found: Found, files: Mapping[str, bytes | None]
) -> dict[str, bytes | None]:
    """The new notes of a save that died before its commit: ours, not the person's.

    Such a file was written in the very second that its header says it was created and its words
    hold from, and nobody touched it since.
    """
    moved = {each.to for each in found.moved}
    return {
        path: data
        for path, data in files.items()
        if path not in found.known and path not in moved and _is_as_created(baseline, path, data)
    }


def _is_as_created(baseline: Baseline, path: str, data: bytes | None) -> bool:
    if data is None or path == TOMBSTONES:
        return False
    try:
        note = parse(data, path)
        created = instant_ms(note.created) if note.created == note.valid_from else None
    except (NoteError, ValueError):  # a person's own header
        return False
    written_ms = baseline.store.changed_at_ms(path)[0]
    return created is not None and 0 <= written_ms - created < _SAVED_WITHIN_MS


def _with_names(baseline: Baseline, found: Found) -> tuple[Moved, ...]:
    """The moves, with what the notes were and are called where that can be read."""
    before = baseline.contents({found.known[each.path] for each in found.moved})

    def named(moved: Moved) -> Moved:
        """One move; as it is where a name cannot be read."""
        data = found.edits.get(moved.to)
        if data is None or moved.store is not None:
            return moved
        try:
            old = parse(before[found.known[moved.path]], moved.path).id
            return replace(moved, names=(old, parse(data, moved.to).id))
        except NoteError:
            return moved

    return tuple(named(each) for each in found.moved)


def put_back(store: Store) -> tuple[str, ...]:
    """Write every note that vanished, or became empty, back as ``HEAD`` has it; their paths."""
    baseline = Baseline(store)
    with store.writer_lock():
        baseline.ensure()
        found = look(baseline, 0, ())
        back = tuple(path for path in (*found.gone, *found.emptied) if _put_back(baseline, path))
        store.refresh_index()
    return back


def _put_back(baseline: Baseline, path: str) -> bool:
    """Whether it was: a person may have put theirs there meanwhile, which stands."""
    there = baseline.store.read(path)
    data = baseline.show("HEAD", path)
    if data is None or not (there is None or is_empty(there)):
        return False
    found = None if there is None else sha256(there)
    return baseline.store.replace(path, data, found=found)


def forgotten_files(
    store: Store, files: Iterable[tuple[str, bytes | None]], spans: SpansOf = unknown_spans
) -> list[Forgotten]:
    """What the tombstones of these files say; a name that another note still has is left out."""
    gone = dict(files)
    names = {note.name for note in store.notes() if note.path not in gone}
    made = [
        Forgotten.of_file(path, data, spans(path))
        for path, data in gone.items()
        if data is not None
    ]
    return [replace(each, name="") if each.name in names else each for each in made]


def moment(baseline: Baseline, forgotten: Iterable[Forgotten], now_ms: int) -> int:
    """When ``forgotten`` was forgotten (ms): ``now_ms``, and after all that was known by then.

    A clock that went back must not make of the words that were forgotten words said since. What a
    note itself says of its age is believed as far as it is near to that.
    """
    at = max([now_ms, *(each.at_ms for each in baseline.log(1))])
    said = (each.said_ms for each in forgotten)
    return max([at, *(each for each in said if each <= at + _NEAR_MS)])


def require_not_held(
    store: Store, *, now_ms: int = 0, planned: Callable[[], Collection[str]] = tuple
) -> None:
    """Raise ``StoreHeld`` where too many notes vanished at once; nothing is changed.

    Cheap where nothing did: only the names are looked at. The caller holds the writer lock.
    """
    baseline = Baseline(store)
    baseline.require_history()
    if not store.root.is_dir():
        return require_folder(baseline)
    known = baseline.files()
    here = {*store.paths()}
    gone = sum(1 for path in known if path not in here or not _has_bytes(store, path))
    if is_mass(gone, len(known)):
        found = look(baseline, now_ms, planned())
        require_no_mass(store, _accidents(baseline, found), found.known)
    return None


def _accidents(baseline: Baseline, found: Found) -> int:
    """How many notes are gone or became empty, and no tombstone since then says it was meant.

    One does where a person forgot them and the machine went down half way.
    """
    gone = len(found.gone) + len(found.emptied)
    if baseline.store.is_profile or not is_mass(gone, len(found.known.keys() - {TOMBSTONES})):
        return gone
    tombstones = Tombstones.of(baseline.store)
    contents = baseline.contents({found.known[path] for path in found.gone})
    return gone - sum(
        tombstones.covers(
            Forgotten.of_file(path, contents[found.known[path]]),
            since_ms=baseline.committed_at_ms(path),
        )
        for path in (found.gone if tombstones.data else ())
    )


def _has_bytes(store: Store, path: str) -> bool:
    try:
        return (store.root / path).lstat().st_size > 0
    except OSError:
        return False


def _tombstones(
    baseline: Baseline, found: Found, forgotten: list[str], spans: SpansOf, now_ms: int
) -> dict[str, bytes | None]:
    """Write the tombstones of what was deleted, and lift those of what was put back."""
    store = baseline.store
    back = [
        Forgotten.of_file(path, data)
        for path, data in found.edits.items()
        if found.known and data is not None and path != TOMBSTONES and path not in found.known
    ]
    notes = found.edits.keys() - {TOMBSTONES}
    if not (back or forgotten or (TOMBSTONES in found.edits and notes)):
        return {}
    old = Tombstones.of(store)
    contents = baseline.contents({found.known[path] for path in forgotten})
    files = [(path, contents[found.known[path]]) for path in forgotten]
    gone = forgotten_files(store, files, spans)
    kept = Tombstones.of(store, _with_those_of_head(baseline, found, old.data))
    at = moment(baseline, gone, now_ms)
    return write_tombstones(store, old, kept.lift(*back).add(*gone, now_ms=at))


def _with_those_of_head(baseline: Baseline, found: Found, data: bytes) -> bytes:
    """``data`` with the tombstones that ``HEAD`` has and it lost.

    A person may take lines out of the file. Where notes changed with it, an old commit was checked
    out over the store: that brings its notes back, and forgets none of what was forgotten since.
    """
    if TOMBSTONES not in found.known or TOMBSTONES not in {*found.edits, *found.waiting}:
        return data
    head = baseline.show("HEAD", TOMBSTONES) or b""
    lost = added_and_taken(head, data)[1]
    return with_lines(data, lost, []) if lost else data


def write_tombstones(store: Store, old: Tombstones, new: Tombstones) -> dict[str, bytes | None]:
    """Put ``new`` in the place of ``old``; what is to be committed of it comes back.

    Raises ``StoreError`` when the file changed meanwhile.
    """
    if new.data != old.data:
        found = store.read(TOMBSTONES)
        digest = None if found is None else sha256(found)
        if (found or b"") != old.data or not store.replace(TOMBSTONES, new.data, found=digest):
            raise StoreError(f"the tombstones of {store.key} changed meanwhile", hint="try again")
        seams.reach("store.replaced")
        return {TOMBSTONES: new.data}
    return {TOMBSTONES: store.read(TOMBSTONES)}
