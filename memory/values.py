"""The distinct values of a text, which a rewrite must not lose: numbers, dates, paths, names."""

from __future__ import annotations

import re

from memoryd.memory.text import words

_BACKTICKED = re.compile(r"`([^`\n]{1,120})`")
_PIECE = re.compile(r"[^\s,;()\[\]{}<>\"'`«»]+")
_NUMBER = re.compile(r"\d")
_PATH = re.compile(r"[/\\]|^~")
_IDENTIFIER = re.compile(r"\w[._:@-]\w|_|[a-z][A-Z]|^[A-Z][A-Z0-9]+$")


def distinct_values(text: str) -> frozenset[str]:
    """What is exact in ``text``: what has a digit, paths, names of code, what is in backticks.

    Kebab and dotted words count as identifiers, and so do camel case and capitals. Case is kept;
    punctuation around a value is not part of it.
    """
    pieces = [piece.strip(".:!?…؟*") for piece in _PIECE.findall(text)]
    exact = {
        piece
        for piece in pieces
        if _NUMBER.search(piece) or _PATH.search(piece) or _IDENTIFIER.search(piece)
    }
    ticked = {part.strip() for part in _BACKTICKED.findall(text)}
    return frozenset(exact | ticked) - {""}


def lacks_value(old: str, new: str) -> bool:
    """Whether ``new`` lacks a distinct value of ``old``."""
    return not all(holds(new, value) for value in distinct_values(old))


def shrinks(old: str, new: str) -> bool:
    """Whether ``new`` lacks more than a quarter of the words of ``old``, each counted once."""
    before, after = set(words(old)), set(words(new))
    return len(before - after) * 4 > len(before)


def loses(old: str, new: str) -> bool:
    """Whether ``new`` lacks a distinct value of ``old``, or more than a quarter of its words."""
    return lacks_value(old, new) or shrinks(old, new)


def holds(text: str, value: str) -> bool:
    """Whether ``value`` stands in ``text`` as itself and not inside a longer value."""
    return re.search(rf"(?<![\w.]){re.escape(value)}(?!\w|\.\w)", text) is not None
