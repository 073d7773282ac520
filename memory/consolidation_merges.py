"""The rules of a proposed merge: which notes it may name, and what it may not lose.

Rows in order; the first that holds decides. What is reviewed keeps a ``MergeProposal``.

==============================================================  =======  =====================
    condition                                                   becomes  reason
==============================================================  =======  =====================
it is not among the first 5                                     ignore   ``cap``
its new text holds a secret                                     ignore   ``scanner.secret``
``into`` is no note, two notes', or not shown in full           ignore   ``merge.unknown`` ...
a note to supersede is that (it alone is left out)              ignore   the same
no note to supersede is left                                    ignore   ``merge.no-target``
merges lead back to the note that one takes away                ignore   ``merge.loop``
another proposal touched one of its notes                       ignore   ``conflict``
one of its notes was changed since it was shown                 ignore   ``changed``
an episode would take in a note that does not fade              ignore   ``merge.type``
a tombstone covers what it says beyond its notes                ignore   ``forgotten``
its notes are about different things                            ignore   ``merge.unrelated``
a value would be lost; over a quarter of the words              ignore   ``merge.loses-value`` ...
it says a value, or a line, that none of its notes does         ignore   ``merge.adds-value``
a person changed one of its notes last                          review   ``person``
the curation mode says so                                       ...      ``mode.review`` ...
it reads like instructions, or holds invisible characters       review   ``scanner.injection`` ...
else                                                            apply    ``policy.passed``
==============================================================  =======  =====================
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memoryd.memory.consolidation_answer import Merge
from memoryd.memory.consolidation_desk import Desk, No
from memoryd.memory.consolidation_prompt import MERGES, shown_name
from memoryd.memory.known import sayings
from memoryd.memory.merging import Text, loss, merge
from memoryd.memory.notes import Note
from memoryd.memory.proposals import MergeProposal, to_json
from memoryd.memory.told import Told
from memoryd.memory.values import without_said_as

_CATEGORY = "merge"


@dataclass(frozen=True)
class _Named:
    """A merge with the notes its names stand for."""

    merge: Merge
    into: Note
    targets: tuple[Note, ...]

    @property
    def every(self) -> tuple[Note, ...]:
        return (self.into, *self.targets)


def decide_merges(desk: Desk, merges: Sequence[Merge]) -> None:
    """Put each of ``merges`` on the desk: as operations, for a person, or refused."""
    names = _Names(desk)
    named: list[_Named] = []
    for at, proposed in enumerate(merges):
        try:
            if at >= MERGES:
                raise No("cap", f"only the first {MERGES} merges are looked at")
            desk.require_clean(proposed.description, proposed.content)
            named.append(_resolve(desk, names, proposed))
        except No as no:
            desk.refuse(no, statement=proposed.description, category=_CATEGORY)
    for one in named:
        try:
            _merge(desk, one, named)
        except No as no:
            statement = one.merge.description
            desk.refuse(no, statement=statement, category=_CATEGORY, path=one.into.path)


class _Names:
    """What a name stands for: as it was shown, or ``type/name``."""

    def __init__(self, desk: Desk) -> None:
        self._whole = {shown.note.path for shown in desk.material.shown if shown.whole}
        self._notes: dict[str, list[Note]] = {}
        for note in desk.material.notes:
            for name in (shown_name(note), f"{note.type}/{shown_name(note)}"):
                self._notes.setdefault(name, []).append(note)

    def find(self, name: str) -> Note:
        """The note of this name that was shown in full. Raises ``No``."""
        found = self._notes.get(name) or self._notes.get(name.strip(" []").removesuffix(".md"), [])
        if not found:
            raise No("merge.unknown", f"no note is called {name}")
        if len(found) > 1:
            raise No("merge.ambiguous", f"{len(found)} notes are called {name}")
        if found[0].path not in self._whole:
            raise No("merge.not-shown", f"{name} was not shown in full")
        return found[0]


def _resolve(desk: Desk, names: _Names, proposed: Merge) -> _Named:
    """The notes a merge names; a name that may not be merged is refused by itself."""
    into = names.find(proposed.into)
    targets: dict[str, Note] = {}
    for name in proposed.supersedes:
        try:
            note = names.find(name)
        except No as no:
            said = f"{name} into {proposed.into}: {proposed.description}"
            desk.refuse(no, statement=said, category=_CATEGORY)
        else:
            targets[note.path] = note
    targets.pop(into.path, None)
    if not targets:
        raise No("merge.no-target")
    return _Named(proposed, into, tuple(targets.values()))


def _merge(desk: Desk, one: _Named, every: Sequence[_Named]) -> None:
    proposed = one.merge
    text = Text(proposed.description, proposed.content)
    if _leads_back(one, every):
        raise No("merge.loop")
    desk.require_untouched(one.every)
    into, *sources = [desk.source(note) for note in one.every]
    _require_sound(desk, one, text)
    draft = to_json(
        MergeProposal(
            one.into.path,
            tuple(note.path for note in one.targets),
            proposed.description,
            proposed.content,
        )
    )
    desk.require_ours(one.every, draft)
    desk.require_mode(draft)
    desk.require_plain(draft, text.description, text.content)
    candidate = desk.rules.new_id()
    operations = merge(desk.hand(candidate), into, sources, text)
    desk.apply(
        candidate,
        operations,
        statement=proposed.description,
        category=_CATEGORY,
        path=one.into.path,
        detail=f"{', '.join(note.name for note in one.targets)} into {one.into.name}",
    )
    desk.count(merged=1, archived=len(sources))


def _require_sound(desk: Desk, one: _Named, text: Text) -> None:
    """Refuse what loses, invents, remembers or joins what it may not."""
    if one.into.type == "episode" and any(note.type != "episode" for note in one.targets):
        raise No("merge.type")
    told = {key for note in one.every for key in sayings(note)}
    desk.require_remembered("", (text.description, text.content), told)
    for note in one.targets:
        if not desk.material.related(note, one.into):
            raise No("merge.unrelated", f"{note.name} has nothing to do with {one.into.name}")
    if code := loss(one.every, text):
        raise No(code)
    _require_nothing_new(one.every, text)
    desk.require_evidence(f"{text.description}\n{text.content}")


def _require_nothing_new(sources: Sequence[Note], text: Text) -> None:
    """Refuse what says more than the notes it stands for, whatever else was shown."""
    told = Told(f"{note.name}\n{note.description}\n{note.body}" for note in sources)
    for part in (text.description, without_said_as(text.content)):
        if value := told.lacking(part):
            raise No("merge.adds-value", f"it says {value}, which none of its notes does")
        if told.is_strange_to(part):
            raise No("merge.adds-value", "it says what none of its notes does")


def _leads_back(one: _Named, every: Sequence[_Named]) -> bool:
    """Whether the survivor is taken away by a chain of merges that ends in one of its targets."""
    taken = {note.path: other.into.path for other in every for note in other.targets}
    ends = {note.path for note in one.targets}
    place: str | None = one.into.path
    for _ in range(len(every) + 1):
        place = taken.get(place or "")
        if place in ends:
            return True
    return False
