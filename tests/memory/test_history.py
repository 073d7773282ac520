"""The history of a store is told as what happened, and a note is followed wherever it went."""

from __future__ import annotations

from dataclasses import replace

import pytest
from store_builders import KEY, age, git, make_store, note_bytes, operation, plan, write_note

from memoryd.memory.apply import apply_plan
from memoryd.memory.baseline import Baseline
from memoryd.memory.edits import commit_person_edits
from memoryd.memory.errors import UndoConflict, UsageError
from memoryd.memory.history import history
from memoryd.memory.home import Home
from memoryd.memory.store import Store
from memoryd.memory.testing import FakeClock
from memoryd.memory.undo import undo, undo_of


def test_every_commit_is_told_newest_first(home: Home, clock: FakeClock) -> None:
    """Who, when, for which job, what, and which files."""
    store = make_store(home, a="One")
    made = apply_plan(home, plan(operation("user/b.md", "Two"), job="job-7"), clock=clock)
    clock.advance(120)
    write_note(store, "user/a.md", "Mine")
    age(store, "user/a.md", clock, 61)
    commit_person_edits(store, now_ms=clock.now_ms())

    mine, job, start = history(store)

    assert (mine.author, mine.job, mine.paths) == ("person", None, ("user/a.md",))
    assert mine.at_ms // 1000 == clock.now_ms() // 1000
    assert (job.commit, job.author, job.job) == (made.commits[KEY], "memoryd", "job-7")
    assert (job.paths, job.undone, start.subject) == (("user/b.md",), False, "Start")
    assert history(store, limit=1) == [mine]


def test_a_store_without_commits_has_no_history(home: Home) -> None:
    """Nothing, and no error."""
    assert history(Store.for_project(home, "k")) == []
    assert history(make_store(home)) == []


def test_a_note_is_followed_through_its_moves(home: Home) -> None:
    """A rename by hand, another type, and the archive with other words in it."""
    store = make_store(home, first="The body of a note, long enough to be known again", other="x")
    for old, new in (("user/first", "user/second"), ("user/second", "project/second")):
        (store.root / new).parent.mkdir(exist_ok=True)
        (store.root / f"{old}.md").rename(store.root / f"{new}.md")
        Baseline(store).commit([f"{old}.md", f"{new}.md"], f"To {new}", author="person")
    write_note(store, "user/other.md", "Not about it")
    Baseline(store).commit(["user/other.md"], "Other")
    (store.root / "project/second.md").unlink()
    write_note(store, "archive/project/second.md", "Wholly different words by now")
    Baseline(store).commit(["project/second.md", "archive/project/second.md"], "Archive")

    told = [entry.subject for entry in history(store, "second")]

    assert told == ["Archive", "To project/second", "To user/second", "Start"]
    assert [entry.subject for entry in history(store, "second", limit=2)] == told[:2]
    assert [entry.subject for entry in history(store, "project/second")] == told
    assert [entry.subject for entry in history(store, "other")] == ["Other", "Start"]


def test_a_note_that_is_gone_still_has_its_history(home: Home) -> None:
    """By the name of its file; a name that never was is an error."""
    store = make_store(home, a="One", b="Two")
    (store.root / "user/a.md").unlink()
    Baseline(store).commit(["user/a.md"], "Gone")

    assert [entry.subject for entry in history(store, "a")] == ["Gone", "Start"]
    with pytest.raises(UsageError, match="was called 'never'"):
        history(store, "never")


def test_file_names_cannot_forge_a_commit(home: Home) -> None:
    """A path that looks like git's own answer is a path."""
    store = make_store(home, a="One")
    forged = "\x1eabc\n:100644 100644 " + "0" * 40 + " " + "1" * 40 + " M"
    path = write_note(store, f"user/{forged}.md", "x")
    Baseline(store).commit([path], "Odd")

    assert [(entry.subject, entry.paths) for entry in history(store)] == [
        ("Odd", (path,)),
        ("Start", ("user/a.md",)),
    ]


def consolidation(home: Home, clock: FakeClock) -> Store:
    """Two notes merged into a third and archived, and one archived for its age: one commit."""
    store = make_store(home, a="A", b="B", into="Into", old="Old", kept="Kept")
    moved = [
        each
        for name in ("a", "b", "old")
        for each in (
            operation(f"archive/user/{name}.md", f"{name}, superseded"),
            operation(
                f"user/{name}.md", None, before=note_bytes(f"user/{name}.md", name.capitalize())
            ),
        )
    ]
    merged = operation("user/into.md", "A and B", before=note_bytes("user/into.md", "Into"))
    made = replace(
        plan(merged, *moved, job="job-c"), slice=None, subject="Consolidate: 1 merged, 1 archived"
    )
    apply_plan(home, made, clock=clock)
    return store


def test_a_consolidation_is_taken_back_in_one_step(home: Home, clock: FakeClock) -> None:
    """Moves to the archive and updates together; nothing is forgotten by it, all is told."""
    store = consolidation(home, clock)
    before = {f"user/{name}.md" for name in ("a", "b", "into", "old", "kept")}

    undone = undo(home, "job-c", clock=clock)

    assert {note.path for note in store.notes()} == before
    assert store.read("user/into.md") == note_bytes("user/into.md", "Into")
    assert undone.forgotten == {KEY: ()}
    assert not (store.root / "tombstones.jsonl").exists()
    assert git(store, "status", "--porcelain") == ""
    back, job, _ = history(store)
    assert (back.undoes, back.undone, job.undone) == (job.commit, False, True)
    assert undo_of([store], "job-c") == undone.id

    undo(home, undone.id, clock=clock)

    assert undo_of([store], "job-c") is None
    assert {note.path for note in store.notes() if note.archived} == {
        f"archive/user/{name}.md" for name in ("a", "b", "old")
    }


def test_a_consolidation_that_a_person_built_on_is_not_taken_back(
    home: Home, clock: FakeClock
) -> None:
    """The file is named and nothing is moved."""
    store = consolidation(home, clock)
    write_note(store, "archive/user/a.md", "I looked at it again")
    Baseline(store).commit(["archive/user/a.md"], "Mine", author="person")
    before = {note.path: note.body for note in store.notes()}

    with pytest.raises(UndoConflict, match=r"archive/user/a\.md"):
        undo(home, "job-c", clock=clock)

    assert {note.path: note.body for note in store.notes()} == before
    assert undo_of([store], "job-c") is None
