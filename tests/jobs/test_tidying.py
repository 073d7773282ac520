"""The daily tidying."""

from __future__ import annotations

import os
from pathlib import Path

from world import World

from memoryd.jobs.tidying import LEFT_MS, tidy
from memoryd.memory.baseline import Baseline
from memoryd.memory.testing import FakeClock
from memoryd.memory.written import Written


def test_what_a_killed_writer_left_goes_once_nobody_can_be_writing_it(
    tmp_path: Path, clock: FakeClock
) -> None:
    """Beside the home's files, the projects', the backups; younger and a person's files stay."""
    world = World(tmp_path, clock)
    project = world.home.projects / "p"
    project.mkdir()
    names = (".project.json.0123456789ab.tmp", ".mine.tmp", "project.json")
    files = [folder / name for folder in (project, world.home.root) for name in names]
    world.home.backups.mkdir(exist_ok=True)
    copy = world.home.backups / ".memoryd-2026-01-05.sqlite.0123456789ab.tmp"
    files += [copy, copy.with_name(f"{copy.name}-journal")]
    for path in files:
        path.write_text("{")
    at = (clock.now_ms() - LEFT_MS) / 1000

    def age(seconds: float) -> None:
        for path in files:
            os.utime(path, (at - seconds, at - seconds))

    age(-60)
    tidy(world.place)
    assert all(path.exists() for path in files)

    age(60)
    tidy(world.place)
    assert [path.name for path in files if path.exists()] == [*names[1:], *names[1:]]


def test_a_store_is_tidied_too_but_not_while_a_plan_stands_half_applied(
    tmp_path: Path, clock: FakeClock
) -> None:
    """What lies beside a file that a plan writes says how far that came."""
    world = World(tmp_path, clock)
    store = world.store()
    Baseline(store).ensure()
    left = store.root / "user" / ".tabs.md.0123456789ab.tmp"
    left.parent.mkdir(exist_ok=True)
    left.write_text("half")
    os.utime(left, ((clock.now_ms() - LEFT_MS) / 1000 - 60,) * 2)
    written = Written(store, "a plan")
    written.note("user/tabs.md")

    tidy(world.place)
    assert left.exists()

    written.forget()
    tidy(world.place)
    assert not left.exists()
