"""Consolidation: what a store becomes once a day. Decides only; ``memory/apply.py`` writes.

1. ``gather``: the notes, what changed since the last time, and the few worth a closer look.
2. ``request``, asked of a provider once; ``parse_proposals`` reads its answer. Without a provider
   both are left out and the mechanical part remains.
3. ``decide``: exact duplicates become one; then merges, promotions and an episode, each held
   against its rules; then the episodes over 50 go to the archive.

There is no verb to delete, and no path by which a word that was there is nowhere: what a merge
takes away moves to the archive, linked both ways. A file that changed since it was gathered is
left alone. The behaviour is that of FreeCode's consolidation, with its faults mended.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from memoryd.memory.config import CurationSettings
from memoryd.memory.consolidation_additions import decide_episodes, decide_promotions
from memoryd.memory.consolidation_answer import Proposals, parse_proposals
from memoryd.memory.consolidation_desk import Counts, Desk, Forgotten, No, Rules
from memoryd.memory.consolidation_material import Material, gather
from memoryd.memory.consolidation_merges import decide_merges
from memoryd.memory.consolidation_prompt import request
from memoryd.memory.consolidation_upkeep import join_duplicates, retire_episodes
from memoryd.memory.decay import Use
from memoryd.memory.merging import merge_operations
from memoryd.memory.plan import Operation
from memoryd.memory.policy import Candidate

__all__ = [
    "Consolidated",
    "Counts",
    "Material",
    "Proposals",
    "Use",
    "decide",
    "gather",
    "merge_operations",
    "parse_proposals",
    "request",
    "subject",
]


@dataclass(frozen=True)
class Consolidated:
    """What a store is to become. Operations that share ``candidate`` stand or fall together.

    ``outcome`` is why there are no operations, as a code: ``no.candidates`` (no notes),
    ``nothing.changed`` (no model was asked, for nothing changed), ``nothing.proposed``,
    ``nothing.passed`` (all was refused or waits for a person); "" where there are some.
    """

    operations: tuple[Operation, ...]
    candidates: tuple[Candidate, ...]
    counts: Counts
    outcome: str

    @property
    def subject(self) -> str:
        """The first line of the commit."""
        return subject(self.counts)


def decide(
    material: Material,
    proposals: Proposals | None,
    *,
    settings: CurationSettings,
    forgotten: Forgotten,
    new_id: Callable[[], str],
    source: str,
    asked: bool = False,
    before: Collection[str] = (),
) -> Consolidated:
    """What ``material`` becomes; ``proposals`` None: no model was asked, the mechanical part only.

    ``forgotten(name, statement)`` says whether a tombstone covers it. ``source`` (session and job)
    is written into the notes. ``asked``: a person asked for this run, so mode manual behaves as
    auto. ``before`` are the drafts of candidates that wait for a person or were rejected: the same
    is not put to them again. Reads files of the store, writes none; raises ``BaselineError`` where
    ``material.by_person`` does.
    """
    desk = Desk(material, Rules(settings, forgotten, new_id, source, asked, before))
    join_duplicates(desk)
    if proposals is not None:
        _refused(desk, proposals)
        decide_merges(desk, proposals.merges)
        decide_promotions(desk, proposals.promotions)
        decide_episodes(desk, proposals.episodes)
    retire_episodes(desk)
    return Consolidated(
        tuple(desk.operations), tuple(desk.candidates), desk.counts, _outcome(desk, proposals)
    )


def subject(counts: Counts) -> str:
    """The first line of a consolidation's commit: what was done to some, and to how many."""
    told = (
        f"{count} {word}"
        for count, word in (
            (counts.merged, "merged"),
            (counts.promoted, "promoted"),
            (counts.episodes, "episode" if counts.episodes == 1 else "episodes"),
            (counts.archived, "archived"),
        )
        if count
    )
    return "Consolidate: " + (", ".join(told) or "nothing to do")


def _refused(desk: Desk, proposals: Proposals) -> None:
    """The items of an answer that were no proposals, kept so that a person sees why."""
    for item in proposals.refused:
        no = No(item.reason, item.detail)
        desk.refuse(no, statement=item.statement, category="proposal")


def _outcome(desk: Desk, proposals: Proposals | None) -> str:
    if desk.operations:
        return ""
    if not desk.material.notes:
        return "no.candidates"
    if desk.candidates:
        return "nothing.passed"
    return "nothing.proposed" if proposals is not None else "nothing.changed"
