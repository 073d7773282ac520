"""The mechanical part of a consolidation, which needs no model: exact duplicates and retention."""

from __future__ import annotations

from collections.abc import Sequence

from memoryd.memory.consolidation_desk import Desk, No
from memoryd.memory.decay import EPISODES, NEVER, overflow
from memoryd.memory.merging import merge, retire
from memoryd.memory.notes import Note
from memoryd.memory.proposals import MergeProposal, to_json
from memoryd.memory.text import statement_key
from memoryd.memory.values import lacks_value

#: Most files that one run archives by itself, and most groups of duplicates it looks at: a plan
#: holds whole files, and the next run goes on.
ARCHIVED = 200
GROUPS = 100

_CATEGORY = "upkeep"


def join_duplicates(desk: Desk) -> None:
    """Notes of one type that say exactly the same become one: the most used, then the oldest.

    The same is the body but for case, white space, quotes and the final stop (a note without one:
    the description), and for an episode the day. One whose description holds a value that the
    survivor lacks is left alone.
    """
    groups: dict[tuple[str, ...], list[Note]] = {}
    for note in desk.material.notes:
        key = statement_key(note.body) or statement_key(note.description)
        if key:
            groups.setdefault((note.type, key, note.happened_at or ""), []).append(note)
    several = (group for group in groups.values() if len(group) > 1)
    looked_at = 0
    for group in several:
        if looked_at == GROUPS:
            return
        looked_at += _join(desk, sorted(group, key=lambda note: _preference(desk, note)))


def _preference(desk: Desk, note: Note) -> tuple[int, str, str]:
    used = desk.material.usage.get(note.id, NEVER).used
    return -used, note.valid_from or note.created or "9999", note.path


def _join(desk: Desk, group: Sequence[Note]) -> bool:
    """Make one note of a group; False where there was nothing to decide."""
    into = group[0]
    kept = f"{into.description}\n{into.body}"
    others = [note for note in group[1:] if not lacks_value(note.description, kept)]
    others = others[: ARCHIVED - desk.counts.archived]
    paths = tuple(note.path for note in others)
    draft = to_json(MergeProposal(into.path, paths, into.description, into.body))
    if not others or draft in desk.rules.before:
        return False
    try:
        _put(desk, into, others, draft)
    except No as no:
        desk.refuse(no, statement=into.description or into.name, category=_CATEGORY, path=into.path)
    return True


def _put(desk: Desk, into: Note, others: Sequence[Note], draft: str) -> None:
    every = [into, *others]
    survivor, *sources = [desk.source(note) for note in every]
    desk.require_ours(every, draft)
    desk.require_mode(draft)
    candidate = desk.rules.new_id()
    names = ", ".join(note.name for note in others)
    desk.apply(
        candidate,
        merge(desk.hand(candidate), survivor, sources, None),
        statement=into.description or into.name,
        category=_CATEGORY,
        path=into.path,
        reason="duplicate.notes",
        detail=f"{names} into {into.name}: they say the same",
    )
    desk.count(merged=1, archived=len(sources))


def retire_episodes(desk: Desk) -> None:
    """Episodes over 50 go to the archive, the least used first, then the oldest.

    One that a person changed last, or that this run touched, stays and the next one goes. The
    curation mode does not matter: how many are kept is no question of what is written.
    """
    left = [note for note in desk.material.notes if note.path not in desk.touched]
    added = sum(
        1
        for each in desk.operations
        if each.path.startswith("episode/") and each.content is not None
    )
    over = sum(note.type == "episode" for note in left) + added - EPISODES
    for note in overflow(left, desk.material.usage, keep=0):
        if over <= 0 or desk.counts.archived >= ARCHIVED:
            return
        over -= _retire(desk, note)


def _retire(desk: Desk, note: Note) -> int:
    if desk.material.by_person(note.path):
        return 0
    try:
        source = desk.source(note)
        candidate = desk.rules.new_id()
        desk.apply(
            candidate,
            retire(desk.hand(candidate), source),
            statement=note.description or note.name,
            category=_CATEGORY,
            path=note.path,
            reason="retention",
        )
    except No:  # it was changed meanwhile: it is in use, and another one goes
        return 0
    desk.count(archived=1)
    return 1
