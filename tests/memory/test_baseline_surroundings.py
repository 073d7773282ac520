"""What lies around a baseline, or was set in it, changes neither what is seen nor what is kept."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from store_builders import git, make_store, note_bytes, write_bytes, write_note

from memoryd.memory.baseline import Baseline
from memoryd.memory.home import Home
from memoryd.memory.store import Store

SETTINGS = {
    "core.autocrlf": "true",
    "core.bare": "true",
    "core.checkStat": "minimal",
    "core.fileMode": "true",
    "core.fsmonitor": "/bin/false",
    "core.hooksPath": "hooks",
    "core.ignoreStat": "true",
    "core.quotePath": "true",
    "core.sparseCheckout": "true",
    "core.splitIndex": "false",
    "core.worktree": "/nowhere",
    "color.ui": "always",
    "commit.gpgSign": "true",
    "diff.external": "/bin/false",
    "diff.noprefix": "true",
    "filter.evil.clean": "touch fired; cat",
    "gpg.program": "/bin/false",
    "i18n.commitEncoding": "latin1",
    "i18n.logOutputEncoding": "latin1",
    "log.showRoot": "false",
    "log.showSignature": "true",
    "trailer.separators": "=",
    "user.name": "Ada",
}


def test_settings_in_the_repository_itself_change_nothing(home: Home) -> None:
    """A person may have typed `git config` in the store: bytes, authors and trailers stay."""
    store = make_store(home, a="One\nTwo")
    hooks = store.git_dir / "hooks"
    hooks.mkdir()
    for name in ("reference-transaction", "post-index-change", "pre-commit"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {store.git_dir}/fired\nexit 1\n")
        (hooks / name).chmod(0o755)
    for key, value in SETTINGS.items():
        subprocess.run(["git", "config", "-f", str(store.git_dir / "config"), key, value])
    (store.root / ".gitattributes").write_text("*.md filter=evil text\n")
    write_note(store, "user/ü.md", "Neu")

    made = Baseline(store).commit(["user/ü.md"], "Für ü", {"Memoryd-Job": "jöb"})

    assert Baseline(store).changed_paths() == []
    (found,) = Baseline(store).commits_of("jöb")
    assert (found.id, found.author, found.subject) == (made, "memoryd", "Für ü")
    assert Baseline(store).show(made, "user/ü.md") == note_bytes("user/ü.md", "Neu")
    assert b"+Neu" in Baseline(store).diff(f"{made}~1", made)
    assert not (store.git_dir / "fired").exists()
    assert not (store.root / "fired").exists()


def test_attributes_hide_no_change_of_bytes(home: Home) -> None:
    """A file that only changed its line ends has changed, in a repository of any age."""
    store = make_store(home, a="One\nTwo")
    (store.git_dir / "info/attributes").unlink()
    Baseline(store).ensure()
    (store.root / ".gitattributes").write_text("*.md text\n")
    data = note_bytes("user/a.md", "One\nTwo").replace(b"\n", b"\r\n")

    write_bytes(store, "user/a.md", data)

    assert Baseline(store).changed_paths() == ["user/a.md"]


@pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
def test_a_file_that_git_was_told_not_to_look_at_is_looked_at(home: Home, flag: str) -> None:
    """It is the memory that is looked at, not the person's view of it."""
    store = make_store(home, a="One", b="Two")
    git(store, "update-index", flag, "user/a.md")

    write_note(store, "user/a.md", "Changed")

    assert Baseline(store).changed_paths() == ["user/a.md"]


def test_an_index_that_a_crash_left_behind_is_no_staged_work(home: Home) -> None:
    """Else `git commit -a` in the store would take back what was just remembered."""
    store = make_store(home, a="One")
    index = store.git_dir / "index"
    before = index.read_bytes()
    write_note(store, "user/b.md", "New")
    write_note(store, "user/a.md", "Changed")
    Baseline(store).commit(["user/a.md", "user/b.md"], "Both")
    index.write_bytes(before)

    assert Baseline(store).changed_paths() == []

    assert git(store, "status", "--porcelain") == ""


def test_an_index_whose_other_half_is_gone_is_made_anew(home: Home) -> None:
    """Git keeps it in two files; either may be lost."""
    store = make_store(home, a="One")
    write_note(store, "user/b.md", "New")
    for half in store.git_dir.glob("sharedindex.*"):
        half.unlink()

    assert Baseline(store).changed_paths() == ["user/b.md"]
    for half in store.git_dir.glob("sharedindex.*"):
        half.unlink()
    Baseline(store).commit(["user/b.md"], "More")

    assert Baseline(store).changed_paths() == []
    assert git(store, "status", "--porcelain") == ""


def test_what_a_person_staged_is_neither_committed_nor_lost(home: Home) -> None:
    """A commit of ours is made beside their index."""
    store = make_store(home, a="One", b="Two")
    write_note(store, "user/b.md", "Staged")
    git(store, "add", "user/b.md")
    write_note(store, "user/a.md", "Ours")

    made = Baseline(store).commit(["user/a.md"], "Ours")

    assert Baseline(store).paths_of(made) == ["user/a.md"]
    assert git(store, "diff", "--cached", "--name-only") == "user/b.md"


def test_a_store_inside_another_repository_is_its_own(home: Home) -> None:
    """The repository around it sees no commit of ours, and we none of its."""
    subprocess.run(["git", "init", "-q", str(home.root)], check=True)
    store = make_store(home, a="One")
    (store.root / ".git").unlink()

    Baseline(store).commit([write_note(store, "user/b.md", "Two")], "Two")

    assert [each.subject for each in Baseline(store).log()] == ["Two", "Start"]
    around = ["git", "-C", str(home.root), "rev-parse", "--verify", "--quiet", "HEAD"]
    assert subprocess.run(around, capture_output=True).returncode == 1
    assert git(store, "log", "--format=%s") == "Two\nStart"


