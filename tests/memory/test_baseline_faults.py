"""A baseline under every fault: it works, or it says what to do, and nothing is written or lost."""

from __future__ import annotations

import errno
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from store_builders import (
    KEY,
    age,
    git,
    make_store,
    note_bytes,
    operation,
    plan,
    write_bytes,
    write_note,
)

from memoryd.memory.apply import apply_plan
from memoryd.memory.baseline import SNAPSHOT_TAG, Baseline
from memoryd.memory.edits import commit_person_edits, require_not_held
from memoryd.memory.errors import (
    BaselineLocked,
    BaselineMissing,
    BaselineUnusable,
    DiskFull,
    StoreDetached,
    StoreError,
)
from memoryd.memory.home import Home
from memoryd.memory.projects import Project, record
from memoryd.memory.store import Store
from memoryd.memory.testing import FakeClock
from memoryd.memory.undo import undo

REF_LOCKS = ("HEAD.lock", "refs/heads/main.lock")


def follow(error: StoreError) -> None:
    """Do what the hint says, as a person copies it into a shell."""
    for command in re.findall(r"`([^`]+)`", error.hint):
        subprocess.run(["sh", "-c", command], check=True, capture_output=True)


def contents(store: Store) -> dict[str, bytes]:
    """Every file of memory with its bytes."""
    return {path: (store.root / path).read_bytes() for path in store.paths()}


def loose(store: Store, name: str) -> Path:
    """The file of the loose object that ``name`` (as git resolves it) is kept in."""
    made = git(store, "rev-parse", name)
    return store.git_dir / "objects" / made[:2] / made[2:]


def no_longer_readable(path: Path) -> None:
    """Empty a file of git's, as a power cut without syncing does."""
    path.chmod(0o600)
    path.write_bytes(b"")


@pytest.mark.parametrize("name", REF_LOCKS)
def test_a_young_lock_on_the_branch_is_left_to_the_git_that_holds_it(
    home: Home, clock: FakeClock, name: str
) -> None:
    """Nothing is committed; the message names the file, and what it says helps."""
    store = make_store(home, a="One")
    (store.git_dir / name).touch()
    age(store, str(store.git_dir / name), clock, 599)

    with pytest.raises(BaselineLocked, match=re.escape(name)) as caught:
        Baseline(store).commit([], "Locked", now_ms=clock.now_ms())

    assert (store.git_dir / name).exists()
    assert Baseline(store).trouble(clock.now_ms()) == []
    clock.advance(2)
    (found,) = Baseline(store).trouble(clock.now_ms())
    assert (found.code, found.hint) == ("baseline.locked", caught.value.hint)
    follow(caught.value)
    Baseline(store).commit([], "Free", now_ms=clock.now_ms())
    assert Baseline(store).trouble(clock.now_ms()) == []


@pytest.mark.parametrize("name", REF_LOCKS)
def test_an_old_lock_of_a_git_that_died_is_removed(home: Home, clock: FakeClock, name: str) -> None:
    """No git holds a lock on a ref for ten minutes."""
    store = make_store(home, a="One")
    (store.git_dir / name).touch()
    age(store, str(store.git_dir / name), clock, 601)

    made = Baseline(store).commit([], "Free", now_ms=clock.now_ms())

    assert Baseline(store).head() == made
    assert not (store.git_dir / name).exists()


def test_a_lock_on_the_index_is_never_removed_and_stops_nothing(
    home: Home, clock: FakeClock
) -> None:
    """It may be that of a commit whose message a person is still writing."""
    store = make_store(home, a="One")
    lock = store.git_dir / "index.lock"
    lock.touch()
    age(store, str(lock), clock, 86_400)

    Baseline(store).commit([write_note(store, "user/b.md", "Two")], "Two", now_ms=clock.now_ms())

    assert lock.exists()
    assert Baseline(store).changed_paths() == []
    assert [each.code for each in Baseline(store).trouble(clock.now_ms())] == ["baseline.locked"]


def _checkout_old(store: Store) -> None:
    git(store, "checkout", "-q", "HEAD~1")


def _checkout_branch(store: Store) -> None:
    git(store, "checkout", "-q", "-b", "mine")


