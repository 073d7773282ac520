"""The nearest notes are those that share rare words with the text, always in one order."""

from __future__ import annotations

from memoryd.memory.nearest import nearest
from memoryd.memory.providers.base import ShownNote


def _note(name: str, body: str) -> ShownNote:
    return ShownNote("p", f"user/{name}.md", "user", name, "", body)


_NOTES = [
    _note("tests", "run the tests with pnpm test"),
    _note("database", "the staging database is read-only"),
    _note("arabic", "قاعدة البيانات للقراءة فقط"),
    _note("tabs", "the person wants tabs"),
]


def test_rare_words_decide() -> None:
    """A word of one note weighs more than one that stands in all."""
    assert nearest(_NOTES, "the DATABASE is slow")[0].name == "database"
    assert [note.name for note in nearest(_NOTES, "البيانات")] == ["arabic"]


def test_a_text_that_shares_nothing_has_no_near_note() -> None:
    """No filler is returned."""
    assert nearest(_NOTES, "quantum chromodynamics") == []
    assert nearest([], "tests") == []


def test_the_limit_and_the_order_hold() -> None:
    """Equal notes are ordered by path, whatever order they came in."""
    equal = [_note(name, "same words here") for name in "cabd"]

    found = nearest(equal, "same words", limit=3)

    assert [note.name for note in found] == ["a", "b", "c"]
    assert found == nearest(equal[::-1], "words same", limit=3)
