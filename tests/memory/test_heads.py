"""What notes are called and say is known without looking at them, and never believed blindly."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from store_builders import make_store, note_bytes, operation, plan, write_bytes, write_note

from memoryd.memory import head_file, heads
from memoryd.memory.apply import apply_plan
from memoryd.memory.forget import delete_note
from memoryd.memory.head import NEAR, FolderStamp, Head, rarest
from memoryd.memory.head_file import FILE
from memoryd.memory.heads import Heads, refresh_heads
from memoryd.memory.home import Home
from memoryd.memory.listing import list_notes
from memoryd.memory.saving import Saved, save_note
from memoryd.memory.store import DERIVED, Store
from memoryd.memory.testing import FakeClock
from memoryd.memory.text import words
from memoryd.memory.undo import undo

SECRET = "sk-" + "ant-api03-" + "Q7w9" * 12


@pytest.fixture
def store(home: Home) -> Store:
    """Two notes, in a folder that has not changed for a while."""
    return make_store(home, a="First words", b="Second words")


@pytest.fixture(autouse=True)
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests do not wait for the tick of the file system's clock: it is an hour later here."""

    class Later:
        @staticmethod
        def time_ns() -> int:
            return time.time_ns() + 3_600 * 10**9

    monkeypatch.setattr(heads, "time", Later)


def kept(store: Store) -> Path:
    """The file of heads."""
    return store.root / DERIVED / FILE


def names(store: Store, *, whole: bool = True) -> list[str]:
    """What the notes are called."""
    return [head.name for head in known(store, whole=whole)]


def known(store: Store, *, whole: bool = True) -> list[Head]:
    """All heads."""
    with Heads(store) as found:
        found.refresh(whole=whole)
        return found.all()


def save(store: Store, clock: FakeClock, name: str, content: str) -> Saved:
    """Save one note of type user."""
    return save_note(
        store, type="user", name=name, description=f"On {name}", content=content, clock=clock
    )


class Spy:
    """What is listed, looked at and read while it watches."""

    def __init__(self) -> None:
        self.read: list[str] = []
        self.listed: list[str] = []
        self.looked: list[str] = []


@pytest.fixture
def spy(monkeypatch: pytest.MonkeyPatch) -> Iterator[Spy]:
    """A spy on the functions that look at the store."""
    seen = Spy()
    read, listed, looked = Store.read, heads.stamps_in, heads.stamp_of

    def spy_read(self: Store, path: str) -> bytes | None:
        seen.read.append(path)
        return read(self, path)

    def spy_listed(store: Store, folder: str) -> dict[str, tuple[int, int]]:
        seen.listed.append(folder)
        return listed(store, folder)

    def spy_looked(place: Path) -> tuple[int, int] | None:
        seen.looked.append(place.name)
        return looked(place)

    monkeypatch.setattr(Store, "read", spy_read)
    monkeypatch.setattr(heads, "stamps_in", spy_listed)
    monkeypatch.setattr(heads, "stamp_of", spy_looked)
    return seen


def reads(store: Store, spy: Spy) -> list[str]:
    """The files that a whole refresh reads."""
    spy.read.clear()
    names(store)
    return list(spy.read)


# ---------------------------------------------------------------- what is looked at


def test_only_new_and_changed_files_are_read(store: Store, spy: Spy) -> None:
    """Then none at all; a file changed in place, in size or time, is read again."""
    assert reads(store, spy) == ["user/a.md", "user/b.md"]
    assert reads(store, spy) == []
    write_note(store, "user/a.md", "Other words, in place")
    write_note(store, "project/c.md", "New")
    assert reads(store, spy) == ["user/a.md", "project/c.md"]
    os.utime(store.root / "user/b.md")
    assert reads(store, spy) == ["user/b.md"]
    (store.root / "user/a.md").unlink()
    assert names(store) == ["b", "c"]


def test_a_folder_that_is_as_it_was_is_not_looked_at(store: Store, spy: Spy) -> None:
    """One that a file came to, or went from, is; so is one that was moved into its place."""
    write_note(store, "project/c.md", "Third words")
    names(store)
    spy.listed.clear()

    assert names(store, whole=False) == ["a", "b", "c"]
    assert spy.listed == []
    write_note(store, "user/d.md", "New")
    assert names(store, whole=False) == ["a", "b", "d", "c"]
    assert spy.listed == ["user"]
    (store.root / "user/d.md").unlink()
    assert names(store, whole=False) == ["a", "b", "c"]
    (store.root / "user").rename(store.root / "gone")
    assert names(store, whole=False) == ["c"]
    (store.root / "gone").rename(store.root / "user")
    assert names(store, whole=False) == ["a", "b", "c"]


