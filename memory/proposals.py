"""What a candidate in review would write, kept as JSON until a person decides.

A fact keeps the note it was drafted as, its relation, and when it was said; a merge the notes it
names. Both are decided anew on the store as it is when the person says yes.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from memoryd.memory.facts import Category, NoteDraft, Relation


@dataclass(frozen=True)
class FactProposal:
    """A fact to be written. ``at_ms`` is when its newest words were said (None: unknown).

    ``said_by_ms`` is by when they were said, where only that is known.
    """

    statement: str
    category: Category
    note: NoteDraft | None
    relation: Relation
    at_ms: int | None
    said_by_ms: int | None = None


@dataclass(frozen=True)
class MergeProposal:
    """Notes to be merged: ``into`` and ``supersedes`` are paths in the candidate's store."""

    into: str
    supersedes: tuple[str, ...]
    description: str
    content: str


Proposal = FactProposal | MergeProposal


class _Kept(msgspec.Struct, omit_defaults=True):
    fact: FactProposal | None = None
    merge: MergeProposal | None = None


def to_json(proposal: Proposal) -> str:
    """The form kept with the candidate."""
    if isinstance(proposal, FactProposal):
        return msgspec.json.encode(_Kept(fact=proposal)).decode()
    return msgspec.json.encode(_Kept(merge=proposal)).decode()


def from_json(text: str) -> Proposal | None:
    """Read ``to_json`` back; None for what is neither. Raises ``msgspec.DecodeError``."""
    kept = msgspec.json.decode(text, type=_Kept)
    return kept.fact or kept.merge
