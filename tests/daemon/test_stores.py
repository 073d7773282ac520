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
from memoryd.memory.home import Home
from memoryd.memory.store import Store
from memoryd.memory.testing import FakeClock
from memoryd.memory.tombstones import Tombstones

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
    assert "4 of 6 notes" in keeper.held[store.key]
    for path, data in kept.items():
        path.write_bytes(data)
    _settle(keeper, clock, 601)
    assert keeper.held == {}


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
