"""Whether a store is well: small checks of one store each, for ``memoryd doctor``.

A check yields what it found, or raises a ``MemorydError``, which counts as found. A finding never
quotes a note: it says where and what kind. ``jobs/doctor.py`` lists the checks.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from memoryd.memory.baseline import Baseline
from memoryd.memory.edits import require_not_held
from memoryd.memory.errors import MemorydError, StoreError
from memoryd.memory.scanner import redact, scan
from memoryd.memory.store import INDEX, TOMBSTONES, Store
from memoryd.memory.text import clip
from memoryd.memory.tombstones import Tombstones

Severity = Literal["ok", "warning", "problem"]

#: A lock of git that is older than this belongs to a process that died.
STALE_LOCK_MS = 10 * 60 * 1000


@dataclass(frozen=True)
class Finding:
    """What a check found: ``code`` says which, ``what`` is wrong (or fine), ``todo`` what to do."""

    code: str
    severity: Severity
    what: str
    todo: str = ""


def found_by(check: Callable[[], Iterable[Finding]], code: str | None = None) -> Iterator[Finding]:
    """What ``check`` yields, its errors too; ``code`` instead of an error's own."""
    try:
        yield from check()
    except MemorydError as error:
        yield Finding(code or error.code, "problem", error.message, error.hint)
    except OSError as error:
        what = f"{error.filename} cannot be looked at: {error.strerror}"
        yield Finding(code or "home.unusable", "problem", what, "check its owner and mode")


def unreadable_notes(store: Store) -> Iterator[Finding]:
    """Files in a note's place that are no readable note: nobody learns from them."""
    for each in store.unreadable():
        what = f"{redact(str(store.root / each.path))[0]} cannot be read: {each.reason}"
        yield Finding("note.unreadable", "problem", what, "mend it in an editor, or delete it")


def suspicious_notes(store: Store) -> Iterator[Finding]:
    """Notes in which the scanner finds something: where, and of which kind, never the words."""
    for path in store.paths():
        if not path.endswith(".md"):
            continue
        try:
            text = (store.read(path) or b"").decode("utf-8", "replace")
        except StoreError:  # `unreadable_notes` names it
            continue
        yield from _scanned(store, path, text)


def _scanned(store: Store, path: str, text: str) -> Iterator[Finding]:
    # A byte order mark at the start of a file is one of the ways to write UTF-8.
    found = {(each.verdict, each.pattern) for each in scan(text.removeprefix("\ufeff"))}
    place = redact(str(store.root / path))[0]
    if secrets := sorted(pattern for verdict, pattern in found if verdict == "secret"):
        what = f"{place} holds a secret ({', '.join(secrets)})"
        todo = (
            "take it out and change it; until then the edit is not committed, nor shown to agents"
        )
        yield Finding("note.secret", "problem", what, todo)
    if any(verdict == "injection" for verdict, _ in found):
        what = f"{place} reads like instructions to a model"
        yield Finding("note.injection", "warning", what, "read it; keep it only if it is yours")
    if any(verdict == "invisible" for verdict, _ in found):
        what = f"{place} holds invisible characters"
        yield Finding("note.invisible", "warning", what, "retype the line they are in")


def held(store: Store) -> Iterator[Finding]:
    """A store in which too many notes vanished at once."""
    require_not_held(store)
    yield from ()


def history(store: Store) -> Iterator[Finding]:
    """A baseline that is missing, cannot be used, or is not the one people see in the folder."""
    baseline = Baseline(store)
    baseline.require_history()
    if not baseline.exists():
        what = f"{store.root} has no history yet"
        yield Finding("baseline.none", "warning", what, "the next write begins one")
        return
    for each in baseline.trouble():
        severity: Severity = "warning" if each.code == "baseline.foreign" else "problem"
        if each.code != "baseline.locked":  # `stale_locks` names every one
            yield Finding(each.code, severity, each.message, each.hint)


def derived(store: Store) -> Iterator[Finding]:
    """Something in the place of the derived index that is no file of ours."""
    if store.is_profile:
        return
    path = store.root / INDEX
    if path.is_dir() and not path.is_symlink():
        what = f"{path} is a folder: the index of the notes cannot be written"
        yield Finding("index.unusable", "problem", what, "`memoryd doctor --fix` moves it aside")
    elif os.path.lexists(path) and store.shown_index() is None:
        what = f"{path} is no plain file that can be read"
        todo = "`memoryd doctor --fix` moves it aside and makes the index again"
        yield Finding("index.unusable", "warning", what, todo)


def stale_locks(store: Store, now_ms: int) -> Iterator[Finding]:
    """Locks that a git left which died; those in ``refs`` stop every commit."""
    for path in stale_lock_files(store, now_ms):
        what = f"{path} was left by a git that died"
        todo = "`memoryd doctor --fix` removes it where no git is at work"
        yield Finding("baseline.locked", "problem", what, todo)


def stale_lock_files(store: Store, now_ms: int) -> list[Path]:
    """The locks of git in the store's baseline that are over ten minutes old."""
    if not store.git_dir.is_dir():
        return []
    places = [*store.git_dir.glob("*.lock"), *(store.git_dir / "refs").rglob("*.lock")]
    return [
        path
        for path in sorted(places)
        if now_ms - path.lstat().st_mtime_ns // 1_000_000 > STALE_LOCK_MS
    ]


def unlinked(store: Store) -> Iterator[Finding]:
    """A store whose history is there, and whose folder does not lead to it."""
    if store.root.is_dir() and Baseline(store).is_unlinked():
        what = f"{store.root} has lost its .git file: git shows no history there"
        todo = "`memoryd doctor --fix` puts it back, as does the next write"
        yield Finding("baseline.unlinked", "warning", what, todo)


def tombstones(store: Store) -> Iterator[Finding]:
    """Lines of the tombstones that are none: what they forgot may be learned again."""
    bad = Tombstones.of(store).bad_lines if store.read(TOMBSTONES) else 0
    if bad:
        what = f"{store.root / TOMBSTONES} has {bad} lines that cannot be read"
        todo = f"`git -C {store.root} log -p {TOMBSTONES}` shows what they were"
        yield Finding("tombstones.damaged", "problem", what, todo)


def shortened(findings: Iterable[Finding], most: int) -> Iterator[Finding]:
    """At most ``most`` findings of one code; of the rest one line says how many there are."""
    seen: Counter[str] = Counter()
    last: dict[str, Finding] = {}
    for each in findings:
        seen[each.code] += 1
        last[each.code] = each
        if seen[each.code] <= most:
            yield each
    for code, count in seen.items():
        if count > most:
            what = f"and {count - most} more {code}, the last: {clip(last[code].what, 200)}"
            yield Finding(code, last[code].severity, what, last[code].todo)
