"""What a consolidation looks at: the store's notes, what changed, and the few worth a closer look.

Gathered under no lock: ``snapshot`` is the commit it was gathered on, and every operation decided
on it names the bytes it found. A note that holds a secret is not in it; nor are the words of one
that was deleted, or the lines that were cut from one, so that what a person forgot is not told to a
model.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from memoryd.memory.baseline import Baseline
from memoryd.memory.decay import NEVER, Use, overflow
from memoryd.memory.known import sayings
from memoryd.memory.notes import ARCHIVE, Note
from memoryd.memory.pairs import Closeness, Pair
from memoryd.memory.prompt import BODY_CHARACTERS
from memoryd.memory.scanner import redact
from memoryd.memory.store import Store

#: Most notes that are shown with their bodies.
SHOWN = 20
#: Most sessions that are named.
SESSIONS = 20
#: A diff of more bytes is given as the list of what changed. Source: FreeCode.
DIFF_BYTES = 65_536

#: The diff of one file has over 128 bytes, so that one of more files is longer than that.
_DIFF_FILES = DIFF_BYTES // 128
_DIFF_SOURCE_BYTES = 16 << 20
_STATUS = {"A": "added", "D": "deleted"}
_HUNK = re.compile(r"^(?=@@ -)", re.MULTILINE)
_HUNK_NUMBERS = re.compile(r"@@ -[0-9,]+ \+[0-9,]+ @@")
_FILE_OF_DIFF = re.compile(r"^(?=diff --git )", re.MULTILINE)

#: Names pairs of paths that vectors say are close.
Close = Callable[[Sequence[Note]], Iterable[tuple[str, str]]]


@dataclass(frozen=True)
class Shown:
    """A note that is shown. ``whole`` False: too long to be shown in full, so it is not merged."""

    note: Note
    use: Use
    whole: bool


@dataclass(frozen=True)
class Material:
    """What a consolidation decides on. ``notes`` are the current ones, by path.

    ``snapshot`` is the commit it was gathered on ("": none yet), ``since`` the one the last
    consolidation saw (None: there was none). ``changed`` gives for each changed path ``added``,
    ``changed``, ``deleted`` or ``archived``; ``diff`` the words of the notes added and changed, or
    "" where there are none or too many. ``suspects`` are paths of notes that may say the same;
    ``sessions`` (date, id), the newest first; ``superseded`` the keys of what archived notes said
    that another replaced; ``by_person`` says whether a person changed a path last.
    """

    store: Store
    snapshot: str
    since: str | None
    now_ms: int
    notes: tuple[Note, ...]
    changed: Mapping[str, str]
    diff: str
    shown: tuple[Shown, ...]
    suspects: tuple[tuple[str, str], ...]
    sessions: tuple[tuple[str, str], ...]
    superseded: frozenset[str]
    usage: Mapping[str, Use]
    by_person: Callable[[str], bool]
    closeness: Closeness = field(repr=False)

    @property
    def idle(self) -> str:
        """Why a model need not be asked, as an outcome code; "" when it is worth it."""
        if not self.notes:
            return "no.candidates"
        return "nothing.changed" if self.since is not None and not self.changed else ""

    @cached_property
    def told(self) -> str:
        """All words that are shown, but for those a change took away: what may be stood on."""
        taken_away = (line for line in self.diff.splitlines() if not line.startswith("-"))
        bodies = (f"{one.note.description}\n{one.note.body}" for one in self.shown)
        heads = (f"{note.name} {note.description}" for note in self.notes)
        days = (f"{date} {name}" for date, name in self.sessions)
        return "\n".join((*bodies, *heads, *(line[1:] for line in taken_away), *days))

    def related(self, one: Note, other: Note) -> bool:
        """Whether two notes may be about the same: by their words, or suspected by vectors."""
        paths = {one.path, other.path}
        return self.closeness.related(one, other) or any(set(p) == paths for p in self.suspects)


def gather(
    store: Store,
    *,
    now_ms: int,
    usage: Mapping[str, Use],
    sessions: Sequence[tuple[str, str]],
    by_person: Callable[[str], bool],
    close: Close | None = None,
) -> Material:
    """Look at ``store`` as it is now. Reads only; takes no lock.

    ``usage`` is by note id (``type/name``); ``sessions`` are (``YYYY-MM-DD``, id) of those that
    ended since the last consolidation. Raises ``BaselineError`` and ``StoreError`` when the store
    cannot be read: that is never "nothing changed".
    """
    baseline = Baseline(store)
    snapshot = baseline.head() or ""
    since = baseline.snapshot() if snapshot else None
    every = store.notes()
    notes = tuple(note for note in every if not note.archived and not _has_secret(note))
    told = {key for note in notes for key in sayings(note)}
    replaced = {key for note in every if note.superseded_by for key in sayings(note)}
    changed = _changed(baseline, since, snapshot)
    closeness = Closeness(notes)
    pairs = _suspects(notes, closeness.pairs(), close)
    return Material(
        store=store,
        snapshot=snapshot,
        since=since,
        now_ms=now_ms,
        notes=notes,
        changed=changed,
        diff=_diff(baseline, since, snapshot, changed),
        shown=_shown(notes, changed, pairs, usage),
        suspects=pairs,
        sessions=tuple(sorted(sessions, reverse=True)[:SESSIONS]),
        superseded=frozenset(replaced - told - {""}),
        usage=usage,
        by_person=by_person,
        closeness=closeness,
    )


def _has_secret(note: Note) -> bool:
    text = "\n".join((note.name, note.description, *note.tags, note.body))
    return redact(text)[1] > 0


def _changed(baseline: Baseline, since: str | None, until: str) -> dict[str, str]:
    """What happened to each note since; a note that moved to the archive was archived."""
    if since is None or since == until:
        return {}
    raw = baseline.changed_between(since, until)
    found = {}
    for path, status in raw.items():
        if "/" in path and not path.startswith(f"{ARCHIVE}/"):
            found[path] = _STATUS.get(status, "changed")
            if status == "D" and raw.get(f"{ARCHIVE}/{path}") == "A":
                found[path] = "archived"
    return found


def _diff(baseline: Baseline, since: str | None, until: str, changed: Mapping[str, str]) -> str:
    """The words of what was added and changed; "" where they are none or too many."""
    paths = [path for path, what in changed.items() if what in {"added", "changed"}]
    if since is None or not paths or len(paths) > _DIFF_FILES:
        return ""
    if sum(_size(baseline.store, path) for path in paths) > _DIFF_SOURCE_BYTES:
        return ""
    data = baseline.diff(since, until, *paths)
    if len(data) > DIFF_BYTES:
        return ""
    files = _FILE_OF_DIFF.split(data.decode("utf-8", "replace"))
    return "".join(_without_removed(part) for part in files if not _tells_secret(part))


def _without_removed(part: str) -> str:
    """One file of a diff without what was taken away, of which only the number of lines is told.

    Lines that a person cut are no more a model's to read than a note they deleted. What git
    writes behind the numbers of a hunk is a line of the old file too.
    """
    heads, *hunks = _HUNK.split(part)
    return heads + "".join(map(_of_hunk, hunks))


def _of_hunk(hunk: str) -> str:
    numbers, *lines = hunk.split("\n")
    match = _HUNK_NUMBERS.match(numbers)
    kept = [line for line in lines if not line.startswith("-")]
    taken = len(lines) - len(kept)
    told = [f"-({taken} {'line' if taken == 1 else 'lines'} removed)"] if taken else []
    return "\n".join([match[0] if match else "", *told, *kept])


def _size(store: Store, path: str) -> int:
    try:
        return os.lstat(store.root / path).st_size
    except OSError:  # gone since: its commit still has it, and is short enough or cut
        return 0


def _tells_secret(part: str) -> bool:
    """Whether one file of a diff holds a secret, on a line or over several."""
    return redact("\n".join(line[1:] for line in part.splitlines()))[1] > 0


def _suspects(
    notes: Sequence[Note], by_words: Iterable[Pair], close: Close | None
) -> tuple[tuple[str, str], ...]:
    """The pairs that words, and vectors where there are any, say are close; the closest first."""
    known = {note.path for note in notes}
    by_vectors = close(notes) if close is not None else ()
    pairs = [*((pair.one, pair.other) for pair in by_words), *by_vectors]
    found: dict[frozenset[str], tuple[str, str]] = {}
    for pair in pairs:
        if pair[0] != pair[1] and known.issuperset(pair):
            found.setdefault(frozenset(pair), pair)
    return tuple(found.values())


def _shown(
    notes: Sequence[Note],
    changed: Collection[str],
    pairs: Sequence[tuple[str, str]],
    usage: Mapping[str, Use],
) -> tuple[Shown, ...]:
    """The notes most in need of a look: touched, over the cap, suspected, then the rest.

    Within each by use, the most used first; a note brings those it is suspected with, for nothing
    can be merged alone. Source: FreeCode.
    """
    over = {note.path for note in overflow(notes, usage)}
    partners: dict[str, list[str]] = {}
    for one, other in pairs:
        partners.setdefault(one, []).append(other)
        partners.setdefault(other, []).append(one)

    def rank(note: Note) -> tuple[int, int, str]:
        buckets = (note.path in changed, note.path in over, note.path in partners, True)
        return buckets.index(True), -usage.get(note.id, NEVER).used, note.path

    by_path = {note.path: note for note in notes}
    order: dict[str, None] = {}
    for note in sorted(notes, key=rank):
        if len(order) >= SHOWN:
            break
        order |= dict.fromkeys([note.path, *partners.get(note.path, ())[:2]])
    chosen = [by_path[path] for path in [*order][:SHOWN]]
    return tuple(
        Shown(note, usage.get(note.id, NEVER), len(note.body) <= BODY_CHARACTERS) for note in chosen
    )
