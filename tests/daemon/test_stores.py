"""What is derived follows a change; a person's edits become theirs once still."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from memoryd.daemon.stores import StoreKeeper
from memoryd.memory import baseline
from memoryd.memory.baseline import Baseline
from memoryd.memory.edits import EditsOutcome, commit_person_edits
from memoryd.memory.home import Home
from memoryd.memory.store import Store
from memoryd.memory.testing import FakeClock
from memoryd.memory.tombstones import Tombstones
from memoryd.memory.vanished import Moved

sys.path.append(str(Path(__file__).parent.parent / "memory"))

from store_builders import git, make_store, write_note


@pytest.fixture
def keeper(home: Home, clock: FakeClock) -> StoreKeeper:
    """A keeper whose thread is the test's."""
    return StoreKeeper(home, clock, set, lambda store, path: [("m1", "the very words")])


def _settle(keeper: StoreKeeper, clock: FakeClock, seconds: float) -> None:
    """Let ``seconds`` pass and do what is due."""
    clock.advance(seconds)
    while keeper.look():
        pass


def _saved(store: Store, path: str, clock: FakeClock) -> None:
    """Give a file the clock's time, as a save just now would."""
    os.utime(store.root / path, ns=(clock.now_ms() * 1_000_000,) * 2)


def test_the_index_follows_an_edit_within_two_seconds(
    home: Home, clock: FakeClock, keeper: StoreKeeper
) -> None:
    """A note written by hand is listed; nothing is committed yet."""
    store = make_store(home, a="One")
    write_note(store, "project/by-hand.md", "Mine")
    _saved(store, "project/by-hand.md", clock)

    keeper.changed(store.key)
    _settle(keeper, clock, 0.5)

    assert "by-hand" in (store.root / "MEMORY.md").read_text()
    assert Baseline(store).last_author("project/by-hand.md") is None


def test_a_store_that_is_never_quiet_gets_its_index_all_the_same(
    home: Home, clock: FakeClock, keeper: StoreKeeper
) -> None:
    """A change every 0.4 s does not put it off for ever."""
    store = make_store(home, a="One")
    write_note(store, "project/by-hand.md", "Mine")

    for _ in range(4):
        keeper.changed(store.key)
        _settle(keeper, clock, 0.4)

    assert "by-hand" in (store.root / "MEMORY.md").read_text()


def test_an_edit_becomes_the_persons_once_still(
    home: Home, clock: FakeClock, keeper: StoreKeeper
) -> None:
    """A file saved again in between waits for its own minute."""
    store = make_store(home, a="One")
    write_note(store, "project/by-hand.md", "Mine")
    _saved(store, "project/by-hand.md", clock)
    keeper.changed(store.key)
    clock.advance(30)
    _saved(store, "project/by-hand.md", clock)
    keeper.changed(store.key)

    _settle(keeper, clock, 31)
    assert Baseline(store).last_author("project/by-hand.md") is None
    _settle(keeper, clock, 61)

    assert Baseline(store).last_author("project/by-hand.md") == "person"


def test_a_note_deleted_by_hand_is_forgotten_with_the_words_it_stood_on(
    home: Home, clock: FakeClock, keeper: StoreKeeper
) -> None:
    """The ledger knows them; the tombstone covers them."""
    store = make_store(home, a="One", b="Two")
    (store.root / "user/a.md").unlink()
    _saved(store, "user", clock)

    keeper.changed(store.key)
    _settle(keeper, clock, 61)

    assert Tombstones.of(store).forgets("other", "Another", [("m1", "the very words")])


def test_a_mass_disappearance_is_held_and_said_once(
    home: Home, clock: FakeClock, keeper: StoreKeeper
) -> None:
    """Status shows it until the notes are back."""
    store = make_store(home, **{f"n{number}": f"Number {number}" for number in range(6)})
    kept = {path: path.read_bytes() for path in (store.root / "user").glob("*.md")}
    for path in list(kept)[:4]:
        path.unlink()

    with capture_logs() as logs:
        keeper.changed(store.key)
        _settle(keeper, clock, 61)
        _settle(keeper, clock, 601)

    assert [entry["event"] for entry in logs] == ["store.held"]
    assert "4 of 6 notes" in keeper.troubles.held[store.key]
    for path, data in kept.items():
        path.write_bytes(data)
    _settle(keeper, clock, 601)
    assert keeper.troubles.held == {}


