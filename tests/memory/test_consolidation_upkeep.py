"""The mechanical part: exact duplicates become one, the episodes over fifty go to the archive."""

from __future__ import annotations

from typing import Any

import pytest
from consolidation_builders import (
    applied,
    decided,
    gathered,
    proposed,
    put,
    reasons,
    store_with,
)
from store_builders import make_store

from memoryd.memory import consolidation_upkeep
from memoryd.memory.baseline import Baseline
from memoryd.memory.config import CurationSettings
from memoryd.memory.consolidation import Use
from memoryd.memory.home import Home
from memoryd.memory.proposals import MergeProposal, from_json
from memoryd.memory.store import Store


def _episodes(store: Store, count: int, **more: Any) -> None:
    paths = [
        put(store, f"episode/e{at:03}", f"Event {at}.", happened_at=f"20{at:02}-01-01", **more)
        for at in range(count)
    ]
    Baseline(store).commit(paths, "Episodes")


def test_exact_duplicates_become_one_and_are_linked(home: Home) -> None:
    """But for case, white space, quotes and the final stop; no model is needed."""
    store = store_with(home, {
        "feedback/a": "Use pnpm.", "feedback/b": "use  PNPM", "feedback/c": "Use npm.",
    })  # fmt: skip

    done = decided(gathered(store))
    after = applied(home, store, done)

    assert reasons(done) == ["duplicate.notes"]
    assert sorted(after) == ["archive/feedback/b", "feedback/a", "feedback/c"]
    assert (after["feedback/a"].body, after["feedback/a"].supersedes) == ("Use pnpm.", ("b",))
    assert after["archive/feedback/b"].superseded_by == "a"
    assert done.subject == "Consolidate: 1 merged, 1 archived"


def test_the_more_used_of_two_duplicates_stays_else_the_older(home: Home) -> None:
    """Use comes before age."""
    store = store_with(home, {})
    put(store, "user/new", "Likes tea.", created="2026-01-04")
    put(store, "user/old", "Likes tea.", created="2025-01-04")

    by_age = decided(gathered(store))
    by_use = decided(gathered(store, usage={"user/new": Use(3, 1)}))

    assert by_age.candidates[0].path == "user/old.md"
    assert by_use.candidates[0].path == "user/new.md"


def test_three_duplicates_are_one_decision(home: Home) -> None:
    """All or nothing; each is linked."""
    store = store_with(home, {f"user/{name}": "Likes tea." for name in "abc"})

    done = decided(gathered(store))

    assert len(done.candidates) == 1
    assert applied(home, store, done)["user/a"].supersedes == ("b", "c")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("user/a", {}), ("feedback/b", {})),
        (
            ("episode/a", {"happened_at": "2026-01-01"}),
            ("episode/b", {"happened_at": "2026-01-02"}),
        ),
        (("user/a", {}), ("user/b", {"description": "Since 2019, at home"})),
    ],
)
def test_what_only_looks_the_same_stays(home: Home, one: Any, other: Any) -> None:
    """Another type, another day, a value in the description that would be lost."""
    store = make_store(home)
    for path, more in (one, other):
        put(store, path, "Released the app.", **more)

    assert decided(gathered(store)).operations == ()


def test_notes_without_words_are_no_duplicates(home: Home) -> None:
    """Two empty files say nothing, not the same."""
    store = make_store(home)
    put(store, "user/a", b"")
    put(store, "user/b", b"\n")

    assert decided(gathered(store)).candidates == ()


def test_a_persons_duplicate_is_left_to_them(home: Home) -> None:
    """It is never archived silently; their yes would merge the two."""
    store = store_with(home, {"user/a": "Likes tea.", "user/b": "Likes tea."})

    done = decided(gathered(store, person=["user/b.md"]))

    (candidate,) = done.candidates
    assert (candidate.decision, candidate.reason, done.operations) == ("review", "person", ())
    assert from_json(candidate.draft or "") == MergeProposal(
        "user/a.md", ("user/b.md",), "On a", "Likes tea."
    )
    again = decided(gathered(store, person=["user/b.md"]), before=[candidate.draft])
    assert again.candidates == ()


def test_in_review_mode_duplicates_wait_too(home: Home) -> None:
    """A person decides all that is written."""
    store = store_with(home, {"user/a": "Likes tea.", "user/b": "Likes tea."})

    done = decided(gathered(store), settings=CurationSettings(mode="review"))

    assert [one.decision for one in done.candidates] == ["review"]


def test_fifty_episodes_stay(home: Home) -> None:
    """The cap is a number that may be reached."""
    store = make_store(home)
    _episodes(store, 50)

    assert decided(gathered(store)).operations == ()


