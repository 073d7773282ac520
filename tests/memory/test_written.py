"""A new note that a plan wrote before it died, and that a person took away, stays away."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from store_builders import make_store, note_bytes, operation, plan, write_bytes, write_note

from memoryd.memory import seams
from memoryd.memory.apply import apply_plan, take_back
from memoryd.memory.baseline import Baseline
from memoryd.memory.errors import DiskFull, StoreError
from memoryd.memory.files import leftovers, sha256
from memoryd.memory.home import Home
from memoryd.memory.notes import update
from memoryd.memory.plan import Plan
from memoryd.memory.store import Store
from memoryd.memory.testing import FakeClock
from memoryd.memory.written import Written

OLD = note_bytes("user/old.md", "Old words")
NEW, COPY, GONE = "user/new.md", "archive/user/old.md", "user/old.md"


class Crash(Exception):
    """The process ends here."""


def crashed(
    home: Home,
    made: Plan,
    clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
    after: int,
    point: str = "store.replaced",
) -> None:
    """Apply ``made`` and die after its ``after``-th file."""
    left = [after]

    def hook(reached: str) -> None:
        left[0] -= reached == point
        if not left[0]:
            raise Crash

    with monkeypatch.context() as patched:
        patched.setattr(seams, "hook", hook)
        with pytest.raises(Crash):
            apply_plan(home, made, clock=clock)


def supersede(clock: FakeClock) -> Plan:
    """A plan whose one candidate is a new note, the copy of the old one, and its removal."""
    kept = update(OLD, valid_until="2026-01-05T09:00:00Z", superseded_by="new")
    copy = replace(operation(COPY, ""), content=kept.decode(), after=sha256(kept))
    made = [operation(NEW, "New words"), copy, operation(GONE, None, before=OLD)]
    one = plan(*(replace(each, candidate="supersede") for each in made))
    return replace(one, at_ms=clock.now_ms())


def removed(store: Store) -> None:
    """A person deletes the new note."""
    (store.root / NEW).unlink()


def moved(store: Store) -> None:
    """A person moves the new note."""
    (store.root / NEW).rename(store.root / "user/elsewhere.md")


def renamed(store: Store) -> None:
    """A program renames the new note, and says so in the baseline."""
    data = (store.root / NEW).read_bytes()
    (store.root / NEW).unlink()
    path = "user/renamed.md"
    (store.root / path).write_bytes(update(data, name="renamed"))
    Baseline(store).commit([path], "Rename", author="person")


def live(store: Store) -> list[str]:
    """The paths of the current notes."""
    return [note.path for note in store.notes() if not note.archived]


@pytest.mark.parametrize(
    ("act", "left"),
    [(removed, []), (moved, ["user/elsewhere.md"]), (renamed, ["user/renamed.md"])],
)
def test_a_new_note_that_a_person_took_away_before_its_commit_is_not_written_again(
    home: Home,
    clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
    act: Callable[[Store], None],
    left: list[str],
) -> None:
    """Nor does it exist twice; the second call says that it was changed."""
    store = make_store(home)
    made = plan(operation(NEW, "New words"), operation("user/other.md", "Other words"))
    crashed(home, made, clock, monkeypatch, 1)
    act(store)

    applied = apply_plan(home, made, clock=clock)
    again = apply_plan(home, made, clock=clock)

    assert applied.changed == (f"candidate of {NEW}",) == again.changed
    assert live(store) == sorted([*left, "user/other.md"])


def test_a_new_note_that_was_not_yet_written_is(
    home: Home, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only what was put there can have been taken away."""
    store = make_store(home)
    made = plan(operation(NEW, "New words"), operation("user/other.md", "Other words"))
    crashed(home, made, clock, monkeypatch, 1)

    assert apply_plan(home, made, clock=clock).changed == ()
    assert live(store) == [NEW, "user/other.md"]


