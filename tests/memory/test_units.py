"""What belongs together in a plan is written together or not at all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

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

from memoryd.memory import seams
from memoryd.memory.apply import apply_plan, take_back
from memoryd.memory.baseline import Baseline
from memoryd.memory.edits import commit_person_edits
from memoryd.memory.files import sha256
from memoryd.memory.home import Home
from memoryd.memory.notes import update
from memoryd.memory.plan import Plan
from memoryd.memory.store import Store
from memoryd.memory.testing import FakeClock

OLD = note_bytes("user/old.md", "Old words")
COPY = "archive/user/old-2.md"
#: A supersede, as files: the new note, the archived copy under a free name, the removal.
NEW, ARCHIVED, GONE = "user/new.md", COPY, "user/old.md"


class Crash(Exception):
    """The process ends here."""


def crash_at(monkeypatch: pytest.MonkeyPatch, point: str, count: int = 1) -> None:
    """Raise when ``point`` is reached for the ``count``-th time, and never again."""
    left = [count]

    def hook(reached: str) -> None:
        if reached == point:
            left[0] -= 1
            if left[0] == 0:
                raise Crash

    monkeypatch.setattr(seams, "hook", hook)


def supersede(*, removal_first: bool = False) -> Plan:
    """A plan whose one candidate is three files."""
    kept = update(OLD, valid_until="2026-01-05T09:00:00Z", superseded_by="new")
    copy = replace(operation(COPY, ""), content=kept.decode(), after=sha256(kept))
    made = [operation(NEW, "New words"), copy, operation(GONE, None, before=OLD)]
    if removal_first:
        made.reverse()
    return plan(*(replace(each, candidate="supersede") for each in made))


def crashed(
    home: Home, made: Plan, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    """Apply ``made`` and die after its ``after``-th file."""
    crash_at(monkeypatch, "store.replaced", after)
    with pytest.raises(Crash):
        apply_plan(home, made, clock=clock)
    monkeypatch.undo()


def state(store: Store) -> tuple[bool, bool, bool]:
    """Whether the new note, the archived copy and the old note are there."""
    return tuple(store.read(path) is not None for path in (NEW, ARCHIVED, GONE))  # type: ignore[return-value]


def changed(store: Store) -> None:
    """A person edits the old note."""
    write_note(store, GONE, "A person's words")


def deleted(store: Store) -> None:
    """A person deletes the old note."""
    (store.root / GONE).unlink()


def moved(store: Store) -> None:
    """A person moves the old note."""
    (store.root / "feedback").mkdir(exist_ok=True)
    (store.root / GONE).rename(store.root / "feedback/old.md")


def hidden(store: Store) -> None:
    """A person writes a secret into the old note."""
    write_note(store, GONE, "token ghp_" + "aB3dE6gH9jK2mN5pQ8sT1vW4xY7zA0cD3fG6")


def linked(store: Store) -> None:
    """A person puts a link in the old note's place."""
    (store.root / GONE).unlink()
    (store.root / GONE).symlink_to(store.root / "user/elsewhere.md")


@pytest.mark.parametrize("edit", [changed, deleted, moved, hidden, linked])
def test_a_supersede_gives_way_whole_to_what_a_person_did(
    home: Home, clock: FakeClock, edit: Callable[[Store], None]
) -> None:
    """Neither the new note nor the archived copy is written; theirs stands."""
    store = make_store(home, old="Old words", other="Other")
    edit(store)
    before = {path: store.root.joinpath(path).is_symlink() for path in store.paths()}

    applied = apply_plan(home, supersede(), clock=clock)
    again = apply_plan(home, supersede(), clock=clock)

    assert applied.changed == ("supersede",) == again.changed
    assert applied == again
    assert {path: store.root.joinpath(path).is_symlink() for path in store.paths()} == before
    assert Baseline(store).paths_of(applied.commits[KEY]) == []


@pytest.mark.parametrize("edit", [changed, hidden, linked])
@pytest.mark.parametrize("after", [1, 2])
def test_a_supersede_that_was_begun_is_taken_back_for_a_persons_version(
    home: Home,
    clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
    edit: Callable[[Store], None],
    after: int,
) -> None:
    """They changed the old note between the crash and the second call: no half stays."""
    store = make_store(home, old="Old words")
    crashed(home, supersede(), clock, monkeypatch, after)
    edit(store)

    applied = apply_plan(home, supersede(), clock=clock)
    again = apply_plan(home, supersede(), clock=clock)

    assert applied.changed == ("supersede",) == again.changed
    assert (store.read(NEW), store.read(ARCHIVED)) == (None, None)
    assert (store.root / GONE).is_symlink() or store.read(GONE) not in (None, OLD)