def test_a_folder_that_just_changed_is_looked_at_again() -> None:
    """The next change might fall into the same tick of the file system's clock."""
    at = 1_700_000_000_123_456_789

    assert FolderStamp(1, at, at).tells(at + 50_000_000)
    assert not FolderStamp(1, at, at).tells(at + 5_000_000)
    assert not FolderStamp(1, at, at + 48_000_000).tells(at + 50_000_000)
    assert not FolderStamp(1, at, at).tells(at - 5_000_000)
    assert not FolderStamp(1, at - at % 10**9, at - at % 10**9).tells(at + 10**10)


def test_a_save_looks_at_no_note_but_its_own(store: Store, clock: FakeClock, spy: Spy) -> None:
    """However many there are: its own writes are known, and so are those of jobs."""
    save(store, clock, "first", "Quinces ripen in the cellar.")
    apply_plan(store.home, plan(operation("user/job.md", "Of a job")), clock=clock)
    spy.listed.clear()
    spy.looked.clear()

    save(store, clock, "second", "Violins are tuned in fifths.")
    save(store, clock, "third", "Glaciers carve long valleys.")

    assert spy.listed == []
    assert set(spy.looked) == {"second.md", "third.md"}
    assert (
        names(store, whole=False) == names(store) == ["a", "b", "first", "job", "second", "third"]
    )


# ---------------------------------------------------------------- what others write


def test_a_note_written_by_hand_is_seen_as_a_duplicate(store: Store, clock: FakeClock) -> None:
    """Its folder changed, whoever saved before."""
    save(store, clock, "first", "Quinces ripen in the cellar.")
    write_note(store, "user/by-hand.md", "Violins are tuned in fifths.")

    saved = save(store, clock, "second", "Violins are tuned in fifths.")

    assert saved.outcome == "duplicate"
    assert [like.path for like in saved.resembles] == ["user/by-hand.md"]


@pytest.mark.parametrize("look", [list_notes, refresh_heads])
def test_what_was_changed_in_place_is_read_before_it_is_believed(
    store: Store, clock: FakeClock, look: Callable[[Store], object]
) -> None:
    """The heads still say what the note said before; the listing and the daemon then see it."""
    save(store, clock, "first", "Quinces ripen in the cellar.")
    write_note(store, "user/first.md", "Violins are tuned in fifths.")

    assert save(store, clock, "second", "Quinces ripen in the cellar.").outcome == "created"
    look(store)
    assert save(store, clock, "third", "Violins are tuned in fifths.").outcome == "duplicate"


def test_a_note_renamed_in_place_is_not_taken_for_what_it_was(
    store: Store, clock: FakeClock
) -> None:
    """What is found by name is looked at, and the file that a name would have too."""
    names(store)
    write_bytes(store, "user/a.md", note_bytes("user/other.md", "First words"))

    with Heads(store) as found:
        found.refresh()
        assert found.named("a") == []
        assert [head.name for head in found.at("user/A.md")] == ["other"]
        (store.root / "user/a.md").unlink()
        assert found.at("user/a.md") == []


def test_a_note_that_came_while_we_wrote_is_not_missed(store: Store) -> None:
    """The folder is not kept as known when others wrote into it beside us."""
    with Heads(store) as found:
        found.refresh()
        write_note(store, "user/ours.md", "Ours")
        write_note(store, "user/theirs.md", "Theirs")
        found.saved(["user/ours.md"])

    assert names(store, whole=False) == ["a", "b", "ours", "theirs"]


def test_deleting_undoing_and_jobs_are_followed(store: Store, clock: FakeClock) -> None:
    """Whatever else of memoryd writes, the next look is right."""
    save(store, clock, "first", "Quinces ripen in the cellar.")

    gone = delete_note(store.home, store, "first", clock=clock)
    assert names(store, whole=False) == ["a", "b"]
    undo(store.home, gone.id, clock=clock)
    assert names(store, whole=False) == ["a", "b", "first"]
    apply_plan(store.home, plan(operation("user/job.md", "Of a job")), clock=clock)
    assert names(store, whole=False) == ["a", "b", "first", "job"]
    assert save(store, clock, "again", "Quinces ripen in the cellar.").outcome == "duplicate"


