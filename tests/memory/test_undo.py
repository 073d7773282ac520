"""What was written can be taken back as a whole, and is not learned again."""

from __future__ import annotations

import pytest
from store_builders import KEY, git, make_store, note_bytes, operation, plan, write_note

from memoryd.memory import seams
from memoryd.memory.apply import apply_plan
from memoryd.memory.baseline import Baseline
from memoryd.memory.errors import UndoConflict, UsageError
from memoryd.memory.forget import delete_note
from memoryd.memory.home import Home
from memoryd.memory.store import Store
from memoryd.memory.testing import FakeClock
from memoryd.memory.tombstones import Tombstones
from memoryd.memory.undo import undo

JOB = "0191-aaaa-12345678"


def remember(home: Home, clock: FakeClock) -> tuple[Store, Store]:
    """A job that wrote two stores in two slices: an update, a move, and two new notes."""
    one, two = make_store(home, "one", a="A", old="Old"), make_store(home, "two")
    first = plan(
        operation("user/a.md", "A2", before=note_bytes("user/a.md", "A"), store="one"),
        operation("archive/user/old.md", "Old, superseded", store="one"),
        operation("user/old.md", None, before=note_bytes("user/old.md", "Old"), store="one"),
        operation("project/new.md", "Use tabs.", store="two"),
        job=JOB,
    )
    second = plan(
        operation("user/a.md", "A3", before=note_bytes("user/a.md", "A2"), store="one"),
        operation("user/late.md", "Late", store="one"),
        job=JOB,
        last=20,
    )
    apply_plan(home, first, clock=clock)
    apply_plan(home, second, clock=clock)
    return one, two


def forgets(store: Store, name: str, statement: str = "x") -> bool:
    """Whether the store's tombstones know this."""
    return Tombstones.of(store).forgets(name, statement)


def contents(store: Store) -> dict[str, bytes | None]:
    """Every note's bytes."""
    return {note.path: store.read(note.path) for note in store.notes()}


def assert_clean(*stores: Store) -> None:
    """Nothing is left uncommitted."""
    for store in stores:
        assert Baseline(store).changed_paths() == []
        assert git(store, "status", "--porcelain") == ""


def test_a_job_is_taken_back_in_every_store(home: Home, clock: FakeClock) -> None:
    """A new commit for each of its commits; what vanishes leaves tombstones, what returns none."""
    one, two = remember(home, clock)

    done = undo(home, "12345678", clock=clock)

    assert done.undone == JOB
    assert {key: len(commits) for key, commits in done.commits.items()} == {"one": 2, "two": 1}
    assert contents(one) == {
        "user/a.md": note_bytes("user/a.md", "A"),
        "user/old.md": note_bytes("user/old.md", "Old"),
    }
    assert contents(two) == {}
    assert done.forgotten == {"one": ("user/late.md",), "two": ("project/new.md",)}
    assert forgets(two, "new") and forgets(two, "other", "use tabs")
    assert forgets(one, "late") and not forgets(one, "old", "Old") and not forgets(one, "a", "A")
    newest = Baseline(two).log(1)[0]
    assert newest.author == "person"
    assert newest.values("Memoryd-Undo") == (Baseline(two).log()[1].id,)
    assert_clean(one, two)


def test_an_undo_is_undone_by_its_own_id(home: Home, clock: FakeClock) -> None:
    """Files come back and tombstones go; again and again."""
    one, two = remember(home, clock)
    before = (contents(one), contents(two))
    done = undo(home, JOB, clock=clock)

    redone = undo(home, done.id, clock=clock)

    assert (contents(one), contents(two)) == before
    assert not forgets(two, "new", "Use tabs.") and not forgets(one, "late", "Late")
    undo(home, redone.id, clock=clock)
    assert contents(two) == {}
    assert forgets(two, "new")
    assert_clean(one, two)


def test_what_is_undone_cannot_be_undone_again(home: Home, clock: FakeClock) -> None:
    """Until the undo is undone."""
    remember(home, clock)
    done = undo(home, JOB, clock=clock)
    with pytest.raises(UsageError, match="undone already"):
        undo(home, JOB, clock=clock)

    undo(home, done.id, clock=clock)

    assert undo(home, JOB, clock=clock).undone == JOB


