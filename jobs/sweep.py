"""The full scan that makes rings, watch events and hooks unnecessary for correctness."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from memoryd.jobs.archive import home_made_ms
from memoryd.jobs.discovery import adapters
from memoryd.jobs.intake import Taken, take_in
from memoryd.jobs.records import Rollout
from memoryd.jobs.workplace import Workplace, find_transcript
from memoryd.memory.errors import TranscriptError, UsageError
from memoryd.memory.log import failed, logger

if TYPE_CHECKING:
    from memoryd.sessions.adapter import Adapter
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

    Looks at the sessions that discovery found or jobs were made for: those that were told of, and
    those the agents have touched since this home was made, because no agent promises to say when a
    session ends. Older ones are the archive (``backfill.py``). How many jobs were made comes back.
    """
    if not place.config.memory.auto_extract or not place.config.curation.audit_on_session_end:
        return 0
    archive = place.ledger.archive
    read = {adapter.name: adapter for adapter in adapters(place.config)}
    longer = [(rollout, False) for rollout in archive.unread(home_made_ms(place.home))]
    shorter = [(rollout, True) for rollout in archive.rewritten()]
    made = 0
    for rollout, is_shorter in longer + shorter:
        adapter = read.get(rollout.agent)
        if adapter is None:
            continue
        try:
            made += _finalize(place, adapter, rollout, is_shorter=is_shorter)
        except (TranscriptError, UsageError) as error:
            # Gone meanwhile, or a name that no row can hold: the others must not wait for it.
            logger().warning("transcript.left", agent=rollout.agent, reason=error.code)
        except (OSError, ValueError) as error:
            failed("rollout.unreadable", error)  # a path that is none
    return made


def _finalize(place: Workplace, adapter: Adapter, rollout: Rollout, *, is_shorter: bool) -> int:
    """Make a finalize where the transcript was still for a while; 1 when that made a job.

    It must be longer than what any finalize was to read, or, rewritten by its agent, shorter.
    """
    path, last = Path(rollout.transcript), rollout.last_cutoff
    look = adapter.look(path, rollout.session)
    if look is None or not _is_still(place, look):
        return 0  # None: gone, or not ours to read; nothing more can be learned from it
    if look.at_most >= last if is_shorter else look.at_most <= last:
        return 0
    cutoff = adapter.end(path, rollout.session)
    if cutoff <= last and not is_shorter:
        return 0  # what grew is an item that is not whole yet
    made = place.ledger.enqueue(
        "finalize",
        rollout.agent,
        rollout.session,
        cutoff=cutoff,
        transcript=rollout.transcript,
        cwd=rollout.cwd,
        trigger="sweep",
        reason="idle",
    )
    if is_shorter:
        place.ledger.archive.made(rollout.agent, rollout.session)
    return int(made.created)


def _is_still(place: Workplace, look: Look) -> bool:
    now = place.clock.now_ms()
    # Written by a clock that was ahead and is right by now: not in this moment, so not any more.
    ahead = look.active_ms > now + AHEAD_MS
    return ahead or look.active_ms <= now - place.config.sessions.idle_minutes * MINUTE_MS