def test_another_process_fills_and_this_one_reads(store: Store, spy: Spy) -> None:
    """The file is shared: what one knows the other need not read, also while it is open."""
    script = (
        "import sys; from pathlib import Path; from memoryd.memory.home import Home\n"
        "from memoryd.memory.store import Store; from memoryd.memory.heads import refresh_heads\n"
        "refresh_heads(Store.for_project(Home(Path(sys.argv[1])), sys.argv[2]))"
    )
    with Heads(store) as found:
        arguments = [sys.executable, "-c", script, str(store.home.root), store.key]
        subprocess.run(arguments, check=True)
        found.refresh(whole=True)

        assert [head.name for head in found.all()] == ["a", "b"]
    assert spy.read == []


@pytest.mark.slow
def test_two_processes_that_save_at_once_leave_it_right(store: Store) -> None:
    """And whoever lists meanwhile spoils nothing."""
    saver = str(Path(__file__).with_name("saver.py"))
    savers = [
        subprocess.Popen([sys.executable, saver, str(store.home.root), store.key, who, "6"])
        for who in ("one", "two")
    ]
    while any(each.poll() is None for each in savers):
        names(store)

    assert [each.returncode for each in savers] == [0, 0]
    expected = known(store, whole=False)
    assert len(expected) == 14
    kept(store).unlink()
    assert known(store) == expected


# ---------------------------------------------------------------- the file


