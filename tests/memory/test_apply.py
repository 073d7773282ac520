"""A plan becomes one commit a store, and the same one however often it is applied."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from store_builders import (
    KEY,
    git,
    make_store,
    note_bytes,
    operation,
    plan,
    write_bytes,
    write_note,
)

from memoryd.memory import seams
from memoryd.memory.apply import Applied, apply_plan
from memoryd.memory.baseline import Baseline
from memoryd.memory.errors import StoreBusy, StoreError
from memoryd.memory.home import Home
from memoryd.memory.plan import Operation, Plan
from memoryd.memory.projects import identity
from memoryd.memory.store import Store
from memoryd.memory.testing import FakeClock
from memoryd.memory.units import appended_line


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


def update_of(store: Store, path: str, old: str, new: str, line: str = "New words.") -> Operation:
    """An update decided on the body ``old``."""
    return operation(path, new, before=note_bytes(path, old), line=line, store=store.key)


def test_new_changed_and_removed_files_are_one_commit(home: Home, clock: FakeClock) -> None:
    """With the trailers by which it is found, dated by the clock, and the index after it."""
    store = make_store(home, a="One", b="Two")
    old = note_bytes("user/b.md", "Two")
    made = plan(
        update_of(store, "user/a.md", "One", "One more"),
        operation("archive/user/b.md", "Two"),
        operation("user/b.md", None, before=old),
        operation("project/c.md", "Three"),
    )

    applied = apply_plan(home, made, clock=clock)

    newest = Baseline(store).log(1)[0]
    assert applied == Applied({KEY: newest.id})
    assert Baseline(store).paths_of(newest.id) == [
        "archive/user/b.md",
        "project/c.md",
        "user/a.md",
        "user/b.md",
    ]
    assert newest.trailers == (
        ("Memoryd-Job", "job-1"),
        ("Memoryd-Slice", "claude-code/s1 1..9"),
        ("Memoryd-Plan", made.digest),
        ("Memoryd-Provider", "rules"),
    )
    assert (newest.author, newest.at_ms) == ("memoryd", clock.now_ms())
    assert [note.path for note in store.notes()] == [
        "archive/user/b.md",
        "project/c.md",
        "user/a.md",
    ]
    assert "[c](project/c.md)" in (store.root / "MEMORY.md").read_text()
    assert git(store, "status", "--porcelain") == ""


def test_a_second_call_writes_nothing(home: Home, clock: FakeClock) -> None:
    """The trailer says that the slice was done, whatever happened to the files since."""
    store = make_store(home)
    made = plan(operation("user/a.md", "One"))
    first = apply_plan(home, made, clock=clock)
    (store.root / "user/a.md").unlink()

    second = apply_plan(home, made, clock=clock)

    assert second == first
    assert store.read("user/a.md") is None
    assert len(Baseline(store).log()) == 1


@pytest.mark.parametrize(
    ("point", "count"),
    [("store.replaced", 1), ("store.replaced", 2), ("store.replaced", 4), ("store.committed", 1),
     ("store.committed", 2)],
)  # fmt: skip
def test_a_crash_anywhere_ends_the_same_after_a_second_call(
    home: Home, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, point: str, count: int
) -> None:
    """Two stores, a replaced, an appended, a dropped, a removed and a new file."""
    one, two = make_store(home, "one", a="A", b="B", c="C", d="D"), make_store(home, "two")
    write_note(one, "user/b.md", "A person's b")
    write_note(one, "user/c.md", "A person's c")
    made = plan(
        update_of(one, "user/a.md", "A", "A2"),
        update_of(one, "user/b.md", "B", "B2", line="Words of b."),
        update_of(one, "user/c.md", "C", "C2", line=""),
        operation("user/d.md", None, before=note_bytes("user/d.md", "D"), store="one"),
        operation("user/new.md", "New", store="two"),
    )

    crash_at(monkeypatch, point, count)
    with pytest.raises(Crash):
        apply_plan(home, made, clock=clock)
    applied = apply_plan(home, made, clock=clock)

    assert applied.changed == ("candidate of user/c.md",)
    assert applied.appended == ("candidate of user/b.md",)
    assert one.read("user/a.md") == note_bytes("user/a.md", "A2")
    assert one.read("user/b.md") == note_bytes("user/b.md", "A person's b") + b"- Words of b.\n"
    assert one.read("user/c.md") == note_bytes("user/c.md", "A person's c")
    assert one.read("user/d.md") is None
    assert two.read("user/new.md") == note_bytes("user/new.md", "New")
    for store, authors in ((one, ["memoryd", "person", "person", "memoryd"]), (two, ["memoryd"])):
        baseline = Baseline(store)
        assert [commit.author for commit in baseline.log()] == authors
        assert baseline.changed_paths() == []
        assert applied.commits[store.key] == baseline.head()
        assert git(store, "status", "--porcelain") == ""


def test_a_persons_version_stands_and_is_committed_as_theirs(home: Home, clock: FakeClock) -> None:
    """The statement is appended to it in a commit of ours."""
    store = make_store(home, a="One")
    theirs = note_bytes("user/a.md", "Mine").replace(b"\n", b"\r\n").rstrip()
    write_bytes(store, "user/a.md", theirs)

    applied = apply_plan(home, plan(update_of(store, "user/a.md", "One", "Two")), clock=clock)

    assert applied.appended == ("candidate of user/a.md",)
    assert store.read("user/a.md") == theirs + b"\r\n- New words.\r\n"
    by_hand = Baseline(store).log()[1]
    assert by_hand.author == "person"
    assert Baseline(store).show(by_hand.id, "user/a.md") == theirs


def test_a_plan_decided_on_a_persons_uncommitted_version_keeps_it_in_history(
    home: Home, clock: FakeClock
) -> None:
    """Undo can give it back."""
    store = make_store(home, a="One")
    write_note(store, "user/a.md", "Mine")

    apply_plan(home, plan(update_of(store, "user/a.md", "Mine", "Mine and more")), clock=clock)

    assert [made.author for made in Baseline(store).log()] == ["memoryd", "person", "memoryd"]
    assert Baseline(store).show("HEAD~1", "user/a.md") == note_bytes("user/a.md", "Mine")


@pytest.mark.parametrize("case", ["new", "gone", "removal", "no header", "link", "folder"])
def test_what_cannot_be_appended_to_is_dropped(home: Home, clock: FakeClock, case: str) -> None:
    """With reason ``changed``, in an empty commit that carries the slice."""
    store = make_store(home, a="One")
    work = update_of(store, "user/a.md", "One", "Two")
    place = store.root / "user/a.md"
    if case == "new":
        work = operation("user/a.md", "Two")
    elif case == "removal":
        work = operation("user/a.md", None, before=note_bytes("user/a.md", "Old"), line="x")
    elif case == "no header":
        place.write_text("---\nname: open\n")
    else:
        place.unlink()
        if case == "link":
            place.symlink_to(store.root / "user/elsewhere")
        elif case == "folder":
            place.mkdir()

    applied = apply_plan(home, plan(work), clock=clock)
    again = apply_plan(home, plan(work), clock=clock)

    assert applied.changed == ("candidate of user/a.md",) == again.changed
    made = applied.commits[KEY]
    assert Baseline(store).paths_of(made) == []
    assert Baseline(store).find_trailer("Memoryd-Slice", "claude-code/s1 1..9") == made


def test_a_secret_in_a_persons_version_keeps_the_file_out(home: Home, clock: FakeClock) -> None:
    """Neither theirs nor ours is committed, and their file stays as it is."""
    store = make_store(home, a="One")
    theirs = note_bytes("user/a.md", "token ghp_" + "aB3dE6gH9jK2mN5pQ8sT1vW4xY7zA0cD3fG6")
    write_bytes(store, "user/a.md", theirs)

    applied = apply_plan(home, plan(update_of(store, "user/a.md", "One", "Two")), clock=clock)

    assert applied.changed == ("candidate of user/a.md",)
    assert store.read("user/a.md") == theirs
    assert Baseline(store).changed_paths() == ["user/a.md"]
    assert "person" not in [made.author for made in Baseline(store).log()]


def test_a_file_that_changes_at_the_last_moment_is_a_persons(
    home: Home, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The version saved while ours was being written stands."""
    store = make_store(home, a="One")
    replace = Store.replace
    races = [1]

    def race(
        self: Store, path: str, data: bytes, *, found: str | None, note: Callable[[], object]
    ) -> bool:
        if races:
            races.pop()
            write_note(store, path, "Saved just now")
        return replace(self, path, data, found=found, note=note)

    monkeypatch.setattr(Store, "replace", race)
    applied = apply_plan(home, plan(update_of(store, "user/a.md", "One", "Two")), clock=clock)

    assert applied.appended == ("candidate of user/a.md",)
    assert store.read("user/a.md") == note_bytes("user/a.md", "Saved just now") + b"- New words.\n"
    assert [made.author for made in Baseline(store).log()] == ["memoryd", "person", "memoryd"]