def test_the_least_used_then_oldest_episodes_are_archived_as_they_are(home: Home) -> None:
    """Nothing is deleted and no byte of them changes."""
    store = make_store(home)
    _episodes(store, 52)
    data = store.read("episode/e001.md")

    done = decided(gathered(store, usage={"episode/e000": Use(1, 1)}))
    after = applied(home, store, done)

    assert reasons(done) == ["retention", "retention"]
    assert {path for path in after if path.startswith("archive/")} == {
        "archive/episode/e001", "archive/episode/e002",
    }  # fmt: skip
    assert store.read("archive/episode/e001.md") == data
    assert done.counts.archived == 2


def test_an_episode_that_a_person_changed_stays_and_another_goes(home: Home) -> None:
    """Theirs is never archived silently."""
    store = make_store(home)
    _episodes(store, 51)

    done = decided(gathered(store, person=["episode/e000.md"]))

    assert [one.path for one in done.candidates] == ["episode/e001.md"]


def test_an_episode_that_changed_meanwhile_stays_and_another_goes(home: Home) -> None:
    """Somebody is at work on it."""
    store = make_store(home)
    _episodes(store, 51)
    material = gathered(store)
    put(store, "episode/e000", "Rewritten.")

    assert [one.path for one in decided(material).candidates] == ["episode/e001.md"]


def test_a_new_episode_makes_room_for_itself(home: Home) -> None:
    """Fifty and one is one too many, and never the new one."""
    store = make_store(home)
    _episodes(store, 50)
    episode = {
        "name": "new",
        "description": "d",
        "content": "Moved it.",
        "happened_at": "1999-01-01",
    }

    done = decided(gathered(store), proposed(episode=episode))
    after = applied(home, store, done)

    assert reasons(done) == ["policy.passed", "retention"]
    assert sum(path.startswith("episode/") for path in after) == 50
    assert "episode/new" in after


def test_a_merge_of_episodes_makes_room_before_any_is_archived(home: Home) -> None:
    """What a model folds together counts once."""
    store = make_store(home)
    _episodes(store, 51)
    merge = {
        "into": "e001", "supersedes": ["e000"], "description": "On e000 and e001",
        "content": "Event 0. Event 1.",
    }  # fmt: skip

    done = decided(gathered(store), proposed(merges=[merge]))

    assert reasons(done) == ["policy.passed"]


def test_one_run_archives_a_bounded_number(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan holds whole files; the next run goes on."""
    monkeypatch.setattr(consolidation_upkeep, "ARCHIVED", 3)
    store = make_store(home)
    _episodes(store, 55)
    for name in "abcdef":
        put(store, f"user/{name}", "Likes tea.")

    done = decided(gathered(store))

    assert (reasons(done), done.counts.archived) == (["duplicate.notes"], 3)


def test_one_run_looks_at_a_bounded_number_of_groups(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those a person was asked about before do not count, so that the others get their turn."""
    monkeypatch.setattr(consolidation_upkeep, "GROUPS", 1)
    store = make_store(home)
    for name in "ab":
        put(store, f"user/{name}", "Likes tea.")
        put(store, f"feedback/{name}", "Use tabs.")
    person = ["feedback/a.md"]

    first = decided(gathered(store, person=person))
    second = decided(gathered(store, person=person), before=[first.candidates[0].draft])

    assert reasons(first) == ["person"]
    assert reasons(second) == ["duplicate.notes"]


def test_episodes_are_archived_up_to_the_bound(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest waits for the next run."""
    monkeypatch.setattr(consolidation_upkeep, "ARCHIVED", 2)
    store = make_store(home)
    _episodes(store, 55)

    assert decided(gathered(store)).counts.archived == 2


def test_the_upkeep_comes_first_and_then_what_is_left(home: Home) -> None:
    """A merge of a note that was archived as a duplicate meets a conflict."""
    store = store_with(home, {"user/a": "Likes tea.", "user/b": "Likes tea."})
    merge = {"into": "a", "supersedes": ["b"], "description": "On a and b", "content": "Likes tea."}

    done = decided(gathered(store), proposed(merges=[merge]))

    assert reasons(done) == ["duplicate.notes", "conflict"]


def test_the_index_follows(home: Home) -> None:
    """What was archived is not listed."""
    store = store_with(home, {"user/a": "Likes tea.", "user/b": "Likes tea."})
    store.write_index()

    applied(home, store, decided(gathered(store)))

    assert "user/b.md" not in (store.root / "MEMORY.md").read_text()
