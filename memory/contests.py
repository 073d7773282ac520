"""What one slice says twice, differently: the later word wins.

Two facts of one slice are at odds when both contradict the same note, when one contradicts the
other by its drafted name, or when one forbids what the other asks. The one whose newest evidence
was said earlier is ignored, ``overridden``, and the later takes over what it stood against.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from memoryd.memory.facts import Checked, Fact, Relation
from memoryd.memory.known import note_name
from memoryd.memory.policy import Judged, with_decision
from memoryd.memory.providers.base import ShownNote
from memoryd.memory.text import slug
from memoryd.memory.values import opposes


def later_wins(judged: Sequence[Judged], shown: Sequence[ShownNote]) -> list[Judged]:
    """``judged`` without what a later fact of the same project overrides.

    Only facts decided ``apply`` take part; ``shown`` are the notes a relation may name.
    """
    result = list(judged)
    names = {(note.store, note.name) for note in shown}
    applied = [at for at, one in enumerate(judged) if one.candidate.decision == "apply"]
    applied.sort(key=lambda at: (_said_at(judged[at]), at))
    for place, at in enumerate(applied):
        for before in applied[:place]:
            loser, winner = result[before], result[at]
            if loser.candidate.decision == "apply" and _at_odds(loser, winner, names):
                result[before] = with_decision(loser, "ignore", "overridden")
                result[at] = _heir(winner, loser, names)
    return result


def _said_at(judged: Judged) -> int:
    spans = judged.checked.spans if judged.checked else ()
    return max((span.seq for span in spans), default=0)


def _at_odds(one: Judged, other: Judged, names: set[tuple[str, str]]) -> bool:
    if one.fact is None or other.fact is None or one.checked is None or other.checked is None:
        return False
    store = one.checked.project
    if store != other.checked.project:
        return False
    met = _contradicted(one.fact), _contradicted(other.fact)
    if met[0] and met[0] == met[1] and (store, met[0]) in names:
        return True
    return (
        _names_draft(one.fact, other.fact, store, names)
        or _names_draft(other.fact, one.fact, store, names)
        or opposes(one.fact.statement, other.fact.statement)
    )


def _contradicted(fact: Fact) -> str:
    return note_name(fact.relation.name) if fact.relation.kind == "contradicts" else ""


def _names_draft(fact: Fact, other: Fact, store: str, names: set[tuple[str, str]]) -> bool:
    """Whether ``fact`` contradicts the note that ``other`` is to become."""
    named = _contradicted(fact)
    drafted = other.note.name if other.note else slug(other.statement)
    return bool(named) and (store, named) not in names and named == drafted


def _heir(winner: Judged, loser: Judged, names: set[tuple[str, str]]) -> Judged:
    """The winner against the note the loser stood against, where it names none that was shown."""
    fact, lost = winner.fact, loser.fact
    if fact is None or lost is None:
        return winner
    store = _project(winner.checked)
    if (store, note_name(fact.relation.name)) in names:
        return winner
    kept = lost.relation if lost.relation.kind != "same" else Relation("new")
    return replace(winner, fact=replace(fact, relation=kept))


def _project(checked: Checked | None) -> str:
    return checked.project if checked else ""
