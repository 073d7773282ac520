"""How long agents keep their own transcripts: what is not read by then is lost.

| agent | what decides, in its ``settings.json`` | without it |
|---|---|---|
| Claude Code | ``cleanupPeriodDays``, counted from the last use | 30 days |
| Gemini CLI | ``general.sessionRetention``: ``enabled``, ``maxAge`` (``30d``, ``12h``) | 30 days |

The others keep theirs until a person deletes them. A setting that cannot be understood counts as
not there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from memoryd.sessions.documents import read_head
from memoryd.sessions.integration.jsonc import Node, NotJson, parse
from memoryd.sessions.loose import folder

DAY_MS = 24 * 3600 * 1000
#: What is read of a file of settings at most.
SETTINGS_BYTES = 1024 * 1024
#: Days of both agents where nothing is set.
USUAL_DAYS = 30.0
#: Longer is "for ever": no date a thousand years off helps anybody.
LONGEST_DAYS = 36_500.0

_AGE = re.compile(r"\s*(\d{1,6})\s*([hdwm])\s*")
_DAYS = {"h": 1 / 24, "d": 1.0, "w": 7.0, "m": 30.0}


@dataclass(frozen=True)
class Retention:
    """An agent deletes a session ``days`` after it was last active; ``setting`` says otherwise."""

    agent: str
    days: float
    setting: str

    def deletes_at(self, active_ms: int) -> int:
        """When a session that was last active then is deleted, wall milliseconds."""
        return active_ms + int(self.days * DAY_MS)


def retention_of(agent: str, environ: Mapping[str, str]) -> Retention | None:
    """How long ``agent`` keeps its sessions; None where it deletes none by itself."""
    known = _KNOWN.get(agent)
    return known(environ) if known else None


def _claude_code(environ: Mapping[str, str]) -> Retention | None:
    path = folder(environ, "CLAUDE_CONFIG_DIR", ".claude") / "settings.json"
    value, days = _setting(path, "cleanupPeriodDays"), USUAL_DAYS
    if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0:
        days = float(min(value, LONGEST_DAYS))
    return _unless_for_ever("claude-code", days, f"cleanupPeriodDays in {path}")


def _gemini_cli(environ: Mapping[str, str]) -> Retention | None:
    path = folder(environ, "", ".gemini") / "settings.json"
    if _setting(path, "general", "sessionRetention", "enabled") is False:
        return None
    value = _setting(path, "general", "sessionRetention", "maxAge")
    age = _AGE.fullmatch(value) if isinstance(value, str) else None
    days = int(age[1]) * _DAYS[age[2]] if age else USUAL_DAYS
    return _unless_for_ever("gemini-cli", days, f"general.sessionRetention in {path}")


def _unless_for_ever(agent: str, days: float, setting: str) -> Retention | None:
    return Retention(agent, days, setting) if days < LONGEST_DAYS else None


_KNOWN: dict[str, Callable[[Mapping[str, str]], Retention | None]] = {
    "claude-code": _claude_code,
    "gemini-cli": _gemini_cli,
}


def _setting(path: Path, *keys: str) -> object:
    """The scalar under ``keys`` in the settings ``path``, which may hold comments; else None."""
    text = read_head(path, SETTINGS_BYTES).decode("utf-8-sig", "replace")
    try:
        node: Node | None = parse(text)
    except NotJson:
        return None
    for key in keys:
        node = node.get(key) if node is not None else None
    return node.value if node is not None else None
