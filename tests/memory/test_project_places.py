"""What is written for a directory is read for it, wherever that directory goes."""

from __future__ import annotations

import shutil
import sys
import tempfile
import uuid
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

sys.path.append(str(Path(__file__).parent))

from test_projects import git, make_repository

from memoryd.memory import repositories
from memoryd.memory.errors import BaselineError
from memoryd.memory.home import Home
from memoryd.memory.identities import merge_identity
from memoryd.memory.projects import Project, Resolver, identities, identity, move, project_key


def written(home: Home, path: Path | str) -> Project:
    """The project of ``path`` as a writer leaves it."""
    resolver = Resolver(home)
    found = resolver.resolve(str(path))
    resolver.remember([found.key])
    return found


def key(home: Home, path: Path | str) -> str:
    """What a reader is given."""
    return Resolver(home).resolve(str(path)).key


def test_a_deleted_repository_keeps_its_sessions_directories(home: Home, tmp_path: Path) -> None:
    """Its folders belong to it still, a repository that was inside another too."""
    outer, inner = make_repository(tmp_path / "outer"), make_repository(tmp_path / "outer/inner")
    (outer / "a").mkdir()
    (inner / "a").mkdir()
    places = [outer, outer / "a", inner, inner / "a"]
    before = [written(home, place).key for place in places]

    shutil.rmtree(inner)
    assert [key(home, place) for place in places] == before
    shutil.rmtree(outer)
    assert [key(home, place) for place in places] == before
    assert len(set(before)) == 2


def test_a_deleted_directory_without_git_takes_nothing_below_it(home: Home, tmp_path: Path) -> None:
    """Each was a project of its own and stays one."""
    below = tmp_path / "plain" / "below"
    below.mkdir(parents=True)
    before = [written(home, tmp_path / "plain").key, key(home, below)]

    shutil.rmtree(tmp_path / "plain")

    assert [key(home, tmp_path / "plain"), key(home, below)] == before
    assert len(set(before)) == 2


@pytest.mark.parametrize("how", ["removed", "deleted"])
def test_a_worktree_that_is_gone_belongs_to_the_main_repository(
    how: str, home: Home, tmp_path: Path
) -> None:
    """Removed after it was seen, or deleted before: then git still knows it."""
    repository, tree = make_repository(tmp_path / "app"), tmp_path / "tree"
    written(home, repository)
    git(repository, "worktree", "add", "-q", str(tree))
    if how == "removed":
        written(home, tree)
        git(repository, "worktree", "remove", str(tree))
    else:
        shutil.rmtree(tree)

    assert key(home, tree) == key(home, tree / "deep") == key(home, repository)
    assert Resolver(home, "apart").resolve(str(tree)).path == str(tmp_path.resolve() / "tree")


def test_worktrees_around_a_bare_repository_belong_to_their_folder(
    home: Home, tmp_path: Path
) -> None:
    """The folder is where the person is when no worktree is meant."""
    hub = tmp_path / "hub"
    git(tmp_path, "clone", "-q", "--bare", str(make_repository(tmp_path / "app")), str(hub / ".x"))
    (hub / ".git").write_text("gitdir: ./.x\n")
    git(hub, "worktree", "add", "-q", "main")

    assert key(home, hub / "main") == key(home, hub) == project_key(str(hub.resolve()))


def test_a_submodule_is_the_same_project_in_every_worktree(home: Home, tmp_path: Path) -> None:
    """As its repository is; kept apart, each is one of its own."""
    repository = make_repository(tmp_path / "app")
    git(repository, "submodule", "add", "-q", str(make_repository(tmp_path / "lib")), "vendor")
    git(repository, "commit", "-q", "-m", "Add it")
    tree = tmp_path / "tree"
    git(repository, "worktree", "add", "-q", str(tree))
    git(tree, "submodule", "update", "-q", "--init")

    assert key(home, tree / "vendor") == key(home, repository / "vendor")
    assert key(home, tree / "vendor") != key(home, tree)
    assert Resolver(home, "apart").resolve(str(tree / "vendor")).key != key(home, tree / "vendor")


