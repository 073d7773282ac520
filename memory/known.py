"""Whether a note already says what a fact says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from memoryd.memory.facts import Answer, Checked, Fact, Relation
from memoryd.memory.memo import kept_for_short
from memoryd.memory.notes import Note
from memoryd.memory.providers.base import ShownNote
from memoryd.memory.values import opposes, sense_key, without_said_as


def says_same(note: Note | ShownNote, statement: str, content: str = "") -> bool:
    """Whether ``note`` says ``statement``, or has the body ``content``.

    Its description, its body or a line of it must be the statement in the sense of
    ``values.sense_key``. A part of a line is not enough: "use tabs" stands in "never use tabs".
    """
    return not _keys(statement, content).isdisjoint(sayings(note))


def known_in(notes_of: Callable[[str], Sequence[Note]]) -> Callable[[Fact, Checked], bool]:
    """The question whether a current note of the fact's project says the same already.

    ``notes_of`` is asked once a project; build a new question after notes have changed.
    """
    told: dict[str, frozenset[str]] = {}

    def known(fact: Fact, checked: Checked) -> bool:
        store = checked.project
        if store not in told:
            current = (note for note in notes_of(store) if not note.archived)
            told[store] = frozenset(key for note in current for key in sayings(note))
        content = fact.note.content if fact.note else ""
        return not _keys(fact.statement, content).isdisjoint(told[store])

    return known


def opposed(notes: Sequence[Note], statement: str) -> Note | None:
    """The current note that says nothing but the opposite of ``statement``; None where none does.

    A note of several lines says more than can be told by comparing words.
    """
    for note in notes:
        body = without_said_as(note.body)
        alone = not note.archived and "\n" not in body
        if alone and opposes(body or note.description, statement):
            return note
    return None


def shown_only(answers: Sequence[Answer], shown: Sequence[ShownNote]) -> list[Answer]:
    """``answers`` in which "the same as a note" that was never shown counts as new."""
    names = {note.name for note in shown}

    def checked(fact: Fact) -> Fact:
        relation = fact.relation
        invented = relation.kind == "same" and note_name(relation.name) not in names
        return replace(fact, relation=Relation("new")) if invented else fact

    return [replace(one, facts=tuple(map(checked, one.facts))) for one in answers]


def note_name(named: str | None) -> str:
    """The name in what a model calls a note: ``feedback/tabs.md`` is ``tabs``."""
    return (named or "").removesuffix(".md").rpartition("/")[2]


def _keys(statement: str, content: str) -> frozenset[str]:
    return frozenset({sense_key(statement), sense_key(content)} - {""})


def sayings(note: Note | ShownNote) -> tuple[str, ...]:
    """The keys (``values.sense_key``) of what ``note`` says: description, body, each line."""
    return _sayings(note.description, note.body)


@kept_for_short
def _sayings(description: str, body: str) -> tuple[str, ...]:
    return tuple(map(sense_key, (description, body, *body.splitlines())))
