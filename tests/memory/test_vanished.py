"""A note that is not at its place any more was moved, kept elsewhere, or deleted: told apart."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from store_builders import age, git, make_store, note_bytes, write_bytes, write_note

from memoryd.memory.baseline import Baseline
from memoryd.memory.conflicts import conflict_of
from memoryd.memory.edits import (
    EditsOutcome,
    commit_person_edits,
    put_back,
    require_not_held,
)
from memoryd.memory.errors import StoreHeld
from memoryd.memory.home import Home
from memoryd.memory.store import TOMBSTONES, Store
from memoryd.memory.testing import FakeClock
from memoryd.memory.tombstones import Tombstones
from memoryd.memory.vanished import Moved

BODY = "Use tabs.\nNever spaces.\nFour wide."


def look(store: Store, clock: FakeClock, **more: bool) -> EditsOutcome:
    """Commit what is still at the clock's time."""
    return commit_person_edits(store, now_ms=clock.now_ms(), **more)


def old(store: Store, clock: FakeClock, *paths: str) -> None:
    """Make these files and folders look left alone for more than a minute."""
    for path in paths or ("user",):
        age(store, path, clock, 61)


def forgets(store: Store, name: str) -> bool:
    """Whether the store has a tombstone of this name."""
    return Tombstones.of(store).forgets(name, "x")


def renames(store: Store) -> list[str]:
    """What git itself takes for renames in the last commit."""
    lines = git(store, "show", "-M50%", "--name-status", "--format=", "HEAD").splitlines()
    return [line for line in lines if line.startswith("R")]


# -- moves ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "to",
    [
        "user/A.md",
        "user/renamed.md",
        "feedback/a.md",
        "archive/user/a.md",
        "archive/feedback/other.md",
    ],
)
def test_a_move_in_the_store_is_a_move_in_its_history(
    home: Home, clock: FakeClock, to: str
) -> None:
    """A change of case, another name, another type, the archive: one commit, no tombstone."""
    store = make_store(home, a=BODY, b="Two")
    (store.root / to).parent.mkdir(parents=True, exist_ok=True)
    (store.root / "user/a.md").rename(store.root / to)
    old(store, clock, "user", to)

    outcome = look(store, clock)

    assert outcome.moved == (Moved("user/a.md", to),)
    assert (outcome.edited, outcome.forgotten) == ((to,), ())
    assert store.read(TOMBSTONES) is None
    assert len(renames(store)) == 1
    assert Baseline(store).changed_paths() == []


def test_a_note_that_is_renamed_and_edited_at_once_was_moved(home: Home, clock: FakeClock) -> None:
    """Most of its words are in the new file; one that shares little with it was deleted."""
    store = make_store(home, a=BODY, b="Two")
    (store.root / "user/a.md").unlink()
    write_note(store, "feedback/tabs.md", BODY + "\nIn Python too.")
    (store.root / "user/b.md").unlink()
    write_note(store, "user/three.md", "Something else altogether")
    old(store, clock, "user", "feedback/tabs.md", "user/three.md")

    outcome = look(store, clock)

    assert outcome.moved == (Moved("user/a.md", "feedback/tabs.md"),)
    assert outcome.moved[0].names == ("user/a", "feedback/tabs")
    assert outcome.forgotten == ("user/b.md",)
    assert forgets(store, "b") and not forgets(store, "a")


def test_a_move_waits_for_both_of_its_ends(home: Home, clock: FakeClock) -> None:
    """Until the file in the new place is still, the old one is neither moved nor deleted."""
    store = make_store(home, a=BODY)
    (store.root / "user/a.md").rename(store.root / "user/z.md")
    age(store, "user/z.md", clock, 5)
    old(store, clock, "user")

    assert look(store, clock) == EditsOutcome(waiting=("user/a.md", "user/z.md"))
    clock.advance(56)

    assert look(store, clock).moved == (Moved("user/a.md", "user/z.md"),)


@pytest.mark.parametrize("words", [BODY, BODY + "\nIn Python too."])
def test_a_move_into_another_projects_store_says_which(
    home: Home, clock: FakeClock, words: str
) -> None:
    """With a word more in it, too; a note of the same name and other words there is no move."""
    store, other = make_store(home, a=BODY, b="Two"), make_store(home, "other")
    (store.root / "user/a.md").unlink()
    write_note(other, "feedback/a.md", words)
    (store.root / "user/b.md").unlink()
    write_note(other, "user/b.md", "What the other project says of b")
    old(store, clock)

    outcome = look(store, clock)

    assert outcome.moved == (Moved("user/a.md", "feedback/a.md", "other"),)
    assert outcome.forgotten == ("user/b.md",)
    assert not forgets(store, "a")


