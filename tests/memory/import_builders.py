"""Builders for tests of the import: other memories as they lie on a disk."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from memoryd.memory.home import Home
from memoryd.memory.importing.planning import Item, Options, Reading, Target, decide, read
from memoryd.memory.importing.sources import Kind, Source
from memoryd.memory.projects import Project, project_key
from memoryd.memory.store import Store
from memoryd.memory.testing import FakeClock

#: 2025-06-01 12:00:00 UTC, when files of the tests were last changed.
CHANGED = 1_748_779_200


def put(root: Path, path: str, text: str | bytes) -> Path:
    """Write a file of another memory, last changed on 2025-06-01."""
    place = root / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(text if isinstance(text, bytes) else text.encode())
    os.utime(place, (CHANGED, CHANGED))
    return place


def note(body: str, **header: str) -> str:
    """A note as another memory writes it."""
    lines = "".join(f"{key}: {value}\n" for key, value in header.items())
    return f"---\n{lines}---\n{body}"


def source(root: Path, kind: Kind = "freecode", key: str = "home__ada__app") -> Source:
    """One source at ``root``."""
    root.mkdir(parents=True, exist_ok=True)
    return Source(kind, key, root)


def target(home: Home, *sources: Source, path: str = "/home/ada/app") -> Target:
    """What is read of the sources, to be imported into one project."""
    project = Project(project_key(path), path)
    readings: Iterable[Reading] = map(read, sources)
    return Target(project, Store.for_project(home, project.key), tuple(readings))


def preview(wanted: Target, clock: FakeClock, **options: bool) -> dict[str, Item]:
    """What importing would do, by file."""
    plan = decide(wanted, Options(**options), clock.now_ms())
    return {item.file: item for item in plan.items}


def said(items: dict[str, Item]) -> dict[str, str]:
    """The verdicts alone."""
    return {file: item.verdict for file, item in items.items()}


def tree(root: Path) -> dict[str, bytes]:
    """Every file below ``root`` with its bytes."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }
