"""The home's uuid, by which what was forgotten is known, is never lost silently."""

from __future__ import annotations

import json
import os
import uuid
from pathlib import Path

import pytest
from store_builders import make_store

from memoryd.jobs.workplace import open_ledger
from memoryd.memory.config import Config
from memoryd.memory.errors import HomeError
from memoryd.memory.home import Home
from memoryd.memory.testing import FakeClock
from memoryd.memory.tombstones import Forgotten, Tombstones


def test_a_lost_identity_is_restored_from_its_copy(home: Home) -> None:
    """With its time, since when idle sessions are looked at; it is known meanwhile too."""
    before, at = home.uuid(), home.identity.stat().st_mtime_ns
    store = make_store(home, a="A")
    stones = Tombstones.of(store).add(Forgotten("a", ("A",)), now_ms=1)
    home.identity.unlink()

    assert Tombstones.of(store, stones.data).forgets("a", "A")
    assert home.prepare() == before
    assert home.identity.stat().st_mtime_ns == at


def test_a_home_of_before_gets_its_copy(home: Home) -> None:
    """At the next start."""
    home.identity_copy.unlink()

    home.prepare()

    assert home.identity_copy.read_bytes() == home.identity.read_bytes()


def test_without_a_copy_the_ledger_knows_the_uuid(home: Home, clock: FakeClock) -> None:
    """It stands in every job's row."""
    before = home.uuid()
    ledger = open_ledger(home, Config(), clock)
    ledger.enqueue_store("consolidate", make_store(home, a="A").key, key="k", trigger="cli")
    ledger.close()
    home.identity.unlink()
    home.identity_copy.unlink()

    assert Home(home.root).prepare() == before


def test_a_uuid_that_nothing_knows_is_not_made_anew_where_there_are_memories(home: Home) -> None:
    """A person is told; an empty home begins, also one of which only folders are left."""
    (home.projects / "key" / "memory" / "user").mkdir(parents=True)
    home.identity.unlink()
    home.identity_copy.unlink()
    assert home.prepare()
    make_store(home, a="A")
    home.identity.unlink()
    home.identity_copy.unlink()

    with pytest.raises(HomeError, match="has memories"):
        home.prepare()
    with pytest.raises(HomeError):
        home.uuid()
    assert not home.identity.exists()


def test_an_identity_that_was_made_anew_is_refused(home: Home) -> None:
    """Its copy says another."""
    home.identity.write_text(json.dumps({"uuid": str(uuid.uuid4())}))

    with pytest.raises(HomeError, match="two homes"):
        home.prepare()


@pytest.mark.parametrize("text", [b"", b"[]", b'{"uuid": 3}', b"\xff"])
def test_a_damaged_identity_names_its_copy(home: Home, text: bytes) -> None:
    """It is not overwritten."""
    home.identity.write_bytes(text)

    with pytest.raises(HomeError) as raised:
        home.prepare()

    assert os.fspath(home.identity_copy) in raised.value.hint
    assert home.identity.read_bytes() == text


def test_a_new_home_has_a_copy(tmp_path: Path) -> None:
    """From the first moment."""
    made = Home(tmp_path / "new")

    assert made.prepare() in made.identity_copy.read_text()


@pytest.mark.parametrize("name", ["inbox", "backups"])
def test_a_file_in_the_way_of_a_folder_is_named(home: Home, name: str) -> None:
    """With the command that moves it aside."""
    path = home.root / name
    path.rename(home.root / "elsewhere")
    path.write_text("")

    with pytest.raises(HomeError, match=f"{path} is no folder.*`memoryd doctor --fix`"):
        home.prepare()