def test_a_path_that_was_made_and_taken_away_since_the_plan_is_not_written(
    home: Home, clock: FakeClock
) -> None:
    """Its last commit says that somebody removed a note of that name; an earlier one does not."""
    store = make_store(home)
    baseline = Baseline(store)
    clock.advance(60)
    made = replace(plan(operation(NEW, "New words")), at_ms=clock.now_ms())
    early = replace(made, job="early", slice=replace(plan().slice, session="s2"))  # type: ignore[type-var]
    clock.advance(60)
    baseline.commit([write_note(store, NEW, "Mine")], "Mine", now_ms=clock.now_ms())
    (store.root / NEW).unlink()
    baseline.commit([NEW], "Gone", now_ms=clock.now_ms())

    assert apply_plan(home, made, clock=clock).changed == (f"candidate of {NEW}",)
    assert live(store) == []

    clock.advance(60)
    later = replace(early, at_ms=clock.now_ms())
    assert apply_plan(home, later, clock=clock).changed == ()
    assert live(store) == [NEW]


@pytest.mark.parametrize("act", [removed, moved])
@pytest.mark.parametrize("noted", [True, False])
def test_a_superseded_note_comes_back_when_its_successor_was_taken_away(
    home: Home,
    clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
    act: Callable[[Store], None],
    noted: bool,
) -> None:
    """Before its copy in the archive goes: its words are somewhere at every moment."""
    store = make_store(home, old="Old words")
    made = supersede(clock)
    crashed(home, made, clock, monkeypatch, 3)
    act(store)
    if not noted:  # as a process left it that knew no such notes
        (store.git_dir / "memoryd-written").unlink()

    def hook(reached: str) -> None:
        assert store.read(GONE) == OLD or store.read(COPY) is not None

    monkeypatch.setattr(seams, "hook", hook)
    applied = apply_plan(home, made, clock=clock)

    assert applied.changed == ("supersede",)
    assert store.read(GONE) == OLD
    assert store.read(COPY) is None
    assert store.read(NEW) is None


