"""The distinct values of a text, which a rewrite must not lose: numbers, dates, paths, names."""

from __future__ import annotations

import re

from memoryd.memory.memo import kept_for_short
from memoryd.memory.text import statement_key, words

_NAME = re.compile(r"(?<=[^\s.!?:;…\-*•#>\"'`(])\s+([A-Z][\w'’-]*\w)")
_BACKTICKED = re.compile(r"`([^`\n]{1,120})`")
_PIECE = re.compile(r"[^\s,;()\[\]{}<>\"'`«»]+")
_NUMBER = re.compile(r"\d")
_PATH = re.compile(r"[/\\]|^~")
_COMPOUND = re.compile(r"\w[^\w\s]+\w|[/\\~]")
#: Words that change nothing of what a statement says, anywhere and at its start.
_FILLERS = frozenset({"a", "an", "the", "this", "our", "please"})
_SUBJECTS = frozenset({"i", "user"})
_CLAUSE_END = re.compile(r"[,;:،؛]\s|\b(?:because|since|as it)\b", re.IGNORECASE)
_NEGATIONS = frozenset(
    {"never", "not", "no", "don", "doesn", "didn", "isn", "aren", "won", "shouldn", "mustn"}
)
_POLAR = _NEGATIONS | {"always", "ever", "do", "does", "t", "cannot"}
#: What opens a clause of time; who does it and how the verb ends change nothing of what it says.
_TIMES = frozenset({"before", "after", "when", "while", "whenever"})
_DOERS = frozenset({"you", "we", "i"})
_ENDING = re.compile(r"(?<=[a-z]{3})(?:ing|ed)$")
_VOWEL = re.compile(r"[aeiouy]")
_DOUBLED = re.compile(r"([a-eg-km-rt-y])\1$")
#: The line of a note that quotes the words it stands on: no part of what it says.
SAID_AS = "Said as: "
_SAID_AS = re.compile(rf"\n+{SAID_AS}[^\n]*\Z")
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


def names(text: str) -> frozenset[str]:
    """Words with a capital that begin no sentence, where the script has capitals."""
    return frozenset(_NAME.findall(text))


def loses(old: str, new: str) -> bool:
    """Whether ``new`` lacks a distinct value of ``old``, or more than a quarter of its words."""
    return lacks_value(old, new) or shrinks(old, new)


def without_said_as(body: str) -> str:
    """``body`` without its last line where that only quotes the words it stands on."""
    return _SAID_AS.sub("", body.rstrip())


def sense_key(statement: str) -> str:
    """The form in which two statements say the same: their words in order, and their values.

    Case, punctuation, articles, a plural ``s`` and who is speaking do not count; every other word
    does, so that neither "never use tabs" nor "spaces over tabs" is ever the same as its opposite.
    Values that punctuation is part of (paths, hosts, versions) count letter by letter. "Before you
    commit" is "before committing".
    """
    said = _content_words(statement)
    if not said:
        return statement_key(statement)
    values = sorted(
        value
        for value in distinct_values(statement)
        if _COMPOUND.search(value) and " " not in value
    )
    return "\0".join((" ".join(map(_singular, said)), *values))


def opposes(one: str, other: str) -> bool:
    """Whether one statement forbids what the other asks, in the same words otherwise."""
    (left, left_negated), (right, right_negated) = _polarity(one), _polarity(other)
    return left_negated != right_negated and left == right and len(left) > 1


def turns(old: str, new: str) -> bool:
    """Whether ``new`` no longer forbids what ``old`` does, or says the opposite of a line of it.

    Comparing words and values does not see that a "never" went missing.
    """
    forbids = [not _NEGATIONS.isdisjoint(words(text)) for text in (old, new)]
    if forbids == [True, False]:
        return True
    lines = [line for line in old.splitlines() if line.strip()]
    return any(opposes(line, said) for said in new.splitlines() for line in lines)


@kept_for_short
def _polarity(statement: str) -> tuple[tuple[str, ...], bool]:
    """The words of its first clause (a reason may follow), and whether they are forbidden."""
    said = _content_words(_CLAUSE_END.split(statement, maxsplit=1)[0])
    negated = not _NEGATIONS.isdisjoint(said) or "cannot" in said
    return tuple(_singular(word) for word in said if word not in _POLAR), negated


def _content_words(statement: str) -> list[str]:
    said = [word for word in words(statement) if word not in _FILLERS]
    if said and said[0] in _SUBJECTS:
        said = said[1:]
    return _timed(said)


def _timed(said: list[str]) -> list[str]:
    """``said`` with the verb behind "before", "after", "when" and "while" in one form."""
    kept: list[str] = []
    for at, word in enumerate(said):
        last = kept[-1] if kept else ""
        if last in _TIMES and word in _DOERS and at + 1 < len(said):
            continue
        kept.append(_stem(word) if last in _TIMES else word)
    return kept


def _stem(verb: str) -> str:
    """``commit`` of "committing", ``releas`` of "release" and "released"; else as it is.

    Rough, and only ever compared with itself; a stem without a vowel is none ("string").
    """
    bare = _ENDING.sub("", verb)
    stem = bare if _VOWEL.search(bare) else verb
    return _DOUBLED.sub(r"\1", stem.removesuffix("e"))


def _singular(word: str) -> str:
    plural = len(word) > 3 and word.endswith("s") and not word.endswith("ss") and word.isascii()
    return word[:-1] if plural else word


def holds(text: str, value: str) -> bool:
    """Whether ``value`` stands in ``text`` as itself and not inside a longer value."""
    return re.search(rf"(?<![\w.]){re.escape(value)}(?!\w|\.\w)", text) is not None
