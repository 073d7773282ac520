"""Every directory belongs to one project, however it is reached, and every project has one key."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoryd.memory.errors import StoreError
from memoryd.memory.home import Home
from memoryd.memory.projects import (
    Project,
    Resolver,
    excluded,
    identities,
    identity,
    move,
    path_of,
    project_key,
    record,
)
from memoryd.memory.saving import save_note
from memoryd.memory.store import Store
from memoryd.memory.testing import FakeClock

SEGMENT = st.text(st.sampled_from("ab-%._~ é\n2FD/daemonprofile"), min_size=1, max_size=6)
PATHS = st.lists(SEGMENT, max_size=5).map(lambda parts: os.path.normpath("/" + "/".join(parts)))
TEXTS = st.text(max_size=8) | st.lists(SEGMENT, max_size=4).map("/".join)


def git(folder: Path, *arguments: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    who = ("-c", "user.name=x", "-c", "user.email=x", "-c", "protocol.file.allow=always")
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)


def make_repository(folder: Path) -> Path:
    """A repository with one commit."""
    git(folder, "init", "-q")
    git(folder, "commit", "-q", "--allow-empty", "-m", f"Start {folder.name}")
    return folder.resolve()


@settings(deadline=None)
@given(PATHS | TEXTS, PATHS | TEXTS)
def test_keys_are_injective_and_reversible(one: str, other: str) -> None:
    """Two paths share no key; a short key gives its path back; no key is more than one name."""
    key = project_key(one)

    assert (key == project_key(other)) == (_plain(one) == _plain(other))
    assert "/" not in key and "\0" not in key and key not in {"", ".", "..", "daemon"}
    assert not key.startswith("profile-") and len(key) <= 180
    if len(key) < 150:
        assert path_of(key) == _plain(one)


def _plain(path: str) -> str:
    """Doubled slashes mean nothing in an absolute path."""
    return "/" + "/".join(filter(None, path.split("/"))) if path.startswith("/") else path


@pytest.mark.parametrize(
    ("path", "key"),
    [
        ("/home/ada/my-project", "home-ada-my%2Dproject"),
        ("/", "%2F"),
        ("/a b/é", "a%20b-%C3%A9"),
        ("/a__b/c.d+e@f", "a__b-c.d+e@f"),
        ("C:\\Users\\j", "%-C%3A%5CUsers%5Cj"),
        ("", "%-"),
        ("/daemon", "%64aemon"),
        ("/profile/x", "%70rofile-x"),
    ],
)
def test_keys_look_like_their_paths(path: str, key: str) -> None:
    """A person finds a project's folder by eye."""
    assert project_key(path) == key
    assert path_of(key) == path


def test_a_long_path_has_a_short_key_of_its_own() -> None:
    """The hash tells two paths with one beginning apart; the path is in project.json."""
    one, other = "/" + "x" * 300, "/" + "x" * 301

    assert len(project_key(one)) == 168
    assert project_key(one) != project_key(other)
    assert path_of(project_key(one)) is None
    assert [path_of(key) for key in ("%zz", "a/b", "%2f", "--")] == [None] * 4


def test_a_directory_inside_a_repository_is_the_repository(home: Home, tmp_path: Path) -> None:
    """From the root, from below, through a link, and from a folder that is gone."""
    repository = make_repository(tmp_path / "app")
    (repository / "deep/er").mkdir(parents=True)
    (tmp_path / "link").symlink_to(repository / "deep")
    resolver = Resolver(home)

    expected = Project(project_key(str(repository)), str(repository))
    for cwd in ("app", "app/deep/er", "link/er", "app/gone/too", "app/.git/hooks", "app/./deep/.."):
        assert resolver.resolve(f"{tmp_path}/{cwd}") == expected


