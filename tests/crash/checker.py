"""What must hold after a crash and a restart, compared with a run that nothing disturbed."""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path

from processes import World, rows

from memoryd.memory.clock import SystemClock
from memoryd.sessions.history import History

VICTIM = Path(__file__).with_name("victim.py")
SESSION = ("claude-code", "s-1")

_JOB = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
_CREATED = re.compile(r"^created: \S+$", re.MULTILINE)


def victim(world: World, point: str, time: str, *arguments: str) -> list[str]:
    """The command of a ``memoryd`` that dies at ``point`` the ``time``-th time (``-``: never)."""
    return [sys.executable, str(VICTIM), point, time, str(world.root / "calls"), *arguments]


def calls(world: World) -> Counter[str]:
    """How often the model was asked, by the first message of the chunk."""
    path = world.root / "calls"
    return Counter(path.read_text("utf-8").split() if path.exists() else [])


def notes(world: World) -> dict[str, str]:
    """The notes without what differs from one run to the next: the job's id and the time."""
    return {
        path: _CREATED.sub("created: NOW", _JOB.sub("JOB", text))
        for path, text in world.notes().items()
    }


def slices(world: World) -> list[str]:
    """The slice of each commit, the oldest first."""
    return [trailers["Memoryd-Slice"] for trailers in reversed(world.commits())]


def assert_all_is_told(world: World) -> None:
    """One job completed, the cursor at the end, nothing half done, nothing left to do."""
    tables = rows(world)
    job = world.job()

    assert (job.status, job.outcome_code) == ("completed", "notes.written")
    assert tables["memoryd.sqlite:plan"] == []
    with world.ledger() as ledger:
        assert ledger.idle()
        assert ledger.cursor(*SESSION) == _last_message(world)
    assert list(world.home.inbox.glob("*.json")) == []
    assert world.is_clean()
    assert [path.name for path in world.home.root.rglob("*.tmp")] == []


def _last_message(world: World) -> int:
    with History(world.home.session_history, SystemClock()) as history:
        return history.last_seq(*SESSION)


def assert_as_undisturbed(world: World, undisturbed: World) -> None:
    """The same notes with the same text, and each slice in exactly one commit."""
    assert notes(world) == notes(undisturbed)
    assert slices(world) == slices(undisturbed)
