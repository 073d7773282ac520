"""Forgetting takes all that tells a thing, in one commit, and undo gives the notes back."""

from __future__ import annotations

import pytest
from store_builders import git, make_store, note_bytes, write_bytes

from memoryd.memory import forget as module
from memoryd.memory import notes, seams
from memoryd.memory.baseline import Baseline
from memoryd.memory.clock import instant_ms
from memoryd.memory.edits import commit_person_edits, require_not_held
from memoryd.memory.errors import StoreError, StoreHeld, UsageError
from memoryd.memory.facts import Relation
from memoryd.memory.forget import delete_note, forget, proposes, tells, told, with_versions
from memoryd.memory.home import Home
from memoryd.memory.notes import parse
from memoryd.memory.proposals import FactProposal, MergeProposal, Proposal
from memoryd.memory.store import Store
from memoryd.memory.testing import FakeClock
from memoryd.memory.tombstones import Forgotten, Tombstones
from memoryd.memory.undo import undo


def with_history(home: Home) -> Store:
    """A store whose note ``c`` superseded ``b``, which superseded ``a``; ``z`` stands alone."""
    store = make_store(home, c="Port 3", z="Other")
    for name, by, body in (("a", "b", "Port 1"), ("b", "c", "Port 2")):
        data = notes.update(note_bytes(f"user/{name}.md", body), superseded_by=by)
        write_bytes(store, f"archive/user/{name}.md", data)
    Baseline(store).commit(["archive/user/a.md", "archive/user/b.md"], "Older versions")
    return store


def named(store: Store, name: str) -> notes.Note:
    """The one note of that name."""
    return next(note for note in store.notes() if note.name == name)


def test_the_versions_of_a_note_are_found_through_each_other(home: Home) -> None:
    """Whichever end names the other; a note of its own is not one."""
    store = with_history(home)

    found = with_versions(store.notes(), [named(store, "c")])

    assert sorted(note.name for note in found) == ["a", "b", "c"]


def test_links_in_a_circle_end(home: Home) -> None:
    """A person may write what they like into a header."""
    store = with_history(home)
    data = notes.update(note_bytes("user/c.md", "Port 3"), supersedes=("a", "b", "c"))
    write_bytes(store, "user/c.md", data)
    looped = notes.update(note_bytes("user/a.md", "Port 1"), superseded_by="a", supersedes=("c",))
    write_bytes(store, "archive/user/a.md", looped)

    assert len(with_versions(store.notes(), [named(store, "c")])) == 3


def test_one_commit_takes_all_and_undo_brings_all_back(home: Home, clock: FakeClock) -> None:
    """The tombstones go with it; the commit is the person's."""
    store = with_history(home)
    before = store.notes()
    paths = [note.path for note in with_versions(store.notes(), [named(store, "c")])]

    done = forget(store, paths, clock=clock)

    assert [note.name for note in store.notes()] == ["z"]
    assert git(store, "rev-list", "--count", "HEAD") == "3"
    assert git(store, "status", "--porcelain") == ""
    assert Baseline(store).log(1)[0].author == "person"
    assert Tombstones.of(store).forgets("x", "Port 1")

    undo(home, done.id, clock=clock)

    assert store.notes() == before
    assert not Tombstones.of(store).forgets("x", "Port 1")


def test_words_that_no_note_holds_leave_a_tombstone(home: Home, clock: FakeClock) -> None:
    """With or without a note; nothing of them is on disk."""
    store = make_store(home)

    forget(store, [], clock=clock, said=[Forgotten("", ("Never learn this.",))])

    assert Tombstones.of(store).forgets("x", "never learn this")
    assert "learn" not in (store.root / "tombstones.jsonl").read_text()


def test_a_note_that_is_gone_meanwhile_is_an_error_and_nothing_is_written(
    home: Home, clock: FakeClock
) -> None:
    """The others stay too."""
    store = make_store(home, a="One")

    with pytest.raises(UsageError):
        forget(store, ["user/a.md", "user/b.md"], clock=clock)

    assert [note.name for note in store.notes()] == ["a"]
    assert git(store, "rev-list", "--count", "HEAD") == "1"


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("port 3", True),
        ("3 PORT", True),
        ("Pört", True),
        ("por", True),
        ("port 4", False),
        ("", False),
        ("  ", False),
    ],
)
def test_what_a_note_tells(text: str, holds: bool) -> None:
    """Its words in a row, a part of one, or all of them in any order; case is nothing."""
    note = parse(note_bytes("user/c.md", "The port is\nPort 3."), "user/c.md")

    assert tells(note, text) is holds
    assert told("The port is Port 3.", text) is holds