def test_a_repository_inside_the_store_hides_no_note(home: Home) -> None:
    """Neither those that were there nor a change of them; and none of it is committed."""
    store = make_store(home, a="One", b="Two")
    for folder in ("user", "project"):
        subprocess.run(["git", "init", "-q", str(store.root / folder)], check=True)
    write_note(store, "user/a.md", "Changed")
    (store.root / "user/b.md").unlink()
    write_note(store, "project/c.md", "New where git knows of nothing yet")

    assert Baseline(store).changed_paths() == ["project/c.md", "user/a.md", "user/b.md"]
    Baseline(store).commit(Baseline(store).changed_paths(), "All")

    assert Baseline(store).changed_paths() == []
    assert sorted(Baseline(store).files()) == ["project/c.md", "user/a.md"]


def test_a_foreign_repository_in_the_stores_place_is_left_and_named(home: Home) -> None:
    """Ours works all the same; what to type for it is said."""
    store = make_store(home, a="One")
    (store.root / ".git").unlink()
    subprocess.run(["git", "init", "-q", str(store.root)], check=True)

    made = Baseline(store).commit([write_note(store, "user/b.md", "Two")], "Two")

    (found,) = Baseline(store).trouble()
    assert found.code == "baseline.foreign"
    command = found.hint.split("`")[1]
    told = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True)
    assert made in told.stdout
    assert (store.root / ".git").is_dir()


@pytest.mark.parametrize(
    ("text", "kept"),
    [("gitdir: ../../../baselines/gone.git\n", False), ("gitdir: ../elsewhere\n", True)],
)
def test_a_link_of_ours_that_leads_nowhere_is_mended(home: Home, text: str, kept: bool) -> None:
    """As after a project was renamed by hand; one that is not ours stays."""
    store = make_store(home, a="One")
    (store.root / ".git").write_text(text)

    Baseline(store).ensure()

    assert ((store.root / ".git").read_text() == text) is kept


def test_names_that_differ_in_case_only_are_two_notes(home: Home, tmp_path: Path) -> None:
    """Where the file system can hold both."""
    (tmp_path / "x").touch()
    if (tmp_path / "X").exists():
        pytest.skip("this file system does not tell them apart")
    store = make_store(home, note="Small")
    write_note(store, "user/Note.md", "Large")

    Baseline(store).commit(["user/Note.md"], "Large")
    (store.root / "user/note.md").rename(store.root / "user/NOTE.md")

    assert sorted(Baseline(store).files()) == ["user/Note.md", "user/note.md"]
    assert Baseline(store).changed_paths() == ["user/NOTE.md", "user/note.md"]


@pytest.mark.parametrize(
    "name", ["a b", "tab\there", "new\nline", '"quoted"', "ünï", "\u202eright", "-n", "[*]?"]
)
def test_any_name_of_a_file_is_kept_as_it_is(home: Home, name: str) -> None:
    """Written, seen, compared and shown under it."""
    store = make_store(home, a="One")
    path = write_note(store, f"user/{name}.md", "Odd")

    assert Baseline(store).changed_paths() == [path]
    made = Baseline(store).commit([path], "Odd")

    assert Baseline(store).paths_of(made) == [path]
    assert Baseline(store).show(made, path) == note_bytes(path, "Odd")
    assert Baseline(store).changed_paths() == []


def test_a_name_that_is_no_text_is_kept_as_it_is(home: Home) -> None:
    """Bytes that are no UTF-8, where the file system takes them."""
    store = make_store(home, a="One")
    path = os.fsdecode(b"user/\xff\xfe.md")
    try:
        write_bytes(store, path, b"Odd")
    except OSError:
        pytest.skip("this file system takes only text for names")

    Baseline(store).commit([path], "Odd")

    assert Baseline(store).changed_paths() == []
    assert path in Baseline(store).files()


def test_a_folder_that_lost_its_last_note_leaves_the_commit(home: Home) -> None:
    """Git knows no empty folder, nor must a tree of ours."""
    store = make_store(home, a="One")
    write_note(store, "archive/user/old.md", "Old")
    Baseline(store).commit(["archive/user/old.md"], "Old")
    shutil.rmtree(store.root / "archive")

    Baseline(store).commit(["archive/user/old.md"], "Gone")

    assert git(store, "ls-tree", "--name-only", "HEAD") == "user"
    assert "dangling" not in git(store, "fsck", "--strict", "--no-dangling")


def test_a_huge_store_is_committed_and_looked_at_as_a_whole(home: Home) -> None:
    """More files than one run of git stores, then one changed; git finds nothing amiss."""
    store = Store.for_project(home, "k")
    files: dict[str, bytes | None] = {
        f"{kind}/n{number:04d}.md": b"Note %d\n" % number
        for kind in ("user", "project")
        for number in range(300)
    }
    for path, data in files.items():
        write_bytes(store, path, data or b"")

    Baseline(store).commit(files, "Many")
    write_bytes(store, "project/n0250.md", b"Changed\n")

    assert Baseline(store).changed_paths() == ["project/n0250.md"]
    assert len(store.notes()) == 600
    git(store, "fsck", "--strict")


def test_what_git_makes_is_the_owners_alone_whatever_the_umask(home: Home) -> None:
    """The history holds all that the notes do."""
    old = os.umask(0)
    try:
        store = make_store(home, a="A")
    finally:
        os.umask(old)

    made = [store.git_dir, *store.git_dir.rglob("*")]
    assert len(made) > 10
    assert [path for path in made if path.stat().st_mode & 0o077] == []
