"""How the shape of a secret is looked for: its literal first, then its expression there.

Every shape starts with a literal, found by ``str.find`` before its expression is tried, so text
without one costs next to nothing. Most are looked for only in the long runs of letters and digits
of the text, of which prose has few. Time is linear: a match is never looked into again, and what
can fail after a repetition is bounded.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Shape:
    """One shape: its ``name``, the ``literals`` one of which starts it, and the expression there.

    Group ``secret`` is what is hidden, else the whole match; ``check`` has the last word on it.
    ``bounded``: the literal counts only where no word is under way. ``back``: the expression
    starts so many characters before the literal.
    """

    name: str
    literals: tuple[str, ...]
    expression: str
    check: Callable[[str], bool] | None = None
    bounded: bool = True
    back: int = 0

    def find(self, text: str) -> Iterator[tuple[int, int]]:
        """The spans of ``text`` this shape hides, in order for each of its literals."""
        for literal in self.literals:
            at = text.find(literal)
            while at >= 0:
                end = at + len(literal)
                match = self._match(text, at - self.back)
                if match is not None:
                    end = max(end, match.end())
                    yield match.span("secret" if "secret" in match.re.groupindex else 0)
                at = text.find(literal, end)

    def _match(self, text: str, at: int) -> re.Match[str] | None:
        if at < 0 or (self.bounded and not _starts(text, at)):
            return None
        match = _compiled(self.expression).match(text, at)
        if match is None:
            return match
        hidden = match["secret"] if "secret" in match.re.groupindex else match[0]
        shown = hidden[-8:].lower() == "xxxxxxxx"  # how a key is written that is none
        return match if not shown and (self.check is None or self.check(hidden)) else None


#: Compiled when first needed: most shapes never are.
_compiled = functools.cache(re.compile)


def shape(
    name: str, literals: str, expression: str, check: Callable[[str], bool] | None = None
) -> Shape:
    """A shape whose ``literals``, separated by spaces, count only where a word begins."""
    return Shape(name, tuple(literals.split()), expression, check)


def inside(
    name: str,
    literals: str,
    expression: str,
    check: Callable[[str], bool] | None = None,
    back: int = 0,
) -> Shape:
    """A shape whose literal may stand inside a word."""
    literal = tuple(literals.split())
    return Shape(name, literal, expression, check, bounded=False, back=back)


def any_of(shapes: Iterable[Shape], longer: Mapping[str, str]) -> re.Pattern[str]:
    """An expression that finds whether a text may hold any of ``shapes``, by their literals.

    ``longer`` gives what must follow a literal that is common in other words.
    """
    groups: dict[str, list[str]] = {}
    for literal in (literal for one in shapes for literal in one.literals):
        groups.setdefault(literal[0], []).append(re.escape(literal[1:]) + longer.get(literal, ""))
    return re.compile("|".join(f"{c}(?:{'|'.join(rest)})" for c, rest in groups.items()))


def _starts(text: str, at: int) -> bool:
    """Whether no word is under way at ``at``, or only the escape of a JSON text or of a URL."""
    before = text[at - 1 : at]
    if not before or not (before.isascii() and before.isalnum()):
        return True
    return text[max(0, at - 2) : at] in _ESCAPES or text[max(0, at - 3) : at - 2] == "%"


_ESCAPES = frozenset({"\\n", "\\r", "\\t", "\\b", "\\f"})
#: The shortest run of letters, digits, ``_`` and ``-`` that a shape of ``IN_RUNS`` has, and of
#: those and ``+/=~`` that one of ``IN_WIDE_RUNS`` has.
RUN = 16
_TOKEN_BYTES = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"


def _alike(letters: bytes) -> bytes:
    """A table that makes ``letters`` all the same and leaves ``./:`` where they are none."""
    kept = {code: code for code in b"./:"} | dict.fromkeys(letters, 0x61)
    return bytes(kept.get(code, 0x20) for code in range(256))


_NARROW = _alike(_TOKEN_BYTES)
_WIDE = _alike(_TOKEN_BYTES + b"+/=~")


@dataclass(frozen=True)
class Runs:
    """The long runs of a text, one space between them: of token characters, and of base64.

    ``before`` is what of ``./:`` stands before one of token characters.
    """

    narrow: str = ""
    before: frozenset[str] = frozenset()
    wide: str = ""


def long_runs(text: str) -> Runs:
    """The runs of ``RUN`` and more characters in ``text``."""
    raw = text.encode("utf-8", "surrogatepass")
    alike = raw.translate(_WIDE)
    if _RUN_OF_ALIKE not in alike:
        return Runs()
    narrow, before = _runs(raw, raw.translate(_NARROW))
    return Runs(narrow, before, _runs(raw, alike)[0])


_RUN_OF_ALIKE = b"a" * RUN


def _runs(raw: bytes, alike: bytes) -> tuple[str, frozenset[str]]:
    found: list[bytes] = []
    before: set[str] = set()
    at = alike.find(_RUN_OF_ALIKE)
    while at >= 0:
        end = at + RUN
        while (piece := alike[end : end + 4096]) and (size := _leading(piece)):
            end += size
        found.append(raw[at:end])
        before.add(chr(alike[at - 1]) if at else " ")
        at = alike.find(_RUN_OF_ALIKE, end)
    return b" ".join(found).decode("ascii"), frozenset(before)


def _leading(piece: bytes) -> int:
    return len(piece) - len(piece.lstrip(b"a"))


_PEM = r"-----{} (?:[A-Z0-9 ]{{0,40}}PRIVATE KEY(?: BLOCK)?|OpenVPN Static key V\d)-----"
_SSH2 = r"---- {} SSH2 [A-Z ]{{0,20}}PRIVATE KEY ----"
#: (what stands in every such block, its beginning, its end)
_BLOCKS = (
    (
        "BEGIN ",
        re.compile(f"{_PEM.format('BEGIN')}|{_SSH2.format('BEGIN')}"),
        re.compile(f"{_PEM.format('END')}|{_SSH2.format('END')}"),
    ),
    (
        "Private-Lines:",
        re.compile(r"(?<=Private-Lines: )\d{1,4}\s{1,2}"),
        re.compile(r"(?=\r?\nPrivate-MAC:)"),
    ),
)


def key_blocks(text: str) -> Iterator[tuple[int, int]]:
    """Spans of private key blocks (PEM, PGP, SSH2, PuTTY, OpenVPN).

    One without an end reaches to the end of the text.
    """
    for literal, begins, ends in _BLOCKS:
        position = 0 if "-" in text and literal in text else len(text)
        while (start := begins.search(text, position)) is not None:
            end = ends.search(text, start.end())
            position = end.end() if end else len(text)
            yield start.start(), position
