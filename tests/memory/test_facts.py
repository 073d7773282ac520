"""Answers are read whatever they look like, and evidence is held against what was said."""

from __future__ import annotations

import json
from typing import Any

import pytest

from memoryd.memory.facts import (
    Checked,
    Evidence,
    EvidenceSpan,
    Fact,
    Relation,
    SliceMessage,
    check_evidence,
    parse_answer,
)


def _item(**changes: Any) -> dict[str, Any]:
    return {
        "statement": "Prefer pnpm.",
        "category": "preference",
        "evidence": [{"message": "m1", "span": "I prefer pnpm"}],
        "explicitness": "explicit",
        "sensitivity": "none",
        "confidence": 0.9,
        "note": {
            "type": "feedback",
            "name": "prefer-pnpm",
            "description": "Prefer pnpm.",
            "content": "Prefer pnpm.\n\nSaid as: I prefer pnpm",
        },
        "relation": {"kind": "new", "name": None},
        **changes,
    }


def _answer(*items: Any) -> str:
    return json.dumps({"facts": list(items)}, ensure_ascii=False)


def _message(
    text: str, role: str = "user", label: str = "m1", at_ms: int | None = 1, project: str = "p"
) -> SliceMessage:
    known = "user" if role == "user" else "assistant"
    return SliceMessage(label, int(label[1:]), f"id-{label}", known, text, at_ms, project)


def _fact(*evidence: Evidence, category: str = "preference") -> Fact:
    (fact,) = parse_answer(_answer(_item(category=category))).facts
    return Fact(**{**fact.__dict__, "evidence": evidence})


@pytest.mark.parametrize(
    "text",
    [
        _answer(_item()),
        f"```json\n{_answer(_item())}\n```",
        f"```\n{_answer(_item())}\n```\nThat is all.",
        f"Here is [m1] what I found {{so far}}:\n{_answer(_item())}\nHope it helps {{}}.",
        f"```json\n{_answer(_item())}",
        json.dumps([_item()]),
        f"Facts: {json.dumps([_item()])}",
        json.dumps({"result": {"facts": [_item()]}}),
        json.dumps({"thoughts": "x", "facts": [{**_item(), "mood": "good"}], "more": 1}),
        "\ufeff" + _answer(_item()),
    ],
)
def test_an_answer_is_found_in_whatever_it_stands_in(text: str) -> None:
    """Fences, prose, wrappers, a bare list and unknown keys change nothing."""
    answer = parse_answer(text)

    assert answer.whole
    assert [fact.statement for fact in answer.facts] == ["Prefer pnpm."]
    assert answer.refused == ()


@pytest.mark.parametrize("text", ['{"facts": []}', "[]", "```json\n[]\n```", 'ok {"facts": []}'])
def test_nothing_found_is_a_whole_answer(text: str) -> None:
    """An empty list is the normal answer, not a bad one."""
    answer = parse_answer(text)

    assert (answer.whole, answer.facts, answer.refused) == (True, (), ())


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I could not find anything.",
        "{",
        '{"facts": [',
        '{"facts": [{"statement": "cut',
        '{"fact": []}',
        '{"facts": "none"}',
        "null",
        "42",
        "<html><body>502 Bad Gateway</body></html>",
        "[" * 10_000,
        '{"facts":' * 10_000,
        '{"a":' * 10_000 + "1" + "}" * 10_000,
        "{" * 300_000,
        "1" * 20_000,
        '{"facts": ' + "[" * 10_000 + "]" * 10_000 + "}",
        "\x00\ud800",
    ],
    ids=range(17),
)
def test_nonsense_is_unusable_and_never_raises(text: str) -> None:
    """Where no object with facts is found the answer is not whole; nothing is made up."""
    answer = parse_answer(text)

    assert (answer.whole, answer.facts) == (False, ())


def test_complete_objects_of_a_cut_answer_are_kept() -> None:
    """What was complete before the cut is kept, the cut item is listed."""
    whole = _answer(_item(), _item(statement="Use UTC."), _item(statement="Lost."))
    for cut in range(whole.index("Lost."), len(whole) - 2):
        answer = parse_answer(whole[:cut])

        assert answer.whole
        assert [fact.statement for fact in answer.facts] == ["Prefer pnpm.", "Use UTC."]
        assert [item.reason for item in answer.refused] == ["item.malformed"]