def test_a_busy_store_is_looked_at_again(home: Home, clock: FakeClock, keeper: StoreKeeper) -> None:
    """Whoever holds the writer lock goes first."""
    store = make_store(home, a="One")
    write_note(store, "project/by-hand.md", "Mine")
    _saved(store, "project/by-hand.md", clock)
    keeper.changed(store.key)

    with store.writer_lock():
        clock.advance(61)
        keeper.look()
    assert Baseline(store).last_author("project/by-hand.md") is None
    _settle(keeper, clock, 6)

    assert Baseline(store).last_author("project/by-hand.md") == "person"


def test_a_store_with_many_loose_objects_is_packed(
    home: Home, clock: FakeClock, keeper: StoreKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    """git never does it by itself here; its history is what it was."""
    store = make_store(home, a="One", b="Two")
    log = git(store, "log", "--format=%H")
    assert not git(store, "count-objects").startswith("0 objects")
    monkeypatch.setattr(baseline, "_LOOSE_SAMPLE", -1)
    (store.git_dir / "objects" / "17").mkdir(exist_ok=True)

    keeper.changed(store.key)
    _settle(keeper, clock, 61)

    assert git(store, "count-objects").startswith("0 objects")
    assert git(store, "log", "--format=%H") == log


def test_every_store_is_looked_at_at_the_start_and_the_thread_stops(
    home: Home, clock: FakeClock, keeper: StoreKeeper
) -> None:
    """What was done while no daemon ran is not missed; stop is safe unstarted and twice."""
    make_store(home, a="One")
    looked: list[str] = []
    refresh: Callable[[str], None] = looked.append
    keeper._refresh_index = refresh  # type: ignore[method-assign]

    keeper.stop()
    keeper.start()
    keeper.stop()
    keeper.stop()
    _settle(keeper, clock, 1)

    assert looked == [Store.all(home)[0].key]


def test_every_store_is_looked_at_now_and_then_without_any_event(
    home: Home, clock: FakeClock, keeper: StoreKeeper
) -> None:
    """A watch may be lost in silence."""
    store = make_store(home, a="One")
    write_note(store, "project/by-hand.md", "Mine")

    keeper.all_changed()
    _settle(keeper, clock, 61)

    assert Baseline(store).last_author("project/by-hand.md") == "person"


# -- what is held ------------------------------------------------------------------------------


def _many(home: Home, count: int = 6) -> Store:
    store = make_store(home, **{f"n{number}": f"Number {number}" for number in range(count)})
    store.write_index()
    return store


def test_a_held_store_keeps_its_index_and_goes_on_when_the_notes_are_back(
    home: Home, clock: FakeClock
) -> None:
    """The index says what the memory is until a person decides; within seconds it follows again."""
    released: list[str] = []
    keeper = StoreKeeper(home, clock, set, lambda s, p: [], on_released=released.append)
    store = _many(home)
    index = (store.root / "MEMORY.md").read_bytes()
    (store.root / "user").rename(home.root / "away")

    keeper.saw(store.key, "user")
    _settle(keeper, clock, 0.5)

    assert "6 of 6 notes" in keeper.troubles.held[store.key]
    assert (store.root / "MEMORY.md").read_bytes() == index
    for _ in range(3):
        _settle(keeper, clock, 61)
    assert (store.root / "MEMORY.md").read_bytes() == index
    assert Baseline(store).last_author("user/n1.md") == "memoryd"
    assert released == []

    (home.root / "away").rename(store.root / "user")
    keeper.saw(store.key, "user")
    _settle(keeper, clock, 0.5)

    assert (keeper.troubles.held, released) == ({}, [store.key])
    _settle(keeper, clock, 0.5)
    assert (store.root / "MEMORY.md").read_bytes() == index


@pytest.mark.parametrize("place", ["memory", ".", ".."])
def test_a_folder_that_is_away_for_long_is_held_and_found_again(
    home: Home, clock: FakeClock, keeper: StoreKeeper, place: str
) -> None:
    """The store's, the project's, or ``projects``: no event may tell of its return."""
    store = _many(home, 1)
    folder = Path(os.path.normpath(home.projects / store.key / place))
    folder.rename(home.root / "away")

    keeper.all_changed()
    _settle(keeper, clock, 0.5)
    assert "the folder of" in keeper.troubles.held[store.key]
    _settle(keeper, clock, 61)
    assert not folder.exists()
    (home.root / "away").rename(folder)
    _settle(keeper, clock, 61)

    assert keeper.troubles.held == {}


def test_a_mass_disappearance_that_a_person_meant_is_let_go(
    home: Home, clock: FakeClock, keeper: StoreKeeper
) -> None:
    """Their word comes from another process; its tombstones are the sign."""
    store = _many(home)
    for path in (store.root / "user").glob("*.md"):
        path.unlink()
    keeper.saw(store.key, "user/n1.md")
    _settle(keeper, clock, 0.5)
    assert keeper.troubles.held

    commit_person_edits(store, now_ms=clock.now_ms(), accept_vanished=True)
    keeper.saw(store.key, "tombstones.jsonl")
    _settle(keeper, clock, 0.5)
    _settle(keeper, clock, 0.5)

    assert keeper.troubles.held == {}
    assert "n1" not in (store.root / "MEMORY.md").read_text()


# -- what cannot be read ------------------------------------------------------------------------


def test_a_damaged_header_is_said_once_and_named_in_the_index(
    home: Home, clock: FakeClock, keeper: StoreKeeper
) -> None:
    """The note is neither hidden nor described by what it was; history has the last good one."""
    store = make_store(home, a="One", b="Two")
    good = (store.root / "user/a.md").read_text()
    (store.root / "user/a.md").write_text(good.replace("---\n\n", "").rpartition("---")[0])
    _saved(store, "user/a.md", clock)

    with capture_logs() as logs:
        for _ in range(3):
            keeper.saw(store.key, "user/a.md")
            _settle(keeper, clock, 61)

    (said,) = [entry for entry in logs if entry["event"] == "note.unreadable"]
    assert (said["path"], said["reason"]) == ("user/a.md", "the header is not closed")
    assert keeper.troubles.for_status()["unreadable_notes"] == {
        store.key: {"user/a.md": "the header is not closed"}
    }
    index = (store.root / "MEMORY.md").read_text()
    assert "- `user/a.md` — the header is not closed" in index
    assert "About a" not in index
    assert git(store, "show", "HEAD~1:user/a.md") == good.strip()
    assert Baseline(store).last_author("user/a.md") == "person"

    (store.root / "user/a.md").write_text(good)
    keeper.saw(store.key, "user/a.md")
    _settle(keeper, clock, 0.5)

    assert keeper.troubles.unreadable == {}
    assert "- [a](user/a.md) — About a" in (store.root / "MEMORY.md").read_text()


def test_a_secret_in_an_edit_is_said_once_by_its_path(
    home: Home, clock: FakeClock, keeper: StoreKeeper
) -> None:
    """It stays out of the history; the log has no word of it."""
    store = make_store(home, a="One")
    token = "ghp_" + "aB3dE6gH9jK2mN5pQ8sT1vW4xY7zA0cD3fG6"
    write_note(store, "user/a.md", f"token {token}")
    _saved(store, "user/a.md", clock)

    with capture_logs() as logs:
        for _ in range(3):
            keeper.changed(store.key)
            _settle(keeper, clock, 61)

    assert [entry["event"] for entry in logs] == ["edit.secret"]
    assert token not in str(logs)
    assert keeper.troubles.for_status()["uncommitted_secrets"] == {store.key: ["user/a.md"]}


@pytest.mark.parametrize("fault", ["detached", "corrupt"])
def test_a_store_that_cannot_be_used_is_said_once_and_the_keeper_goes_on(
    home: Home, clock: FakeClock, keeper: StoreKeeper, fault: str
) -> None:
    """Other stores are looked after; nothing of this one is lost."""
    broken, other = make_store(home, a="One"), make_store(home, "other", b="Two")
    branch = broken.git_dir / "refs/heads/main"
    whole = branch.read_text()
    if fault == "corrupt":
        branch.write_text("nonsense\n")
    else:
        git(broken, "checkout", "-q", "--detach")
    for store in (broken, other):
        write_note(store, "user/new.md", "Mine")
        _saved(store, "user/new.md", clock)

    with capture_logs() as logs:
        keeper.all_changed()
        for _ in range(4):
            _settle(keeper, clock, 601)

    assert Baseline(other).last_author("user/new.md") == "person"
    assert (broken.root / "user/new.md").exists()
    if fault == "corrupt":
        assert [entry["event"] for entry in logs] == ["store.unusable"]
        assert list(keeper.troubles.for_status()["unusable_stores"]) == [broken.key]
        assert "new" in (broken.root / "MEMORY.md").read_text()
        branch.write_text(whole)
        _settle(keeper, clock, 601)
        assert keeper.troubles.unusable == {}
        assert Baseline(broken).last_author("user/new.md") == "person"


def test_an_index_that_cannot_be_written_is_said_once_and_the_store_is_used(
    home: Home, clock: FakeClock, keeper: StoreKeeper
) -> None:
    """A folder in its place is left; it is derived, so the store is as good as before."""
    store = make_store(home, a="A")
    (store.root / "MEMORY.md").mkdir()

    with capture_logs() as logs:
        for _ in range(3):
            keeper.saw(store.key, "MEMORY.md")
            _settle(keeper, clock, 2)

    assert [each["event"] for each in logs] == ["index.unusable"]
    assert keeper.troubles.unusable == {}
    (store.root / "MEMORY.md").rmdir()
    keeper.saw(store.key, "MEMORY.md")
    _settle(keeper, clock, 2)
    assert keeper.troubles.index == {} and (store.root / "MEMORY.md").is_file()


def test_what_a_person_did_is_told_to_whoever_follows_the_notes(
    home: Home, clock: FakeClock
) -> None:
    """Once, with what was deleted and where what was moved is now."""
    told: list[tuple[str, EditsOutcome]] = []
    keeper = StoreKeeper(
        home,
        clock,
        set,
        lambda s, p: [],
        follow=lambda key, outcome: told.append((key, outcome)),
    )
    store = make_store(home, a="One", b="Two", c="Three")
    (store.root / "user/a.md").unlink()
    (store.root / "user/b.md").rename(store.root / "user/better.md")
    for path in ("user", "user/better.md"):
        os.utime(store.root / path, ns=(clock.now_ms() * 1_000_000,) * 2)

    keeper.changed(store.key)
    for _ in range(3):
        _settle(keeper, clock, 61)

    ((key, outcome),) = told
    assert key == store.key
    assert outcome.forgotten == ("user/a.md",)
    assert outcome.moved == (Moved("user/b.md", "user/better.md"),)


def test_an_index_does_not_wait_for_the_edits_of_a_thousand_stores(
    home: Home, clock: FakeClock, keeper: StoreKeeper
) -> None:
    """One look at a time, indexes first: a change is followed while the rest is worked off."""
    done: list[tuple[str, str]] = []
    keeper._refresh_index = lambda key: done.append(("index", key))  # type: ignore[method-assign]

    def commit(key: str) -> None:
        done.append(("edits", key))
        if key == "p0":
            keeper.changed("changed")
            clock.advance(0.5)

    keeper._commit_edits = commit  # type: ignore[method-assign]
    for number in range(1000):
        keeper.changed(f"p{number}")
    _settle(keeper, clock, 0.5)
    done.clear()
    clock.advance(61)
    assert keeper.look() and keeper.look()

    assert done == [("edits", "p0"), ("index", "changed")]


def test_a_folder_of_notes_that_no_daemon_ever_saw_is_looked_at(
    home: Home, clock: FakeClock, keeper: StoreKeeper
) -> None:
    """A person made it by hand; folders of no notes, and of names no project has, are left."""
    store = Store.for_project(home, "by-hand")
    write_note(store, "user/a.md", "Mine")
    (home.projects / "empty" / "memory" / "user").mkdir(parents=True)
    (home.projects / ("x" * 250) / "memory").mkdir(parents=True)

    keeper.all_changed()
    _settle(keeper, clock, 61)

    assert Baseline(store).last_author("user/a.md") == "person"
    assert [path.name for path in home.baselines.iterdir()] == ["by-hand.git"]


def test_a_store_that_is_as_it_was_left_costs_no_look(
    home: Home, clock: FakeClock, keeper: StoreKeeper
) -> None:
    """A thousand quiet stores are no work; one that changed without any event is found."""
    quiet, busy = make_store(home, "quiet", a="One"), make_store(home, "busy", b="Two")
    keeper.all_changed()
    _settle(keeper, clock, 61)
    keeper.all_changed()
    _settle(keeper, clock, 61)

    keeper.all_changed()
    assert keeper._seconds_to_next() is None
    _saved(busy, write_note(busy, "user/new.md", "Mine"), clock)
    keeper.all_changed()

    assert list(keeper._stores) == [busy.key]
    _settle(keeper, clock, 61)
    assert Baseline(busy).last_author("user/new.md") == "person"
    Baseline(quiet).commit([], "Empty")
    keeper.all_changed()
    assert quiet.key in keeper._stores


def test_what_is_kept_elsewhere_follows_a_persons_edits(home: Home, clock: FakeClock) -> None:
    """Once they count, and by what they were."""
    followed: list[tuple[str, tuple[str, ...]]] = []
    keeper = StoreKeeper(
        home,
        clock,
        set,
        lambda store, path: [],
        lambda store, edits: followed.append((store, edits.forgotten)),
    )
    store = make_store(home, a="One", b="Two")
    (store.root / "user" / "a.md").unlink()
    keeper.changed(store.key)
    _settle(keeper, clock, 0.5)
    assert followed == []

    os.utime(store.root / "user", (0, 0))
    _settle(keeper, clock, 70)

    assert followed == [(store.key, ("user/a.md",))]