def test_a_directory_in_no_repository_is_its_own_project(home: Home, tmp_path: Path) -> None:
    """A sibling repository and an empty ``.git`` folder do not count."""
    make_repository(tmp_path / "app")
    (tmp_path / "plain/.git").mkdir(parents=True)

    for name in ("plain", "gone/for/good", "app2"):
        path = str(tmp_path.resolve() / name)
        assert Resolver(home).resolve(path) == Project(project_key(path), path)


def test_worktrees_belong_to_the_main_repository(home: Home, tmp_path: Path) -> None:
    """Also one whose main repository forgot it; a setting keeps them apart."""
    repository = make_repository(tmp_path / "app")
    git(repository, "worktree", "add", "-q", str(tmp_path / "tree"))
    tree = str(tmp_path.resolve() / "tree")

    assert Resolver(home).resolve(tree).path == str(repository)
    assert Resolver(home, "apart").resolve(tree) == Project(project_key(tree), tree)
    shutil.rmtree(repository / ".git/worktrees")
    assert Resolver(home).resolve(tree).path == str(repository)


def test_a_worktree_of_a_bare_repository_belongs_to_it(home: Home, tmp_path: Path) -> None:
    """All worktrees share the bare repository's memory."""
    git(tmp_path, "clone", "-q", "--bare", str(make_repository(tmp_path / "app")), "bare.git")
    git(tmp_path / "bare.git", "worktree", "add", "-q", str(tmp_path / "tree"))

    found = Resolver(home).resolve(str(tmp_path / "tree"))

    assert found.path == str(tmp_path.resolve() / "bare.git")


def test_a_submodule_is_a_project_of_its_own(home: Home, tmp_path: Path) -> None:
    """It is another code base."""
    repository = make_repository(tmp_path / "app")
    git(repository, "submodule", "add", "-q", str(make_repository(tmp_path / "lib")), "vendor")

    found = Resolver(home).resolve(str(repository / "vendor"))

    assert found.path == str(repository / "vendor")


@pytest.mark.parametrize("cwd", ["", ".", "a/b", "C:\\x", "\\\\host\\x", "/a\0b", "/" + "x" * 5000])
def test_odd_directories_have_a_stable_key(home: Home, cwd: str) -> None:
    """Whatever an agent reports, nothing crashes and the answer is the same next time."""
    one, other = Resolver(home).resolve(cwd), Resolver(home).resolve(cwd)

    assert one == other
    assert one.key == project_key(one.path)


def test_hostile_git_files_are_no_repository(home: Home, tmp_path: Path) -> None:
    """A loop of links, a pipe, a huge and a senseless ``.git``."""
    for name in ("loop", "pipe", "huge", "odd"):
        (tmp_path / name).mkdir()
    (tmp_path / "loop/.git").symlink_to(tmp_path / "loop/.git")
    os.mkfifo(tmp_path / "pipe/.git")
    (tmp_path / "huge/.git").write_bytes(b"\xff" * 1_000_000)
    (tmp_path / "odd/.git").write_text("gitdir: a\nb\n")

    for name in ("loop", "pipe", "huge", "odd"):
        assert Resolver(home).resolve(str(tmp_path / name)).path == str(tmp_path.resolve() / name)


def test_a_project_is_recorded_once_and_without_credentials(home: Home, tmp_path: Path) -> None:
    """Path, common dir, remote and root commit; nothing is written while it is the same."""
    repository = make_repository(tmp_path / "app")
    word = "hunter" + "2"
    git(repository, "remote", "add", "origin", f"https://ada:{word}@example.org/app.git")
    project = Resolver(home).resolve(str(repository))

    made = record(home, project)

    raw = (home.projects / project.key / "project.json").read_text()
    assert word not in raw
    assert (made.path, made.git_common_dir) == (str(repository), str(repository / ".git"))
    assert made.remote == "https://example.org/app.git"
    assert len(made.root_commit) == 40
    written = (home.projects / project.key / "project.json").stat()
    assert record(home, project) == made == identity(home, project.key)
    assert (home.projects / project.key / "project.json").stat().st_ino == written.st_ino
    assert identities(home) == [made]


