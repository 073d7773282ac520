"""Whether what stands in a transcript's place is one of its agent's at all.

Agents change what they write, so a line that no reader knows is counted and not fatal. Where no
line of a whole transcript is known it is another agent's, or no transcript: to take that for a
session in which nobody spoke would write the session off.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from memoryd.memory.errors import TranscriptError, TranscriptForeign
from memoryd.sessions.adapter import Adapter, Parsed, is_known, is_own
from memoryd.sessions.agents import adapter_for, known

#: How far into a transcript ``require_own`` looks: items, and bytes of them.
LOOKED_AT_ITEMS = 200
LOOKED_AT_BYTES = 4 * 1024 * 1024


def foreign(agent: str, transcript: Path, session: str) -> TranscriptForeign:
    """The error for a transcript of which no line is ``agent``'s; it names whose it could be."""
    others = [name for name in known() if name != agent and _knows(name, transcript, session)]
    seems = f"; it looks like one of {' or '.join(others)}" if others else ""
    return TranscriptForeign(
        f"{transcript} is no transcript of {agent}: no line of it is as {agent} writes them{seems}",
        hint="name its agent with --agent, or the right file with --transcript;"
        " nothing of it counts as read",
    )


def require_own(agent: str, transcript: Path, session: str) -> None:
    """Raise ``TranscriptForeign`` where nothing at the beginning of ``transcript`` is ``agent``'s.

    Only the beginning is read. A transcript in which nothing stands yet is fine. Raises what
    opening it does.
    """
    if _speaks(agent, transcript, session) is False:
        raise foreign(agent, transcript, session)


def _knows(agent: str, transcript: Path, session: str) -> bool:
    try:
        return _speaks(agent, transcript, session) is True
    except TranscriptError:
        return False


def _speaks(agent: str, transcript: Path, session: str) -> bool | None:
    """Whether a line of the beginning is ``agent``'s; None where nothing stands there."""
    adapter = adapter_for(agent)
    state = adapter.start(session, transcript)
    strange = False
    for data in _beginning(adapter, transcript, session):
        parsed = adapter.parse(data, state)
        if _is_understood(adapter, parsed):
            return True
        strange = strange or parsed.bad or _is_unknown(adapter, parsed)
    return False if strange else None


def _beginning(adapter: Adapter, transcript: Path, session: str) -> Iterator[bytes]:
    left = LOOKED_AT_BYTES
    with adapter.open(transcript, session) as opened:
        for count, (_, data) in enumerate(opened.read(0, None)):
            left -= len(data or b"")
            if count >= LOOKED_AT_ITEMS or left < 0:
                return
            if data is not None:
                yield data


def _is_unknown(adapter: Adapter, parsed: Parsed) -> bool:
    return bool(parsed.skipped) and not is_known(adapter, parsed.skipped)


def _is_understood(adapter: Adapter, parsed: Parsed) -> bool:
    if parsed.messages or parsed.tools or parsed.saved or parsed.rolled_back:
        return True
    return bool(parsed.skipped) and is_own(adapter, parsed.skipped)