def test_a_note_parked_beside_the_notes_is_not_forgotten(home: Home, clock: FakeClock) -> None:
    """In a folder of the person's own it is no memory any more, and no wish to forget either."""
    store = make_store(home, a=BODY, b="Two")
    (store.root / "drafts").mkdir()
    (store.root / "user/a.md").rename(store.root / "drafts/a.md")
    old(store, clock)

    outcome = look(store, clock)

    assert outcome.moved == (Moved("user/a.md", "drafts/a.md"),)
    assert not forgets(store, "a")
    assert set(Baseline(store).files()) == {"user/b.md"}


def test_a_project_folder_that_is_none_hinders_no_deletion(home: Home, clock: FakeClock) -> None:
    """A name too long for a key, or a store whose folder cannot be listed, lies beside."""
    store = make_store(home, a=BODY, b="Two")
    (home.projects / ("x" * 250) / "memory").mkdir(parents=True)
    (store.root / "user/a.md").unlink()
    old(store, clock)

    assert look(store, clock).forgotten == ("user/a.md",)


def test_a_rename_of_case_is_seen_where_case_does_not_count(
    home: Home, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There git sees no change, and the old name still opens the file: the folder's list decides.

    Simulated: such a file system needs a volume of its own.
    """
    store = make_store(home, Foo=BODY)
    (store.root / "user/Foo.md").rename(store.root / "user/foo.md")
    old(store, clock, "user", "user/foo.md")
    read = Store.read

    def reads(self: Store, path: str) -> bytes | None:
        return read(self, "user/foo.md" if path == "user/Foo.md" else path)

    monkeypatch.setattr(Baseline, "changed_paths", lambda self: [])
    monkeypatch.setattr(Store, "read", reads)
    outcome = look(store, clock)

    assert outcome.moved == (Moved("user/Foo.md", "user/foo.md"),)
    assert set(Baseline(store).files()) == {"user/foo.md"}
    assert read(store, TOMBSTONES) is None


# -- gone and back -------------------------------------------------------------------------------


@pytest.mark.parametrize("back", [True, False])
def test_a_file_put_back_within_the_minute_never_left(
    home: Home, clock: FakeClock, back: bool
) -> None:
    """After it, a tombstone stands until the file is there again."""
    store = make_store(home, a=BODY, b="Two")
    data = (store.root / "user/a.md").read_bytes()
    (store.root / "user/a.md").unlink()
    age(store, "user", clock, 1)
    assert look(store, clock).waiting == ("user/a.md",)
    if not back:
        clock.advance(61)
        look(store, clock)
        assert forgets(store, "a")

    write_bytes(store, "user/a.md", data)
    old(store, clock, "user", "user/a.md")
    outcome = look(store, clock)

    assert (outcome == EditsOutcome()) is back
    assert not forgets(store, "a")
    assert Baseline(store).changed_paths() == []


@pytest.mark.parametrize("folder", [".", "..", "../.."])
def test_a_folder_that_is_away_is_held_and_not_made_anew(
    home: Home, clock: FakeClock, folder: str
) -> None:
    """The store's, its project's or ``projects`` itself: what comes back finds its place free."""
    store = make_store(home, a=BODY)
    place = Path(os.path.normpath(store.root / folder))
    place.rename(home.root / "away")

    with pytest.raises(StoreHeld, match="vanished with its 1 notes"):
        look(store, clock)
    with pytest.raises(StoreHeld):
        require_not_held(store, now_ms=clock.now_ms())
    assert not place.exists()
    (home.root / "away").rename(place)

    assert look(store, clock) == EditsOutcome()


def test_a_note_that_became_empty_is_put_back_too(home: Home) -> None:
    """A cloud drive leaves a placeholder of no bytes."""
    store = make_store(home, a="A", b="B")
    before = store.read("user/a.md")
    (store.root / "user/a.md").write_bytes(b"")

    assert put_back(store) == ("user/a.md",)
    assert store.read("user/a.md") == before


def test_a_folder_that_is_away_can_be_put_back_or_let_go(home: Home, clock: FakeClock) -> None:
    """By a person's word, as any mass disappearance."""
    store = make_store(home, a=BODY)
    store.root.rename(home.root / "away")
    assert put_back(store) == ("user/a.md",)
    assert look(store, clock) == EditsOutcome()

    store.root.rename(home.root / "away again")
    (store.root / "..").resolve()
    outcome = commit_person_edits(store, now_ms=clock.now_ms() + 10**9, accept_vanished=True)

    assert outcome.forgotten == ("user/a.md",)
    assert forgets(store, "a")


def test_a_store_that_never_was_is_not_held(home: Home, clock: FakeClock) -> None:
    """Nor one whose history holds no note."""
    empty = make_store(home, "empty")
    (empty.root / ".git").unlink()
    empty.root.rmdir()

    assert look(empty, clock) == EditsOutcome()
    require_not_held(empty, now_ms=clock.now_ms())


def test_a_whole_folder_renamed_is_no_disappearance(home: Home, clock: FakeClock) -> None:
    """Its notes are where another type is: 30 of them, moved."""
    store = make_store(home, **{f"n{number:02}": f"Number {number}" for number in range(30)})
    (store.root / "user").rename(store.root / "feedback")
    require_not_held(store, now_ms=clock.now_ms())
    old(store, clock, ".", *(f"feedback/n{number:02}.md" for number in range(30)))

    outcome = look(store, clock)

    assert len(outcome.moved) == 30
    assert outcome.forgotten == ()


def test_a_store_is_held_by_many_notes_that_became_empty(home: Home, clock: FakeClock) -> None:
    """As a cloud drive leaves placeholders and a full disk cut files."""
    store = make_store(home, a="A", b="B", c="C", d="D")
    for name, data in (("a", b""), ("b", b"\0" * 40), ("c", b"")):
        write_bytes(store, f"user/{name}.md", data)
        old(store, clock, f"user/{name}.md")

    with pytest.raises(StoreHeld, match="3 of 4"):
        look(store, clock)


# -- an old commit checked out -------------------------------------------------------------------


def test_an_old_commit_checked_out_over_the_store_is_the_persons_edit(
    home: Home, clock: FakeClock
) -> None:
    """What came back loses its tombstone; what was forgotten since and is not back keeps it."""
    store = make_store(home, a=BODY, b="Two", c="Three", d="Four")
    first = Baseline(store).head()
    assert first is not None
    write_note(store, "user/a.md", "Now: use spaces.")
    old(store, clock, "user/a.md", write_note(store, "user/late.md", "Late and forgotten"))
    look(store, clock)
    for name in ("b", "late"):
        (store.root / f"user/{name}.md").unlink()
    old(store, clock)
    look(store, clock)
    assert forgets(store, "b") and forgets(store, "late")

    git(store, "checkout", "-q", first, "--", ".")
    assert look(store, clock).edited == ("user/a.md", "user/b.md")

    assert (store.root / "user/a.md").read_bytes() == note_bytes("user/a.md", BODY)
    assert not forgets(store, "b") and forgets(store, "late")
    assert Baseline(store).log(1)[0].author == "person"
    assert git(store, "status", "--porcelain") == ""


def test_tombstones_that_an_old_commit_brings_back_forget_nothing_less(
    home: Home, clock: FakeClock
) -> None:
    """The older list comes with other files; a list that a person shortens alone is theirs."""
    store = make_store(home, a=BODY, b="Two", c="Three", d="Four")
    for name in ("a", "b"):
        (store.root / f"user/{name}.md").unlink()
        old(store, clock)
        look(store, clock)
    lines = (store.root / TOMBSTONES).read_bytes().splitlines(keepends=True)
    shorter = lines[0]

    write_bytes(store, TOMBSTONES, shorter)
    write_note(store, "user/c.md", "Three, as it was")
    old(store, clock, TOMBSTONES, "user/c.md")
    look(store, clock)
    assert forgets(store, "a") and forgets(store, "b")

    write_bytes(store, TOMBSTONES, shorter)
    old(store, clock, TOMBSTONES)
    look(store, clock)

    assert forgets(store, "a") and not forgets(store, "b")


# -- cloud drives --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "of"),
    [
        ("note (conflicted copy 2026-01-01).md", "note.md"),
        ("note (Ada's conflicted copy 2026-01-01).md", "note.md"),
        ("note (conflicted copy 2026-01-01 120000).md", "note.md"),
        ("note_conflict-20260101-120000.md", "note.md"),
        ("note.sync-conflict-20260101-120000-ABCDEFG.md", "note.md"),
        ("note.md", None),
        ("note (1).md", None),
        ("about (conflicted copy)s.md", None),
    ],
)
def test_conflicted_copies_are_known_by_their_names(name: str, of: str | None) -> None:
    """Those of the drives that say so; a number in brackets may be a person's own."""
    assert conflict_of(f"user/{name}") == (of and f"user/{of}")


