"""From decided facts to operations on notes: what each file is to become, without touching one.

A fact becomes a new note, or new words in the note it updates, or the note that supersedes one it
contradicts. What would lose words of an existing note is appended as a line instead; what a person
wrote last is left to review; a fact older than the note it meets goes to the archive.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from memoryd.memory import notes
from memoryd.memory.clock import instant_ms, iso
from memoryd.memory.contests import later_wins
from memoryd.memory.facts import Category, Checked, DraftType, Fact, NoteDraft, Relation
from memoryd.memory.files import sha256
from memoryd.memory.known import known_in, note_name, opposed, says_same
from memoryd.memory.naming import FreeNames
from memoryd.memory.notes import ARCHIVE, Note
from memoryd.memory.plan import Operation
from memoryd.memory.policy import Judged, with_decision
from memoryd.memory.prompt import BODY_CHARACTERS
from memoryd.memory.proposals import FactProposal, to_json
from memoryd.memory.providers.base import ShownNote
from memoryd.memory.scanner import redact
from memoryd.memory.text import clip, slug
from memoryd.memory.values import loses, without_said_as

_DESCRIPTION_CHARACTERS = 160

#: The note types a category may become; the first is taken when the draft says none of them.
TYPES_OF: Mapping[Category, tuple[DraftType, ...]] = {
    "preference": ("feedback", "user"),
    "operating-style": ("feedback", "user"),
    "personal": ("user", "feedback"),
    "other": ("user", "feedback"),
    "work": ("project",),
    "recurring-constraint": ("project",),
    "project": ("project", "reference"),
    "technical-default": ("project", "reference"),
}


def _no_paths(store: str) -> Iterable[str]:
    return ()


def _unknown() -> int | None:
    return None


@dataclass(frozen=True)
class Stock:
    """What the drafts may look at. Nothing here writes.

    ``notes`` gives the notes of a store, the archive included; ``read`` the bytes of a file of a
    store or None; ``by_person`` whether a person changed that file last; ``shown`` is what the
    model was shown, in all chunks. ``source`` (session and job) is written into the notes.
    ``paths`` gives every file of a store, readable or not: no name is taken that differs from one
    of them by case only. ``said_by`` gives by when what has no time of its own was said: it dates a
    note, and decides nothing.
    """

    notes: Callable[[str], Sequence[Note]]
    read: Callable[[str, str], bytes | None]
    by_person: Callable[[str, str], bool]
    shown: Sequence[ShownNote]
    source: str
    now_ms: int
    paths: Callable[[str], Iterable[str]] = _no_paths
    said_by: Callable[[], int | None] = _unknown


@dataclass(frozen=True)
class Draft:
    """The operations, at most one a file, and every candidate with where it went."""

    operations: tuple[Operation, ...]
    judged: tuple[Judged, ...]


def draft(judged: Iterable[Judged], stock: Stock) -> Draft:
    """What the candidates decided ``apply`` become; what they would write is kept with each.

    So too with those in review: a person may come to decide on either.
    """
    desk = _Desk(stock)
    judged = later_wins(tuple(judged), stock.shown)
    placed = (desk.place(one) if one.candidate.decision == "apply" else one for one in judged)
    settled = tuple(_proposed(one, stock) for one in placed)
    return Draft(desk.operations(), settled)


def _proposed(judged: Judged, stock: Stock) -> Judged:
    """A candidate with what a person's yes would write."""
    fact, checked = judged.fact, judged.checked
    if judged.candidate.decision == "ignore" or fact is None or checked is None:
        return judged
    said_by = stock.said_by() if checked.at_ms is None else None
    drafted = (fact.statement, fact.category, fact.note, fact.relation)
    proposal = FactProposal(*drafted, checked.at_ms, said_by)
    return replace(judged, candidate=replace(judged.candidate, draft=to_json(proposal)))


@dataclass
class _File:
    """A file on the desk: as it was found, as it is to be."""

    before: bytes | None
    content: bytes | None
    candidate: str
    lines: tuple[str, ...] = ()


