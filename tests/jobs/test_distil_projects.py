"""What is said in a directory is kept with its project, wherever that is by now."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from world import World, answer, fact

from memoryd.memory.identities import identity
from memoryd.memory.projects import path_of, project_key
from memoryd.memory.store import Store
from memoryd.memory.testing import FakeClock

FIRST = "Always run the linter before you commit."
SECOND = "We deploy on Fridays only, never else."


def git(folder: Path, *arguments: str) -> None:
    """Git as a person runs it."""
    who = ("-c", "user.name=x", "-c", "user.email=x")
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def world(tmp_path: Path, clock: FakeClock) -> World:
    """A world whose project is a repository; a model that keeps one sentence a session."""
    made = World(tmp_path, clock, [answer(fact(FIRST)), answer(fact(SECOND))])
    git(made.project, "init", "-q")
    git(made.project, "commit", "-q", "--allow-empty", "-m", "Start")
    return made


def say(world: World, session: str, text: str, cwd: Path) -> None:
    """A session in which a person said ``text``, distilled."""
    world.finalize(world.transcript(session, cwd=cwd).user(text).assistant("Fine."))


def stores(world: World) -> list[str]:
    """The keys of the stores there are."""
    return sorted(store.key for store in Store.all(world.home))


def test_a_session_in_the_moved_directory_lands_in_the_old_store(
    world: World, tmp_path: Path
) -> None:
    """And the home says where the project is now."""
    say(world, "s1", FIRST, world.project)
    old = world.store()
    world.project.rename(tmp_path / "moved")

    say(world, "s2", SECOND, tmp_path / "moved")

    assert stores(world) == [old.key] == [project_key(str(world.project))]
    assert world.bodies(tmp_path / "moved") == sorted((FIRST, SECOND))
    known = identity(world.home, old.key)
    assert known is not None
    assert (known.path, known.former_paths) == (str(tmp_path / "moved"), (str(world.project),))


def test_a_move_is_kept_though_nothing_was_worth_keeping(world: World, tmp_path: Path) -> None:
    """Whatever comes to the old place afterwards is another project."""
    say(world, "s1", FIRST, world.project)
    old = world.store().key
    world.project.rename(tmp_path / "moved")
    world.throttle(world.transcript("s2", cwd=tmp_path / "moved").user("Hello.").assistant("Yes."))
    git(tmp_path, "clone", "-q", "moved", "project")

    assert world.store(tmp_path / "moved").key == old
    assert world.store(world.project).key != old


def test_a_session_of_a_deleted_directory_is_kept_with_its_project(
    world: World, tmp_path: Path
) -> None:
    """Its working directory was a folder of it."""
    (world.project / "deep").mkdir()
    say(world, "s1", FIRST, world.project)
    shutil.rmtree(world.project)

    say(world, "s2", SECOND, world.project / "deep")

    assert len(stores(world)) == 1


def test_a_second_clone_has_a_store_of_its_own(world: World, tmp_path: Path) -> None:
    """While the first is there."""
    say(world, "s1", FIRST, world.project)
    git(tmp_path, "clone", "-q", str(world.project), "clone")

    say(world, "s2", SECOND, tmp_path / "clone")

    assert len(stores(world)) == 2


@pytest.mark.parametrize("point", ["", "plan.recorded"])
def test_a_project_with_a_long_path_is_recorded(
    point: str, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The key does not hold it; also by another process that settles the plan."""
    deep = tmp_path / ("x" * 120) / ("y" * 120)
    deep.mkdir(parents=True)
    transcript = world.transcript("s1", cwd=deep).user(FIRST).assistant("Fine.")
    world.enqueue(transcript)
    if point:
        world.die_at(point, monkeypatch)
    world.work()

    (key,) = stores(world)
    known = identity(world.home, key)
    assert path_of(key) is None
    assert known is not None and known.path == str(deep)
