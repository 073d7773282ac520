"""docs/agents.md says what is done to each agent's settings."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

from memoryd.sessions.integration.integrating import State
from memoryd.sessions.integration.table import AGENTS, SILENT

ROOT = Path(__file__).parents[3]
DOCUMENT = (ROOT / "docs" / "agents.md").read_text()


def test_every_agent_is_documented_as_its_settings_are_edited() -> None:
    """Its name, its file and its events in the table of docs/agents.md."""
    for agent in AGENTS:
        (row,) = [line for line in DOCUMENT.splitlines() if line.startswith(f"| `{agent.name}` |")]
        words = [f"~/{agent.folder}/{agent.file}", *(f"`{event}`" for event in agent.events)]
        assert [word for word in words if word not in row] == []
    assert [agent.name for agent in SILENT if f"`{agent.name}`" not in DOCUMENT] == []


def test_every_state_of_an_integration_and_every_code_of_the_hook_is_documented() -> None:
    """Whatever `integrate --json` and the hook's log can say."""
    refused = re.findall(r'Refused\("([^"]+)"', (ROOT / "cli" / "hook.py").read_text())
    assert [word for word in (*get_args(State), *refused) if f"`{word}`" not in DOCUMENT] == []
