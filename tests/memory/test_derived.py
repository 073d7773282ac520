"""The derived index never fails a save, and keeps what it says of a store that is held."""

from __future__ import annotations

import os

import pytest
from store_builders import make_store, operation, plan

from memoryd.memory.apply import apply_plan
from memoryd.memory.baseline import Baseline
from memoryd.memory.health import derived
from memoryd.memory.home import Home
from memoryd.memory.saving import save_note
from memoryd.memory.store import Store
from memoryd.memory.testing import FakeClock


def put_there(store: Store, what: str) -> None:
    """Something that is no plain file in the place of the index."""
    index = store.root / "MEMORY.md"
    index.unlink(missing_ok=True)
    if what == "folder":
        index.mkdir()
    elif what == "pipe":
        os.mkfifo(index)
    else:
        index.symlink_to("/dev/zero")


def save(store: Store, clock: FakeClock) -> None:
    """An agent's save."""
    words = {"description": "The shop", "content": "The shop moved to Spain."}
    save_note(store, type="project", name="shop", clock=clock, **words)  # type: ignore[arg-type]


@pytest.mark.parametrize("what", ["folder", "pipe", "link"])
def test_what_stands_in_the_place_of_the_index_fails_and_hangs_no_save(
    home: Home, clock: FakeClock, what: str
) -> None:
    """A pipe and an endless device are neither read nor kept; a folder is left, and named."""
    store = make_store(home, a="A")
    put_there(store, what)
    before = [each.code for each in derived(store)]

    save(store, clock)

    assert Baseline(store).files(None, "project/shop.md")
    index = store.root / "MEMORY.md"
    assert before == ["index.unusable"]
    assert index.is_dir() if what == "folder" else "project/shop.md" in index.read_text()
    assert [each.code for each in derived(store)] == before * (what == "folder")


def test_a_plan_is_applied_though_the_index_cannot_be_written(home: Home, clock: FakeClock) -> None:
    """What is committed is done."""
    store = make_store(home, a="A")
    put_there(store, "folder")

    applied = apply_plan(home, plan(operation("user/b.md", "B")), clock=clock)

    assert applied.commits.keys() == {store.key}


@pytest.mark.parametrize("who", ["agent", "plan"])
def test_a_write_into_a_held_store_keeps_its_last_index(
    home: Home, clock: FakeClock, who: str
) -> None:
    """The lines of notes that vanished at once are what a person may have left of them."""
    store = make_store(home, a="A", b="B", c="C", d="D")
    store.write_index()
    before = store.shown_index()
    for name in "abc":
        (store.root / f"user/{name}.md").unlink()

    if who == "agent":
        save(store, clock)
    else:
        apply_plan(home, plan(operation("user/z.md", "Z")), clock=clock)

    assert store.shown_index() == before


def test_what_a_process_that_died_left_of_an_index_is_cleared_away(
    home: Home, clock: FakeClock
) -> None:
    """By the next index that is written; what else a person has beside it stays."""
    store = make_store(home, a="A")
    (store.root / ".MEMORY.md.0123456789ab.tmp").write_bytes(b"")
    (store.root / ".MEMORY.md.mine.tmp").write_bytes(b"")

    save(store, clock)

    assert {path.name for path in store.root.glob(".MEMORY*")} == {".MEMORY.md.mine.tmp"}
