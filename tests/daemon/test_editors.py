"""However an editor saves, one edit is one look at the index, one commit of the person, no more."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from keeping import Watched

from memoryd.memory.baseline import Baseline
from memoryd.memory.home import Home
from memoryd.memory.store import Store

sys.path.append(str(Path(__file__).parent.parent / "memory"))

from store_builders import git, make_store, note_bytes, write_note

Save = Callable[[Path, bytes], object]


def vim(path: Path, data: bytes) -> None:
    """A swap file, a probe whether the folder can be written, a backup by rename, a new file."""
    swap = path.with_name(f".{path.name}.swp")
    swap.write_bytes(b"b0VIM 9.0")
    probe = path.with_name("4913")
    probe.touch()
    probe.unlink()
    backup = path.with_name(f"{path.name}~")
    path.rename(backup)
    path.write_bytes(data)
    backup.unlink()
    swap.unlink()


def emacs(path: Path, data: bytes) -> None:
    """A lock that is a dangling link, an auto-save file, and a backup that stays."""
    lock = path.with_name(f".#{path.name}")
    lock.symlink_to("ada@host.4711:1")
    saved = path.with_name(f"#{path.name}#")
    saved.write_bytes(data[:40])
    path.with_name(f"{path.name}~").write_bytes(path.read_bytes())
    path.write_bytes(data)
    saved.unlink()
    lock.unlink()


def jetbrains(path: Path, data: bytes) -> None:
    """A temporary and an old file beside the new one."""
    temporary = path.with_name(f"{path.name}___jb_tmp___")
    old = path.with_name(f"{path.name}___jb_old___")
    temporary.write_bytes(data)
    path.rename(old)
    temporary.rename(path)
    old.unlink()


def atomic(path: Path, data: bytes) -> None:
    """Temporary file and rename, as VS Code's atomic save and most programs do."""
    temporary = path.with_name(f"{path.name}.vsctmp")
    temporary.write_bytes(data)
    temporary.replace(path)


def syncing(path: Path, data: bytes) -> None:
    """A cloud drive: in parts under a hidden name, with the time the other computer saved it."""
    partial = path.with_name(f".syncthing.{path.name}.tmp")
    with partial.open("wb") as file:
        file.write(data[:10])
        file.flush()
        file.write(data[10:])
    os.utime(partial, (1_000_000_000, 1_000_000_000))
    partial.replace(path)


def in_place(path: Path, data: bytes) -> None:
    """Truncated and written, twice, as a person who saves often."""
    path.write_bytes(data[:20])
    path.write_bytes(data)


EDITORS: list[Save] = [vim, emacs, jetbrains, atomic, syncing, in_place]


@pytest.fixture
def store(home: Home) -> Store:
    """A store of one note."""
    return make_store(home, a="One", b="Two")


@pytest.fixture
def watched(home: Home, store: Store) -> Iterator[Watched]:
    """The home, watched from now on."""
    made = Watched(home)
    yield made
    made.close()


@pytest.mark.parametrize("save", EDITORS, ids=lambda save: save.__name__)
def test_an_editors_save_is_one_refresh_and_one_commit_and_then_silence(
    watched: Watched, store: Store, save: Save
) -> None:
    """None of its helper files becomes a note, a line of the index or part of a commit."""
    data = note_bytes("user/a.md", "One, and more").replace(b"About a", b"Edited")
    before = Baseline(store).log()

    save(store.root / "user/a.md", data)
    watched.settle(0.5)
    index = (store.root / "MEMORY.md").read_text()
    assert Baseline(store).log() == before
    watched.settle(30)
    assert Baseline(store).log() == before
    watched.settle(31)
    watched.settle(3600)

    assert watched.keeper.indexes == [store.key]
    assert watched.keeper.edits == [store.key]
    assert "- [a](user/a.md) — Edited" in index
    assert index.count("](user/") == 2 and "Not readable" not in index
    made, *older = Baseline(store).log()
    assert (made.author, older) == ("person", before)
    assert Baseline(store).paths_of(made.id) == ["user/a.md"]
    assert git(store, "show", "HEAD:user/a.md").encode() == data.strip()


def test_an_edit_that_is_saved_again_and_again_is_one_commit(
    watched: Watched, store: Store
) -> None:
    """Its minute begins with the last save."""
    before = len(Baseline(store).log())
    for number in range(5):
        atomic(store.root / "user/a.md", note_bytes("user/a.md", f"Draft {number}"))
        stamp = watched.clock.now_ms() * 1_000_000
        os.utime(store.root / "user/a.md", ns=(stamp, stamp))
        watched.settle(25)
    watched.settle(61)
    watched.settle(61)

    assert len(Baseline(store).log()) == before + 1
    assert "Draft 4" in git(store, "show", "HEAD:user/a.md")


def test_our_own_writes_cause_at_most_one_look(watched: Watched, store: Store) -> None:
    """A save of ours: note, index and commit; the history beside is not watched at all."""
    watched.settle(0.5)
    watched.keeper.indexes.clear()
    with store.writer_lock():
        write_note(store, "user/c.md", "Three")
        Baseline(store).commit(["user/c.md"], "Save", author="memoryd")
        store.refresh_index()

    watched.settle(0.5)
    assert watched.keeper.indexes == [store.key]
    watched.settle(61)
    for _ in range(5):
        watched.settle(600)

    assert watched.keeper.indexes == [store.key]
    assert watched.keeper.edits == [store.key]
    assert watched.keeper._seconds_to_next() is None


def test_an_index_that_is_edited_or_deleted_is_made_again_once(
    watched: Watched, store: Store
) -> None:
    """It is derived; what we write ourselves is not looked at again."""
    index = store.root / "MEMORY.md"
    watched.keeper.changed(store.key)
    watched.settle(0.5)
    made = index.read_bytes()

    index.write_bytes(b"mine")
    watched.settle(0.5)
    assert index.read_bytes() == made
    index.unlink()
    watched.settle(0.5)

    assert index.read_bytes() == made
    assert watched.keeper.indexes == [store.key] * 3


def test_a_deletion_by_hand_ends_in_silence_too(watched: Watched, store: Store) -> None:
    """The tombstone that is written for it asks for no index and no further commit."""
    (store.root / "user/a.md").unlink()
    watched.settle(0.5)
    watched.settle(61)
    head = Baseline(store).head()
    for _ in range(5):
        watched.settle(61)

    assert watched.keeper.indexes == [store.key]
    assert [outcome.forgotten for _, outcome in watched.settled] == [("user/a.md",)]
    assert Baseline(store).head() == head
    assert watched.keeper._seconds_to_next() is None