def test_a_conflicted_copy_is_reported_and_left_beside_its_note(
    home: Home, clock: FakeClock
) -> None:
    """It is no second note: not committed, not in the index. Without the note it is one."""
    store = make_store(home, a="One")
    copy = "user/a (conflicted copy 2026-01-01).md"
    write_bytes(store, copy, note_bytes("user/a.md", "One, elsewhere"))
    old(store, clock, copy)

    assert look(store, clock) == EditsOutcome(unreadable=(copy,))
    assert [note.path for note in store.notes()] == ["user/a.md"]
    (said,) = store.unreadable()
    assert (said.path, "conflicted copy of user/a.md" in said.reason) == (copy, True)

    (store.root / "user/a.md").unlink()
    old(store, clock, "user")
    outcome = look(store, clock)

    assert (outcome.edited, outcome.forgotten) == ((copy,), ())
    assert outcome.moved == (Moved("user/a.md", copy),)


def test_a_note_that_the_drive_took_away_is_not_deleted(home: Home, clock: FakeClock) -> None:
    """Its placeholder stands beside; the note counts as unreadable until it is fetched."""
    store = make_store(home, a="One", b="Two")
    (store.root / "user/a.md").rename(store.root / "user/.a.md.icloud")
    old(store, clock)

    assert look(store, clock) == EditsOutcome(unreadable=("user/a.md",))