def test_the_home_directory_is_a_project_and_takes_no_other(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a person keeps their settings in a repository there, and for what is gone."""
    person = make_repository(tmp_path / "me")
    monkeypatch.setenv("HOME", str(person))
    (person / "notes").mkdir()
    app = make_repository(person / "app")
    (app / "deep").mkdir()

    assert key(home, person) == project_key(str(person))
    assert key(home, person / "notes") == project_key(str(person / "notes"))
    assert key(home, person / "gone") == project_key(str(person / "gone"))
    assert key(home, app / "deep") == key(home, app) != key(home, person)


def test_a_long_path_is_recorded_by_who_resolved_it(home: Home, tmp_path: Path) -> None:
    """The key does not hold it."""
    deep = tmp_path.resolve() / ("x" * 120) / ("y" * 120)
    deep.mkdir(parents=True)

    found = written(home, deep)

    known = identity(home, found.key)
    assert known is not None and known.path == str(deep)


def test_looking_records_nothing(home: Home, tmp_path: Path) -> None:
    """Neither does remembering what has no store."""
    resolver = Resolver(home)
    resolver.resolve(str(make_repository(tmp_path / "app")))
    resolver.remember()

    assert list(home.projects.iterdir()) == []


def test_a_moved_repository_is_read_under_its_old_key_before_anything_is_written(
    home: Home, tmp_path: Path
) -> None:
    """Renamed, from its root and from below, in the old place and the new."""
    repository = make_repository(tmp_path / "app")
    (repository / "deep").mkdir()
    old = written(home, repository)

    repository.rename(tmp_path / "new")

    for path in ("new", "new/deep", "app", "app/deep"):
        assert key(home, tmp_path / path) == old.key
    assert written(home, tmp_path / "new").key == old.key
    known = identity(home, old.key)
    assert known is not None
    assert (known.path, known.former_paths) == (str(tmp_path.resolve() / "new"), (old.path,))


def test_a_repository_that_moved_twice_is_known_in_all_its_places(
    home: Home, tmp_path: Path
) -> None:
    """And once it is back in the first."""
    places = [tmp_path.resolve() / name for name in ("one", "two", "three")]
    old = written(home, make_repository(places[0]))
    for at, here in enumerate(places):
        there = (*places, places[0])[at + 1]
        here.rename(there)

        assert written(home, there).key == old.key
        assert {key(home, place) for place in places[: at + 2]} == {old.key}


@pytest.mark.parametrize("change", ["remote", "root", "first commit", "repository", "begun"])
def test_a_repository_that_changed_is_known_as_it_was_last_written_to(
    change: str, home: Home, tmp_path: Path
) -> None:
    """A remote was added, its history or itself begun anew: its memory follows where it moves."""
    app = tmp_path / "app"
    app.mkdir()
    if change != "begun":
        git(app, "init", "-q")
    if change not in {"begun", "first commit"}:
        git(app, "commit", "-q", "--allow-empty", "-m", "Start")
    old = written(home, app)

    if change == "remote":
        git(app, "remote", "add", "origin", "https://example.org/app.git")
    elif change == "repository":
        shutil.rmtree(app)
        make_repository(app)
    elif change == "begun":
        make_repository(app)
    else:
        git(app, "commit", "-q", "--allow-empty", "-m", "Again", *AMENDED[change])
    assert written(home, app) == old
    app.rename(tmp_path / "new")

    assert key(home, tmp_path / "new") == old.key


AMENDED = {"root": ["--amend"], "first commit": []}


@pytest.mark.parametrize("how", ["moved", "cloned"])
def test_a_repository_where_a_directory_without_git_was(
    how: str, home: Home, tmp_path: Path
) -> None:
    """One that moved there keeps its memory; a clone of one that is gone is the directory's."""
    app, plain = make_repository(tmp_path / "app"), tmp_path / "plain"
    plain.mkdir()
    old, directory = written(home, app).key, written(home, plain).key
    plain.rmdir()
    if how == "moved":
        app.rename(plain)
    else:
        git(tmp_path, "clone", "-q", str(app), str(plain))
        git(plain, "remote", "remove", "origin")
        shutil.rmtree(app)

    assert key(home, plain) == (old if how == "moved" else directory)
    assert written(home, plain).key == key(home, plain)


@pytest.mark.parametrize("how", ["deleted", "moved"])
def test_a_repository_that_moves_to_where_another_was_keeps_its_memory(
    how: str, home: Home, tmp_path: Path
) -> None:
    """And is not given the other's, whose key is found again where that is."""
    app, new, away = tmp_path / "app", tmp_path / "new", tmp_path / "away"
    first, second = (written(home, make_repository(place)).key for place in (app, new))
    if how == "deleted":
        shutil.copytree(app, tmp_path / "backup")
        shutil.rmtree(app)
    else:
        app.rename(tmp_path / "backup")

    new.rename(app)
    assert [key(home, app), key(home, new)] == [second, second]
    assert written(home, app).key == second
    other = identity(home, first)
    assert other is not None and (other.path, other.former_paths) == ("", (str(app.resolve()),))
    assert key(home, home.projects / first / "memory") == first
    assert key(home, "") not in {first, second}
    (tmp_path / "backup").rename(away)
    assert written(home, away).key == first

    app.rename(new)
    assert [written(home, new).key, key(home, app)] == [second, second]
    away.rename(app)
    assert [written(home, app).key, key(home, away), key(home, new)] == [first, first, second]


@pytest.mark.parametrize("asked", [("app", "new"), ("new", "app")])
def test_two_repositories_that_change_places_keep_their_memories(
    asked: tuple[str, str], home: Home, tmp_path: Path
) -> None:
    """Neither is gone from its place, where the other is; whichever is asked about first."""
    app, new, between = tmp_path / "app", tmp_path / "new", tmp_path / "between"
    first, second = (written(home, make_repository(place)).key for place in (app, new))
    app.rename(between)
    new.rename(app)
    between.rename(new)

    expected = {"app": second, "new": first}
    assert {name: key(home, tmp_path / name) for name in asked} == expected
    assert {name: written(home, tmp_path / name).key for name in asked} == expected


def test_a_history_begun_anew_in_its_place_is_no_repository_that_left(
    home: Home, tmp_path: Path
) -> None:
    """A clone of what it was before takes over nothing."""
    app = make_repository(tmp_path / "app")
    old = written(home, app).key
    git(tmp_path, "clone", "-q", str(app), "clone")
    git(tmp_path / "clone", "remote", "remove", "origin")
    git(app, "commit", "-q", "--allow-empty", "--amend", "-m", "Begin anew")

    assert key(home, tmp_path / "clone") != old
    assert written(home, app).key == old


def test_who_a_repository_is_stays_known_while_git_cannot_say(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its settings changed, and there is no git, or not a commit yet; it is asked again."""
    app = make_repository(tmp_path / "app")
    old = written(home, app)
    known = identity(home, old.key)
    git(app, "remote", "add", "origin", "https://example.org/app.git")

    with monkeypatch.context() as without:
        without.setenv("PATH", str(tmp_path))
        written(home, app)
    assert identity(home, old.key) == known
    git(app, "branch", "start")
    git(app, "checkout", "-q", "--orphan", "other")
    written(home, app)
    git(app, "checkout", "-q", "start")
    now = identity(home, written(home, app).key)

    assert known is not None and now is not None
    assert (now.remote, now.root_commit) == ("https://example.org/app.git", known.root_commit)


def test_a_history_too_long_to_walk_is_asked_about_once(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its settings changed: that it has the first commit that is known says that it is the same."""
    app = make_repository(tmp_path / "app")
    key = written(home, app).key
    known = identity(home, key)
    git(app, "remote", "add", "origin", "https://example.org/app.git")
    walks: list[str] = []

    class Slow(repositories.Git):
        def run(self, *args: str, **more: Any) -> Any:
            if args[0] == "rev-list":
                walks.append(args[0])
                raise BaselineError("git rev-list took over 5 s and was stopped")
            return super().run(*args, **more)

    monkeypatch.setattr(repositories, "Git", Slow)
    written(home, app)
    written(home, app)

    now = identity(home, key)
    assert known is not None and now is not None
    assert (now.remote, now.root_commit) == ("https://example.org/app.git", known.root_commit)
    assert len(walks) == 1


def test_what_comes_to_the_place_of_a_moved_project_is_another(home: Home, tmp_path: Path) -> None:
    """It has a key of its own, which stays when it is gone; the moved one keeps its own too."""
    app, new = tmp_path / "app", tmp_path / "new"
    first = written(home, make_repository(app)).key
    app.rename(new)
    written(home, new)

    second = written(home, make_repository(app)).key
    git(app, "commit", "-q", "--allow-empty", "-m", "Go on")

    assert second != first
    assert [key(home, app), key(home, new)] == [second, first]
    shutil.rmtree(app)
    assert [key(home, app), key(home, new)] == [second, first]


def test_a_place_that_may_not_be_looked_at_is_not_gone(home: Home, tmp_path: Path) -> None:
    """A clone takes over nothing while nobody knows."""
    (tmp_path / "disk").mkdir()
    old = written(home, make_repository(tmp_path / "disk/app"))
    git(tmp_path, "clone", "-q", str(tmp_path / "disk/app"), "clone")
    git(tmp_path / "clone", "remote", "remove", "origin")
    (tmp_path / "disk").rename(tmp_path / "away")
    (tmp_path / "disk").symlink_to(tmp_path / "disk")

    assert key(home, tmp_path / "clone") != old.key


def test_a_repository_that_fits_two_is_neither(home: Home, tmp_path: Path) -> None:
    """A person says which: `memoryd project mv`."""
    one = make_repository(tmp_path / "one")
    shutil.copytree(one, tmp_path / "two")
    known = {written(home, one).key, written(home, tmp_path / "two").key}
    shutil.rmtree(tmp_path / "two")
    one.rename(tmp_path / "new")

    assert len(known) == 2
    assert key(home, tmp_path / "new") not in known


def test_a_repository_that_moves_is_not_its_clone_that_stays(home: Home, tmp_path: Path) -> None:
    """Only one of the two has left."""
    one, two = make_repository(tmp_path / "one"), tmp_path / "two"
    shutil.copytree(one, two)
    first, second = written(home, one).key, written(home, two).key
    one.rename(tmp_path / "new")

    assert [key(home, tmp_path / "new"), key(home, two)] == [first, second]


@pytest.mark.parametrize("what", ["repository", "directory", "folder above"])
def test_a_link_that_is_left_where_a_project_was_leads_to_its_memory(
    what: str, home: Home, tmp_path: Path
) -> None:
    """The old place is not gone, and says where the new one is."""
    old, new = tmp_path / "code/app", tmp_path / "data/app"
    old.mkdir(parents=True)
    if what == "repository":
        make_repository(old)
    known = written(home, old).key
    moved = (tmp_path / "code", tmp_path / "data") if what == "folder above" else (old, new)
    moved[1].parent.mkdir(exist_ok=True)
    moved[0].rename(moved[1])
    moved[0].symlink_to(moved[1])

    assert {key(home, old), key(home, new)} == {known}
    assert written(home, new).key == known


def test_what_an_editor_leaves_where_a_repository_was_is_not_it(home: Home, tmp_path: Path) -> None:
    """The folder was made again, without git."""
    app = make_repository(tmp_path / "app")
    old = written(home, app).key
    app.rename(tmp_path / "new")
    (app / ".editor").mkdir(parents=True)

    assert written(home, tmp_path / "new").key == old
    assert key(home, app) != old


def test_a_worktree_kept_apart_takes_over_no_other(home: Home, tmp_path: Path) -> None:
    """One that was removed did not move: its repository is still there."""
    repository = make_repository(tmp_path / "app")
    for name in ("a", "b"):
        git(repository, "worktree", "add", "-q", str(tmp_path / name))
    resolver = Resolver(home, "apart")
    old = resolver.resolve(str(tmp_path / "a"))
    resolver.remember([old.key])

    git(repository, "worktree", "remove", str(tmp_path / "a"))

    assert Resolver(home, "apart").resolve(str(tmp_path / "b")).key != old.key


def test_a_worktree_of_a_moved_repository_belongs_to_it(home: Home, tmp_path: Path) -> None:
    """Its pointer still names the old place."""
    repository, tree = make_repository(tmp_path / "app"), tmp_path / "tree"
    git(repository, "worktree", "add", "-q", str(tree))
    old = written(home, repository)
    repository.rename(tmp_path / "new")

    assert key(home, tree) == old.key
    written(home, tmp_path / "new")
    assert key(home, tree) == old.key


def test_a_merged_project_is_the_other_by_every_path(home: Home, tmp_path: Path) -> None:
    """Its directories, those that are gone, and its new place once it moves."""
    one, two = make_repository(tmp_path / "one"), make_repository(tmp_path / "two")
    (one / "deep").mkdir()
    into, merged = written(home, two), written(home, one)

    merge_identity(home, merged.key, into.key)

    assert Resolver(home).resolve(str(one / "deep")) == into
    one.rename(tmp_path / "new")
    assert {key(home, tmp_path / name) for name in ("one/deep", "new/deep")} == {into.key}
    merge_identity(home, into.key, merged.key)  # a ring ends too
    assert key(home, two) in {into.key, merged.key}


def test_a_project_that_was_moved_by_hand_is_read_by_both_paths(home: Home, tmp_path: Path) -> None:
    """Without git there is nothing else to know it by."""
    (tmp_path / "app").mkdir()
    old = written(home, tmp_path / "app")
    (tmp_path / "app").rename(tmp_path / "new")

    move(home, old.key, str(tmp_path.resolve() / "new"))

    assert key(home, tmp_path / "new") == key(home, tmp_path / "app") == old.key
    assert Resolver(home).resolve(str(tmp_path / "app")).path == str(tmp_path.resolve() / "new")


def test_a_directory_among_a_projects_notes_is_the_project(home: Home, tmp_path: Path) -> None:
    """Where they are, and by a link; before and after the project moved or was merged."""
    app = make_repository(tmp_path / "app")
    found = written(home, app)
    notes = home.projects / found.key / "memory"
    (notes / "feedback").mkdir(parents=True)
    (notes / ".git").write_text("gitdir: ../../../baselines/x.git\n")
    (tmp_path / "link").symlink_to(notes)
    ways = [notes.parent, notes, notes / "feedback", notes / "gone", tmp_path / "link"]

    assert {Resolver(home).resolve(str(way)) for way in ways} == {found}
    app.rename(tmp_path / "new")
    written(home, tmp_path / "new")
    assert Resolver(home).resolve(str(notes)).path == str(tmp_path.resolve() / "new")
    into = written(home, make_repository(tmp_path / "other"))
    merge_identity(home, found.key, into.key)
    assert {Resolver(home).resolve(str(way)) for way in ways} == {into}


def test_a_directory_among_notes_that_say_no_project_is_what_their_key_says(
    home: Home, tmp_path: Path
) -> None:
    """A store whose ``project.json`` is lost; what no key says stays a directory like any other."""
    app = make_repository(tmp_path / "app")
    notes = home.projects / project_key(str(app.resolve())) / "memory"
    odd = home.projects / "not%a%key" / "memory"
    for folder in (notes, odd, home.projects):
        folder.mkdir(parents=True, exist_ok=True)

    assert key(home, notes) == key(home, app)
    assert key(home, odd) == project_key(str(odd.resolve()))
    assert key(home, home.projects) == project_key(str(home.projects.resolve()))


NAMES = ("a", "b", "c")
STEPS = st.lists(
    st.tuples(
        st.sampled_from(("write", "rename", "delete", "make", "plain", "change")),
        *[st.sampled_from(NAMES)] * 2,
    ),
    max_size=8,
)


@settings(max_examples=20, deadline=None)
@example(steps=[("make", "b", "a"), ("make", "a", "a"), ("delete", "a", "a"), ("rename", "b", "a")])
@example(steps=[("make", "b", "a"), ("delete", "b", "a"), ("make", "b", "a"), ("rename", "b", "a")])
@given(steps=STEPS)
def test_write_then_read_always_meet(steps: list[tuple[str, str, str]]) -> None:
    """Whatever is made, moved and deleted: one directory has one key however it is reached, two
    have two, and a repository that is written to keeps its key wherever it goes."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        home = Home(root / "home")
        home.prepare()
        keys: dict[int, str] = {}  # by the inode of a repository that was written to
        for step, name, other in steps:
            place = _take(step, root / name, root / other)
            if place.exists():
                wrote = written(home, place).key
                if (place / ".git").exists():
                    assert keys.setdefault((place / ".git").stat().st_ino, wrote) == wrote
            _require_one_key_each(home, root)


def _take(step: str, place: Path, other: Path) -> Path:
    """Take the step; where something may have been written after it."""
    if step in {"make", "plain"} and not place.exists():
        (place / "deep").mkdir(parents=True)
        if step == "make":
            git(place, "init", "-q")
            git(place, "commit", "-q", "--allow-empty", "-m", uuid.uuid4().hex)
    elif step == "change" and (place / ".git").exists():
        git(place, "config", "remote.origin.url", uuid.uuid4().hex)
        git(place, "commit", "-q", "--allow-empty", "--amend", "-m", uuid.uuid4().hex)
    elif step == "rename" and place.exists() and not other.exists():
        place.rename(other)
        return other
    elif step == "delete" and place.exists():
        (place.parent / "gone").mkdir(exist_ok=True)  # kept, so that no number is given again
        place.rename(place.parent / "gone" / uuid.uuid4().hex)
    return place


def _require_one_key_each(home: Home, root: Path) -> None:
    link = root / "link"
    found = {}
    for name in NAMES:
        if not (root / name).exists():
            continue
        link.symlink_to(root / name)
        ways = (f"{root}/{name}", f"{root}//{name}/", f"{root}/{name}/../{name}/.", str(link))
        below = (f"{root}/{name}/deep",) if (root / name / ".git").exists() else ()
        reached = {key(home, way) for way in (*ways, *below)}
        link.unlink()
        assert len(reached) == 1
        found[name] = reached.pop()
    assert len(set(found.values())) == len(found)
    for known in identities(home):  # and among its notes, wherever the project itself is by now
        notes = home.projects / known.key / "memory"
        assert key(home, notes) == key(home, notes / "user") == known.key
