"""Whether what a model says was said: its values, names and words, held against the messages.

An exact quote proves only itself: "Loves Rust and lives in Berlin." may come with one. Nothing here
understands a sentence, so nothing here can prove one; what can be told for sure is what was *not*
said. A number, path, identifier or name must stand in what was said; so must a word of the
statement in the messages it stands on, and at least half of its words anywhere, where both are in
one language; and no sentence it quotes may say the opposite.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property

from memoryd.memory.facts import Checked, Fact, NoteDraft, SliceMessage
from memoryd.memory.known import note_name
from memoryd.memory.pairs import COMMON
from memoryd.memory.providers.base import ShownNote
from memoryd.memory.text import fold, slug, words
from memoryd.memory.tongues import apart, comparable, language, stem, telling_stems
from memoryd.memory.values import distinct_values, names, opposes, without_said_as

_PART = re.compile(r"\d+|[^\W\d_]+")
_THOUSANDS = re.compile(r"(?<=\d)[,.' ](?=\d{3}(?!\d))")
#: A number with its unit: "30s" is what "30 seconds" says.
_MEASURE = re.compile(r"[~$€£]?(\d+(?:[.,:]\d+)*)(?:[a-zA-Z]{1,3}|[%°])")
_PLAIN_WORDS = re.compile(r"[^\W\d_]+(?:[-/&+][^\W\d_]+)+")
_SENTENCE = re.compile(r"(?<=[.!?。！？؟])\s+|\n+")
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
_AFFIXES = frozenset("self well non post pre multi semi long short high low being based".split())
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
        return telling_stems(self._text)

    @cached_property
    def _words(self) -> frozenset[str]:
        return frozenset(words(apart(self._text)))

    @cached_property
    def _stems_of_all(self) -> frozenset[str]:
        return frozenset(map(stem, self._words))

    @cached_property
    def _is_form(one: str, other: str) -> bool:
    """Whether two words are the same but for endings."""
    same = max(_SAME_LETTERS, min(len(one), len(other)) - _ENDING)
    return abs(len(one) - len(other)) <= _ENDING and one[:same] == other[:same]


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
        numbers = re.findall(r"\d+", name)
        return next((one for one in numbers if not self._has(one)), "")

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
        if any(self._has(other) for other in _others(word)):
            return True
        return bool(self._ends(word))

    def _ends(self, word: str) -> bool:
        """Whether ``word`` stands here with another ending of at most two letters."""
        if stem(word) not in self._stems_of_all:
            return False
        return any(_is_form(word, other) for other in self._words)


class Proof:
    """The messages of a slice, and the notes that were shown with them."""

    def __init__(self, messages: Sequence[SliceMessage], shown: Sequence[ShownNote] = ()) -> None:
        self._messages = messages
        self._shown = shown

    @cached_property
    def _slice(self) -> Told:
        return Told(fold(message.text) for message in self._messages)

    def fault(self, fact: Fact, checked: Checked) -> str:
        """What of ``fact`` was not said, in a line for a person; "" where nothing is amiss.

        ``checked`` is its evidence. What updates or contradicts a note that was shown may say what
        that note says too.
        """
        told = self._told(fact, checked)
        texts = (fact.statement, *_drafted(fact.note))
        if value := next(filter(None, map(told.lacking, texts)), ""):
            return f"it says {value}, which was not said"
        if fact.note and (value := told.lacking_number(fact.note.name)):
            return f"its name says {value}, which was not said"
        near = Told((*self._around(checked), *self._met(fact, checked)))
        if self._may_be_held(fact.statement, checked, near):
            own = telling_stems(fact.statement)
            if own and own.isdisjoint(near.stems):
                return "it shares no word with the messages it stands on"
            if len(own - told.stems) * 2 > len(own):
                return "over half of its words were never said"
        if any(opposes(fact.statement, one) for one in self._sentences(checked)):
            return "the quoted words say the opposite"
        return ""

    def proven(self, fact: Fact, checked: Checked) -> Fact:
        """``fact`` with as much of its drafted note as is worth keeping.

        No draft is left where it says a value or name that was not said, has a line none of whose
        words were, or is new by more than half: then the statement stands alone. A name that has
        nothing to do with any of it is made of the statement.
        """
        note = fact.note
        if note is None:
            return fact
        told = self._told(fact, checked)
        near = Told((told.text, fact.statement))
        if told.lacking_number(note.name) or any(map(told.lacking, _drafted(note))):
            return replace(fact, note=None)
        if not self._may_be_held(" ".join(_drafted(note)), checked, near):
            return fact
        if any(_is_strange(text, near) for text in _drafted(note)):
            return replace(fact, note=None)
        named = telling_stems(note.name)
        if named and named.isdisjoint(near.stems):
            return replace(fact, note=replace(note, name=slug(fact.statement)))
        return fact

    def _may_be_held(self, text: str, checked: Checked, near: Told) -> bool:
        """Whether ``text`` is in the language of the quoted words, as far as can be told."""
        spans = " ".join(span.span for span in checked.spans)
        return comparable(text, spans if language(spans) else near.text)

    def _told(self, fact: Fact, checked: Checked) -> Told:
        met = self._met(fact, checked)
        return Told((self._slice.text, *met)) if met else self._slice

    def _met(self, fact: Fact, checked: Checked) -> list[str]:
        """What the shown note says that the fact names."""
        if fact.relation.kind not in {"updates", "contradicts"}:
            return []
        name = note_name(fact.relation.name)
        return [
            f"{note.name}\n{note.description}\n{note.body}"
            for note in self._shown
            if (note.store, note.name) == (checked.project, name)
        ]

    def _around(self, checked: Checked) -> list[str]:
        """The messages of the evidence, each with the one before it: a "yes" answers something."""
        seqs = {span.seq for span in checked.spans}
        at = [place for place, message in enumerate(self._messages) if message.seq in seqs]
        places = sorted({*at, *(place - 1 for place in at if place)})
        return [self._messages[place].text for place in places]

    def _sentences(self, checked: Checked) -> Iterable[str]:
        """The sentences that the quoted words stand in."""
        for span in checked.spans:
            for message in self._messages:
                if message.seq == span.seq:
                    sentences = map(fold, _SENTENCE.split(message.text))
                    yield from (one for one in sentences if span.span in one)


def _drafted(note: NoteDraft | None) -> tuple[str, ...]:
    return () if note is None else (note.description, without_said_as(note.content))


def _is_strange(text: str, near: Told) -> bool:
    """Whether ``text`` is mostly new, or a line of it has nothing to do with what was said."""
    own = telling_stems(text)
    lines = (telling_stems(line) for line in text.splitlines())
    alone = any(line and line.isdisjoint(near.stems) for line in lines)
    return alone or len(own - near.stems) * 2 > len(own)


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
        numbers = re.findall(r"\d+", name)
        return next((one for one in numbers if not self._has(one)), "")

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
        if any(self._has(other) for other in _others(word)):
            return True
        return bool(self._ends(word))

    def _ends(self, word: str) -> bool:
        """Whether ``word`` stands here with another ending of one or two letters."""
        if stem(word) not in self._stems_of_all:
            return False
        return any(
            abs(len(word) - len(other)) <= _ENDING
            and other[: max(_SAME_LETTERS, min(len(word), len(other)) - _ENDING)]
            == word[: max(_SAME_LETTERS, min(len(word), len(other)) - _ENDING)]
            for other in self._words
        )


_ENDING, _SAME_LETTERS = 3, 4


class Proof:
    """The messages of a slice, and the notes that were shown with them."""

    def __init__(self, messages: Sequence[SliceMessage], shown: Sequence[ShownNote] = ()) -> None:
        self._messages = messages
        self._shown = shown

    @cached_property
    def _slice(self) -> Told:
        return Told(fold(message.text) for message in self._messages)

    def fault(self, fact: Fact, checked: Checked) -> str:
        """What of ``fact`` was not said, in a line for a person; "" where nothing is amiss.

        ``checked`` is its evidence. What updates or contradicts a note that was shown may say what
        that note says too.
        """
        told = self._told(fact, checked)
        texts = (fact.statement, *_drafted(fact.note))
        if value := next(filter(None, map(told.lacking, texts)), ""):
            return f"it says {value}, which was not said"
        if fact.note and (value := told.lacking_number(fact.note.name)):
            return f"its name says {value}, which was not said"
        near = Told((*self._around(checked), *self._met(fact, checked)))
        if self._may_be_held(fact.statement, checked, near):
            own = telling_stems(fact.statement)
            if own and own.isdisjoint(near.stems):
                return "it shares no word with the messages it stands on"
            if len(own - told.stems) * 2 > len(own):
                return "over half of its words were never said"
        if any(opposes(fact.statement, one) for one in self._sentences(checked)):
            return "the quoted words say the opposite"
        return ""

    def proven(self, fact: Fact, checked: Checked) -> Fact:
        """``fact`` with as much of its drafted note as is worth keeping.

        No draft is left where it says a value or name that was not said, has a line none of whose
        words were, or is new by more than half: then the statement stands alone. A name that has
        nothing to do with any of it is made of the statement.
        """
        note = fact.note
        if note is None:
            return fact
        told = self._told(fact, checked)
        near = Told((told.text, fact.statement))
        if told.lacking_number(note.name) or any(map(told.lacking, _drafted(note))):
            return replace(fact, note=None)
        if not self._may_be_held(" ".join(_drafted(note)), checked, near):
            return fact
        if any(_is_strange(text, near) for text in _drafted(note)):
            return replace(fact, note=None)
        named = telling_stems(note.name)
        if named and named.isdisjoint(near.stems):
            return replace(fact, note=replace(note, name=slug(fact.statement)))
        return fact

    def _may_be_held(self, text: str, checked: Checked, near: Told) -> bool:
        """Whether ``text`` is in the language of the quoted words, as far as can be told."""
        spans = " ".join(span.span for span in checked.spans)
        return comparable(text, spans if language(spans) else near.text)

    def _told(self, fact: Fact, checked: Checked) -> Told:
        met = self._met(fact, checked)
        return Told((self._slice.text, *met)) if met else self._slice

    def _met(self, fact: Fact, checked: Checked) -> list[str]:
        """What the shown note says that the fact names."""
        if fact.relation.kind not in {"updates", "contradicts"}:
            return []
        name = note_name(fact.relation.name)
        return [
            f"{note.name}\n{note.description}\n{note.body}"
            for note in self._shown
            if (note.store, note.name) == (checked.project, name)
        ]

    def _around(self, checked: Checked) -> list[str]:
        """The messages of the evidence, each with the one before it: a "yes" answers something."""
        seqs = {span.seq for span in checked.spans}
        at = [place for place, message in enumerate(self._messages) if message.seq in seqs]
        places = sorted({*at, *(place - 1 for place in at if place)})
        return [self._messages[place].text for place in places]

    def _sentences(self, checked: Checked) -> Iterable[str]:
        """The sentences that the quoted words stand in."""
        for span in checked.spans:
            for message in self._messages:
                if message.seq == span.seq:
                    sentences = map(fold, _SENTENCE.split(message.text))
                    yield from (one for one in sentences if span.span in one)


def _texts(fact: Fact) -> tuple[str, ...]:
    """The texts of ``fact`` whose words are looked at."""
    note = fact.note
    if note is None:
        return (fact.statement,)
    return (fact.statement, note.description, without_said_as(note.content))


def _parts(text: str) -> str:
    """The numbers and words of ``text`` in order, caseless, a space around each."""
    plain = _THOUSANDS.sub("", apart(text)).casefold()
    return f" {' '.join(_PART.findall(plain))} "


def _others(word: str) -> Iterable[str]:
    """Other ways to write ``word``."""
    for alias, name in _ALIASES.items():
        if word == alias:
            yield name
        if word == name:
            yield alias
