"""A daemon whose provider is an agent with our hooks: it works, and never on its own tracks."""

from __future__ import annotations

import json
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest
from processes import HOOK, TABS, World

pytestmark = pytest.mark.slow

AGENT = Path(__file__).parent.parent / "jobs" / "hooked_agent.py"


@pytest.mark.parametrize("form", ["claude-code", "codex"])
def test_a_daemon_that_asks_a_hooked_agent_comes_to_rest(world: World, form: str) -> None:
    """Two sessions of a person's are two questions; the agent's own two are known and left."""
    kept = "environment directory content"
    command = [sys.executable, str(AGENT), form, kept, str(HOOK), str(world.project)]
    world.configure(f'[provider]\nname = "command"\ncommand = {json.dumps(command)}\n')

    with world.daemon():
        for session in ("s-1", "s-2"):
            world.hook(world.claude(f"{TABS} ({session})", session=session), session)
            world.answer("run", "--once")
        world.answer("run", "--once")

    own = {path.stem[-36:] for path in (world.root / "person").rglob("*.jsonl")} - {"s-1", "s-2"}
    assert len(own) == 2
    assert sorted(job.session for job in world.jobs()) == ["s-1", "s-2"]
    assert {job.status for job in world.jobs()} == {"completed"}
    with world.ledger() as ledger:
        excluded = {each.session: each.excluded for each in ledger.records.rollouts()}
    assert {session: excluded[session] for session in own} == dict.fromkeys(own, "session.own")
    with closing(sqlite3.connect(world.home.session_history)) as history:
        (said,) = history.execute("select count(*) from message where role = 'user'").fetchone()
        sessions = {session for (session,) in history.execute("select session from session")}
    assert (said, sessions) == (2, {"s-1", "s-2"})
