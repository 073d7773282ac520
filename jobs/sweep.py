"""The full scan that makes rings, watch events and hooks unnecessary for correctness."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from memoryd.jobs.intake import Taken, take_in
from memoryd.jobs.records import Rollout
from memoryd.jobs.workplace import Workplace, find_transcript
from memoryd.memory.errors import TranscriptError, UsageError
from memoryd.memory.log import logger

MINUTE_MS = 60_000


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
    for agent, session, transcript, cwd, last_cutoff in _sessions(place):
        if not _is_idle(transcript, last_cutoff, still_since):
            continue
        try:
            made += _finalize(place, agent, session, transcript, cwd, last_cutoff)
        except (TranscriptError, UsageError) as error:
            # Gone meanwhile, or a name that no row can hold: the others must not wait for it.
            logger().warning("transcript.left", agent=agent, reason=error.code)
    return made


def _sessions(place: Workplace) -> Iterator[tuple[str, str, Path, str, int]]:
    """(agent, session, transcript, cwd, last cutoff) of every session that may have ended."""
    from memoryd.sessions.agents import adapter_for, known

    agents = place.config.sessions.agents or known()
    #: Known sessions whose transcript is not where it was, or was never seen.
    lost: dict[tuple[str, str], Rollout] = {}
    seen: set[tuple[str, str]] = set()
    for rollout in place.ledger.records.rollouts():
        session = (rollout.agent, rollout.session)
        seen.add(session)
        if rollout.excluded is not None or rollout.agent not in agents:
            continue
        if not rollout.transcript or not _modified_ms(Path(rollout.transcript)):
            lost[session] = rollout
        else:
            yield (*session, Path(rollout.transcript), rollout.cwd, rollout.last_cutoff)
    made_ms = place.home.identity.stat().st_mtime_ns // 1_000_000
    for agent in agents:
        for found in adapter_for(agent).discover(place.environ):
            session = (agent, found.session)
            if session in lost:
                yield (*session, found.path, lost[session].cwd, lost[session].last_cutoff)
            elif session not in seen and _modified_ms(found.path) >= made_ms:
                yield (*session, found.path, "", -1)


def _is_idle(transcript: Path, last_cutoff: int, still_since: int) -> bool:
    try:
        found = transcript.stat()
    except OSError:
        return False  # gone, or not ours to read: nothing more can be learned from it
    return found.st_size > last_cutoff and found.st_mtime_ns // 1_000_000 <= still_since


def _modified_ms(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns // 1_000_000
    except OSError:
        return 0


def _finalize(
    place: Workplace, agent: str, session: str, transcript: Path, cwd: str, last_cutoff: int
) -> int:
    from memoryd.sessions.lines import whole_lines_end

    cutoff = whole_lines_end(transcript)
    if cutoff <= last_cutoff:
        return 0  # what grew is an unfinished line
    made = place.ledger.enqueue(
        "finalize",
        agent,
        session,
        cutoff=cutoff,
        transcript=str(transcript),
        cwd=cwd,
        trigger="sweep",
        reason="idle",
    )
    return int(made.created)