def test_a_broken_item_between_two_good_ones_is_dropped() -> None:
    """One object that is no JSON does not take its neighbours with it."""
    first, second = json.dumps(_item()), json.dumps(_item(statement="Use UTC."))

    answer = parse_answer(f'{{"facts": [{first}, {{"statement": oops}}, {second}]}}')

    assert [fact.statement for fact in answer.facts] == ["Prefer pnpm.", "Use UTC."]
    assert len(answer.refused) == 1


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        (3, "item.malformed"),
        (None, "item.malformed"),
        ([], "item.malformed"),
        (_item(statement=""), "item.malformed"),
        (_item(statement=" \x00\n"), "item.malformed"),
        (_item(statement=["x"]), "item.malformed"),
        (_item(statement="x" * 501), "statement.too-long"),
        (_item(category="gossip"), "item.malformed"),
        (_item(category=None), "item.malformed"),
        (_item(explicitness="maybe"), "item.malformed"),
        (_item(sensitivity={}), "item.malformed"),
        (_item(confidence="0.9"), "item.malformed"),
        (_item(confidence=True), "item.malformed"),
        (_item(confidence=None), "item.malformed"),
        (_item(evidence=[]), "evidence.missing"),
        (_item(evidence="I prefer pnpm"), "evidence.missing"),
        (_item(evidence=[{"message": "m1"}, {"span": 3}, 7]), "evidence.missing"),
        (_item(note={**_item()["note"], "content": "ü" * 5000}), "note.too-long"),
    ],
)
def test_a_bad_item_is_refused_with_its_reason(item: Any, reason: str) -> None:
    """A bad item is dropped and listed; the good one beside it stays."""
    items = [item, _item(statement="Use UTC.")]

    answer = parse_answer(json.dumps({"facts": items}))

    assert [fact.statement for fact in answer.facts] == ["Use UTC."]
    assert [one.reason for one in answer.refused] == [reason]
    assert answer.refused[0].detail


def test_numbers_beyond_measure_are_clamped_or_refused() -> None:
    """Confidence is 0..1 whatever is sent; not-a-number and infinity are no confidence."""
    raw = _answer(_item()).replace("0.9", "%s")

    assert parse_answer(raw % ("9" * 400)).facts[0].confidence == 1.0
    assert parse_answer(raw % "-3").facts[0].confidence == 0.0
    assert [parse_answer(raw % odd).facts for odd in ("NaN", "Infinity", "1e999")] == [()] * 3


def test_what_is_kept_of_an_item_is_bounded_and_clean() -> None:
    """One line, a slug, at most eight pieces of evidence, no control characters."""
    item = _item(
        statement="Prefer\n  pnpm\x07.",
        category="Operating Style",
        evidence=[{"message": "[m1]", "span": f"span {n}"} for n in range(20)],
        note={**_item()["note"], "name": "../../etc/Passwd!", "content": "a\x00b\r\nc"},
    )

    (fact,) = parse_answer(_answer(item)).facts

    assert (fact.statement, fact.category) == ("Prefer pnpm .", "operating-style")
    assert len(fact.evidence) == 8
    assert fact.evidence[0] == Evidence("m1", "span 0")
    assert fact.note is not None
    assert (fact.note.name, fact.note.content) == ("etc-passwd", "ab\nc")


@pytest.mark.parametrize(
    "note", [None, 3, {}, {"type": "episode"}, {**_item()["note"], "type": "episode"}]
)
def test_a_note_that_cannot_be_used_is_left_to_the_runtime(note: Any) -> None:
    """The fact stays; the runtime derives a note of its own."""
    (fact,) = parse_answer(_answer(_item(note=note))).facts

    assert fact.note is None


@pytest.mark.parametrize(
    ("relation", "kept"),
    [
        (None, Relation("new")),
        ({"kind": "updates"}, Relation("new")),
        ({"kind": "erases", "name": "x"}, Relation("new")),
        ({"kind": "contradicts", "name": " use-npm "}, Relation("contradicts", "use-npm")),
        ({"kind": "new", "name": "x"}, Relation("new")),
    ],
)
def test_a_relation_that_names_nothing_is_new(relation: Any, kept: Relation) -> None:
    """Only a known kind with a name relates a fact to a note."""
    (fact,) = parse_answer(_answer(_item(relation=relation))).facts

    assert fact.relation == kept


def test_more_items_than_any_piece_holds_are_cut_and_counted() -> None:
    """A hundred items are read, the rest is named."""
    answer = parse_answer(_answer(*[_item(statement=f"Fact {n}.") for n in range(140)]))

    assert len(answer.facts) == 100
    assert [item.reason for item in answer.refused] == ["item.too-many"]


