"""What an agent's prompt hook is told.

A prompt that asks back to earlier sessions ("what did we decide about ...") is answered with what
was said there; any other one with nothing, and at once. The agent waits: nothing is indexed first,
no model is asked, and what cannot be looked up now is left out.
"""

from __future__ import annotations

import json
from typing import Any

from memoryd.jobs.workplace import Workplace
from memoryd.memory.config import switched_off
from memoryd.memory.errors import UsageError
from memoryd.memory.excluded_places import ExcludedPlaces
from memoryd.memory.projects import Resolver
from memoryd.sessions.asking_back import asks_back
from memoryd.sessions.integration.table import prompt_event
from memoryd.sessions.recall import recall
from memoryd.sessions.search import Search

#: What of an agent's own words is believed: longer ones are no path and no session.
_WORD_CHARACTERS = 4096


def answer(place: Workplace, agent: str, said: bytes) -> dict[str, Any]:
    """What the hook of ``agent`` is to print for the event it ``said``; empty for nothing.

    Raises ``UsageError`` for an agent that takes nothing at its prompts, and for what is no event;
    ``HistoryError`` where the session history cannot be read.
    """
    event = prompt_event(agent)
    if event is None:
        raise UsageError(f"{agent[:80]!r} is no agent that is told anything at a prompt")
    told = _Event.read(said)
    if told.by_child or not told.cwd or not asks_back(told.prompt):
        return {}
    resolver = Resolver(place.home, place.config.projects.worktrees)
    hidden = ExcludedPlaces(resolver, place.config)
    if switched_off(place.environ, "RECALL") or hidden(told.cwd):
        return {}
    if not hidden.settings(told.cwd).memory.auto_recall:
        return {}
    project = resolver.resolve(told.cwd)
    with Search(place.home.session_history, place.clock) as search:
        found = recall(
            search,
            told.prompt,
            project=project.key,
            active=told.session or None,
            stop=None,
            hidden=hidden,
        )
    if not found.included:
        return {}
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": found.block}}


class _Event:
    """What an agent said at its prompt event, as far as it is of use here."""

    def __init__(self, said: dict[str, Any]) -> None:
        self.prompt = said["prompt"] if isinstance(said.get("prompt"), str) else ""
        self.session = _word(said.get("session_id"))
        cwd = _word(said.get("cwd"))
        self.cwd = cwd if cwd.startswith("/") else ""
        #: A sub-agent's prompt is its agent's, no person's.
        self.by_child = bool(said.get("agent_id"))

    @staticmethod
    def read(said: bytes) -> _Event:
        """The event in the bytes. Raises ``UsageError`` where they hold none."""
        try:
            value = json.loads(said.decode("utf-8-sig", "replace"))
        except (ValueError, RecursionError) as error:
            raise UsageError("an event is a JSON object") from error
        if not isinstance(value, dict):
            raise UsageError("an event is a JSON object")
        return _Event(value)


def _word(value: object) -> str:
    sound = isinstance(value, str) and len(value) <= _WORD_CHARACTERS and "\0" not in value
    return str(value).encode("utf-8", "replace").decode() if sound else ""