def test_a_directory_that_is_no_repository_is_recorded_by_its_path(home: Home) -> None:
    """Nothing is asked of git about what is gone, relative, or inside another repository."""
    for path in ("/gone/for/good", "relative", ""):
        made = record(home, Project(project_key(path), path))
        assert (made.path, made.root_commit, made.git_common_dir) == (path, "", "")


def test_a_moved_repository_is_adopted_when_it_is_the_only_one(home: Home, tmp_path: Path) -> None:
    """Its memory goes on under the old key, for every resolver from then on."""
    old = Resolver(home).resolve(str(make_repository(tmp_path / "app")))
    record(home, old)
    (tmp_path / "app").rename(tmp_path / "moved")

    resolver = Resolver(home)
    found = resolver.resolve(str(tmp_path / "moved"))
    resolver.remember()

    assert found == Project(old.key, str(tmp_path.resolve() / "moved"))
    assert Resolver(home).resolve(str(tmp_path / "moved")) == found
    known = identity(home, old.key)
    assert known is not None and known.former_paths == (old.path,)


def test_two_projects_of_one_name_have_a_store_each(
    home: Home, tmp_path: Path, clock: FakeClock
) -> None:
    """It is the whole path that tells them apart: neither sees or overwrites the other's note."""
    one, other = (
        Store.for_project(home, Resolver(home).resolve(str(make_repository(tmp_path / at))).key)
        for at in ("work/app", "home/app")
    )
    for store, body in ((one, "Deploys on Monday."), (other, "Has no tests.")):
        save_note(store, type="project", name="app", description="App", content=body, clock=clock)

    assert [note.body for note in one.notes()] == ["Deploys on Monday."]
    assert [note.body for note in other.notes()] == ["Has no tests."]


def test_a_second_clone_is_a_second_project(home: Home, tmp_path: Path) -> None:
    """While the first is still there nothing is adopted."""
    first = make_repository(tmp_path / "app")
    record(home, Resolver(home).resolve(str(first)))
    git(tmp_path, "clone", "-q", str(first), "clone")
    clone = Resolver(home).resolve(str(tmp_path / "clone"))

    assert clone.path == str(tmp_path.resolve() / "clone")
    assert clone.key == project_key(clone.path)


def test_a_project_that_is_not_recorded_cannot_be_moved(home: Home) -> None:
    """The error says how to find the right one."""
    with pytest.raises(StoreError, match="project list"):
        move(home, "nothing", "/x")


@pytest.mark.parametrize(
    ("glob", "out"),
    [
        ("/work/secret", True),
        ("/work/secret/", True),
        ("/work/*", True),
        ("/work/secret/**", True),
        ("secret", True),
        ("s?cret*", True),
        ("~/private", False),
        ("/work/secretive", False),
        ("work", True),
        ("", False),
    ],
)
def test_an_exclusion_covers_what_is_below(glob: str, out: bool) -> None:
    """By whole path or by any name in it."""
    assert excluded("/work/secret/deep/er", [glob]) is out
    assert excluded("/work/secret", [glob]) is out


def test_the_persons_home_is_written_with_a_tilde() -> None:
    """As people write it in a configuration."""
    assert excluded(f"{os.environ['HOME']}/private/x", ["~/private"])


def test_a_directory_is_excluded_by_whatever_name_it_is_reached(tmp_path: Path) -> None:
    """The glob may name the link or its end, the agent may record either."""
    real = tmp_path / "real"
    (real / "deep").mkdir(parents=True)
    link = tmp_path / "link"
    link.symlink_to(real)

    for glob in (str(link), str(real), f"{link}/*"):
        for path in (link / "deep", real / "deep"):
            assert excluded(str(path), [glob]), (glob, path)
    assert not excluded(str(tmp_path / "other"), [str(link)])
