"""Builders for tests that need a store: notes, edits by hand, and git as a person runs it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from memoryd.memory.baseline import Baseline
from memoryd.memory.files import sha256
from memoryd.memory.home import Home
from memoryd.memory.notes import new_note
from memoryd.memory.plan import Operation, Plan, SliceRange
from memoryd.memory.store import Store
from memoryd.memory.testing import FakeClock

KEY = "home-ada-app"


def make_store(home: Home, key: str = KEY, **notes: str) -> Store:
    """A store with a baseline; each keyword is a committed note ``user/<name>.md`` of that body."""
    store = Store.for_project(home, key)
    baseline = Baseline(store)
    baseline.ensure()
    paths = [write_note(store, f"user/{name}.md", body) for name, body in notes.items()]
    if paths:
        baseline.commit(paths, "Start", author="memoryd")
    return store


def note_bytes(path: str, body: str) -> bytes:
    """A whole note named after its file."""
    stem = Path(path).stem
    return new_note(name=stem, description=f"About {stem}", type="user", body=body)


def write_note(store: Store, path: str, body: str) -> str:
    """Write a note as a program would; its path comes back."""
    return write_bytes(store, path, note_bytes(path, body))


def write_bytes(store: Store, path: str, data: bytes) -> str:
    """Write a file into the store behind memoryd's back."""
    (store.root / path).parent.mkdir(parents=True, exist_ok=True)
    (store.root / path).write_bytes(data)
    return path


def age(store: Store, path: str, clock: FakeClock, seconds: float) -> None:
    """Make a file or folder look last changed ``seconds`` before the clock's now."""
    at = clock.now_ms() / 1000 - seconds
    os.utime(store.root / path, (at, at))


def git(store: Store, *arguments: str) -> str:
    """Run git in the store as a person does: found through the ``.git`` file, their settings."""
    done = subprocess.run(
        ["git", *arguments], cwd=store.root, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def operation(
    path: str, body: str | None, *, before: bytes | None = None, line: str = "", store: str = KEY
) -> Operation:
    """One operation that leaves a whole note with ``body`` (None: removes the file)."""
    content = None if body is None else note_bytes(path, body).decode()
    return Operation(
        store=store,
        path=path,
        before=None if before is None else sha256(before),
        after=None if content is None else sha256(content.encode()),
        content=content,
        line=line,
        candidate=f"candidate of {path}",
    )


def plan(*operations: Operation, job: str = "job-1", last: int = 9) -> Plan:
    """A plan of one slice."""
    return Plan(job, SliceRange("claude-code", "s1", 1, last), "rules", operations)