@pytest.mark.parametrize("committed", [True, False])
def test_a_file_changed_since_stops_the_whole_undo(
    home: Home, clock: FakeClock, committed: bool
) -> None:
    """The error names it; no store is touched."""
    one, two = remember(home, clock)
    write_note(two, "project/new.md", "Mine")
    if committed:
        Baseline(two).commit(["project/new.md"], "Edit", author="person")
    heads = Baseline(one).head(), Baseline(two).head()

    with pytest.raises(UndoConflict, match=r"two/memory/project/new\.md"):
        undo(home, JOB, clock=clock)

    assert (Baseline(one).head(), Baseline(two).head()) == heads
    assert one.read("user/a.md") == note_bytes("user/a.md", "A3")
    assert one.read("tombstones.jsonl") is None


def test_one_commit_is_taken_back_by_its_id(home: Home, clock: FakeClock) -> None:
    """A person's own edit too; what others did meanwhile stays."""
    store = make_store(home, a="A", b="B")
    write_note(store, "user/a.md", "Mine")
    made = Baseline(store).commit(["user/a.md"], "Edit", author="person")
    write_note(store, "user/b.md", "Later")
    Baseline(store).commit(["user/b.md"], "Later")

    undo(home, made[:8], clock=clock)

    assert store.read("user/a.md") == note_bytes("user/a.md", "A")
    assert store.read("user/b.md") == note_bytes("user/b.md", "Later")
    assert_clean(store)


def test_a_reference_names_one_thing(home: Home, clock: FakeClock) -> None:
    """Nothing and several things are errors that say what to do."""
    make_store(home)
    for number, job in enumerate(("aa-1", "bb-1"), start=1):
        work = plan(operation(f"user/n{number}.md", "x"), job=job, last=number)
        apply_plan(home, work, clock=clock)

    for reference, words in (("zz", "no job"), ("", "no job"), ("-1", "aa-1, bb-1")):
        with pytest.raises(UsageError, match=words):
            undo(home, reference, clock=clock)
    assert undo(home, "aa-1", clock=clock).undone == "aa-1"


@pytest.mark.parametrize(
    ("point", "count"),
    [("store.replaced", 1), ("store.replaced", 3), ("store.replaced", 5), ("store.committed", 1),
     ("store.committed", 2), ("store.committed", 3)],
)  # fmt: skip
def test_an_undo_that_crashed_goes_on_where_it_stopped(
    home: Home, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, point: str, count: int
) -> None:
    """The second call ends as one without a crash does, under one id."""
    one, two = remember(home, clock)
    left = [count]

    def hook(reached: str) -> None:
        left[0] -= reached == point
        if left[0] == 0:
            raise RuntimeError

    monkeypatch.setattr(seams, "hook", hook)
    with pytest.raises(RuntimeError):
        undo(home, JOB, clock=clock)
    monkeypatch.setattr(seams, "hook", lambda point: None)
    clock.advance(5)
    if (point, count) == ("store.committed", 3):
        with pytest.raises(UsageError, match="undone already"):
            undo(home, JOB, clock=clock)
    else:
        undo(home, JOB, clock=clock)

    assert set(contents(one)) == {"user/a.md", "user/old.md"}
    assert contents(two) == {}
    assert forgets(two, "new") and forgets(one, "late")
    undos = [made for store in (one, two) for made in Baseline(store).with_trailer("Memoryd-Undo")]
    assert len(undos) == 3
    assert len({made.values("Memoryd-Job") for made in undos}) == 1
    assert (two.read("tombstones.jsonl") or b"").count(b"\n") == 1
    assert_clean(one, two)


def test_a_tombstone_made_later_survives_an_undo(home: Home, clock: FakeClock) -> None:
    """The list is taken back by lines, and a later line is no conflict."""
    store = make_store(home, a="A", b="B")
    first = delete_note(home, store, "a", clock=clock)
    delete_note(home, store, "user/b", clock=clock)

    undo(home, first.id, clock=clock)

    assert store.read("user/a.md") == note_bytes("user/a.md", "A")
    assert not forgets(store, "a", "A") and forgets(store, "b", "B")
    assert_clean(store)


