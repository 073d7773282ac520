"""The agents that run a program at their events: where they are told so, and how.

Formats and limits are those of each agent's own documentation of its hooks, read in autumn 2026.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

#: What covers every session whose agent says nothing.
SWEEP = "the sweep finds what said nothing at its end, once it has been still for half an hour"


@dataclass(frozen=True)
class Agent:
    """One agent that has hooks of its own."""

    #: As ``memoryd-hook`` and the transcripts' readers call it.
    name: str
    title: str
    #: Its folder below the person's, and the variable that moves the folder; empty if none does.
    folder: str
    variable: str
    file: str
    #: The agent's event -> (ours, timeout in the agent's own unit; 0 to leave it to the agent).
    events: Mapping[str, tuple[str, int]]
    #: The highest timeout that the agent takes, by event; it complains about a higher one.
    caps: Mapping[str, int]
    #: Whether an event's list holds groups of hooks, as Claude Code's, or the hooks themselves.
    grouped: bool = True
    #: Members that the file must have besides.
    members: Mapping[str, int] | None = None
    #: What a person has to know or do.
    notes: tuple[str, ...] = ()

    def directory(self, environ: Mapping[str, str]) -> Path:
        """The agent's own folder; it is on the machine where that is there."""
        moved = environ.get(self.variable) if self.variable else None
        return Path(moved) if moved else Path(environ.get("HOME") or "~") / self.folder

    def settings(self, environ: Mapping[str, str]) -> Path:
        """The person's settings of the agent."""
        return self.directory(environ) / self.file


#: Seconds; the hook itself leaves within 0.3. Claude Code gives all hooks of SessionEnd together
#: 1.5 s unless one asks for more.
_CLAUDE = {
    "SessionEnd": ("session-end", 5),
    "Stop": ("stop", 5),
    "PreCompact": ("pre-compact", 5),
    "UserPromptSubmit": ("prompt", 5),
}
#: Codex cuts SessionEnd at 3 s and warns at every start about more.
_CODEX = _CLAUDE | {"SessionEnd": ("session-end", 3)}
#: Milliseconds.
_GEMINI = {
    "SessionEnd": ("session-end", 5000),
    "AfterAgent": ("stop", 5000),
    "PreCompress": ("pre-compact", 5000),
    "BeforeAgent": ("prompt", 5000),
}
_QWEN = {name: (ours, seconds * 1000) for name, (ours, seconds) in _CLAUDE.items()}
_CURSOR = {"sessionEnd": ("session-end", 0), "stop": ("stop", 0), "preCompact": ("pre-compact", 0)}

AGENTS: tuple[Agent, ...] = (
    Agent(
        "claude-code",
        "Claude Code",
        ".claude",
        "CLAUDE_CONFIG_DIR",
        "settings.json",
        _CLAUDE,
        {},
        notes=("a session that is killed says nothing", SWEEP),
    ),
    Agent(
        "codex",
        "Codex",
        ".codex",
        "CODEX_HOME",
        "hooks.json",
        _CODEX,
        {"SessionEnd": 3},
        notes=(
            "Codex asks once whether you trust a hook: say so with /hooks, and again when it moves",
            "before 0.145 it says nothing at a session's end",
            SWEEP,
        ),
    ),
    Agent(
        "gemini-cli",
        "Gemini CLI",
        ".gemini",
        "",
        "settings.json",
        _GEMINI,
        {},
        notes=("it does not wait for hooks at a session's end", SWEEP),
    ),
    Agent("qwen-code", "Qwen Code", ".qwen", "", "settings.json", _QWEN, {}, notes=(SWEEP,)),
    Agent(
        "cursor",
        "Cursor",
        ".cursor",
        "",
        "hooks.json",
        _CURSOR,
        {},
        grouped=False,
        members={"version": 1},
        notes=("its hook can add nothing to a prompt", SWEEP),
    ),
)


def prompt_event(agent: str) -> str | None:
    """The event of ``agent`` at which its hook may add to a prompt; None where it has none."""
    found = (each.events for each in AGENTS if each.name == agent)
    return next((name for events in found for name in events if events[name][0] == "prompt"), None)


@dataclass(frozen=True)
class Silent:
    """An agent that cannot be told to run a program, or does not say which session it is about."""

    name: str
    title: str
    #: Below the person's folder; found where one is there.
    folders: tuple[str, ...]
    why: str


SILENT: tuple[Silent, ...] = (
    Silent(
        "opencode",
        "OpenCode",
        (".local/share/opencode", ".config/opencode"),
        "it runs plugins of its own, no programs",
    ),
    Silent(
        "copilot-cli", "Copilot CLI", (".copilot",), "its hooks are not told which session ended"
    ),
    Silent("openclaw", "OpenClaw", (".openclaw",), "it runs plugins of its own, no programs"),
    Silent("hermes", "Hermes", (".hermes",), "it has no hooks that run a program"),
    Silent("estacoda", "EstaCoda", (".estacoda",), "it has no hooks that run a program"),
    Silent("freecode", "FreeCode", (".freecode",), "the form of its hooks is not documented"),
)
