"""The full scan that makes rings, watch events and hooks unnecessary for correctness."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from memoryd.jobs.intake import Taken, take_in
from memoryd.jobs.records import Rollout
from memoryd.jobs.workplace import Workplace, find_transcript
from memoryd.memory.errors import TranscriptError, UsageError
from memoryd.memory.log import logger
from memoryd.memory.own_calls import is_own_transcript

if TYPE_CHECKING:
    from memoryd.sessions.adapter import Adapter, Found
    from memoryd.sessions.source import Look

MINUTE_MS = 60_000
#: How far ahead of now a transcript's time may be, and still be of a session that goes on.
AHEAD_MS = 60 * MINUTE_MS


def take_in_envelopes(place: Workplace) -> Taken:
    """Turn what lies in the inbox into rows."""

    def find(agent: str, session: str) -> Path | None:
        return find_transcript(place.environ, agent, session)

    return take_in(place.home, place.ledger, find)


def finalize_idle(place: Workplace) -> int:
    """Make a finalize for every transcript that was still a while and holds more than one read.

    Looks at the sessions that jobs were made for, and at those the agents have touched since this
    home was made: no agent promises to say when a session ends. Older ones are the archive, which
    is another matter. How many jobs were made comes back.
    """
    if not place.config.memory.auto_extract or not place.config.curation.audit_on_session_end:
        return 0
    now = place.clock.now_ms()
    still_since = now - place.config.sessions.idle_minutes * MINUTE_MS
    made = 0
    for known in _sessions(place):
        if not _is_idle(known, still_since, now):
            continue
        try:
            made += _finalize(place, known)
        except (TranscriptError, UsageError) as error:
            # Gone meanwhile, or a name that no row can hold: the others must not wait for it.
            logger().warning("transcript.left", agent=known.adapter.name, reason=error.code)
    return made


@dataclass(frozen=True)
class _Session:
    """A session that may have ended, and the last cutoff a job was made for (-1: none)."""

    adapter: Adapter
    session: str
    transcript: Path
    cwd: str = ""
    last_cutoff: int = -1

    def look(self) -> Look | None:
        """A cheap look at its transcript."""
        return self.adapter.look(self.transcript, self.session)


def _sessions(place: Workplace) -> Iterator[_Session]:
    """Every session that may have ended."""
    from memoryd.sessions.agents import adapter_for, known

    adapters = {name: adapter_for(name) for name in place.config.sessions.agents or known()}
    discovered = {
        (name, found.session): found
        for name, adapter in adapters.items()
        for found in adapter.discover(place.environ)
    }
    for rollout in place.ledger.records.rollouts():
        found = discovered.pop((rollout.agent, rollout.session), None)
        if rollout.excluded is not None or rollout.agent not in adapters:
            continue
        adapter = adapters[rollout.agent]
        transcript = _where(adapter, rollout, found)
        if transcript is not None:
            known_as = (adapter, rollout.session, transcript)
            yield _Session(*known_as, rollout.cwd, rollout.last_cutoff)
    made_ms = place.home.identity.stat().st_mtime_ns // 1_000_000
    for (name, session), found in discovered.items():
        if not is_own_transcript(found.path) and _active_ms(adapters[name], found) >= made_ms:
            yield _Session(adapters[name], session, found.path)


def _where(adapter: Adapter, rollout: Rollout, found: Found | None) -> Path | None:
    """Where a known session is: as it was told, or where its agent goes on with it now."""
    told = Path(rollout.transcript) if rollout.transcript else None
    if found is None or found.path == told:
        return told
    look = adapter.look(told, rollout.session) if told else None
    newer = look is None or _active_ms(adapter, found) > look.active_ms
    return found.path if newer else told


def _active_ms(adapter: Adapter, found: Found) -> int:
    if found.active_ms is not None:
        return found.active_ms
    look = adapter.look(found.path, found.session)
    return look.active_ms if look else 0


def _is_idle(known: _Session, still_since: int, now: int) -> bool:
    look = known.look()  # None: gone, or not ours to read; nothing more can be learned from it
    if look is None or look.at_most <= known.last_cutoff:
        return False
    # Written by a clock that was ahead and is right by now: not in this moment, so not any more.
    return look.active_ms <= still_since or look.active_ms > now + AHEAD_MS


def _finalize(place: Workplace, known: _Session) -> int:
    cutoff = known.adapter.end(known.transcript, known.session)
    if cutoff <= known.last_cutoff:
        return 0  # what grew is an item that is not whole yet
    made = place.ledger.enqueue(
        "finalize",
        known.adapter.name,
        known.session,
        cutoff=cutoff,
        transcript=str(known.transcript),
        cwd=known.cwd,
        trigger="sweep",
        reason="idle",
    )
    return int(made.created)
