"""Whether what a model says was said: its values, names and words, held against the messages.

An exact quote proves only itself: "Loves Rust and lives in Berlin." may come with one. Nothing here
understands a sentence, so nothing here can prove one; what can be told for sure is what was *not*
said. A number, path, identifier or name must stand in what was said; so must a word of the
statement in the messages it stands on, and at least half of its words anywhere, where both are in
one language, and of each of its clauses one; and no sentence it quotes may say the opposite.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property

from memoryd.memory.facts import Checked, Fact, NoteDraft, SliceMessage
from memoryd.memory.known import note_name
from memoryd.memory.providers.base import ShownNote
from memoryd.memory.text import fold, slug
from memoryd.memory.told import Told
from memoryd.memory.tongues import comparable, in_one_language, language, telling_stems
from memoryd.memory.values import opposes, without_said_as

_SENTENCE = re.compile(r"(?<=[.!?。！？؟])\s+|\n+")


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
        own, quoted = telling_stems(fact.statement), _quoted(checked, near)
        if comparable(fact.statement, quoted) and own and own.isdisjoint(near.stems):
            return "it shares no word with the messages it stands on"
        if in_one_language(fact.statement, quoted) and len(own - told.stems) * 2 > len(own):
            return "over half of its words were never said"
        if in_one_language(fact.statement, quoted) and told.is_strange_to_a_clause(fact.statement):
            return "a part of it was never said"
        if any(opposes(fact.statement, one) for one in self._sentences(checked)):
            return "the quoted words say the opposite"
        return ""

    def proven(self, fact: Fact, checked: Checked) -> Fact:
        """``fact`` with as much of its drafted note as is worth keeping.

        No draft is left where it says a value or name that was not said, has a line none of whose
        words were, or is new by more than half: then the statement stands alone. A name of several
        words that has nothing to do with any of it is made of the statement; one word is a topic.
        """
        note = fact.note
        if note is None:
            return fact
        told = self._told(fact, checked)
        near = Told((told.text, fact.statement))
        if told.lacking_number(note.name) or any(map(told.lacking, _drafted(note))):
            return replace(fact, note=None)
        if not in_one_language(" ".join(_drafted(note)), _quoted(checked, near)):
            return fact
        if any(map(near.is_strange_to, _drafted(note))):
            return replace(fact, note=None)
        named = telling_stems(note.name)
        if len(named) > 1 and named.isdisjoint(near.stems):
            return replace(fact, note=replace(note, name=slug(fact.statement)))
        return fact

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


def _quoted(checked: Checked, near: Told) -> str:
    """The quoted words, or all that was said near them where those do not tell their language."""
    spans = " ".join(span.span for span in checked.spans)
    return spans if language(spans) else near.text


def _drafted(note: NoteDraft | None) -> tuple[str, ...]:
    return () if note is None else (note.description, without_said_as(note.content))
