"""How well transcripts are read: by agent and version, what was passed over and what is not known.

Agents change what they write without saying so. A type of line that no reader knows is counted and
not fatal; here the counts are put together, so that a version whose sessions are read worse than
those before it can be told.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from memoryd.sessions.adapter import is_known
from memoryd.sessions.agents import adapter_for, known
from memoryd.sessions.history import History
from memoryd.sessions.rows import unlisted

#: Lines of unknown types, and their share of all lines, from which on a version is named.
UNKNOWN_LINES = 20
UNKNOWN_SHARE = 0.1
#: How many times the share of the versions before it.
TIMES_BEFORE = 2.0

_SESSIONS = """
    select agent, version, last_seq, skipped, bad_lines, transcript,
           coalesce(last_active_ms, ingested_ms)
    from session where ingested_ms > 0
"""


@dataclass
class Reading:
    """What the sessions of one agent and version came to. ``version`` is empty where none is said.

    ``messages`` are parts that got a ``seq``; ``known`` and ``unknown`` count lines passed over by
    reason; ``gone`` sessions have no transcript any more; ``last_active_ms`` is of the last one.
    """

    agent: str
    version: str
    sessions: int = 0
    messages: int = 0
    known: dict[str, int] = field(default_factory=dict)
    unknown: dict[str, int] = field(default_factory=dict)
    bad_lines: int = 0
    too_long: int = 0
    gone: int = 0
    last_active_ms: int = 0

    @property
    def strange(self) -> int:
        """Lines that were not understood."""
        return sum(self.unknown.values()) + self.bad_lines

    @property
    def lines(self) -> int:
        """All lines, about: a long message counts as its parts."""
        return self.messages + self.strange + sum(self.known.values()) + self.too_long


def readings(history: History) -> list[Reading]:
    """By agent and version, the newest version of each agent first."""
    with history.database.reading() as cursor:
        rows = cursor.execute(_SESSIONS).fetchall()
    found: dict[tuple[str, str], Reading] = {}
    for agent, version, *counts in rows:
        one = found.setdefault((agent, version), Reading(agent, version))
        _count(one, *counts)
    newest_first = sorted(found.values(), key=lambda one: _newness(one.version), reverse=True)
    return sorted(newest_first, key=lambda one: one.agent)


def _count(
    one: Reading, messages: int, skipped: str, bad_lines: int, transcript: str, active_ms: int
) -> None:
    one.sessions += 1
    one.messages += messages
    one.bad_lines += bad_lines
    one.gone += bool(transcript) and not _is_there(transcript)
    one.last_active_ms = max(one.last_active_ms, active_ms)
    adapter = adapter_for(one.agent) if one.agent in known() else None
    for reason, count in json.loads(skipped).items():
        if reason == "too-long":
            one.too_long += count
            continue
        fine = adapter is None or is_known(adapter, reason)
        counts = one.known if fine else one.unknown
        counts[reason] = counts.get(reason, 0) + count


def _is_there(transcript: str) -> bool:
    try:
        return Path(transcript).exists()
    except (OSError, ValueError):
        return True  # it may be: who may not look cannot say that it is gone


def read_worse(found: Iterable[Reading]) -> list[tuple[Reading, float]]:
    """Of each agent the newest version, where it is read worse than those before, with its share.

    The share is that of lines that were not understood.
    """
    by_agent: dict[str, list[Reading]] = {}
    for one in found:
        by_agent.setdefault(one.agent, []).append(one)
    worse = []
    for newest, *older in by_agent.values():
        share = _share([newest])
        if newest.strange < UNKNOWN_LINES or share < UNKNOWN_SHARE:
            continue
        if not older or share > TIMES_BEFORE * _share(older):
            worse.append((newest, share))
    return worse


def _share(found: Iterable[Reading]) -> float:
    some = list(found)
    return sum(one.strange for one in some) / max(1, sum(one.lines for one in some))


def _newness(version: str) -> tuple[tuple[int, ...], bool, str]:
    """Sorts versions: by their numbers; one with a suffix comes before the same without."""
    numbers = re.match(r"v?([0-9.]*)", version)
    said = numbers[1] if numbers else ""
    rest = version[numbers.end() :] if numbers else version
    return tuple(int(part) for part in said.split(".") if part), not rest, rest


def unreadable(environ: Mapping[str, str], agents: Iterable[str] = ()) -> list[tuple[str, str]]:
    """The agents' databases that cannot be read now: agent, and why."""
    found = []
    for agent in agents or known():
        with unlisted() as told:
            for _ in adapter_for(agent).discover(environ):
                pass
        found += [(agent, why) for why in told.values()]
    return found