@pytest.mark.parametrize("after", [1, 2])
def test_a_crash_while_a_superseded_note_is_brought_back_ends_the_same(
    home: Home, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    """The next call goes on with that, and never loses the words."""
    store = make_store(home, old="Old words")
    made = supersede(clock)
    crashed(home, made, clock, monkeypatch, 3)
    removed(store)
    crashed(home, made, clock, monkeypatch, after)

    applied = apply_plan(home, made, clock=clock)

    assert applied.changed == ("supersede",)
    assert live(store) == [GONE]
    assert store.read(COPY) is None


@pytest.mark.parametrize("end", ["committed", "committed before", "given up"])
def test_nothing_is_kept_of_a_plan_that_is_over(
    home: Home, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    """Nor is what another plan noted lost."""
    store = make_store(home)
    made, other = plan(operation(NEW, "New words")), plan(last=4)
    Written.of(store, other).note("user/theirs.md")
    if end == "given up":
        crashed(home, made, clock, monkeypatch, 1)
        take_back(home, made, clock=clock)
    elif end == "committed before":
        crashed(home, made, clock, monkeypatch, 1, "store.committed")
    if end != "given up":
        apply_plan(home, made, clock=clock)

    assert Written.of(store, made).paths == set()
    assert Written.of(store, other).paths == {"user/theirs.md"}


def test_a_line_left_in_halves_hides_no_other(home: Home) -> None:
    """A power cut may end a line anywhere."""
    store = make_store(home, old="Old words")
    made = plan()
    Written.of(store, made).note("user/a.md")
    with (store.git_dir / "memoryd-written").open("ab") as file:
        file.write(b"\n\xff\x00half")

    Written.of(store, made).note("user/b.md")

    assert Written.of(store, made).paths == {"user/a.md", "user/b.md"}


def test_what_cannot_be_noted_is_not_written(home: Home, clock: FakeClock) -> None:
    """A folder or a link in its place, say: an error that names it, and no note."""
    store = make_store(home, old="Old words")
    (store.git_dir / "memoryd-written").mkdir()

    with pytest.raises(StoreError) as raised:
        apply_plan(home, plan(operation(NEW, "New words")), clock=clock)

    assert not isinstance(raised.value, DiskFull)
    assert "memoryd-written" in raised.value.message
    assert live(store) == [GONE]


def test_a_superseded_note_comes_back_when_its_copy_was_taken_away(
    home: Home, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The note was removed by the plan: its words stand nowhere else then."""
    store = make_store(home, old="Old words")
    made = supersede(clock)
    crashed(home, made, clock, monkeypatch, 3)
    (store.root / COPY).unlink()

    assert apply_plan(home, made, clock=clock).changed == ("supersede",)
    assert live(store) == [GONE]


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_a_note_that_had_not_got_its_name_when_the_process_died_is_written(
    home: Home, clock: FakeClock, share: float
) -> None:
    """Nobody can have taken it away: what was begun is there under a temporary name."""
    store = make_store(home, old="Old words")
    made = plan(operation(NEW, "New words"))
    Written.of(store, made).note(NEW)
    whole = note_bytes(NEW, "New words")
    left = write_bytes(store, "user/.new.md.0123456789ab.tmp", whole[: int(len(whole) * share)])

    applied = apply_plan(home, made, clock=clock)

    assert applied.fates() == {}
    assert store.read(NEW) == whole
    assert not (store.root / left).exists()


def test_what_a_process_that_died_left_of_somebody_elses_words_stays(
    home: Home, clock: FakeClock
) -> None:
    """It tells nothing of the plan's note, which a person took away, and may be all they have."""
    store = make_store(home, old="Old words")
    made = plan(operation(NEW, "New words"))
    Written.of(store, made).note(NEW)
    left = write_bytes(store, "user/.new.md.0123456789ab.tmp", note_bytes(NEW, "Theirs"))

    apply_plan(home, made, clock=clock)

    assert live(store) == [GONE]
    assert (store.root / left).read_bytes() == note_bytes(NEW, "Theirs")


def test_a_note_is_noted_when_its_bytes_are_on_disk_and_before_it_has_its_name(
    home: Home, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that there is no moment in which a process may die and the note look like taken away."""
    store = make_store(home, old="Old words")
    seen: list[tuple[list[bytes], bool]] = []
    note = Written.note

    def told(self: Written, path: str) -> None:
        begun = [each.read_bytes() for each in leftovers(store.root / path)]
        seen.append((begun, (store.root / path).exists()))
        note(self, path)

    monkeypatch.setattr(Written, "note", told)
    apply_plan(home, plan(operation(NEW, "New words")), clock=clock)

    assert seen[0] == ([note_bytes(NEW, "New words")], False)


@pytest.mark.parametrize("point", ["written.noted", "file.synced"])
def test_a_fault_between_the_line_and_the_file_costs_no_fact(
    home: Home, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    """A full disk may refuse the name: that is no person who took the file away."""
    store = make_store(home)
    made = replace(plan(operation(NEW, "New words")), at_ms=clock.now_ms())

    crashed(home, made, clock, monkeypatch, 1, point)
    applied = apply_plan(home, made, clock=clock)

    assert applied.changed == ()
    assert store.read(NEW) is not None
    assert leftovers(store.root / NEW) == []


def test_what_a_process_set_aside_when_it_died_goes_with_the_plan(
    home: Home, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A note that is to go is under another name for a moment; it is no file of memory there."""
    store = make_store(home)
    write_bytes(store, GONE, OLD)
    Baseline(store).commit([GONE], "Remember", now_ms=clock.now_ms())
    made = supersede(clock)
    crashed(home, made, clock, monkeypatch, 2)
    (store.root / GONE).rename(store.root / "user" / ".old.md.0123456789ab.tmp")

    applied = apply_plan(home, made, clock=clock)

    assert applied.changed == ()
    assert leftovers(store.root / GONE) == []
    assert Baseline(store).changed_paths() == []


def test_a_fault_while_a_note_is_set_aside_puts_it_back(
    home: Home, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is left under a name that nobody looks for."""
    store = make_store(home)
    write_bytes(store, GONE, OLD)

    def hook(reached: str) -> None:
        if reached == "file.set-aside":
            raise Crash

    monkeypatch.setattr(seams, "hook", hook)
    with pytest.raises(Crash):
        store.remove(GONE, found=sha256(OLD))

    assert store.read(GONE) == OLD
    assert leftovers(store.root / GONE) == []
