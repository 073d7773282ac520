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
from memoryd.memory.derived import follow_forget
from memoryd.memory.edits import SpansOf, forgotten_files, moment, unknown_spans
from memoryd.memory.errors import NoteError, StoreError, UsageError
from memoryd.memory.home import Home
from memoryd.memory.ids import uuid7
from memoryd.memory.notes import ARCHIVE, Note, parse
from memoryd.memory.proposals import MergeProposal, Proposal
from memoryd.memory.store import TOMBSTONES, Store
from memoryd.memory.text import fold, statement_key, words
from memoryd.memory.theirs import commit_theirs, has_secret
from memoryd.memory.together import Rewrite, write_together
from memoryd.memory.tombstones import Forgotten, Span, Tombstones

#: From so many words on, a line of a note is known for its own wherever it stands.
_OWN_WORDS = 4


@dataclass(frozen=True)
class Deleted:
    """The note that was deleted: where it was, the commit, and the id that undoes it.

    ``lost``: it held a secret that is in no history, and no undo gives it back as it was.
    """

    path: str
    commit: str
    id: str
    lost: bool = False


@dataclass(frozen=True)
class Forgot:
    """What was forgotten: the paths of the notes, the commit, and the id that undoes it.

    ``lost`` are those of them that no undo gives back as they were.
    """

    paths: tuple[str, ...]
    commit: str
    id: str
    lost: tuple[str, ...] = ()


def delete_note(
    home: Home,
    store: Store,
    name: str,
    *,
    clock: Clock,
    spans: Iterable[Span] = (),
    heard_ms: int = 0,
    anyway: bool = False,
) -> Deleted:
    """Delete the note ``name`` (a name, ``type/name`` or a path) for good, as the person's wish.

    ``spans`` are the (message id, exact words) it stood on, where they are known, so that no other
    wording of them is learned again. History keeps the note: ``undo`` gives it back. ``heard_ms``
    and ``anyway`` as for ``forget``. Raises ``UsageError`` when no note or more than one has the
    name, and as ``forget`` does.
    """
    baseline = Baseline(store)
    with store.writer_lock():
        baseline.ensure()
        path, found, data = _named(baseline, name)
        going = _Going(baseline, {path: found}, {path: data}, max(clock.now_ms(), heard_ms), anyway)
        made = _forget(going, (), lambda _: spans)
    return Deleted(path, made.commit, made.id, bool(made.lost))


def forget(
    store: Store,
    paths: Collection[str],
    *,
    clock: Clock,
    spans: SpansOf = unknown_spans,
    said: Collection[Forgotten] = (),
    heard_ms: int = 0,
    anyway: bool = False,
) -> Forgot:
    """Forget the notes at ``paths`` and what else was ``said``, in one commit that ``undo`` undoes.

    ``spans`` gives the (message id, exact words) a note at a path stood on; ``said`` are words that
    are in no note: candidates in review, statements of a person. ``heard_ms`` is when the newest
    message that is known was said: it was before this, whatever the clock says now. A version with
    a secret is in no history: only ``anyway`` lets it go. Raises ``UsageError`` for it and when a
    path is no note's, ``StoreError`` when a file changed at this moment, and ``StoreBusy``; then
    no note is gone.
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
        going = _Going(baseline, files, files, max(clock.now_ms(), heard_ms), anyway)
        return _forget(going, said, spans)


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


def proposes(proposal: Proposal, notes: Iterable[Note], texts: Iterable[str] = ()) -> bool:
    """Whether what waits in review rests on one of ``notes``, or would write words of it.

    ``texts`` are words that are to be in nothing that is written. A short line that many notes
    share is none of the words of one.
    """
    written = _written(proposal)
    whole = statement_key(written)
    named = {proposal.into, *proposal.supersedes} if isinstance(proposal, MergeProposal) else set()
    return any(told(written, text) for text in texts) or any(
        note.path in named or any(key in whole for key in _own_words(note)) for note in notes
    )


def _written(proposal: Proposal) -> str:
    if isinstance(proposal, MergeProposal):
        return f"{proposal.description}\n{proposal.content}"
    note = proposal.note
    return "\n".join((proposal.statement, *((note.description, note.content) if note else ())))


def _own_words(note: Note) -> set[str]:
    keys = {statement_key(text) for text in (note.description, note.body, *note.body.splitlines())}
    return {key for key in keys if len(words(key)) >= _OWN_WORDS}


def _superseded_by(old: Note, new: Note) -> bool:
    named = {new.name, new.id, new.path}
    return old.superseded_by in named or bool({old.name, old.id, old.path} & set(new.supersedes))


@dataclass(frozen=True)
class _Going:
    """The notes that are to go: the files as found (None: gone already), and what they said."""

    baseline: Baseline
    found: Mapping[str, bytes | None]
    notes: Mapping[str, bytes | None]
    now_ms: int
    anyway: bool


def _forget(going: _Going, said: Collection[Forgotten], spans: SpansOf) -> Forgot:
    """Leave tombstones, then take the notes away. The caller holds the writer lock.

    A crash in between leaves what says that they were meant to go.
    """
    baseline, store = going.baseline, going.baseline.store
    found = store.read(TOMBSTONES)
    old = Tombstones.of(store, found or b"")
    lost = _keep(going)
    gone = [*forgotten_files(store, going.notes.items(), spans), *said]
    data = old.add(*gone, now_ms=moment(baseline, gone, going.now_ms)).data
    write_together(
        [
            Rewrite(store, TOMBSTONES, found, data if data or found is not None else None),
            *(Rewrite(store, path, each, None) for path, each in going.found.items()),
        ]
    )
    files = dict.fromkeys(going.notes, None) | {TOMBSTONES: data}
    identity = uuid7(going.now_ms)
    shown = ", ".join(list(going.notes)[:3]) + (" ..." if len(going.notes) > 3 else "")
    title = f"Forget {shown or 'what was not kept yet'}"
    made = baseline.commit(files, title, {"Memoryd-Job": identity}, "person", now_ms=going.now_ms)
    seams.reach("store.committed")
    follow_forget(store)
    return Forgot(tuple(going.notes), made, identity, lost)


def _keep(going: _Going) -> tuple[str, ...]:
    """Commit a person's uncommitted versions first, so that undo can give them back.

    The paths of those that must not be in a history come back. Raises ``UsageError`` for them
    unless they are to go anyway; then nothing was committed.
    """
    known = going.baseline.files(None, *going.found) if going.found else {}
    news = {
        path: data
        for path, data in going.found.items()
        if data is not None and known.get(path) != blob_id(data)
    }
    lost = tuple(path for path, data in news.items() if has_secret(data, path))
    if lost and not going.anyway:
        raise UsageError(
            f"{', '.join(lost)}: what was changed there by hand holds a secret, so no history"
            " has it and no undo could bring it back",
            hint="take the secret out first, or let it go for good with --anyway",
        )
    for path in news.keys() - set(lost):
        commit_theirs(going.baseline, {path: news[path]}, going.now_ms)
    return lost


def _named(baseline: Baseline, name: str) -> tuple[str, bytes | None, bytes]:
    """The note called ``name``: its path, its file, and what it says.

    It is in the store, else in ``HEAD``: its file is gone already.
    """
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
    path, data = next(iter(found.items()))
    return path, here.get(path), data


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