@pytest.mark.parametrize("leave", [_checkout_old, _checkout_branch])
def test_nothing_is_written_while_something_else_is_checked_out(
    home: Home, clock: FakeClock, leave: Callable[[Store], None]
) -> None:
    """The files are not those of the memory: a commit there would vanish with the checkout."""
    store = make_store(home, a="One")
    write_note(store, "user/a.md", "Two")
    job = Baseline(store).commit(["user/a.md"], "Two", {"Memoryd-Job": "job-2"})
    leave(store)
    before = contents(store)

    with pytest.raises(StoreDetached) as caught:
        apply_plan(home, plan(operation("user/new.md", "New")), clock=clock)
    with pytest.raises(StoreDetached):
        commit_person_edits(store, now_ms=clock.now_ms())
    with pytest.raises(StoreDetached):
        undo(home, "job-2", clock=clock)

    assert contents(store) == before
    assert Baseline(store).head() == job
    assert [each.code for each in Baseline(store).trouble()] == ["store.detached"]
    follow(caught.value)
    apply_plan(home, plan(operation("user/new.md", "New")), clock=clock)
    assert contents(store) == {
        "user/a.md": note_bytes("user/a.md", "Two"),
        "user/new.md": note_bytes("user/new.md", "New"),
    }
    assert git(store, "log", "--format=%s", "main").splitlines()[1:] == ["Two", "Start"]


def test_the_files_of_an_old_commit_put_back_are_a_persons_edit(
    home: Home, clock: FakeClock
) -> None:
    """`git checkout OLD -- .` leaves the branch where it is: many edits, none of them held."""
    store = make_store(home, **{f"n{number}": "Old" for number in range(30)})
    for path in store.paths():
        write_note(store, path, "New")
    Baseline(store).commit(store.paths(), "New")
    git(store, "checkout", "HEAD~1", "--", ".")

    outcome = commit_person_edits(store, now_ms=clock.now_ms())

    assert len(outcome.edited) == 30
    assert Baseline(store).log(1)[0].author == "person"
    assert Baseline(store).show("HEAD", "user/n7.md") == note_bytes("user/n7.md", "Old")


def _empty_head(store: Store) -> None:
    no_longer_readable(store.git_dir / "HEAD")


def _garbage_head(store: Store) -> None:
    (store.git_dir / "HEAD").write_bytes(b"\xff\0\xfe")


def _no_head(store: Store) -> None:
    (store.git_dir / "HEAD").unlink()


def _empty_branch(store: Store) -> None:
    no_longer_readable(store.git_dir / "refs/heads/main")


def _no_branch(store: Store) -> None:
    (store.git_dir / "refs/heads/main").unlink()


def _broken_packed_refs(store: Store) -> None:
    git(store, "pack-refs", "--all")
    (store.git_dir / "packed-refs").write_text("garbage\n")


@pytest.mark.parametrize(
    "damage",
    [_empty_head, _garbage_head, _no_head, _empty_branch, _no_branch, _broken_packed_refs],
)
def test_a_damaged_ref_is_said_with_the_commands_that_mend_it(
    home: Home, damage: Callable[[Store], None]
) -> None:
    """A history that cannot be found is never taken for none: nothing begins beside it."""
    store = make_store(home, a="One")
    write_note(store, "user/b.md", "Two")
    damage(store)
    before = contents(store)

    with pytest.raises(BaselineUnusable) as caught:
        Baseline(store).commit(["user/b.md"], "Two")
    (found,) = Baseline(store).trouble()

    assert contents(store) == before
    assert (found.code, found.hint) == ("baseline.unusable", caught.value.hint)
    follow(caught.value)
    Baseline(store).commit(["user/b.md"], "Two")
    assert [each.subject for each in Baseline(store).log()] == ["Two", "Start"]
    assert Baseline(store).trouble() == []


@pytest.mark.parametrize("name", ["main", "main^{tree}", "main:user", "main:user/a.md"])
@pytest.mark.parametrize("gone", [True, False], ids=["missing", "empty"])
def test_a_damaged_object_is_said_and_a_new_history_keeps_every_note(
    home: Home, clock: FakeClock, name: str, gone: bool
) -> None:
    """What helps is in the message: the notes are files, and a new history begins with them."""
    store = make_store(home, a="One", b="Two")
    path = loose(store, name)
    path.unlink() if gone else no_longer_readable(path)
    before = contents(store)

    (found,) = Baseline(store).trouble()
    assert found.code == "baseline.unusable"
    if name != "main:user/a.md":  # a commit of another note reads no note
        with pytest.raises(BaselineUnusable):
            Baseline(store).commit([write_note(store, "user/c.md", "Three")], "Three")
        (store.root / "user/c.md").unlink()

    moving = re.findall(r"`(mv [^`]+)`", found.hint)
    subprocess.run(["sh", "-c", moving[0]], check=True)
    outcome = commit_person_edits(store, now_ms=clock.now_ms())

    assert contents(store) == before
    assert outcome.edited == ("user/a.md", "user/b.md")
    (begun,) = Baseline(store).log()
    assert (begun.author, begun.subject) == (
        "person",
        "Begin with the 2 files that are here",
    )
    assert Baseline(store).trouble() == []


