"""A save that comes between our look at a file and our rename is not lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from memoryd.memory import exchange, files
from memoryd.memory.exchange import put_in_place, take_away


class Saving:
    """Asks whether a file still holds ``old``; ``saves`` are done after the first answers."""

    def __init__(self, path: Path, *saves: bytes | None) -> None:
        self.path = path
        self.saves = list(saves)

    def __call__(self, place: Path) -> bool:
        """The answer, and a person's save right after it (None: they delete the file)."""
        answer = place.exists() and place.read_bytes() == b"old"
        if self.saves:
            data = self.saves.pop(0)
            self.path.unlink(missing_ok=True)
            if data is not None:
                self.path.write_bytes(data)
        return answer


@pytest.fixture
def note(tmp_path: Path) -> Path:
    """A file that is to be replaced."""
    path = tmp_path / "note.md"
    path.write_bytes(b"old")
    return path


def names(folder: Path) -> list[str]:
    """What is in a folder, the person's own home aside."""
    return sorted(each.name for each in folder.iterdir() if each.name != "person")


def test_what_is_still_the_same_is_replaced(note: Path) -> None:
    """The new bytes are there, and no other file is left."""
    assert files.write_atomic(note, b"new", still=Saving(note))
    assert note.read_bytes() == b"new"
    assert names(note.parent) == ["note.md"]


@pytest.mark.parametrize("saved", [b"theirs", None])
def test_a_save_after_the_last_look_stands(note: Path, saved: bytes | None) -> None:
    """So does a deletion."""
    assert not files.write_atomic(note, b"new", still=Saving(note, saved))
    assert (note.read_bytes() if note.exists() else None) == saved


def test_the_newest_of_two_saves_stands(note: Path) -> None:
    """Also when it comes while the first is put back."""
    assert not files.write_atomic(note, b"new", still=Saving(note, b"first", b"second"))
    assert note.read_bytes() == b"second"
    assert names(note.parent) == ["note.md"]


def test_a_file_made_after_the_look_is_not_written_over(tmp_path: Path) -> None:
    """Where there was none, nothing is replaced."""
    path = tmp_path / "note.md"

    def missing(place: Path) -> bool:
        gone = not place.exists()
        path.write_bytes(b"theirs")
        return gone

    assert not files.write_atomic(path, b"new", still=missing)
    assert path.read_bytes() == b"theirs"
    assert names(tmp_path) == ["note.md"]


def test_without_an_exchange_the_file_is_replaced_after_the_look(
    note: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An older system, or a file system that cannot."""
    monkeypatch.setattr(exchange, "_renameat2", lambda: None)

    assert files.write_atomic(note, b"new", still=Saving(note))
    assert not files.write_atomic(note, b"newer", still=Saving(note))
    assert note.read_bytes() == b"new"
    assert names(note.parent) == ["note.md"]


def test_a_file_that_is_missing_is_no_exchange(tmp_path: Path) -> None:
    """It is an error, not "cannot be done here"."""
    (tmp_path / "a").write_bytes(b"")

    with pytest.raises(FileNotFoundError):
        exchange.exchange(tmp_path / "a", tmp_path / "b")


def test_what_is_taken_away_is_what_was_looked_at(note: Path) -> None:
    """A save after the look stays; without one the file goes."""
    assert not take_away(note, Saving(note, b"theirs"))
    assert note.read_bytes() == b"theirs"

    note.write_bytes(b"old")
    assert take_away(note, Saving(note))
    assert names(note.parent) == []


def test_a_newer_file_at_the_place_stands(note: Path) -> None:
    """While an earlier save was set aside, the person saved again."""
    assert not take_away(note, Saving(note, b"first", b"second"))
    assert note.read_bytes() == b"second"
    assert names(note.parent) == ["note.md"]


def test_nothing_is_put_in_the_place_of_another(note: Path) -> None:
    """What is not the same beforehand is not touched at all."""
    new = note.with_name("new")
    new.write_bytes(b"new")
    note.write_bytes(b"theirs")

    assert not put_in_place(new, note, Saving(note))
    assert not take_away(note, Saving(note))
    assert (note.read_bytes(), new.read_bytes()) == (b"theirs", b"new")
