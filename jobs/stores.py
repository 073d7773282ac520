"""Stores at work: what a person did to them counts before anything is decided on them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial

from memoryd.jobs.usage import follow_edits
from memoryd.jobs.workplace import Workplace
from memoryd.memory.baseline import Baseline, blob_id
from memoryd.memory.edits import commit_person_edits
from memoryd.memory.errors import NoteError, StoreError
from memoryd.memory.files import sha256
from memoryd.memory.notes import Note, parse
from memoryd.memory.store import Store

#: Two workers often end sessions of one project together: the second waits for a commit or two.
WRITER_WAIT_SECONDS = 5.0


def take_in_edits(place: Workplace, stores: Iterable[str]) -> None:
    """Commit what a person did to these stores (by key) and has left alone.

    No daemon may have run since: a note deleted by hand would be written again by the same words.
    Raises ``StoreHeld`` where too much vanished at once: the job waits for the person.
    """
    planned = place.ledger.records.planned_contents()
    for key in sorted(set(stores)):
        edits = commit_person_edits(
            Store.for_project(place.home, key),
            now_ms=place.clock.now_ms(),
            planned=planned,
            spans=partial(place.ledger.records.evidence, key),
            wait_seconds=WRITER_WAIT_SECONDS,
        )
        follow_edits(place.ledger.usage, key, edits)


def as_committed(
    store: Store, notes: Sequence[Note], standing: Mapping[str, Collection[str | None]]
) -> list[Note]:
    """``notes`` without what plans that stand have left uncommitted, which may yet be given up.

    ``standing`` is what they leave, by path (``Records.standing_files``). Of a note that they
    changed or took away the committed version is told.
    """
    baseline, found = Baseline(store), {note.path: note for note in notes}
    for path, left in standing.items():
        try:
            data = store.read(path)
            head = baseline.show("HEAD", path) if baseline.head() else None
            if data == head or (None if data is None else sha256(data)) not in left:
                continue
            found.pop(path, None)
            if head is not None and "/" in path:
                found[path] = parse(head, path)
        except (NoteError, StoreError):  # it tells nothing, as in ``Store.notes``
            continue
    return list(found.values())


def by_person(store: Store, planned: Callable[[], set[str]]) -> Callable[[str], bool]:
    """The question whether a person changed a file of the store last, committed as theirs or not.

    ``planned`` gives the sha256 of what standing plans leave: never a person's version.
    """
    baseline = Baseline(store)

    def theirs(path: str) -> bool:
        if baseline.last_author(path) == "person":
            return True
        data = store.read(path)
        if data is None or baseline.files(None, path).get(path) == blob_id(data):
            return False
        return sha256(data) not in planned()

    return theirs
