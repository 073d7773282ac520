"""Cursor's transcripts: ``projects/<folder>/agent-transcripts/<session>/<session>.jsonl``.

Each line is ``{role, message: {content}}``, most without a time and none with an id. What a person
typed stands in ``<user_query>`` where there is one. The folder is the working directory with every
separator made a dash, which cannot be undone by its letters: the directory is the one of that name
that exists, where there is exactly one. A sub-agent's transcript lies in ``subagents``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from memoryd.memory.facts import Role
from memoryd.sessions.adapter import Found, Parsed, State, as_id, as_text, skip
from memoryd.sessions.lines import Lines, stat_file
from memoryd.sessions.loose import (
    Loose,
    Object,
    below,
    ended,
    folder,
    names_in,
    note_cwd,
    objects,
    spoken,
    words,
)

#: Folders listed in the search for a working directory.
LISTED_LIMIT = 512
_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant"}
_TYPED = re.compile(r"<user_query>(.*?)(?:</user_query>|\Z)", re.DOTALL)
_DASHED = re.compile(r"[^A-Za-z0-9]+")


class _Part(msgspec.Struct, omit_defaults=True, gc=False):
    type: Any = msgspec.UNSET
    name: Any = msgspec.UNSET
    text: Any = msgspec.UNSET
    thought: Any = msgspec.UNSET


class _Message(msgspec.Struct, omit_defaults=True):
    content: str | list[_Part] | msgspec.UnsetType = msgspec.UNSET


class _Slim(msgspec.Struct, omit_defaults=True):
    """What is looked at of a line; what tools were given is passed over."""

    role: Any = msgspec.UNSET
    type: Any = msgspec.UNSET
    timestamp: Any = msgspec.UNSET
    message: _Message | msgspec.UnsetType = msgspec.UNSET


class Cursor(Loose, Lines):
    """Reads Cursor's transcripts. Keeps nothing; see ``Adapter`` for the contract."""

    name = "cursor"
    passed_over = frozenset({"turn_ended"})
    slim = msgspec.json.Decoder(_Slim)

    def roots(self, environ: Mapping[str, str]) -> tuple[Path, ...]:
        """``~/.cursor/projects``."""
        return (folder(environ, "", ".cursor", "projects"),)

    def discover(self, environ: Mapping[str, str]) -> Iterator[Found]:
        """Each session's own file; those of its sub-agents lie deeper."""
        seen: set[str] = set()
        for root in self.roots(environ):
            for project in names_in(root):
                transcripts = root / project / "agent-transcripts"
                for session in names_in(transcripts):
                    path = transcripts / session / f"{session}.jsonl"
                    if session not in seen and stat_file(path):
                        seen.add(session)
                        yield Found(session, path)

    def session_of(self, path: Path) -> str:
        """The name of the file."""
        return path.stem

    def start(self, session: str, path: Path) -> State:
        """A child in ``subagents``, else a root; in the directory that the folder is named for."""
        child = path.parent.name == "subagents"
        home = Path("/", *path.parts[: -5 if child else -3])
        state = State(session=session, kind="child" if child else "root")
        if child:
            state.parent = as_id(path.parent.parent.name)
        if home.parent.name == "projects":
            note_cwd(state, directory_named(home.name))
        return state

    def understand(self, item: Object, state: State) -> Parsed:
        """At most one message."""
        role = as_text(item.get("role"))
        if role not in _ROLES:
            return skip(role or as_text(item.get("type")) or "untyped")
        content = below(item, "message").get("content")
        texts = words(content)
        if role == "user":
            texts = list(_typed(texts))
        parsed = spoken(_ROLES[role], texts, state, at=item.get("timestamp"))
        for part in objects(content):
            if part.get("type") == "tool_use":  # of its result nothing is written
                parsed = ended(state, "", parsed, "unknown", part.get("name"))
        return parsed


def _typed(texts: list[str]) -> Iterator[str]:
    for text in texts:
        queries = _TYPED.findall(text)
        yield from queries or [text]


def directory_named(name: str) -> str:
    """The one existing directory whose path, dashes for what is no letter or digit, is ``name``.

    Empty where there is none or more than one, or where too many would have to be looked at.
    """
    found, waiting, listed = [], [Path("/")], 0
    while waiting:
        above = waiting.pop()
        listed += 1
        if listed > LISTED_LIMIT:
            return ""
        before = str(above).rstrip("/")
        for each in names_in(above):
            # Told by its name alone before it is looked at: a folder may hold thousands of others.
            below_it = f"{before}/{each}"
            dashed = _DASHED.sub("-", below_it).strip("-")
            is_it, leads_there = dashed == name, name.startswith(f"{dashed}-")
            if (is_it or leads_there) and Path(below_it).is_dir():
                found += [below_it] if is_it else []
                waiting += [Path(below_it)] if leads_there else []
    return found[0] if len(found) == 1 else ""
