"""Whether a note already says what a fact says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from memoryd.memory.facts import Checked, Fact
from memoryd.memory.notes import Note
from memoryd.memory.providers.base import ShownNote
from memoryd.memory.text import statement_key


def says_same(note: Note | ShownNote, statement: str, content: str = "") -> bool:
    """Whether ``note`` says ``statement``, or has the body ``content``.

    Its description, its body or a line of it must be the statement, but for case, white space,
    quotes, a bullet and the final stop. A part of a line is not enough: "use tabs" stands in
    "never use tabs".
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


def _keys(statement: str, content: str) -> frozenset[str]:
    return frozenset({statement_key(statement), statement_key(content)} - {""})


def sayings(note: Note | ShownNote) -> Iterator[str]:
    """The keys (``text.statement_key``) of what ``note`` says: description, body, each line."""
    for text in (note.description, note.body, *note.body.splitlines()):
        yield statement_key(text)
