"""Close notes are found by the rare words they share, in any language and in time."""

from __future__ import annotations

from random import Random

import pytest

from memoryd.memory.notes import Note, new_note, parse
from memoryd.memory.pairs import Closeness, telling


def _note(name: str, body: str) -> Note:
    return parse(new_note(name=name, description="", type="user", body=body), f"user/{name}.md")


def _filler(count: int) -> list[Note]:
    random = Random(7)
    return [
        _note(f"n{at}", " ".join(f"w{random.randrange(4_000)}" for _ in range(12)))
        for at in range(count)
    ]


def test_close_notes_are_paired_the_closest_first() -> None:
    """By the overlap of their telling words."""
    notes = [
        _note("a", "deploy host nginx port"),
        _note("b", "deploy host nginx"),
        _note("c", "coffee morning window"),
        _note("d", "deploy host nginx gate"),
    ]

    pairs = Closeness(notes).pairs()

    assert [(pair.one[5], pair.other[5]) for pair in pairs] == [("a", "b"), ("b", "d"), ("a", "d")]
    assert pairs[0].score > pairs[2].score


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("يفضل استخدام الجداول القصيرة في التقارير", "يفضل الجداول القصيرة في كل التقارير"),
        ("数据库使用端口五四三二", "数据库端口五四三二"),
        ("Le café du matin près de la fenêtre", "cafe matin pres fenetre"),
    ],
)
def test_every_script_has_words(one: str, other: str) -> None:
    """Not only those of one alphabet."""
    assert len(Closeness([_note("a", one), _note("b", other)]).pairs()) == 1


def test_near_duplicates_are_found_among_thousands_without_comparing_all() -> None:
    """Twenty pairs among 2,000 notes: each is found."""
    random = Random(3)
    notes = _filler(2_000)
    for at in range(20):
        words = [f"w{random.randrange(4_000)}" for _ in range(12)]
        notes += [_note(f"p{at}", " ".join(words)), _note(f"q{at}", " ".join([*words[:10], "x"]))]

    found = {(pair.one, pair.other) for pair in Closeness(notes).pairs()}

    assert {(f"user/p{at}.md", f"user/q{at}.md") for at in range(20)} <= found


def test_a_crowd_of_alike_notes_stays_cheap_and_is_paired() -> None:
    """Their words are not rare, and still each meets one of the last few."""
    notes = [_note(f"n{at}", f"deploy host nginx number{at}") for at in range(300)]

    assert len(Closeness(notes).pairs()) == 200


@pytest.mark.parametrize(
    ("one", "other", "related"),
    [
        ("The host is nginx.", "Before nginx it was Apache.", True),
        ("Listens on 8443.", "Opened 8443 yesterday.", True),
        ("Always use the same one for this.", "Use this one always for the same.", False),
        ("Drinks coffee at noon.", "The build needs Go.", False),
        ("", "", False),
    ],
)
def test_related_notes_share_a_rare_word_or_a_value(one: str, other: str, related: bool) -> None:
    """Fillers alone are nothing in common."""
    a, b = _note("a", one), _note("b", other)

    assert Closeness([a, b, *_filler(200)]).related(a, b) is related


def test_a_word_that_all_notes_have_relates_none() -> None:
    """It says nothing about any of them."""
    notes = [
        _note(f"n{at}", f"memoryd is part{at} of thing{at} with extra{at}") for at in range(40)
    ]

    assert not Closeness(notes).related(notes[0], notes[1])


def test_the_telling_words_of_a_note() -> None:
    """Name, description and body, without fillers and single letters."""
    assert telling(_note("tea-time", "I like the green TEA a lot")) == {
        "tea", "time", "green", "lot",
    }  # fmt: skip