def test_a_note_is_asked_about_as_a_whole(home: Home) -> None:
    """A line of it, its name or words of its message are enough, whoever asks."""
    gone = Forgotten("tabs", ("Use tabs.",), (("m1", "I want tabs and nothing else ever"),))
    tombstones = Tombstones.of(make_store(home)).add(gone, now_ms=1_000)

    def forgets(name: str, body: str, *spans: tuple[str, str], said: int | None = None) -> bool:
        note = parse(note_bytes(f"user/{name}.md", body), f"user/{name}.md")
        return tombstones.forgets_note(note, spans, newest_user_message_ms=said)

    assert forgets("x", "First.\n- use tabs")
    assert forgets("tabs", "Other")
    assert forgets("x", "Other", ("m1", "tabs and nothing else"))
    assert not forgets("x", "Other", ("m1", "nothing else matters at all"))
    assert not forgets("x", "Other", ("m2", "tabs and nothing else"))
    assert not forgets("tabs", "Use tabs.", said=1_001)


def test_a_save_while_the_version_before_is_kept_stays(
    home: Home, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is an error, and neither a file nor a tombstone has changed."""
    store = make_store(home, a="One", b="Two")
    note = store.root / "user/b.md"
    note.write_text(note.read_text() + "FIRST\n")
    keep = module.commit_theirs

    def keep_and_save(*values: object) -> str:
        made = keep(*values)  # type: ignore[arg-type]
        note.write_text(note.read_text() + "SECOND\n")
        return made

    monkeypatch.setattr(module, "commit_theirs", keep_and_save)
    with pytest.raises(StoreError):
        forget(store, ["user/a.md", "user/b.md"], clock=clock)

    assert note.read_text().endswith("FIRST\nSECOND\n")
    assert [note.name for note in store.notes()] == ["a", "b"]
    assert not (store.root / "tombstones.jsonl").exists()


def test_a_save_while_the_notes_go_brings_all_back(
    home: Home, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that were gone already and the tombstones too."""
    store = make_store(home, a="One", b="Two")
    note = store.root / "user/b.md"
    monkeypatch.setattr(seams, "hook", lambda _: note.write_text("theirs"))

    with pytest.raises(StoreError):
        forget(store, ["user/a.md", "user/b.md"], clock=clock)

    assert note.read_text() == "theirs"
    assert (store.root / "user/a.md").exists()
    assert not (store.root / "tombstones.jsonl").exists()


def test_a_version_with_a_secret_goes_only_anyway(home: Home, clock: FakeClock) -> None:
    """No history may hold it, so no undo could give it back; what comes back says so."""
    store = make_store(home, a="One")
    note = store.root / "user/a.md"
    note.write_text(note.read_text() + "Precious.\npassword: " + "sk-" + "ant-api03-" + "Q7w9" * 12)
    write_bytes(store, "user/own.md", note.read_bytes())

    for path in ("user/a.md", "user/own.md"):
        with pytest.raises(UsageError, match=path) as refused:
            forget(store, [path], clock=clock)
        assert "--anyway" in refused.value.hint
        with pytest.raises(UsageError, match=path):
            delete_note(home, store, path, clock=clock)
    assert len(store.notes()) == 2
    assert git(store, "rev-list", "--count", "HEAD") == "1"

    done = forget(store, ["user/a.md"], clock=clock, anyway=True)
    deleted = delete_note(home, store, "user/own.md", clock=clock, anyway=True)

    assert store.notes() == []
    assert (done.lost, deleted.lost) == (("user/a.md",), True)
    assert "Precious" not in git(store, "log", "-p")


def test_unreadable_tombstones_refuse_before_anything_goes(home: Home, clock: FakeClock) -> None:
    """What was forgotten before could not be added to."""
    store = make_store(home, a="One")
    (store.root / "tombstones.jsonl").mkdir()

    with pytest.raises(StoreError):
        forget(store, ["user/a.md"], clock=clock)

    assert [note.name for note in store.notes()] == ["a"]


def test_a_clock_that_went_back_dates_no_tombstone_before_what_was_said(
    home: Home, clock: FakeClock
) -> None:
    """It is after the newest commit, the newest tombstone, and what the note and session say."""
    said = "2026-01-05T09:00:00Z"
    at = instant_ms(said) or 0
    store = make_store(home)
    Baseline(store).commit(
        [
            write_bytes(
                store, "user/a.md", notes.update(note_bytes("user/a.md", "A"), valid_from=said)
            )
        ],
        "Start",
        now_ms=at - 3600_000,
    )
    clock.step(-30 * 86400)

    forget(store, ["user/a.md"], clock=clock)
    first = Tombstones.of(store)
    forget(store, [], clock=clock, said=[Forgotten("", ("B",))])
    forget(store, [], clock=clock, said=[Forgotten("", ("C",))], heard_ms=at + 5_000)

    assert first.forgets("a", "x", newest_user_message_ms=at)
    assert not first.forgets("a", "x", newest_user_message_ms=at + 1_000)
    assert Tombstones.of(store).forgets("", "B", newest_user_message_ms=at)
    assert Tombstones.of(store).forgets("", "C", newest_user_message_ms=at + 5_000)


def test_a_date_that_a_person_made_up_moves_no_tombstone(home: Home, clock: FakeClock) -> None:
    """Else nothing could be said again before it."""
    store = make_store(home)
    for name, date in (("a", "2999-01-01T00:00:00Z"), ("b", "soon")):
        data = note_bytes(f"user/{name}.md", name).replace(
            b"type: user", f"type: user\nvalid_from: {date}".encode()
        )
        Baseline(store).commit(
            [write_bytes(store, f"user/{name}.md", data)], "Start", now_ms=clock.now_ms()
        )

    forget(store, ["user/a.md", "user/b.md"], clock=clock)

    assert not Tombstones.of(store).forgets("a", "x", newest_user_message_ms=clock.now_ms() + 1_000)


@pytest.mark.parametrize("files", [0, 1, 3, 5])
def test_a_crash_between_the_tombstones_and_the_files_tells_what_was_meant(
    home: Home, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, files: int
) -> None:
    """After any file: what is gone was forgotten and holds no store; no word of it is lost."""
    names = "abcdefg"
    store = make_store(home, **{name: name * 9 for name in names})
    left = iter(range(files))

    def die(reached: str) -> None:
        if reached == "store.replaced" and next(left, None) is None:
            raise KeyboardInterrupt

    monkeypatch.setattr(seams, "hook", die)
    with pytest.raises(KeyboardInterrupt):
        paths = [f"user/{name}.md" for name in names[:-1]]
        forget(store, paths, clock=clock, said=[Forgotten("", ("Never say zebra.",))])
    monkeypatch.undo()
    clock.advance(10**9)
    require_not_held(store, now_ms=clock.now_ms())
    outcome = commit_person_edits(store, now_ms=clock.now_ms())

    assert len(outcome.forgotten) == files
    tombstones = Tombstones.of(store)
    assert all(tombstones.forgets(name, "x") for name in names[:-1])
    assert tombstones.forgets("", "Never say zebra.")
    assert not tombstones.forgets("g", "g" * 9)


def test_a_tombstone_from_before_makes_no_accident_a_wish(home: Home, clock: FakeClock) -> None:
    """The notes were written again since: that they are all gone at once is held."""
    store = make_store(home, a="One", b="Two", c="Three")
    paths = [f"user/{name}.md" for name in "abc"]
    forget(store, paths, clock=clock)
    kept = store.read("tombstones.jsonl") or b""
    clock.advance(3600)
    for name in "abc":
        write_bytes(store, f"user/{name}.md", note_bytes(f"user/{name}.md", "New"))
    Baseline(store).commit(paths, "Again", now_ms=clock.now_ms() + 10**12)
    write_bytes(store, "tombstones.jsonl", kept)
    for path in paths:
        (store.root / path).unlink()

    with pytest.raises(StoreHeld):
        commit_person_edits(store, now_ms=clock.now_ms() + 10**12)


MERGE = MergeProposal("user/a.md", ("user/b.md",), "About", "One.\nThe port of Zed is 8443.")


@pytest.mark.parametrize(
    ("proposal", "path", "body", "rests"),
    [
        (MERGE, "user/a.md", "Other", True),
        (MERGE, "user/b.md", "Other", True),
        (MERGE, "user/c.md", "Other\n\nThe port of Zed is 8443.", True),
        (MERGE, "user/c.md", "One.", False),
        (FactProposal("The port of Zed is 8443 now.", "project", None, Relation("new"), None),
         "user/c.md", "The port of Zed is 8443", True),
    ],
)  # fmt: skip
def test_what_a_proposal_rests_on(proposal: Proposal, path: str, body: str, rests: bool) -> None:
    """The notes it merges, and the own words of any note; not a line that many share."""
    note = parse(note_bytes(path, body), path)

    assert proposes(proposal, [note]) is rests
    assert proposes(proposal, [], ["zed 8443"])
    assert not proposes(proposal, [], ["zebra"])
