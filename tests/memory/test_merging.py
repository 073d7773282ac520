"""A merge that a person said yes to is decided on the store as it is by then."""

from __future__ import annotations

import pytest
from consolidation_builders import NOW, notes_of, put, store_with

from memoryd.memory.apply import apply_plan
from memoryd.memory.errors import NoteError, StoreError, UsageError
from memoryd.memory.home import Home
from memoryd.memory.merging import Text, free_path, loss, merge_operations
from memoryd.memory.notes import Note, new_note, parse
from memoryd.memory.plan import Operation, Plan
from memoryd.memory.proposals import MergeProposal
from memoryd.memory.store import Store
from memoryd.memory.testing import FakeClock

_PROPOSAL = MergeProposal("user/a.md", ("user/b.md", "user/c.md"), "On a and b", "Likes tea.")


def _operations(store: Store, proposal: MergeProposal = _PROPOSAL) -> tuple[Operation, ...]:
    return merge_operations(store, proposal, candidate="c1", source="review job-1", now_ms=NOW)


def test_what_a_person_said_yes_to_is_merged(home: Home) -> None:
    """Their own notes too, and whatever the rules of a model's merge say."""
    store = store_with(home, {"user/a": "Likes tea, port 80.", "user/b": "b", "user/c": "c"})

    plan = Plan("job-1", None, "person", _operations(store))
    apply_plan(home, plan, clock=FakeClock())

    after = notes_of(store)
    assert sorted(after) == ["archive/user/b", "archive/user/c", "user/a"]
    assert (after["user/a"].body, after["user/a"].supersedes) == ("Likes tea.", ("b", "c"))
    assert after["archive/user/b"].superseded_by == "a"


def test_it_is_decided_on_the_notes_as_they_are_now(home: Home) -> None:
    """The draft may be weeks old: keys and links of today are kept."""
    store = store_with(home, {"user/a": "a", "user/b": "b", "user/c": "c"})
    put(store, "user/a", "Rewritten.", tags=["new"], supersedes=["z"])

    survivor = next(each for each in _operations(store) if each.path == "user/a.md")

    note = parse((survivor.content or "").encode(), "user/a.md")
    assert (note.tags, note.supersedes, note.body) == (("new",), ("z", "b", "c"), "Likes tea.")


def test_a_note_that_is_gone_is_left_out(home: Home) -> None:
    """The others are still merged."""
    store = store_with(home, {"user/a": "a", "user/c": "c"})

    assert [each.path for each in _operations(store)] == [
        "archive/user/c.md", "user/a.md", "user/c.md",
    ]  # fmt: skip


@pytest.mark.parametrize("kept", ["user/a", "user/b"])
def test_with_one_side_gone_there_is_nothing_to_merge(home: Home, kept: str) -> None:
    """It says so, and which."""
    with pytest.raises(UsageError, match="no longer there"):
        _operations(store_with(home, {kept: "x"}))


def test_a_file_that_cannot_be_parsed_is_not_merged(home: Home) -> None:
    """Nor is one that is no note."""
    store = store_with(home, {"user/a": "a"})
    put(store, "user/b", b"---\nname: [\n  broken\nx\n---\nb")

    with pytest.raises(NoteError):
        _operations(store)
    with pytest.raises(StoreError):
        _operations(store, MergeProposal("../a.md", ("user/b.md",), "d", "c"))


def test_a_note_is_never_merged_into_itself(home: Home) -> None:
    """A draft that names it twice is as one that does not."""
    store = store_with(home, {"user/a": "a", "user/b": "b"})
    twice = MergeProposal("user/a.md", ("user/a.md", "user/b.md", "user/b.md"), "d", "c")

    assert len(_operations(store, twice)) == 3


def test_a_free_path_is_one_that_no_file_and_no_plan_has(home: Home) -> None:
    """Counted up."""
    store = store_with(home, {"user/a": "a", "user/a-2": "b"})

    assert free_path(store, "user/a.md", {"user/a-3.md"}) == "user/a-4.md"


def _note(body: str) -> Note:
    return parse(new_note(name="x", description="", type="user", body=body), "user/x.md")


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        (["Use port 80.", "Use port 80 always."], "Use port 80 always.", ""),
        (["Use port 80.", "Use port 81."], "Use port 80.", "merge.loses-value"),
        (["In src/app.", "In it."], "In the app.", "merge.loses-value"),
        (["Since 2026-03-01.", "Now."], "Since March now.", "merge.loses-value"),
        (
            ["Never push straight to main.", "Push to branches of yours only."],
            "Push straight to main and to branches of yours only.",
            "merge.turns",
        ),
        (
            ["Use tabs for indentation.", "Never use spaces here."],
            "Never use tabs for indentation.\nNever use spaces here.",
            "merge.turns",
        ),
        (
            ["Never push straight to main.", "Never push straight to main, please."],
            "Never push straight to main.",
            "",
        ),
        (["one two three four", "five six seven eight"], "one two three four", "merge.shrinks"),
        (["one two three four", "five six seven eight"], "one two three four five six", ""),
        (["one two three", "one two three"], "one two three", ""),
        (
            ['Use tabs.\n\nSaid as: "well then let us have tabs in all of it"'],
            "Use tabs.",
            "",
        ),
    ],
)
def test_what_a_text_loses_of_its_notes(old: list[str], new: str, code: str) -> None:
    """A value of any of them, or over a quarter of their words in all."""
    assert loss([_note(body) for body in old], Text("", new)) == code