def test_several_operations_on_one_file_follow_each_other(
    home: Home, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crash after the second finds both done."""
    store = make_store(home)
    made = plan(
        operation("user/a.md", "One"),
        update_of(store, "user/a.md", "One", "Two"),
        update_of(store, "user/a.md", "Two", "Three"),
    )
    crash_at(monkeypatch, "store.replaced", 2)
    with pytest.raises(Crash):
        apply_plan(home, made, clock=clock)

    applied = apply_plan(home, made, clock=clock)

    assert (applied.changed, applied.appended) == ((), ())
    assert Baseline(store).show("HEAD", "user/a.md") == note_bytes("user/a.md", "Three")
    assert len(Baseline(store).log()) == 1


def test_what_another_standing_plan_left_is_not_a_persons(home: Home, clock: FakeClock) -> None:
    """Its sha256 tells."""
    store = make_store(home, a="One")
    write_note(store, "user/a.md", "Two")
    theirs = update_of(store, "user/a.md", "One", "Two").after
    assert theirs is not None

    made = plan(update_of(store, "user/a.md", "Two", "Three"))
    apply_plan(home, made, clock=clock, planned={theirs})

    assert [commit.author for commit in Baseline(store).log()] == ["memoryd", "memoryd"]


def test_a_busy_store_means_nothing_was_done(home: Home, clock: FakeClock) -> None:
    """Every lock is held before the first write."""
    one, two = make_store(home, "one"), make_store(home, "two")
    made = plan(operation("user/a.md", "A", store="one"), operation("user/b.md", "B", store="two"))

    with two.writer_lock(), pytest.raises(StoreBusy):
        apply_plan(home, made, clock=clock)

    assert one.paths() == []
    with one.writer_lock():
        pass


@pytest.mark.parametrize("path", ["../x.md", "MEMORY.md", "other/x.md"])
def test_a_plan_for_a_path_outside_memory_is_refused_whole(
    home: Home, clock: FakeClock, path: str
) -> None:
    """Nothing of it is written."""
    make_store(home)

    with pytest.raises(StoreError, match="may not write"):
        apply_plan(home, plan(operation("user/a.md", "A"), operation(path, "B")), clock=clock)

    assert Store.for_project(home, KEY).paths() == []


def test_no_plan_writes_the_soul(home: Home, clock: FakeClock) -> None:
    """A profile's other files take lines like any store."""
    soul = operation("SOUL.md", "x", store="profile-default")
    user = operation("USER.md", "x", store="profile-default")

    with pytest.raises(StoreError, match="SOUL"):
        apply_plan(home, plan(soul), clock=clock)
    applied = apply_plan(home, plan(user), clock=clock)

    assert set(applied.commits) == {"profile-default"}


def test_the_project_is_recorded_when_its_key_says_its_path(home: Home, clock: FakeClock) -> None:
    """Status can show a path for every store."""
    make_store(home)

    apply_plan(home, plan(operation("user/a.md", "A")), clock=clock)

    known = identity(home, KEY)
    assert known is not None and known.path == "/home/ada/app"


def test_a_plan_without_operations_needs_no_store(home: Home, clock: FakeClock) -> None:
    """There is nothing to say and nowhere to say it."""
    assert apply_plan(home, plan(), clock=clock) == Applied({})


def test_a_plan_applies_as_it_was_recorded(home: Home, clock: FakeClock) -> None:
    """Through the ledger's JSON, accents and line ends included."""
    store = make_store(home)
    made = Plan.from_json(plan(operation("user/é.md", "Zeile\r\nünïcode\u2028")).to_json())

    apply_plan(home, made, clock=clock)

    assert store.read("user/é.md") == note_bytes("user/é.md", "Zeile\r\nünïcode\u2028")


def test_a_line_is_appended_once() -> None:
    """In the file's own line ends, and not when it says it already."""
    assert appended_line(b"a\n", "x\ny") == b"a\n- x y\n"
    assert appended_line(b"a", "x") == b"a\n- x\n"
    assert appended_line(b"", "x") == b"- x\n"
    assert appended_line(b"a\r\n", "x") == b"a\r\n- x\r\n"
    assert appended_line(b"a\n* X.\n", "x") == b"a\n* X.\n"


def test_a_new_note_does_not_bring_back_what_a_person_just_took_away(
    home: Home, clock: FakeClock
) -> None:
    """Not still for a minute yet, so no tombstone stands; the file is gone all the same."""
    store = make_store(home, a="One")
    (store.root / "user/a.md").unlink()

    applied = apply_plan(home, plan(operation("user/a.md", "One")), clock=clock)

    assert applied.changed == ("candidate of user/a.md",)
    assert not (store.root / "user/a.md").exists()


def test_a_commit_that_names_no_plan_counts_for_its_job(home: Home, clock: FakeClock) -> None:
    """As commits were made before they named the plan: a store that was killed then goes on."""
    store = make_store(home)
    made = plan(operation("user/a.md", "One"))
    trailers = [("Memoryd-Job", "job-1"), ("Memoryd-Slice", str(made.slice))]
    before = Baseline(store).commit({}, "Before", trailers, now_ms=clock.now_ms())

    assert apply_plan(home, made, clock=clock) == Applied({KEY: before})


@pytest.mark.parametrize("job", ["job-1", "job-2"])
def test_another_plan_of_a_slice_that_was_committed_is_no_more_written(
    home: Home, clock: FakeClock, job: str
) -> None:
    """And says so of each of its candidates."""
    store = make_store(home)
    first = apply_plan(home, plan(operation("user/a.md", "One")), clock=clock)

    second = apply_plan(home, plan(operation("user/b.md", "Two"), job=job), clock=clock)

    assert second == Applied(first.commits, repeated=("candidate of user/b.md",))
    assert [note.path for note in store.notes()] == ["user/a.md"]