def test_a_broken_configuration_of_the_repository_is_said(home: Home) -> None:
    """The message quotes git: it names the line."""
    store = make_store(home, a="One")
    (store.git_dir / "config").write_text("[core\n")

    with pytest.raises(BaselineUnusable, match="bad config line 1"):
        Baseline(store).commit([], "x")
    assert [each.code for each in Baseline(store).trouble()] == ["baseline.unusable"]


def test_a_baseline_that_was_deleted_is_begun_anew_without_lifting_tombstones(
    home: Home, clock: FakeClock
) -> None:
    """The store is still found; its notes are the person's, what was forgotten stays so."""
    import shutil

    store = make_store(home, a="One", b="Two")
    (store.root / "user/b.md").unlink()
    age(store, "user", clock, 61)
    commit_person_edits(store, now_ms=clock.now_ms(), accept_vanished=True)
    forgotten = (store.root / "tombstones.jsonl").read_bytes()
    write_note(store, "project/b.md", "Another of this name")
    shutil.rmtree(store.git_dir)

    (found,) = Store.all(home)
    with pytest.raises(BaselineMissing):
        commit_person_edits(found, now_ms=clock.now_ms())
    with found.writer_lock():
        assert Baseline(found).begin_anew()
    commit_person_edits(found, now_ms=clock.now_ms())

    assert (store.root / "tombstones.jsonl").read_bytes() == forgotten
    assert Baseline(store).last_author("user/a.md") == "person"
    assert Baseline(store).changed_paths() == []


@pytest.mark.parametrize("left", [".git", "tombstones.jsonl"])
def test_a_history_that_is_gone_is_not_silently_begun_anew(home: Home, left: str) -> None:
    """Each of what only comes with a history says so; what is put back goes on."""
    store = make_store(home, a="One")
    write_bytes(store, "tombstones.jsonl", b"")
    before = Baseline(store).head()
    home.baselines.rename(home.root / "away")
    for each in {".git", "tombstones.jsonl"} - {left}:
        (store.root / each).unlink()

    for write in (Baseline(store).ensure, lambda: Baseline(store).commit([], "x")):
        with pytest.raises(BaselineMissing) as raised:
            write()
    with pytest.raises(BaselineMissing):
        require_not_held(store)
    assert str(store.git_dir) in raised.value.hint
    assert not store.git_dir.exists()

    if home.baselines.exists():
        home.baselines.rmdir()
    (home.root / "away").rename(home.baselines)
    Baseline(store).commit([], "On")
    assert Baseline(store).parent(Baseline(store).head() or "") == before


def test_a_project_whose_notes_a_person_made_begins_a_history(home: Home) -> None:
    """Nothing says that there was one."""
    store = Store.for_project(home, KEY)
    path = write_note(store, "user/mine.md", "Mine")
    record(home, Project(store.key, "/home/ada/app"))

    assert Baseline(store).commit([path], "First")


def test_missing_git_is_nobodys_fault(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is said once, and nothing is looked at without it."""
    store = make_store(home, a="One")
    monkeypatch.setenv("PATH", "/nowhere")

    with pytest.raises(BaselineUnusable):
        Baseline(store).commit([], "x")
    assert [each.message for each in Baseline(store).trouble()] == ["git is not installed"]


def test_a_full_disk_is_said_whoever_meets_it(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file, a folder of git's, and git itself."""
    store = make_store(home, a="One")
    head = Baseline(store).head()
    fsync = os.fsync

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DiskFull):
        store.replace("user/b.md", b"x", found=None)
    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(Path, "mkdir", lambda *_, **__: full(0))
    with pytest.raises(DiskFull):
        Baseline(store).commit([], "x")
    monkeypatch.undo()
    real = subprocess.run(["sh", "-c", "command -v git"], capture_output=True, text=True)
    (tmp_path / "git").write_text(
        "#!/bin/sh\ncase $1 in commit-tree) echo 'fatal: No space left on device' >&2; exit 128;;"
        f'esac\nexec {real.stdout.strip()} "$@"\n'
    )
    (tmp_path / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(DiskFull, match="commit-tree"):
        Baseline(store).commit([], "x")

    assert Baseline(store).head() == head
    assert store.paths() == ["user/a.md"]


@pytest.mark.parametrize("what", ["tag", "commit"])
def test_a_tag_that_cannot_be_read_is_not_taken_for_none(home: Home, what: str) -> None:
    """Else consolidation would begin from nothing."""
    store = make_store(home, a="One")
    first = Baseline(store).head()
    assert first is not None
    Baseline(store).move_snapshot(first, found=None)
    Baseline(store).commit([], "Two")

    if what == "tag":
        no_longer_readable(store.git_dir / SNAPSHOT_TAG)
    else:
        no_longer_readable(store.git_dir / "objects" / first[:2] / first[2:])

    with pytest.raises(BaselineUnusable):
        Baseline(store).snapshot()
