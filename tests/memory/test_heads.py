"""What notes are called and say is known without reading them, and never wrong for long."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from store_builders import make_store, write_bytes, write_note

from memoryd.memory.heads import FILE, NEAR, heads, rarest
from memoryd.memory.home import Home
from memoryd.memory.store import DERIVED, Store
from memoryd.memory.text import words

SECRET = "sk-" + "ant-api03-" + "Q7w9" * 12


@pytest.fixture
def store(home: Home) -> Store:
    """Two notes."""
    return make_store(home, a="First words", b="Second words")


def kept(store: Store) -> Path:
    """The file of heads."""
    return store.root / DERIVED / FILE


def names(store: Store) -> list[str]:
    """What the notes are called."""
    return [head.name for head in heads(store)]


def reads(store: Store, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that looking at the heads reads."""
    read: list[str] = []
    real = Store.read

    def spy(self: Store, path: str) -> bytes | None:
        read.append(path)
        return real(self, path)

    with monkeypatch.context() as patched:
        patched.setattr(Store, "read", spy)
        heads(store)
    return read


def test_only_new_and_changed_files_are_read(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then none at all; a file changed in place, in size or time, is read again."""
    assert reads(store, monkeypatch) == ["user/a.md", "user/b.md"]
    assert reads(store, monkeypatch) == []
    write_note(store, "user/a.md", "Other words, in place")
    write_note(store, "project/c.md", "New")
    assert reads(store, monkeypatch) == ["user/a.md", "project/c.md"]
    os.utime(store.root / "user/b.md")
    assert reads(store, monkeypatch) == ["user/b.md"]
    (store.root / "user/a.md").unlink()
    assert names(store) == ["b", "c"]


@pytest.mark.parametrize(
    "damage", [b"", b"\0\xff" * 40, b'["user/a.md"]\n', b'["user/a.md",[1,', b"[]\n" * 1000]
)
def test_a_damaged_file_of_heads_is_only_slower(store: Store, damage: bytes) -> None:
    """It is derived; what can be read of it is used, the rest is read anew."""
    expected = heads(store)

    kept(store).write_bytes(kept(store).read_bytes() + damage)
    assert heads(store) == expected
    kept(store).write_bytes(damage)
    assert heads(store) == expected


def test_a_place_that_cannot_be_written_stops_nothing(store: Store) -> None:
    """A file in the place of the folder, a link in the place of the file."""
    (store.root / DERIVED).write_text("mine")
    assert names(store) == ["a", "b"]

    (store.root / DERIVED).unlink()
    (store.root / DERIVED).mkdir()
    outside = store.root.parent / "outside"
    outside.write_text("[]")
    kept(store).symlink_to(outside)
    assert names(store) == ["a", "b"]
    assert outside.read_text() == "[]"


def test_stale_lines_are_dropped_once_there_are_many(store: Store) -> None:
    """The file does not grow with every change for ever."""
    for number in range(250):
        write_note(store, "user/a.md", f"Words {number}" * (number % 3 + 1))
        heads(store)

    assert len(kept(store).read_bytes().splitlines()) < 250
    assert kept(store).stat().st_mode & 0o777 == 0o600
    assert names(store) == ["a", "b"]


def test_a_note_with_a_secret_is_never_kept_here(store: Store) -> None:
    """It is known, and read every time."""
    write_bytes(store, "user/s.md", f"---\ndescription: {SECRET}\n---\nB\n".encode())

    assert names(store) == ["a", "b", "s"]
    assert SECRET.encode() not in kept(store).read_bytes()
    assert names(store) == ["a", "b", "s"]


def test_what_is_no_readable_note_is_known_by_its_file(store: Store) -> None:
    """A broken header, a link and a folder; another folder's files and hidden ones are no notes."""
    write_bytes(store, "user/broken.md", b"---\nno key\n---\n")
    (store.root / "user/link.md").symlink_to(store.root / "user/a.md")
    (store.root / "user/folder.md").mkdir()
    write_bytes(store, "user/.hidden.md", b"x")
    write_bytes(store, "diary/d.md", b"x")
    write_bytes(store, "archive/user/old.md", b"x")
    (store.root / "episode").symlink_to(store.root / "user")

    found = {head.name: head.readable for head in heads(store)}

    assert found == {"a": True, "b": True, "broken": False, "link": False, "folder": False}


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(st.sets(st.sampled_from([f"w{n}" * (n % 5 + 1) for n in range(30)]), min_size=1), st.data())
def test_the_rarest_words_miss_nothing_that_is_near(one: set[str], data: st.DataObject) -> None:
    """Two sets at least ``NEAR`` alike share one of them: the promise of a prefix join."""
    drop = data.draw(st.sets(st.sampled_from(sorted(one)), max_size=3))
    other = (one - drop) | data.draw(st.sets(st.sampled_from(["x", "yy", "zzzzzz"]), max_size=2))

    if other and len(one & other) / len(one | other) >= NEAR:
        assert set(rarest(one)) & set(rarest(other))


def test_words_of_every_script_have_a_rarest() -> None:
    """Also where one word is all there is."""
    assert rarest(set(words("tabs"))) == ["tabs"]
    assert rarest(set()) == []