def test_a_deletion_before_the_copy_was_written_is_a_persons(
    home: Home, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """We remove only after everything is written, so that it was not us is known."""
    store = make_store(home, old="Old words")
    crashed(home, supersede(), clock, monkeypatch, 1)
    deleted(store)

    applied = apply_plan(home, supersede(), clock=clock)

    assert applied.changed == ("supersede",)
    assert state(store) == (False, False, False)


@pytest.mark.parametrize("after", [1, 2, 3])
@pytest.mark.parametrize("removal_first", [False, True])
def test_a_supersede_that_was_begun_is_finished(
    home: Home,
    clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
    after: int,
    removal_first: bool,
) -> None:
    """In one commit, in whatever order the plan names its files."""
    store = make_store(home, old="Old words")
    made = supersede(removal_first=removal_first)
    crashed(home, made, clock, monkeypatch, after)

    applied = apply_plan(home, made, clock=clock)

    assert (applied.changed, applied.appended) == ((), ())
    assert state(store) == (True, True, False)
    assert Baseline(store).paths_of(applied.commits[KEY]) == [COPY, NEW, GONE]
    assert git(store, "status", "--porcelain") == ""


def test_what_a_person_changed_after_it_was_written_stands_and_the_rest_is_finished(
    home: Home, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new note is theirs by now; the old one is archived all the same."""
    store = make_store(home, old="Old words")
    crashed(home, supersede(), clock, monkeypatch, 2)
    write_note(store, NEW, "New words, by hand")

    applied = apply_plan(home, supersede(), clock=clock)

    assert applied.changed == ()
    assert state(store) == (True, True, False)
    assert store.read(NEW) == note_bytes(NEW, "New words, by hand")
    assert Baseline(store).last_author(NEW) == "person"
    assert git(store, "status", "--porcelain") == ""


@pytest.mark.parametrize("after", [1, 2, 3, 4, 5])
def test_a_crash_while_a_unit_is_taken_back_ends_the_same(
    home: Home, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    """A merge of two sources, one of which a person changed after the other was archived."""
    store = make_store(home, into="A", one="B", two="C")
    made = plan(
        *(
            replace(each, candidate="merge")
            for each in (
                operation("user/into.md", "A and B and C", before=note_bytes("user/into.md", "A")),
                operation("archive/user/one.md", "B"),
                operation("archive/user/two.md", "C"),
                operation("user/one.md", None, before=note_bytes("user/one.md", "B")),
                operation("user/two.md", None, before=note_bytes("user/two.md", "C")),
            )
        )
    )
    crashed(home, made, clock, monkeypatch, 4)
    write_note(store, "user/two.md", "C by hand")

    crash_at(monkeypatch, "store.replaced", after)
    if after < 5:
        with pytest.raises(Crash):
            apply_plan(home, made, clock=clock)
    applied = apply_plan(home, made, clock=clock)

    assert applied.changed == ("merge",)
    bodies = {note.path: note.body for note in store.notes()}
    assert bodies == {"user/into.md": "A", "user/one.md": "B", "user/two.md": "C by hand"}
    assert git(store, "status", "--porcelain") == ""


def test_a_file_that_changes_while_the_unit_is_written_takes_it_back(
    home: Home, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Saved by hand after the copy was made, before the old note was removed."""
    store = make_store(home, old="Old words")

    def hook(reached: str) -> None:
        if reached == "store.replaced" and state(store) == (True, True, True):
            changed(store)

    monkeypatch.setattr(seams, "hook", hook)
    applied = apply_plan(home, supersede(), clock=clock)

    assert applied.changed == ("supersede",)
    assert state(store) == (False, False, True)
    assert git(store, "status", "--porcelain") == ""


def test_the_other_units_of_a_plan_are_done_all_the_same(home: Home, clock: FakeClock) -> None:
    """A unit in the way of a person's edit drops nothing but itself."""
    store = make_store(home, old="Old words", a="A")
    changed(store)
    newer = operation("user/a.md", "A2", before=note_bytes("user/a.md", "A"), line="x")

    applied = apply_plan(
        home, plan(*supersede().operations, newer, operation("user/b.md", "B")), clock=clock
    )

    assert applied.changed == ("supersede",)
    assert sorted(Baseline(store).paths_of(applied.commits[KEY])) == ["user/a.md", "user/b.md"]


def test_a_note_archived_by_a_plan_that_stands_was_not_deleted_by_hand(
    home: Home, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though its copy has another file's name, because that one was taken in the archive."""
    store = make_store(home, old="Old words")
    made = supersede()
    crashed(home, made, clock, monkeypatch, 3)
    for path in ("user", NEW, COPY):
        age(store, path, clock, 3600)

    outcome = commit_person_edits(
        store,
        now_ms=clock.now_ms(),
        planned={each.after for each in made.operations if each.after},
    )

    assert (outcome.forgotten, outcome.edited) == ((), ())
    assert apply_plan(home, made, clock=clock).changed == ()


@pytest.mark.parametrize("after", [1, 2, 3])
def test_a_plan_that_is_given_up_leaves_nothing_behind(
    home: Home, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    """What it wrote without a commit would else become a person's edit a minute later."""
    store = make_store(home, old="Old words")
    crashed(home, supersede(), clock, monkeypatch, after)

    found = take_back(home, supersede(), clock=clock)

    assert len(found) == after
    assert state(store) == (False, False, True)
    assert store.read(GONE) == OLD
    assert git(store, "status", "--porcelain") == ""
    assert take_back(home, supersede(), clock=clock) == []


def test_taking_back_leaves_what_a_person_did(
    home: Home, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their version of a file, and one they deleted before anything was written."""
    store = make_store(home, old="Old words", a="A")
    newer = operation("user/a.md", "A2", before=note_bytes("user/a.md", "A"), line="A2.")
    made = plan(newer, *supersede().operations)
    crashed(home, made, clock, monkeypatch, 1)
    write_note(store, "user/a.md", "A by hand")
    deleted(store)

    assert take_back(home, made, clock=clock) == []

    assert store.read("user/a.md") == note_bytes("user/a.md", "A by hand")
    assert state(store) == (False, False, False)


def test_taking_back_takes_an_appended_line_off_again(
    home: Home, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The person's version is in the baseline; the line is not."""
    store = make_store(home, a="A")
    write_note(store, "user/a.md", "A by hand")
    newer = operation("user/a.md", "A2", before=note_bytes("user/a.md", "A"), line="A2.")
    crashed(home, plan(newer), clock, monkeypatch, 1)
    assert (store.read("user/a.md") or b"").endswith(b"- A2.\n")

    take_back(home, plan(newer), clock=clock)

    assert store.read("user/a.md") == note_bytes("user/a.md", "A by hand")


def test_taking_back_leaves_a_plan_that_was_committed(home: Home, clock: FakeClock) -> None:
    """Undo is the way for that."""
    store = make_store(home, old="Old words")
    apply_plan(home, supersede(), clock=clock)

    assert take_back(home, supersede(), clock=clock) == []
    assert state(store) == (True, True, False)


def test_taking_back_from_a_store_that_has_no_commit_yet(
    home: Home, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A first plan that died before its commit leaves an empty store."""
    store = make_store(home)
    made = plan(operation("user/a.md", "A"))
    crashed(home, made, clock, monkeypatch, 1)

    take_back(home, made, clock=clock)

    assert store.paths() == []


def test_two_changes_of_one_file_may_stand_in_two_units(home: Home, clock: FakeClock) -> None:
    """The second unit finds the file as the first leaves it."""
    store = make_store(home, a="A", old="Old words")
    first = operation("user/a.md", "A2", before=note_bytes("user/a.md", "A"))
    second = operation("user/a.md", "A3", before=note_bytes("user/a.md", "A2"))
    second = replace(second, candidate="supersede")

    applied = apply_plan(home, plan(first, second, *supersede().operations), clock=clock)

    assert applied.changed == ()
    assert store.read("user/a.md") == note_bytes("user/a.md", "A3")
    assert state(store) == (True, True, False)


def test_an_unreadable_person_file_next_to_a_unit_is_no_matter(
    home: Home, clock: FakeClock
) -> None:
    """Only the unit's own files count."""
    store = make_store(home, old="Old words")
    write_bytes(store, "user/broken.md", b"---\nno end")

    assert apply_plan(home, supersede(), clock=clock).changed == ()
