"""What was said, as what a claim is held against: its values, names and words in any spelling."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property

from memoryd.memory.pairs import COMMON
from memoryd.memory.text import words
from memoryd.memory.tongues import apart, language, stem, telling, telling_stems
from memoryd.memory.values import distinct_values, names

_PART = re.compile(r"\d+|[^\W\d_]+")
#: Where one claim ends and another begins. Commas do not tell: they part lists too.
_CLAUSES = re.compile(r",?\s(?:and|but|en|maar|und|aber|et|mais|y|pero|e|и)\s|[;.。；]\s?")
#: The name of a text without ASCII words (``text.slug``).
_UNNAMED = re.compile("note-[0-9a-f]{10}")
_THOUSANDS = re.compile(r"(?<=\d)[,'](?=\d{3}(?!\d))")
#: A number with its unit: "30s" is what "30 seconds" says.
_MEASURE = re.compile(r"[~$€£]?(\d+(?:[.,:]\d+)*)(?:[a-zA-Z]{1,3}|[%°])")
_PLAIN_WORDS = re.compile(r"[^\W\d_]+(?:[-/&+][^\W\d_]+)+")
#: Letters that may be another ending of a word, and those that never are.
_ENDING, _SAME_LETTERS = 2, 5
#: Other ways to write what is one thing.
_ALIASES: dict[str, str] = {
    alias: name
    for name, aliases in {
        "javascript": "js",
        "typescript": "ts",
        "python": "py",
        "postgresql": "postgres psql pg",
        "kubernetes": "k8s",
        "database": "db databases",
        "continuous integration": "ci",
        "pull request": "pr prs pull-request",
        "merge request": "mr mrs",
        "vscode": "vs-code",
        "mac": "macos osx",
        "golang": "go",
        "monday": "mon",
        "tuesday": "tue tues",
        "wednesday": "wed",
        "thursday": "thu thur thurs",
        "friday": "fri",
        "saturday": "sat",
        "sunday": "sun",
        "january": "jan",
        "february": "feb",
        "march": "mar",
        "april": "apr",
        "august": "aug",
        "september": "sep sept",
        "october": "oct",
        "november": "nov",
        "december": "dec",
    }.items()
    for alias in aliases.split()
}
_NUMBERS: dict[str, str] = {
    word: str(number)
    for spelled in (
        "zero one two three four five six seven eight nine ten eleven twelve",
        "nul een twee drie vier vijf zes zeven acht negen tien elf twaalf",
        "null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf",
        "zéro un deux trois quatre cinq six sept huit neuf dix onze douze",
        "cero uno dos tres cuatro cinco seis siete ocho nueve diez once doce",
        "zero um dois três quatro cinco seis sete oito nove dez onze doze",
        "zero uno due tre quattro cinque sei sette otto nove dieci undici dodici",
        "صفر واحد اثنان ثلاثة اربعة خمسة ستة سبعة ثمانية تسعة عشرة",
        "〇 一 二 三 四 五 六 七 八 九 十",
    )
    for number, name in enumerate(spelled.split())
    for word in words(name)
}
#: What compounds are made with that are no names.
_AFFIXES = frozenset(words("self well non post pre multi semi long short high low being based"))
#: Names that the statement gives to those who talk.
_SPEAKERS = frozenset({"user", "person", "assistant", "agent", "claude", "ai", "model"})


class Told:
    """Texts as what a claim is held against; each part of it is made when it is first needed."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._text = "\n".join(texts)

    @property
    def text(self) -> str:
        """All of it."""
        return self._text

    @cached_property
    def stems(self) -> frozenset[str]:
        """The stems of its telling words."""
        return telling(self._words)

    @cached_property
    def _words(self) -> frozenset[str]:
        return frozenset(words(apart(self._text)))

    @cached_property
    def _stems_of_all(self) -> frozenset[str]:
        return frozenset(map(stem, self._words))

    @cached_property
    def _parts(self) -> str:
        return _parts(self._text)

    def lacking(self, text: str) -> str:
        """The first value or name of ``text`` that stands nowhere here; "" where all do."""
        text = apart(text)
        for value in sorted(distinct_values(text)):
            if not self._has_value(value):
                return value
        if language(text) == "de":  # every noun has a capital
            return ""
        return next((name for name in sorted(names(text)) if not self._has_name(name)), "")

    def lacking_number(self, name: str) -> str:
        """The first number in a note's name that stands nowhere here; "" where all do."""
        numbers = () if _UNNAMED.fullmatch(name) else re.findall(r"(?<![^-])\d+(?![^-])", name)
        return next((one for one in numbers if not self._has(one)), "")

    def is_strange_to(self, text: str) -> bool:
        """Whether ``text`` is new by more than half, or has a line none of whose words is here."""
        own = telling_stems(text)
        lines = (telling_stems(line) for line in text.splitlines())
        alone = any(line and line.isdisjoint(self.stems) for line in lines)
        return alone or len(own - self.stems) * 2 > len(own)

    def is_strange_to_a_clause(self, text: str) -> bool:
        """Whether a clause of ``text`` has telling words and none of them is here."""
        clauses = map(telling_stems, _CLAUSES.split(text))
        return any(clause and clause.isdisjoint(self.stems) for clause in clauses)

    def _has(self, text: str) -> bool:
        parts = _parts(text)
        return not parts.strip() or parts in self._parts

    def _has_value(self, value: str) -> bool:
        if self._has(value):
            return True
        if value.isdigit():
            return any(n == str(int(value)) and w in self._words for w, n in _NUMBERS.items())
        if measured := _MEASURE.fullmatch(value):
            return self._has_value(measured[1])
        if re.search(r"\d", value):
            return any(map(self._has, _others(value.casefold())))
        if _PLAIN_WORDS.fullmatch(value):
            return all(one in _AFFIXES or self._has_word(one) for one in words(value))
        return self._has_name(value)

    def _has_name(self, name: str) -> bool:
        if name.startswith(("I'", "I’")) or name.casefold() in _SPEAKERS:
            return True
        return all(map(self._has_word, words(name)))

    def _has_word(self, word: str) -> bool:
        if word in self._words or word in COMMON or len(word) < 2:
            return True
        if word.removesuffix("s") in self._words or any(map(self._has, _others(word))):
            return True
        return self._ends(word)

    def _ends(self, word: str) -> bool:
        """Whether ``word`` stands here with another ending of at most two letters."""
        if stem(word) not in self._stems_of_all:
            return False
        return any(_is_form(word, other) for other in self._words)


def _parts(text: str) -> str:
    """The numbers and words of ``text`` in order, caseless, a space around each."""
    plain = _THOUSANDS.sub("", apart(text)).casefold()
    return f" {' '.join(_PART.findall(plain))} "


def _is_form(one: str, other: str) -> bool:
    """Whether two words are the same but for endings."""
    same = max(_SAME_LETTERS, min(len(one), len(other)) - _ENDING)
    return abs(len(one) - len(other)) <= _ENDING and one[:same] == other[:same]


def _others(word: str) -> Iterable[str]:
    """Other ways to write ``word``."""
    for alias, name in _ALIASES.items():
        if word == alias:
            yield name
        if word == name:
            yield alias