@pytest.mark.parametrize("at_ms", [0, 4_102_444_800_000, 1_000_000_000_000])
def test_a_file_is_new_when_it_came_whatever_time_it_carries(home: Home, at_ms: int) -> None:
    """1970, the year 2100, or when another computer saved it: the minute begins as it arrives.

    An empty file over a note is such a one: a placeholder, until it has stayed for a minute.
    """
    clock = FakeClock(time.time_ns() // 1_000_000)
    store = make_store(home, a="One", b="Two")
    write_bytes(store, "user/.coming", b"")
    os.utime(store.root / "user/.coming", (at_ms / 1000, at_ms / 1000))
    (store.root / "user/.coming").replace(store.root / "user/a.md")

    assert look(store, clock) == EditsOutcome(waiting=("user/a.md",))
    clock.advance(61)

    assert look(store, clock).edited == ("user/a.md",)


def _folder(place: Path) -> None:
    place.unlink()
    place.mkdir()


def _link(place: Path) -> None:
    place.unlink()
    place.symlink_to("/etc/hostname")


def _folder_link(place: Path) -> None:
    place.parent.rename(place.parent.with_name("elsewhere"))
    place.parent.symlink_to("elsewhere")


@pytest.mark.parametrize("replace", [_folder, _link, _folder_link])
def test_what_stands_in_a_notes_place_is_reported_and_left(
    home: Home, clock: FakeClock, replace: Callable[[Path], None]
) -> None:
    """A folder, a link, a link in the place of the folder of notes: no deletion, no edit."""
    store = make_store(home, a="One")
    replace(store.root / "user/a.md")

    assert look(store, clock) == EditsOutcome(unreadable=("user/a.md",))
    assert store.read(TOMBSTONES) is None
    require_not_held(store, now_ms=clock.now_ms())


def test_a_file_that_may_not_be_read_is_never_a_deletion(
    home: Home, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever runs the tests may read everything, so the system's refusal is played."""
    store = make_store(home, a="One", b="Two")
    write_note(store, "user/a.md", "One, changed and locked away")
    opens = os.open

    def refuses(path: Path, flags: int, *more: int, **most: int) -> int:
        if Path(path).name == "a.md":
            raise PermissionError(13, "Permission denied")
        return opens(path, flags, *more, **most)

    monkeypatch.setattr(os, "open", refuses)
    outcome = look(store, clock)

    assert outcome == EditsOutcome(unreadable=("user/a.md",))
    assert [each.path for each in store.unreadable()] == ["user/a.md"]


def test_what_a_person_puts_back_meanwhile_is_not_written_over(
    home: Home, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Theirs stands, and is not told to be put back."""
    store = make_store(home, a="One", b="Two")
    for name in "ab":
        (store.root / f"user/{name}.md").unlink()
    show = Baseline.show

    def show_late(self: Baseline, commit: str, path: str) -> bytes | None:
        found = show(self, commit, path)
        if path == "user/b.md":
            write_bytes(store, path, b"theirs")
        return found

    monkeypatch.setattr(Baseline, "show", show_late)

    assert put_back(store) == ("user/a.md",)
    assert store.read("user/b.md") == b"theirs"
