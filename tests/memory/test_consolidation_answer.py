"""A plan is read out of whatever a model wraps it in; what is no proposal is listed and dropped."""

from __future__ import annotations

import json
from typing import Any

import pytest

from memoryd.memory.consolidation_answer import (
    CONTENT_BYTES,
    EpisodeDraft,
    Merge,
    parse_proposals,
)
from memoryd.memory.facts import NoteDraft

_MERGE = {"into": "a", "supersedes": ["b"], "description": "d", "content": "c"}
_EPISODE = {"name": "e", "description": "d", "happened_at": "2026-01-02", "content": "c"}
_PROMOTION = {"type": "project", "name": "p", "description": "d", "content": "c"}
_PLAN = {"merges": [_MERGE], "episode": _EPISODE, "promote": [_PROMOTION]}


def test_a_whole_plan_is_read() -> None:
    """Each kind of proposal, as it was given."""
    found = parse_proposals(json.dumps(_PLAN))

    assert found.whole
    assert found.merges == (Merge("a", ("b",), "d", "c"),)
    assert found.episodes == (EpisodeDraft("e", "d", "c", "2026-01-02"),)
    assert found.promotions == (NoteDraft("project", "p", "d", "c"),)
    assert found.refused == ()


@pytest.mark.parametrize(
    "text",
    [
        f"```json\n{json.dumps(_PLAN)}\n```",
        f"Here is what I would do:\n\n{json.dumps(_PLAN, indent=2)}\n\nHope it helps {{!}}",
        f"```\n{json.dumps(_PLAN)}",
    ],
)
def test_fences_and_prose_around_a_plan_do_not_matter(text: str) -> None:
    """The first object that has a plan is the plan."""
    found = parse_proposals(text)

    assert (len(found.merges), len(found.episodes), len(found.promotions)) == (1, 1, 1)


@pytest.mark.parametrize(
    "text",
    ["", "no", "[]", "[1]", "null", '"merges"', '{"facts": []}', "{" * 5_000, "[" * 100_000],
)
def test_what_holds_no_object_is_a_bad_answer(text: str) -> None:
    """The run failed; nothing can be learned from it."""
    found = parse_proposals(text)

    assert not found.whole
    assert (found.merges, found.refused) == ((), ())


@pytest.mark.parametrize(
    "text", ["{}", '{"merges": []}', '{"merges": null, "episode": null, "promote": null}']
)
def test_an_empty_plan_is_whole(text: str) -> None:
    """To do nothing is a good answer."""
    found = parse_proposals(text)

    assert found.whole
    assert (found.merges, found.episodes, found.promotions, found.refused) == ((), (), (), ())


def test_the_complete_items_of_an_answer_that_was_cut_are_kept() -> None:
    """At the limit of tokens; what was cut is said."""
    text = json.dumps({"merges": [_MERGE], "promote": [_PROMOTION, _PROMOTION]})

    found = parse_proposals(text[:-30])

    assert found.whole
    assert (len(found.merges), len(found.promotions)) == (1, 1)
    assert [item.detail for item in found.refused] == ["the answer was cut inside this item"]


@pytest.mark.parametrize(
    "bad",
    [
        "text",
        None,
        {**_MERGE, "into": 3},
        {**_MERGE, "supersedes": []},
        {**_MERGE, "supersedes": {"b": 1}},
        {**_MERGE, "supersedes": ["b", 4]},
        {**_MERGE, "description": " \u0007 "},
        {"into": "a", "supersedes": ["b"], "description": "d"},
    ],
)
def test_a_bad_merge_is_dropped_and_its_sibling_kept(bad: Any) -> None:
    """One bad item does not spoil the others."""
    found = parse_proposals(json.dumps({"merges": [bad, _MERGE]}))

    assert [merge.into for merge in found.merges] == ["a"]
    assert [item.reason for item in found.refused] == ["item.malformed"]


def test_a_merge_that_supersedes_itself_loses_that_name() -> None:
    """The others stay; with none left it is no merge."""
    both = {**_MERGE, "supersedes": ["a", "b"]}
    alone = {**_MERGE, "supersedes": ["a"]}

    found = parse_proposals(json.dumps({"merges": [both, alone]}))

    assert [merge.supersedes for merge in found.merges] == [("b",)]
    assert [item.reason for item in found.refused] == ["merge.no-target"]


@pytest.mark.parametrize("day", ["2026-02-30", "2026-13-45", "yesterday", "2026-8-3", 20260101, ""])
def test_a_date_that_is_none_is_dropped_and_the_episode_kept(day: Any) -> None:
    """Also one that other calendars would roll over."""
    found = parse_proposals(json.dumps({"episode": {**_EPISODE, "happened_at": day}}))

    (episode,) = found.episodes
    assert (episode.name, episode.happened_at) == ("e", None)


@pytest.mark.parametrize("kind", ["episode", "note", "", 3])
def test_only_lasting_types_can_be_promoted(kind: Any) -> None:
    """An episode is written as an episode, or not at all."""
    found = parse_proposals(json.dumps({"promote": [{**_PROMOTION, "type": kind}, _PROMOTION]}))

    assert len(found.promotions) == 1
    assert [item.reason for item in found.refused] == ["item.malformed"]


def test_huge_and_endless_items_are_bounded() -> None:
    """A body over its limit, and a list without end."""
    long = {**_PROMOTION, "content": "x" * (CONTENT_BYTES + 1)}

    found = parse_proposals(json.dumps({"merges": [_MERGE] * 150, "promote": [long]}))

    assert len(found.merges) == 100
    assert sorted(item.reason for item in found.refused) == ["item.too-many", "note.too-long"]


def test_a_name_that_holds_a_secret_is_refused() -> None:
    """Before it is cut to a file name, which would hide it from the scanner."""
    token = "ghp_" + "aB3dE5gH7j" * 4

    found = parse_proposals(json.dumps({"promote": [{**_PROMOTION, "name": token}]}))

    assert found.promotions == ()
    assert [item.reason for item in found.refused] == ["scanner.secret"]


def test_names_and_lines_are_plain() -> None:
    """Slugs for what is new, one line for a description, LF and no control characters in text."""
    raw = {
        **_EPISODE,
        "name": "Big Day!",
        "description": "one\n two",
        "content": "a\r\nb\u0000\ud800",
    }

    (episode,) = parse_proposals(json.dumps({"episode": raw})).episodes

    assert (episode.name, episode.description) == ("big-day", "one two")
    assert episode.content == "a\nb\ufffd"
