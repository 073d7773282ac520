"""Answers about short texts are kept; what is kept is bounded whatever the texts are."""

from __future__ import annotations

import pytest

from memoryd.memory.errors import NoteError
from memoryd.memory.memo import CHARACTERS, kept_for_short
from memoryd.memory.notes import parse


def test_a_short_text_is_thought_over_once_and_a_long_one_each_time() -> None:
    """The same answer both ways, by place or by name."""
    asked: list[str] = []

    @kept_for_short
    def reverse(text: str, more: str = "") -> str:
        asked.append(text[:1])
        return (text + more)[::-1]

    long = "b" * (CHARACTERS + 1)
    answers = [reverse("ab"), reverse("ab"), reverse(long), reverse(long), reverse("a", more=long)]

    assert answers == ["ba", "ba", long, long, long + "a"]
    assert asked == ["a", "b", "b", "a"]


def test_what_cannot_be_answered_is_asked_again() -> None:
    """An error is raised each time, and names the file of this time."""
    broken = b"---\nname: [\nno: header\n"

    for path in ("user/one.md", "user/other.md", "user/one.md"):
        with pytest.raises(NoteError, match=path):
            parse(broken, path)
