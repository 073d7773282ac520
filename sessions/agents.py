"""The agents whose transcripts can be read, by name."""

from __future__ import annotations

from memoryd.memory.errors import UsageError
from memoryd.sessions.adapter import Adapter
from memoryd.sessions.claude_code import ClaudeCode
from memoryd.sessions.codex import Codex
from memoryd.sessions.copilot_cli import CopilotCli
from memoryd.sessions.cursor import Cursor
from memoryd.sessions.estacoda import EstaCoda
from memoryd.sessions.freecode import FreeCode
from memoryd.sessions.gemini_cli import GeminiCli
from memoryd.sessions.generic import Generic
from memoryd.sessions.hermes import Hermes
from memoryd.sessions.openclaw import OpenClaw
from memoryd.sessions.opencode import OpenCode
from memoryd.sessions.qwen_code import QwenCode

_ALL: tuple[Adapter, ...] = (
    ClaudeCode(),
    Codex(),
    CopilotCli(),
    Cursor(),
    EstaCoda(),
    FreeCode(),
    GeminiCli(),
    Generic(),
    Hermes(),
    OpenClaw(),
    OpenCode(),
    QwenCode(),
)
_ADAPTERS: dict[str, Adapter] = {adapter.name: adapter for adapter in _ALL}


def known() -> tuple[str, ...]:
    """The names of all agents whose transcripts can be read, sorted."""
    return tuple(sorted(_ADAPTERS))


def adapter_for(agent: str) -> Adapter:
    """The adapter of ``agent``. Raises ``UsageError`` that names the known ones."""
    if agent not in _ADAPTERS:
        raise UsageError(
            f"no agent is called {agent[:80]!r}", hint=f"the known ones are {', '.join(known())}"
        )
    return _ADAPTERS[agent]