def test_a_note_is_deleted_in_one_commit_of_the_person(home: Home, clock: FakeClock) -> None:
    """Its tombstone knows the name, what it said and what it stood on; undo gives it back."""
    store = make_store(home, a="Use tabs.")
    write_note(store, "user/a.md", "Use tabs. Mine.")

    done = delete_note(home, store, "a", clock=clock, spans=[("m1", "I like tabs")])

    assert Baseline(store).paths_of(done.commit) == ["tombstones.jsonl", "user/a.md"]
    assert Baseline(store).log(1)[0].author == "person"
    assert forgets(store, "a") and forgets(store, "z", "use tabs. mine")
    assert Tombstones.of(store).forgets("z", "z", [("m1", "I like tabs")])
    undo(home, done.commit, clock=clock)
    assert store.read("user/a.md") == note_bytes("user/a.md", "Use tabs. Mine.")
    assert_clean(store)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_deletion_that_crashed_is_finished_by_the_next(
    home: Home, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    """Whether the file, the tombstone or the commit was there already."""
    store = make_store(home, a="A", b="B")
    left = [count]

    def hook(point: str) -> None:
        left[0] -= point.startswith("store.")
        if left[0] == 0:
            raise RuntimeError

    monkeypatch.setattr(seams, "hook", hook)
    with pytest.raises(RuntimeError):
        delete_note(home, store, "a", clock=clock)
    monkeypatch.setattr(seams, "hook", lambda point: None)
    if count < 3:
        delete_note(home, store, "a", clock=clock)

    assert forgets(store, "a", "A")
    assert (store.read("tombstones.jsonl") or b"").count(b"\n") == 1
    assert len(Baseline(store).log()) == 2
    assert_clean(store)


def test_a_deletion_names_one_note(home: Home, clock: FakeClock) -> None:
    """Two types may share a name; an archived note yields to a live one."""
    store = make_store(home, a="A", b="B")
    for path in ("project/a.md", "archive/user/b.md"):
        Baseline(store).commit([write_note(store, path, "x")], "More")

    for name, words in (("a", r"project/a\.md, user/a\.md"), ("zz", "no notes")):
        with pytest.raises(UsageError, match=words):
            delete_note(home, store, name, clock=clock)
    assert delete_note(home, store, "project/a", clock=clock).path == "project/a.md"
    assert not forgets(store, "a", "z")
    assert delete_note(home, store, "b", clock=clock).path == "user/b.md"


def test_a_note_that_cannot_be_parsed_can_be_forgotten(home: Home, clock: FakeClock) -> None:
    """By the name of its file."""
    store = make_store(home)
    store.root.joinpath("user").mkdir()
    (store.root / "user/open.md").write_text("---\nname: other\n")

    delete_note(home, Store.for_project(home, KEY), "open", clock=clock)

    assert store.paths() == ["tombstones.jsonl"]
    assert forgets(store, "open")


def test_what_undo_takes_away_is_not_learned_again_from_the_same_words(
    home: Home, clock: FakeClock
) -> None:
    """Under other words either."""
    store = make_store(home)
    apply_plan(home, plan(operation("user/a.md", "One")), clock=clock)

    undo(home, "job-1", clock=clock, evidence=lambda key, path: [("m1", f"words of {path}")])

    tombstones = Tombstones.of(store)
    assert tombstones.forgets("other", "Otherwise", [("m1", "words of user/a.md")])


def test_a_save_while_the_files_are_written_takes_the_undo_back(
    home: Home, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All or nothing: theirs stands, and the file that was written is as before."""
    store = make_store(home, a="One", b="Two")
    for name in "ab":
        write_note(store, f"user/{name}.md", "Of the job")
    trailers = [("Memoryd-Job", "job-12345678")]
    Baseline(store).commit(["user/a.md", "user/b.md"], "Job", trailers, now_ms=clock.now_ms())
    head = Baseline(store).head()
    monkeypatch.setattr(seams, "hook", lambda _: write_note(store, "user/b.md", "Precious"))

    with pytest.raises(UndoConflict, match=r"b\.md"):
        undo(home, "job-12345678", clock=clock)

    assert [note.body for note in store.notes()] == ["Of the job", "Precious"]
    assert Baseline(store).head() == head


def test_a_save_while_a_new_note_is_taken_away_stands(
    home: Home, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the one that was gone already is back."""
    store = make_store(home)
    paths = [write_note(store, f"user/{name}.md", name) for name in "ab"]
    trailers = [("Memoryd-Job", "job-12345678")]
    Baseline(store).commit(paths, "Job", trailers, now_ms=clock.now_ms())
    monkeypatch.setattr(seams, "hook", lambda _: write_note(store, "user/b.md", "Precious"))

    with pytest.raises(UndoConflict, match=r"b\.md"):
        undo(home, "job-12345678", clock=clock)

    assert [note.body for note in store.notes()] == ["a", "Precious"]
