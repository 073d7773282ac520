"""The history of a store as a person reads it: what was done to it when, by whom, and what stands.

Read from the baseline alone, newest first. A note is followed through moves by the files a commit
moved: what git itself takes for a rename, or the same file name gone in one folder and new in
another, as when a note is archived with more words in it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass

from memoryd.memory.baseline import BRANCH, Baseline
from memoryd.memory.commits import FORMAT, Author, Commit, parse_commit
from memoryd.memory.errors import UsageError
from memoryd.memory.notes import ARCHIVE, TYPES, file_name
from memoryd.memory.store import Store
from memoryd.memory.undo import UNDO, undone_commits

_RAW = re.compile(rb":\d{6} \d{6} [0-9a-f]{40} [0-9a-f]{40} ([A-Z])\d*")
_HEADER_FIELDS = 5


@dataclass(frozen=True)
class Entry:
    """One commit: who made it, for which job, which commit it takes back, whether it is taken back
    itself, and the files of memory it changed."""

    commit: str
    at_ms: int
    author: Author
    subject: str
    job: str | None
    undoes: str | None
    undone: bool
    paths: tuple[str, ...]


@dataclass(frozen=True)
class _Change:
    """One file in a commit; ``before`` is where it came from, when it was moved."""

    status: str
    path: str
    before: str | None = None


def history(store: Store, name: str | None = None, limit: int | None = None) -> list[Entry]:
    """The newest ``limit`` commits of ``store``, newest first; with ``name`` (a note's name, or
    type/name) those that touched that note, wherever it was.

    Raises ``UsageError`` when no note is or was called so.
    """
    baseline = Baseline(store)
    if baseline.head() is None:
        made: list[tuple[Commit, list[_Change]]] = []
    elif name is None:
        made = list(_commits(baseline, limit))
    else:
        made = _following(_commits(baseline, None), _places(store, name))[:limit]
    if name is not None and not made:
        raise UsageError(
            f"no note of this project is or was called {name[:80]!r}",
            hint="`memoryd memory list` shows the names; --project looks in another project",
        )
    undone = undone_commits(baseline)
    return [_entry(store, commit, changed, commit.id in undone) for commit, changed in made]


def _entry(store: Store, commit: Commit, changed: list[_Change], undone: bool) -> Entry:
    paths = {path for each in changed for path in (each.before, each.path) if path}
    return Entry(
        commit=commit.id,
        at_ms=commit.at_ms,
        author=commit.author,
        subject=commit.subject,
        job=next(iter(commit.values("Memoryd-Job")), None),
        undoes=next(iter(commit.values(UNDO)), None),
        undone=undone,
        paths=tuple(sorted(path for path in paths if store.holds(path))),
    )


def _commits(baseline: Baseline, limit: int | None) -> Iterator[tuple[Commit, list[_Change]]]:
    """Every commit with what it changed, in one run of git."""
    count = () if limit is None else (f"--max-count={limit}",)
    out = baseline.git.ok(
        "log", "-m", "--first-parent", "--raw", "-z", "-M", "--abbrev=40", "--no-ext-diff",
        "--encoding=UTF-8", f"--format={FORMAT.removesuffix('%x1e')}", *count, BRANCH,
    )  # fmt: skip
    tokens = iter(out.split(b"\0"))
    commit: Commit | None = None
    changed: list[_Change] = []
    for token in tokens:
        raw = _RAW.fullmatch(token.lstrip(b"\n"))
        if raw is not None:
            paths = [os.fsdecode(next(tokens)) for _ in range(2 if raw[1] in b"RC" else 1)]
            changed.append(_Change(raw[1].decode(), paths[-1], paths[0] if paths[1:] else None))
        elif token.strip(b"\n"):
            if commit is not None:
                yield commit, changed
            fields = [token, *(next(tokens) for _ in range(_HEADER_FIELDS - 1))]
            commit, changed = parse_commit(b"\0".join(fields).decode("utf-8", "replace")), []
    if commit is not None:
        yield commit, changed


def _places(store: Store, name: str) -> set[str]:
    """Every path that a note of this name has, or may have had."""
    type_, _, bare = name.removesuffix(".md").rpartition("/")
    types = [type_] if type_ in TYPES else list(TYPES)
    folders = [*types, *(f"{ARCHIVE}/{each}" for each in types)]
    files = {f"{bare}.md", file_name(bare)}
    called = {note.path for note in store.notes() if note.name == bare and note.type in types}
    return called | {f"{folder}/{file}" for folder in folders for file in files}


def _following(
    made: Iterator[tuple[Commit, list[_Change]]], places: set[str]
) -> list[tuple[Commit, list[_Change]]]:
    """Those that touched a file at one of ``places``, which change as the file did."""
    found = []
    for commit, changed in made:
        touched = [each for each in changed if {each.path, each.before} & places]
        if touched:
            found.append((commit, touched))
        for each in touched:
            if each.path in places and (before := each.before or _came_from(each, changed)):
                places = places - {each.path} | {before}
    return found


def _came_from(change: _Change, changed: list[_Change]) -> str | None:
    """Where a file that is new in its folder was: the only one of its name that went."""
    if change.status != "A":
        return None
    name = change.path.rpartition("/")[2]
    gone = [e.path for e in changed if e.status == "D" and e.path.rpartition("/")[2] == name]
    return gone[0] if len(gone) == 1 else None
