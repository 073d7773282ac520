"""How an episode fades for the read path, and which episodes a store lets go of first.

Only episodes fade: what holds for a person or a project does not become less true with age.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from memoryd.memory.clock import instant_ms
from memoryd.memory.notes import Note

#: Episodes a store keeps outside its archive. Source: FreeCode.
EPISODES = 50

_HALF_LIFE_DAYS = 30.0
_FLOOR, _FLOOR_A_USE, _FLOOR_MOST = 0.25, 0.15, 0.9
_DAY_MS = 86_400_000


@dataclass(frozen=True)
class Use:
    """How often a note was shown in a prompt, how often that shaped the answer, and when last.

    ``last_used_at_ms`` is 0 for never.
    """

    shown: int = 0
    used: int = 0
    last_used_at_ms: int = 0


NEVER = Use()


def decay(age_days: float, uses: int) -> float:
    """The factor, 0..1, by which an episode's score is multiplied.

    ``max(min(0.9, 0.25 + 0.15 * ln(uses + 1)), 0.5 ** (age_days / 30))``: it halves every 30 days,
    down to a floor that use lifts. A future date counts as today. Source: FreeCode.
    """
    floor = min(_FLOOR_MOST, _FLOOR + _FLOOR_A_USE * math.log(max(uses, 0) + 1))
    return max(floor, math.exp2(-max(age_days, 0.0) / _HALF_LIFE_DAYS))


def age_days(note: Note, now_ms: int, first_commit_ms: int | None = None) -> float:
    """How many days ago what ``note`` tells was: since ``happened_at``, else since ``created``.

    A note with neither is as old as the commit that brought it (ms); where that is unknown too, 0.
    """
    known = instant_ms(note.happened_at or note.created)
    at = first_commit_ms if known is None else known
    return 0.0 if at is None else max(now_ms - at, 0) / _DAY_MS


def factor(note: Note, use: Use, now_ms: int, first_commit_ms: int | None = None) -> float:
    """``decay`` of an episode; 1 for every other note."""
    if note.type != "episode":
        return 1.0
    return decay(age_days(note, now_ms, first_commit_ms), use.used)


def overflow(
    notes: Iterable[Note], usage: Mapping[str, Use], keep: int = EPISODES
) -> tuple[Note, ...]:
    """The episodes over ``keep``: the least used first, then the oldest. ``usage`` is by note id.

    An undated episode counts as older than any dated one. Source: FreeCode.
    """
    episodes = [note for note in notes if note.type == "episode" and not note.archived]
    episodes.sort(
        key=lambda note: (
            usage.get(note.id, NEVER).used,
            note.happened_at or (note.created or "")[:10],
            note.path,
        )
    )
    return tuple(episodes[: max(len(episodes) - keep, 0)])
