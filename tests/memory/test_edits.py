"""What a person does in a store by hand is theirs, and a deletion is a wish to forget."""

from __future__ import annotations

import pytest
from store_builders import (
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
from memoryd.memory.apply import apply_plan
from memoryd.memory.baseline import Baseline
from memoryd.memory.clock import iso
from memoryd.memory.edits import EditsOutcome, commit_person_edits, put_back
from memoryd.memory.errors import StoreBusy, StoreHeld
from memoryd.memory.files import sha256
from memoryd.memory.home import Home
from memoryd.memory.notes import new_note
from memoryd.memory.store import Store
from memoryd.memory.testing import FakeClock
from memoryd.memory.tombstones import Tombstones


def look(store: Store, clock: FakeClock, *planned: str) -> EditsOutcome:
    """Commit what is still at the clock's time."""
    return commit_person_edits(store, now_ms=clock.now_ms(), planned=set(planned))


def delete(store: Store, clock: FakeClock, *names: str) -> None:
    """Remove notes by hand, more than a minute ago."""
    for name in names:
        (store.root / f"user/{name}.md").unlink()
    age(store, "user", clock, 61)


def forgets(store: Store, name: str, statement: str = "x") -> bool:
    """Whether the store's tombstones know this."""
    return Tombstones.of(store).forgets(name, statement)


def test_an_edit_counts_once_still(home: Home, clock: FakeClock) -> None:
    """A changed and a new file, a minute after the last save, as one commit of the person."""
    store = make_store(home, a="One")
    for path in ("user/a.md", "project/new.md"):
        write_note(store, path, "Mine")
        age(store, path, clock, 59)

    assert look(store, clock) == EditsOutcome(waiting=("project/new.md", "user/a.md"))
    clock.advance(1)
    outcome = look(store, clock)

    assert outcome.edited == ("project/new.md", "user/a.md")
    assert outcome.commit == Baseline(store).head()
    assert git(store, "log", "-1", "--format=%an <%ae>") == "person <person@localhost>"
    assert "(project/new.md)" in (store.root / "MEMORY.md").read_text()
    assert look(store, clock) == EditsOutcome()


def test_a_file_from_the_future_counts_as_still(home: Home, clock: FakeClock) -> None:
    """A clock that was set back does not keep an edit out for ever."""
    store = make_store(home)
    age(store, write_note(store, "user/a.md", "Mine"), clock, -86_400)

    assert look(store, clock).edited == ("user/a.md",)


def test_a_secret_is_reported_and_left_uncommitted(home: Home, clock: FakeClock) -> None:
    """Other edits go on."""
    store = make_store(home)
    token = "ghp_" + "aB3dE6gH9jK2mN5pQ8sT1vW4xY7zA0cD3fG6"
    age(store, write_note(store, "user/a.md", f"token {token}"), clock, 61)
    age(store, write_note(store, "user/b.md", "Fine"), clock, 61)

    outcome = look(store, clock)

    assert (outcome.secret, outcome.edited) == (("user/a.md",), ("user/b.md",))
    assert set(Baseline(store).files()) == {"user/b.md"}


def test_a_file_that_matches_a_plan_is_never_a_persons(home: Home, clock: FakeClock) -> None:
    """Nor is the removal of the note that a plan moved to the archive."""
    store = make_store(home, a="One", b="Two")
    made = note_bytes("user/a.md", "Ours")
    write_bytes(store, "user/a.md", made)
    archived = write_note(store, "archive/user/b.md", "Two, superseded")
    delete(store, clock, "b")
    for path in ("user/a.md", archived):
        age(store, path, clock, 61)

    planned = [sha256(made), sha256(note_bytes(archived, "Two, superseded"))]
    assert look(store, clock, *planned) == EditsOutcome()


def test_a_note_deleted_by_hand_leaves_a_tombstone_once_still(home: Home, clock: FakeClock) -> None:
    """In the same commit; by name and by statement."""
    store = make_store(home, a="Use tabs.", b="Two")
    (store.root / "user/a.md").unlink()
    age(store, "user", clock, 30)

    assert look(store, clock) == EditsOutcome(waiting=("user/a.md",))
    clock.advance(31)
    outcome = look(store, clock)

    assert outcome.forgotten == ("user/a.md",)
    assert forgets(store, "a") and forgets(store, "other", "use tabs")
    assert not forgets(store, "b")
    assert outcome.commit is not None
    assert Baseline(store).paths_of(outcome.commit) == ["tombstones.jsonl", "user/a.md"]
    assert look(store, clock) == EditsOutcome()


def test_a_file_that_turns_up_elsewhere_was_moved(home: Home, clock: FakeClock) -> None:
    """Under another name, in another folder with other words, or in another store."""
    store, other = make_store(home, a="A", b="B", c="C", d="D", e="E"), make_store(home, "other")
    delete(store, clock, "a", "b", "c")
    for path in (
        write_bytes(store, "user/renamed.md", note_bytes("user/a.md", "A")),
        write_note(store, "feedback/b.md", "B, and more"),
    ):
        age(store, path, clock, 61)
    age(store, "user", clock, 61)
    write_bytes(other, "user/c.md", note_bytes("user/c.md", "C"))

    outcome = look(store, clock)

    assert [each.path for each in outcome.moved] == ["user/a.md", "user/b.md", "user/c.md"]
    assert (outcome.forgotten, store.read("tombstones.jsonl")) == ((), None)
    assert Baseline(store).changed_paths() == []


def test_a_note_put_back_lifts_its_tombstone(home: Home, clock: FakeClock) -> None:
    """The person wants it again."""
    store = make_store(home, a="Use tabs.", b="B", c="C")
    delete(store, clock, "a")
    look(store, clock)

    age(store, write_note(store, "user/a.md", "Use tabs."), clock, 61)
    look(store, clock)

    assert not forgets(store, "a", "Use tabs.")
    assert Baseline(store).changed_paths() == []


@pytest.mark.parametrize(("total", "gone", "held"), [(3, 3, True), (9, 3, True), (10, 3, False),
                                                     (2, 2, False), (62, 20, True)])  # fmt: skip
def test_a_mass_disappearance_is_held(
    home: Home, clock: FakeClock, total: int, gone: int, held: bool
) -> None:
    """A third of the store (three at least) or twenty notes: nothing is committed."""
    names = [f"n{number:02}" for number in range(total)]
    store = make_store(home, **dict.fromkeys(names, "x"))
    delete(store, clock, *names[:gone])
    age(store, write_note(store, "project/edit.md", "Mine"), clock, 61)

    if not held:
        assert len(look(store, clock).forgotten) == gone
        return
    before = Baseline(store).head()
    with pytest.raises(StoreHeld, match="memory restore"):
        look(store, clock)

    assert Baseline(store).head() == before


def test_a_held_store_goes_on_when_the_person_decided(home: Home, clock: FakeClock) -> None:
    """Put back, or accepted."""
    store = make_store(home, a="A", b="B", c="C")
    delete(store, clock, "a", "b", "c")
    assert put_back(store) == ("user/a.md", "user/b.md", "user/c.md")
    assert look(store, clock) == EditsOutcome()

    delete(store, clock, "a", "b", "c")
    outcome = commit_person_edits(store, now_ms=clock.now_ms(), accept_vanished=True)

    assert len(outcome.forgotten) == 3


def test_a_whole_store_that_is_gone_is_held(home: Home, clock: FakeClock) -> None:
    """The folder itself included."""
    store = make_store(home, a="A", b="B", c="C")
    store.root.rename(home.root / "away")

    with pytest.raises(StoreHeld):
        look(store, clock)


@pytest.mark.parametrize("point", ["store.replaced", "edits.committed"])
def test_a_crash_while_forgetting_ends_the_same(
    home: Home, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    """One tombstone, one commit, nothing left over."""
    store = make_store(home, a="A", b="B", c="C", d="D")
    delete(store, clock, "a")

    def hook(reached: str) -> None:
        if reached == point:
            raise RuntimeError

    monkeypatch.setattr(seams, "hook", hook)
    with pytest.raises(RuntimeError):
        look(store, clock)
    monkeypatch.undo()
    clock.advance(1)
    look(store, clock)

    assert forgets(store, "a")
    assert (store.read("tombstones.jsonl") or b"").count(b"\n") == 1
    assert [made.author for made in Baseline(store).log()] == ["person", "memoryd"]
    assert Baseline(store).changed_paths() == []


@pytest.mark.parametrize("stays", [True, False])
def test_a_new_note_that_comes_while_the_store_is_looked_at_waits_for_the_next_look(
    home: Home, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, stays: bool
) -> None:
    """Whether an editor still has it there or has taken it away again."""
    store = make_store(home, a="A")
    changed_paths = Baseline.changed_paths

    def come(baseline: Baseline) -> list[str]:
        write_note(store, "user/b.md", "New")
        found = changed_paths(baseline)
        if not stays:
            (store.root / "user/b.md").unlink()
        return found

    with monkeypatch.context() as patched:
        patched.setattr(Baseline, "changed_paths", come)
        assert look(store, clock) == EditsOutcome()


def test_an_unreadable_file_is_named(home: Home, clock: FakeClock) -> None:
    """A link in a note's place is neither committed nor followed."""
    store = make_store(home)
    store.root.joinpath("user").mkdir()
    (store.root / "user/a.md").symlink_to("/etc/hostname")

    assert look(store, clock) == EditsOutcome(unreadable=("user/a.md",))


def test_a_busy_or_absent_store_is_left_alone(home: Home, clock: FakeClock) -> None:
    """Looking makes nothing."""
    store = make_store(home)
    with store.writer_lock(), pytest.raises(StoreBusy):
        look(store, clock)

    absent = Store.for_project(home, "absent")
    assert look(absent, clock) == EditsOutcome()
    assert not absent.root.exists() and not absent.git_dir.exists()


def test_a_profiles_files_are_committed_without_tombstones(home: Home, clock: FakeClock) -> None:
    """A person edits USER.md like any note."""
    store = Store.for_profile(home, "default")
    apply_plan(home, plan(operation("USER.md", "x", store=store.key)), clock=clock)
    age(store, write_bytes(store, "USER.md", b"- mine\n"), clock, 61)
    assert look(store, clock).edited == ("USER.md",)

    (store.root / "USER.md").unlink()
    age(store, ".", clock, 61)

    assert look(store, clock).edited == ("USER.md",)
    assert Baseline(store).files() == {}


def test_a_note_deleted_by_hand_is_not_learned_again_from_the_same_words(
    home: Home, clock: FakeClock
) -> None:
    """The words it stood on are forgotten too, however another statement puts them."""
    store = make_store(home, a="One", b="Two")
    delete(store, clock, "a")

    commit_person_edits(
        store,
        now_ms=clock.now_ms(),
        spans=lambda path: [("m1", "use one")] if path == "user/a.md" else [],
    )

    tombstones = Tombstones.of(store)
    assert tombstones.forgets("other", "Put differently", [("m1", "use one")])
    assert not tombstones.forgets("other", "Put differently", [("m1", "use two")])


@pytest.mark.parametrize(("later_s", "author"), [(1, "memoryd"), (30, "person"), (-5, "person")])
def test_a_save_that_died_before_its_commit_stays_ours(
    home: Home, clock: FakeClock, later_s: int, author: str
) -> None:
    """Unless a person touched the file since; the other news is theirs."""
    store = make_store(home, z="Z")
    now = iso(clock.now_ms())
    data = new_note(
        name="a", description="A", type="user", body="Words.", created=now, valid_from=now
    )
    write_bytes(store, "user/a.md", data)
    write_note(store, "user/own.md", "Mine")
    age(store, "user/a.md", clock, -later_s)
    age(store, "user/own.md", clock, 61)
    clock.advance(10**9)

    outcome = look(store, clock)

    assert set(outcome.edited) == {"user/a.md", "user/own.md"}
    assert Baseline(store).last_author("user/a.md") == author
    assert Baseline(store).last_author("user/own.md") == "person"
    assert Baseline(store).changed_paths() == []
