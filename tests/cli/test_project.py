"""``memoryd project`` as a person runs it."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

sys.path.append(str(Path(__file__).parent.parent / "memory"))

from store_builders import make_store

from memoryd.cli.main import cli
from memoryd.memory.errors import MemorydError
from memoryd.memory.home import Home
from memoryd.memory.identities import identity
from memoryd.memory.projects import Resolver, path_of, record


def run(home: Home, *arguments: str) -> str:
    """What the command prints; a failure fails the test."""
    done = CliRunner().invoke(cli, ["--home", str(home.root), *arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def as_json(home: Home, *arguments: str) -> dict[str, Any]:
    """The same as an object."""
    values: dict[str, Any] = json.loads(run(home, *arguments, "--json"))
    return values


def make_project(home: Home, place: Path, **notes: str) -> str:
    """A recorded project in ``place`` with these notes; its key."""
    place.mkdir(exist_ok=True)
    found = Resolver(home).resolve(str(place))
    make_store(home, found.key, **notes)
    record(home, found)
    return found.key


def test_projects_are_listed_with_what_is_kept_of_them(home: Home, tmp_path: Path) -> None:
    """And whether their directory is still there."""
    one = make_project(home, tmp_path / "one", tabs="Use tabs.")
    two = make_project(home, tmp_path / "two", tabs="Use tabs.")
    (tmp_path / "two").rmdir()

    listed = {each["key"]: each for each in as_json(home, "project", "list")["projects"]}
    text = run(home, "project", "list")

    assert set(listed) == {one, two}
    assert listed[one] == {
        "key": one,
        "path": str(tmp_path / "one"),
        "exists": True,
        "notes": 1,
        "sessions": 0,
        "last_active_ms": None,
        "merged_into": "",
    }
    assert not listed[two]["exists"] and f"{tmp_path / 'two'} (gone)" in text


def test_no_projects_are_no_error(home: Home) -> None:
    """A home that is new."""
    assert run(home, "project", "list") == "no projects\n"


def test_a_name_that_fits_no_project_is_refused_and_makes_none(home: Home, tmp_path: Path) -> None:
    """With what is nearest; by whatever command, and whether the new directory is there or not."""
    shop = make_project(home, tmp_path / "shop", tabs="Use tabs.")
    make_project(home, tmp_path / "other", tabs="Use tabs.")
    (tmp_path / "new").mkdir()
    typo = str(tmp_path / "shpo")

    for words in (
        ("project", "show", typo),
        ("project", "show", f"{shop}x"),
        ("project", "mv", typo, str(tmp_path / "new")),
        ("project", "mv", typo, str(tmp_path / "shop")),
        ("project", "mv", str(tmp_path / "new"), str(tmp_path)),
        ("project", "merge", typo, shop),
        ("project", "merge", shop, typo, "--dry-run"),
        ("memory", "list", "--project", typo),
        ("memory", "show", "tabs", "--project", f"{shop}x"),
        ("consolidate", "--project", typo),
    ):
        with pytest.raises(MemorydError, match="no project is known by") as refused:
            run(home, *words)
        assert words[-1] == str(tmp_path) or str(tmp_path / "shop") in refused.value.hint

    assert len(as_json(home, "project", "list")["projects"]) == 2
    assert {path.name for path in home.projects.iterdir()} == {shop, shop[:-4] + "other"}


def test_a_note_is_saved_in_a_directory_that_is_there_only(home: Home, tmp_path: Path) -> None:
    """A directory that has no project yet gets one; a slip of the hand does not."""
    (tmp_path / "new").mkdir()
    words = ("--type", "user", "--description", "Uses tabs", "--content", "Use tabs.")

    with pytest.raises(MemorydError, match="no project is known by"):
        run(home, "memory", "save", "tabs", *words, "--project", str(tmp_path / "nwe"))
    run(home, "memory", "save", "tabs", *words, "--project", str(tmp_path / "new"))

    (listed,) = as_json(home, "project", "list")["projects"]
    assert listed["path"] == str(tmp_path / "new")


def test_a_project_that_is_but_a_name_is_not_listed(home: Home, tmp_path: Path) -> None:
    """No directory, no note, nothing said: a slip of the hand, once."""
    make_project(home, tmp_path / "typo")
    (tmp_path / "typo").rmdir()

    assert as_json(home, "project", "list")["projects"] == []


def test_a_project_is_shown_by_key_and_by_directory(home: Home, tmp_path: Path) -> None:
    """Also one that is gone."""
    key = make_project(home, tmp_path / "one", tabs="Use tabs.")
    (tmp_path / "one").rmdir()

    shown = as_json(home, "project", "show", key)

    assert shown == as_json(home, "project", "show", str(tmp_path / "one"))
    assert (shown["by_type"], shown["former_paths"], shown["remote"]) == ({"user": 1}, [], "")
    assert "seen" not in shown
    assert "notes: 1 user" in run(home, "project", "show", key)


def test_a_project_is_moved_by_its_old_directory(home: Home, tmp_path: Path) -> None:
    """Its memory is found in the new one at once."""
    key = make_project(home, tmp_path / "old", tabs="Use tabs.")
    (tmp_path / "old").rename(tmp_path / "new")

    moved = as_json(home, "project", "mv", str(tmp_path / "old"), str(tmp_path / "new"))

    assert moved == {
        "key": key,
        "former_path": str(tmp_path / "old"),
        "path": str(tmp_path / "new"),
        "messages": 0,
    }
    assert "tabs" in run(home, "memory", "list", "--project", str(tmp_path / "new"))
    assert "was in: " + str(tmp_path / "old") in run(home, "project", "show", key)


def test_two_projects_are_merged_and_taken_apart(home: Home, tmp_path: Path) -> None:
    """First as a dry run; each step says what it did."""
    one = make_project(home, tmp_path / "one", tabs="Use tabs.")
    two = make_project(home, tmp_path / "two", pnpm="Use pnpm.")
    names = ("project", "merge", str(tmp_path / "one"), str(tmp_path / "two"))

    told = as_json(home, *names, "--dry-run")
    assert "would move 1 note of" in run(home, *names, "--dry-run")
    merged = as_json(home, *names)

    assert (told["moved"], told["dry_run"]) == (["user/tabs.md"], True)
    assert (merged["moved"], merged["dry_run"]) == (["user/tabs.md"], False)
    assert (merged["key"], merged["into"]) == (one, two)
    notes = as_json(home, "memory", "list", "--project", str(tmp_path / "one"))["notes"]
    assert sorted(note["name"] for note in notes) == ["pnpm", "tabs"]
    assert f"merged into {two}" in run(home, "project", "list")

    undone = as_json(home, *names, "--undo")

    assert set(undone) == {"key", "into", "messages", "commits", "undo"}
    notes = as_json(home, "memory", "list", "--project", str(tmp_path / "one"))["notes"]
    assert [note["name"] for note in notes] == ["tabs"]


def test_a_project_that_was_merged_takes_no_other_in(home: Home, tmp_path: Path) -> None:
    """Named by its key; its directory means what it was merged into."""
    one, two, three = (make_project(home, tmp_path / name, x="X.") for name in ("1", "2", "3"))
    run(home, "project", "merge", one, two)

    with pytest.raises(MemorydError, match="merged itself"):
        run(home, "project", "merge", three, one)
    assert as_json(home, "project", "merge", three, str(tmp_path / "1"))["into"] == two


def test_a_note_saved_in_a_long_path_says_whose_it_is(home: Home, tmp_path: Path) -> None:
    """The key does not hold the path."""
    deep = tmp_path.resolve() / ("x" * 120) / ("y" * 120)
    deep.mkdir(parents=True)
    words = ("--type", "user", "--description", "Uses tabs", "--content", "Use tabs.")

    saved = as_json(home, "memory", "save", "tabs", *words, "--project", str(deep))

    known = identity(home, saved["project"])
    assert path_of(saved["project"]) is None
    assert known is not None and known.path == os.fspath(deep)