class _Desk:
    """The state of one draft: the files touched so far, in the order they were touched."""

    def __init__(self, stock: Stock) -> None:
        self._stock = stock
        self._files: dict[tuple[str, str], _File] = {}
        self._free = FreeNames(stock.notes, stock.paths, stock.read)
        self._successors: dict[tuple[str, str], str] = {}
        self._known = known_in(stock.notes)

    def operations(self) -> tuple[Operation, ...]:
        """One operation a file."""
        return tuple(
            Operation(
                store=store,
                path=path,
                before=None if file.before is None else sha256(file.before),
                after=None if file.content is None else sha256(file.content),
                content=None if file.content is None else file.content.decode(),
                line="\n".join(file.lines),
                candidate=file.candidate,
            )
            for (store, path), file in self._files.items()
        )

    def place(self, judged: Judged) -> Judged:
        """Put one applied candidate where it belongs, or decide it anew."""
        fact, checked = judged.fact, judged.checked
        if fact is None or checked is None:
            return judged
        if self._known(fact, checked):
            return with_decision(judged, "ignore", "same")
        met = self._met(fact, checked.project)
        if met is None and (opposite := self._opposed(fact, checked.project)) is not None:
            met, fact = opposite, replace(fact, relation=Relation("contradicts", opposite.name))
        if met is not None:
            return self._meet(judged, fact, checked, met)
        past = self._past(fact, checked)
        if past is not None:
            return past(judged)
        return self._new(judged, fact, checked)

    def _opposed(self, fact: Fact, store: str) -> Note | None:
        """The note that says the opposite of a fact that names none."""
        return opposed(self._stock.notes(store), fact.statement)

    def _past(self, fact: Fact, checked: Checked) -> Callable[[Judged], Judged] | None:
        """What becomes of a fact that a superseded note said; None where it is news again."""
        ends = [
            instant_ms(note.valid_until)
            for note in self._stock.notes(checked.project)
            if note.archived and says_same(note, fact.statement)
        ]
        if not ends:
            return None
        if checked.at_ms is None or None in ends:
            return lambda judged: with_decision(judged, "review", "age.unknown")
        if checked.at_ms <= max(end for end in ends if end is not None):
            return lambda judged: with_decision(judged, "ignore", "outdated")
        return None

    def _met(self, fact: Fact, store: str) -> Note | None:
        """The note the fact is related to, if it was shown and is still there."""
        name = note_name(fact.relation.name)
        if fact.relation.kind not in {"updates", "contradicts"} or not name:
            return None
        shown = {note.path for note in self._stock.shown if note.store == store}
        current = (note for note in self._stock.notes(store) if not note.archived)
        return next((note for note in current if note.name == name and note.path in shown), None)

    def _meet(self, judged: Judged, fact: Fact, checked: Checked, met: Note) -> Judged:
        store = checked.project
        if self._stock.by_person(store, met.path):
            return with_decision(judged, "review", "person", f"a person changed {met.path} last")
        age = instant_ms(met.valid_from or met.created)
        replaces = fact.relation.kind == "contradicts"
        if (age is None and replaces) or (age is not None and checked.at_ms is None):
            return with_decision(judged, "review", "age.unknown")
        if age is not None and checked.at_ms is not None and checked.at_ms < age:
            return self._late(judged, fact, checked, met)
        if fact.relation.kind == "updates":
            return self._update(judged, fact, checked, met)
        if (store, met.path) in self._files:
            return with_decision(judged, "review", "conflict")
        return self._supersede(judged, fact, checked, met)

    def _new(
        self, judged: Judged, fact: Fact, checked: Checked, *, replaces: Note | None = None
    ) -> Judged:
        drafted = derived(fact)
        store = checked.project
        name = self._free.name(store, drafted)
        links = (replaces.name,) if replaces else ()
        content = notes.new_note(
            name=name,
            description=drafted.description,
            type=drafted.type,
            body=drafted.content,
            supersedes=links,
            contradicts=links,
            created=iso(self._stock.now_ms),
            source=self._stock.source,
            valid_from=self._dated(checked),
        )
        path = f"{drafted.type}/{notes.file_name(name)}"
        self._put(store, path, content, judged.candidate.id)
        return _placed(judged, path)

    def _late(self, judged: Judged, fact: Fact, checked: Checked, met: Note) -> Judged:
        """A fact older than what it meets: kept where it is readable, never retrieved."""
        drafted = derived(fact)
        store = checked.project
        archived = (note for note in self._stock.notes(store) if note.archived)
        if any(says_same(note, fact.statement) for note in archived):
            return with_decision(judged, "ignore", "outdated")
        name = self._free.name(store, drafted)
        content = notes.new_note(
            name=name,
            description=drafted.description,
            type=drafted.type,
            body=drafted.content,
            created=iso(self._stock.now_ms),
            source=self._stock.source,
            valid_from=self._dated(checked),
            valid_until=met.valid_from or met.created,
            superseded_by=met.name,
        )
        path = f"{ARCHIVE}/{drafted.type}/{notes.file_name(name)}"
        self._put(store, path, content, judged.candidate.id)
        return _placed(judged, path)

    def _update(self, judged: Judged, fact: Fact, checked: Checked, met: Note) -> Judged:
        store = checked.project
        # What a fact of the same slice superseded is no more: its successor has the line.
        path = self._successors.get((store, met.path), met.path)
        data = self._content(store, path)
        if data is None:
            return self._new(judged, fact, checked)
        old = notes.parse(data, path)
        changes: dict[str, str | None] = {
            "body": self._new_body(fact, store, old),
            "source": self._stock.source,
        }
        if (dated := self._dated(checked)) is not None:
            changes["valid_from"] = dated
        if fact.note is not None and changes["body"] == fact.note.content:
            changes["description"] = fact.note.description
        content = notes.update(data, **changes)
        self._put(store, path, content, judged.candidate.id, line=fact.statement)
        return _placed(judged, path)

    def _new_body(self, fact: Fact, store: str, old: Note) -> str:
        """The drafted body, where it was decided on what stands there and loses nothing of it.

        The words the old one stood on are not the note's: they go when it says something else.
        """
        said = without_said_as(old.body)
        shown = next((n for n in self._stock.shown if (n.store, n.path) == (store, old.path)), None)
        whole = (
            shown is not None
            and shown.body.strip() == old.body
            and len(old.body) <= BODY_CHARACTERS
            and redact(old.body)[1] == 0
        )
        if fact.note is not None and whole and not loses(said, fact.note.content):
            return fact.note.content
        return with_line(said, fact.statement)

    def _supersede(self, judged: Judged, fact: Fact, checked: Checked, met: Note) -> Judged:
        store = checked.project
        data = self._content(store, met.path)
        if data is None:
            return self._new(judged, fact, checked)
        placed = self._new(judged, fact, checked, replaces=met)
        successor = placed.candidate.path or ""
        name = notes.parse(self._content(store, successor) or b"", successor).name
        until = self._dated(checked) or iso(self._stock.now_ms)
        old = notes.update(data, valid_until=until, superseded_by=name)
        self._put(store, self._free.path(store, f"{ARCHIVE}/{met.path}"), old, placed.candidate.id)
        self._put(store, met.path, None, placed.candidate.id)
        self._successors[(store, met.path)] = successor
        return placed

    def _dated(self, checked: Checked) -> str | None:
        """When a fact was said, or by when."""
        at_ms = self._stock.said_by() if checked.at_ms is None else checked.at_ms
        return None if at_ms is None else iso(at_ms)

    def _content(self, store: str, path: str) -> bytes | None:
        file = self._files.get((store, path))
        return file.content if file is not None else self._stock.read(store, path)

    def _put(
        self, store: str, path: str, content: bytes | None, candidate: str, line: str = ""
    ) -> None:
        lines = (line,) if line else ()
        file = self._files.get((store, path))
        if file is None:
            before = self._stock.read(store, path)
            self._files[(store, path)] = _File(before, content, candidate, lines)
        else:
            self._files[(store, path)] = replace(file, content=content, lines=file.lines + lines)


def derived(fact: Fact) -> NoteDraft:
    """The fact's note: as drafted where its type fits the category, else made of the statement."""
    allowed = TYPES_OF[fact.category]
    if fact.note is None:
        name = slug(fact.statement)
        return NoteDraft(
            allowed[0], name, clip(fact.statement, _DESCRIPTION_CHARACTERS), fact.statement
        )
    kind = fact.note.type if fact.note.type in allowed else allowed[0]
    return replace(fact.note, type=kind)


def with_line(body: str, statement: str) -> str:
    """``body`` with ``statement`` as one more line, a list item where the body ends in a list."""
    last = body.rstrip().rpartition("\n")[2]
    bullet = re.match(r"[-*] ", last)
    return f"{body.rstrip()}\n{bullet[0] if bullet else ''}{statement}".lstrip("\n")


def _placed(judged: Judged, path: str) -> Judged:
    return replace(judged, candidate=replace(judged.candidate, path=path))