def test_a_huge_answer_is_read_to_its_bound() -> None:
    """Megabytes behind the answer do not matter."""
    answer = parse_answer(_answer(_item()) + " x" * 3_000_000)

    assert len(answer.facts) == 1


def test_evidence_that_was_said_holds() -> None:
    """White space, typographic quotes and NFC do not count; the span comes back folded."""
    message = _message("Well,\n  I’d  prefer caf\u0065\u0301 themes", at_ms=7, project="q")

    checked = check_evidence(_fact(Evidence("m1", "I'd prefer café   themes")), [message])

    assert checked == Checked((EvidenceSpan("id-m1", 1, "I'd prefer café themes"),), 7, "q")


@pytest.mark.parametrize(
    ("evidence", "category", "reason"),
    [
        (Evidence("m1", "I prefer npm instead"), "preference", "evidence.not-found"),
        (Evidence("m1", "i PREFER PNPM"), "preference", "evidence.not-found"),
        (Evidence("m9", "I prefer pnpm"), "preference", "evidence.wrong-message"),
        (Evidence("m2", "we use pnpm here"), "preference", "evidence.wrong-message"),
        (Evidence(None, "we use pnpm here"), "work", "evidence.wrong-message"),
        (Evidence("m1", "a"), "preference", "evidence.too-short"),
        (Evidence("m1", "pnpm"), "project", "evidence.too-short"),
        (Evidence("m1", "  "), "preference", "evidence.wrong-message"),
    ],
)
def test_evidence_that_proves_nothing_is_named(
    evidence: Evidence, category: str, reason: str
) -> None:
    """Invented, foreign and tiny spans do not hold, and the reason says which."""
    messages = [
        _message("Today I prefer pnpm, a lot"),
        _message("Noted, we use pnpm here", "assistant", "m2"),
    ]

    assert check_evidence(_fact(evidence, category=category), messages) == reason


def test_the_assistants_words_prove_only_what_is_about_the_project() -> None:
    """A project fact may stand on the assistant's own text, a preference may not."""
    message = _message("The build runs on port 8080", "assistant")
    evidence = Evidence(None, "The build runs on port 8080")

    assert isinstance(check_evidence(_fact(evidence, category="project"), [message]), Checked)
    assert isinstance(check_evidence(_fact(evidence, category="other"), [message]), str)


def test_a_short_message_may_be_quoted_whole() -> None:
    """Short words are evidence when they are the whole message."""
    checked = check_evidence(_fact(Evidence("m1", "use tabs")), [_message(" use tabs ")])

    assert isinstance(checked, Checked)


def test_bad_spans_are_dropped_and_the_newest_message_counts() -> None:
    """One span that holds is enough; time and project are those of the newest."""
    messages = [
        _message("I prefer pnpm", at_ms=10, project="old"),
        _message("as I said, I prefer pnpm", label="m2", at_ms=20, project="new"),
    ]
    fact = _fact(
        Evidence("m1", "I prefer pnpm"),
        Evidence("m1", "never said this"),
        Evidence("m2", "I prefer pnpm"),
    )

    checked = check_evidence(fact, messages)

    assert isinstance(checked, Checked)
    assert [span.message_id for span in checked.spans] == ["id-m1", "id-m2"]
    assert (checked.at_ms, checked.project) == (20, "new")


def test_a_secret_in_a_drafted_name_is_refused_before_it_is_a_file_name() -> None:
    """As a slug it would pass for words."""
    token = "gh" + "p_" + "a1B2c3D4e5F6" * 3
    item = {
        "statement": "Use it.",
        "category": "project",
        "evidence": [{"message": "m1", "span": "use it"}],
        "explicitness": "explicit",
        "sensitivity": "none",
        "confidence": 1,
        "note": {"type": "project", "name": token, "description": "d", "content": "c"},
    }

    answer = parse_answer(json.dumps({"facts": [item]}))

    assert answer.facts == ()
    assert [refused.reason for refused in answer.refused] == ["scanner.secret"]
    assert token.lower() not in repr(answer).lower()


def test_half_a_surrogate_pair_in_a_drafted_name_is_put_up_with() -> None:
    """JSON can say it, a file name cannot hold it."""
    text = (
        '{"facts": [{"statement": "Use it.", "category": "project", "evidence": [{"message":'
        ' "m1", "span": "use it"}], "explicitness": "explicit", "sensitivity": "none",'
        ' "confidence": 1, "note": {"type": "project", "name": "\\ud83d", "description": "d",'
        ' "content": "c"}}]}'
    )

    (fact,) = parse_answer(text).facts

    assert fact.note is not None and fact.note.name.startswith("note-")