def test_a_damaged_file_is_made_anew(store: Store) -> None:
    """Whatever is in it: nothing, anything, half of it, another database, rows that are none."""
    expected = known(store)
    whole = kept(store).read_bytes()

    for damage in (b"", b"\0\xff" * 4000, whole[: len(whole) // 2], whole[:100] + b"\7" * 9000):
        kept(store).write_bytes(damage)
        assert known(store, whole=False) == expected
        assert known(store, whole=False) == expected
    for script in (
        "DROP TABLE digit",
        "DROP TABLE head; CREATE TABLE head (a)",
        "PRAGMA user_version = 9",
        "UPDATE head SET name = x'ff'",
    ):
        with sqlite3.connect(kept(store)) as other:
            other.executescript(script)
        other.close()
        with Heads(store) as found:
            found.refresh()
            assert len(found.resembling({"0" * 8}, ["0" * 8], 0, 9)) == 0
            assert found.all() == expected
        with sqlite3.connect(kept(store)) as other:
            assert other.execute("PRAGMA user_version").fetchone() == (1,)
            assert other.execute("SELECT count(*) FROM head WHERE name > ''").fetchone() == (2,)
        other.close()


def test_digits_that_are_none_stop_no_change(store: Store) -> None:
    """They are needed to take a note out of the file."""
    names(store)
    with sqlite3.connect(kept(store)) as other:
        other.execute("UPDATE head SET says = 'zz'")
    other.close()
    write_note(store, "user/a.md", "Other words, in place")

    assert names(store) == ["a", "b"]


def test_a_place_that_cannot_be_written_stops_nothing(store: Store) -> None:
    """A file in the place of the folder, a link or a pipe in the place of the file."""
    (store.root / DERIVED).write_text("mine")
    assert names(store) == ["a", "b"]

    (store.root / DERIVED).unlink()
    (store.root / DERIVED).mkdir()
    outside = store.root.parent / "outside"
    outside.touch()
    kept(store).symlink_to(outside)
    assert names(store) == ["a", "b"]
    assert outside.read_bytes() == b""
    kept(store).unlink()
    os.mkfifo(kept(store))
    assert names(store) == ["a", "b"]


def test_a_folder_that_is_a_link_is_not_followed(store: Store) -> None:
    """Nothing appears where it leads."""
    outside = store.root.parent / "outside"
    outside.mkdir()
    (store.root / DERIVED).symlink_to(outside)

    assert names(store) == ["a", "b"]
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize("code", ["SQLITE_FULL", "SQLITE_READONLY", "SQLITE_BUSY"])
def test_a_disk_that_takes_nothing_stops_nothing(
    store: Store, clock: FakeClock, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What cannot be kept is known for this call, and the file stays as it is."""
    names(store)
    before = kept(store).read_bytes()
    write_note(store, "user/c.md", "Violins are tuned in fifths.")
    real = head_file.HeadFile.change

    def refuse(self: head_file.HeadFile, *arguments: object) -> None:
        if self.path is not None:
            error = sqlite3.OperationalError("no")
            error.sqlite_errorcode = getattr(sqlite3, code)
            raise error
        real(self, *arguments)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(head_file.HeadFile, "change", refuse)
        assert names(store, whole=False) == ["a", "b", "c"]
        assert save(store, clock, "d", "Violins are tuned in fifths.").outcome == "duplicate"
        assert save(store, clock, "e", "Glaciers carve long valleys.").outcome == "created"

    assert kept(store).read_bytes() == before
    assert names(store, whole=False) == ["a", "b", "c", "e"]


def test_a_file_that_another_holds_locked_stops_nothing(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is waited for a moment, no longer."""
    monkeypatch.setattr(head_file, "_WAIT_SECONDS", 0.01)
    names(store)
    write_note(store, "user/c.md", "Third words")
    other = sqlite3.connect(kept(store), isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")

    assert names(store) == ["a", "b", "c"]

    other.execute("ROLLBACK")
    other.close()
    assert names(store) == ["a", "b", "c"]


def test_the_file_is_private_and_the_former_one_goes(store: Store) -> None:
    """Looking at an empty store makes none."""
    (store.root / DERIVED).mkdir()
    (store.root / DERIVED / "heads.jsonl").write_text("[]")

    assert names(store) == ["a", "b"]

    assert kept(store).stat().st_mode & 0o777 == 0o600
    assert not (store.root / DERIVED / "heads.jsonl").exists()
    empty = Store.for_project(store.home, "home-ada-empty")
    assert names(empty) == []
    assert not empty.root.exists()


def test_a_note_with_a_secret_is_never_kept(store: Store) -> None:
    """It is known, and read every time; the notes beside it are kept."""
    names(store)
    write_bytes(store, "user/b.md", f"---\ndescription: {SECRET}\n---\nB\n".encode())
    write_note(store, f"user/{SECRET}.md", "Words")
    write_bytes(store, f"project/{SECRET}.md", b"---\nno key\n---\n")
    write_bytes(store, f"reference/{SECRET}.md", b"---\nname: c\n---\nWords\n")

    for whole in (True, False):
        assert set(names(store, whole=whole)) == {"a", "b", "c", SECRET}
    with Heads(store) as found:
        found.refresh()
        assert [head.path for head in found.named("b")] == ["user/b.md"]
        found.saved(["user/b.md"])
    for path in (store.root / DERIVED).iterdir():
        assert SECRET.encode() not in path.read_bytes()
    assert set(names(store, whole=False)) == {"a", "b", "c", SECRET}


def test_a_name_of_any_bytes_is_known(store: Store) -> None:
    """It cannot be written down as text, and is looked at every time."""
    path = os.fsdecode(b"user/\xff.md")
    write_bytes(store, path, b"x")

    assert [head.path for head in known(store)][-1] == path
    assert [head.path for head in known(store, whole=False)][-1] == path


def test_what_is_no_readable_note_is_known_by_its_file(store: Store) -> None:
    """A broken header, a link and a folder; another folder's files and hidden ones are no notes."""
    write_bytes(store, "user/broken.md", b"---\nno key\n---\n")
    (store.root / "user/link.md").symlink_to(store.root / "user/a.md")
    (store.root / "user/folder.md").mkdir()
    write_bytes(store, "user/.hidden.md", b"x")
    write_bytes(store, "diary/d.md", b"x")
    write_bytes(store, "archive/user/old.md", b"x")
    (store.root / "episode").symlink_to(store.root / "user")

    found = {head.name: head.readable for head in known(store)}

    assert found == {"a": True, "b": True, "broken": False, "link": False, "folder": False}


# ---------------------------------------------------------------- the digits


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


def test_a_note_of_very_many_words_can_be_asked_for(store: Store) -> None:
    """A database takes only so many parameters."""
    with Heads(store) as found:
        found.refresh()

        assert found.resembling((), [f"{n:08x}" for n in range(60_000)], 0, 10**6) == []
