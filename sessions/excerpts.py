"""What of a message is shown: a piece around the words that were found, on one line."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence

from memoryd.sessions.tokens import Term, fold

#: Longest excerpt, in characters.
EXCERPT_CHARACTERS = 360
#: What stands before the first word that was found, about.
_BEFORE = 80
#: Words of a message that are compared letter by letter where it is written otherwise.
_COMPARED = 2_000
_MARKS = 200

#: Control characters, and those that turn a line around or are not seen.
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]+")
#: A word with its accents and vowel signs.
_RUN = re.compile("[\\w\u0300-\u036f\u0591-\u05c7\u0640\u064b-\u065f\u0670]+")


def one_line(text: str) -> str:
    """``text`` on one line, without control characters and what cannot be seen."""
    return " ".join(_UNSEEN.sub(" ", text).split())


def excerpt(text: str, wanted: Sequence[Term], limit: int = EXCERPT_CHARACTERS) -> str:
    """At most ``limit`` characters of ``text``, where most of the words stand; ``…`` where cut."""
    line = one_line(text)
    if len(line) <= limit:
        return line
    start = _start(line, wanted, limit - _BEFORE)
    start = max(0, min(start - _BEFORE, len(line) - limit + 1))
    if start:
        space = line.find(" ", start, start + _BEFORE // 2)
        start = space + 1 if space >= 0 else start
    room = limit - bool(start)
    cut = line[start : start + room]
    if start + room < len(line):
        cut = cut[:-1] + "…"
    return ("…" if start else "") + cut


def _start(line: str, wanted: Sequence[Term], width: int) -> int:
    """Where the ``width`` characters begin that hold most of the words, the first such place."""
    marks = sorted(mark for at, term in enumerate(wanted) for mark in _marks(line, term, at))
    places = [place for place, _ in marks]
    best, most = 0, 0
    for at, place in enumerate(places):
        end = bisect_left(places, place + width)
        held = len({word for _, word in marks[at:end]})
        if held > most:
            best, most = place, held
    return best


def _marks(line: str, term: Term, word: int) -> list[tuple[int, int]]:
    """Where a term stands, as typed or else as one of its words."""
    lowered = line.casefold()
    if len(lowered) != len(line):
        lowered = line  # its places would be others
    for sought in (term.typed.casefold(), *(" ".join(phrase) for phrase in term.phrases)):
        found = [match.start() for match in re.finditer(re.escape(sought), lowered)][:_MARKS]
        if found:
            return [(place, word) for place in found]
    tokens = {phrase[0] for phrase in term.phrases}
    folded = _folded_marks(line, tokens)
    return [(place, word) for place in folded[:_MARKS]]


def _folded_marks(line: str, tokens: set[str]) -> list[int]:
    runs = list(_RUN.finditer(line))[:_COMPARED]
    return [run.start() for run in runs if any(token in fold(run[0]) for token in tokens)]
