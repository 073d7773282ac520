"""FreeCode's transcripts: ``sessions/<project>/<session>/messages.jsonl``, ``meta.json`` beside.

A message is ``{id, role, parts, timestamp, synthetic?, parentId?}``. Messages are a tree: only the
branch that ends at the leaf (``meta.json`` names it, else it is the last line) is the conversation.
Compaction rewrites the file to its last turns. The rollout log, ``rollout/sessions/<session>/
events.jsonl``, holds no words; it tells when something last happened.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

import msgspec

from memoryd.memory.errors import TranscriptError
from memoryd.memory.facts import Role
from memoryd.sessions.adapter import Found, Parsed, State, as_id, as_text, skip
from memoryd.sessions.documents import read_document
from memoryd.sessions.lines import LineFile, Lines, open_transcript, stat_file
from memoryd.sessions.loose import (
    Loose,
    Object,
    below,
    ended,
    folder,
    names_in,
    note_cwd,
    object_in,
    objects,
    spoken,
)
from memoryd.sessions.source import Item, Look

#: Messages of one session whose place in the tree is looked at.
TREE_LIMIT = 200_000

_MESSAGES = "messages.jsonl"
_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant"}
_WORDS = {"text", "code"}
#: What the person said although the program wrote it down for them.
_STEERED = {"", "steer"}
_CHILD_BEGINS = re.compile(r"You are an? \S{1,40} subagent\.")


class _Node(msgspec.Struct):
    id: str | None = None
    parentId: str | None = None


_node = msgspec.json.Decoder(_Node)


class FreeCode(Loose, Lines):
    """Reads FreeCode's transcripts. Keeps nothing; see ``Adapter`` for the contract."""

    name = "freecode"
    passed_over = frozenset({"system"})

    def roots(self, environ: Mapping[str, str]) -> tuple[Path, ...]:
        """``~/.freecode/sessions``."""
        return (folder(environ, "", ".freecode", "sessions"),)

    def discover(self, environ: Mapping[str, str]) -> Iterator[Found]:
        """Each session of each project that was neither deleted nor spawned."""
        seen: set[str] = set()
        for root in self.roots(environ):
            for project in names_in(root):
                for session in names_in(root / project):
                    path = root / project / session / _MESSAGES
                    if session not in seen and stat_file(path) and _is_a_persons(path):
                        seen.add(session)
                        yield Found(session, path)

    def session_of(self, path: Path) -> str:
        """The folder it is in."""
        return path.parent.name if path.name == _MESSAGES else path.stem

    def start(self, session: str, path: Path) -> State:
        """Working directory and origin as ``meta.json`` says."""
        meta = _meta(path)
        state = State(session=session)
        note_cwd(state, meta.get("projectPath"))
        if session.startswith("subagent-"):
            state.kind = "child"
        else:
            state.forked_from = as_id(as_text(meta.get("parentId")))
        return state

    def open(self, path: Path, session: str) -> LineFile:
        """The lines of the branch that is the conversation."""
        return _Branch(open_transcript(path), as_text(_meta(path).get("leafId")))

    def look(self, path: Path, session: str) -> Look | None:
        """The size of the messages; active when any of the session's files last changed."""
        found = super().look(path, session)
        if found is None or path.name != _MESSAGES:
            return found
        above = path.parents[3] if len(path.parents) > 3 else path.parent
        log = above / "rollout" / "sessions" / session / "events.jsonl"
        others = filter(None, map(stat_file, (path.parent / "meta.json", log)))
        times = [other.st_mtime_ns // 1_000_000 for other in others]
        return Look(max([found.active_ms, *times]), found.at_most)

    def understand(self, item: Object, state: State) -> Parsed:
        """At most one message."""
        role, made_by = as_text(item.get("role")), as_text(item.get("synthetic"))
        if role not in _ROLES:
            return skip(role or as_text(item.get("type")) or "untyped")
        if made_by not in _STEERED:
            return skip(f"{role}.synthetic")
        texts = [
            as_text(part.get("content"))
            for part in objects(item.get("parts"))
            if part.get("type") in _WORDS
        ]
        if role == "user" and not state.begun:
            state.begun = True
            if texts and _CHILD_BEGINS.match(texts[0]):
                state.kind = "child"
        said = (item.get("id"), item.get("timestamp"))
        texts = [text for text in texts if text.strip()]
        parsed = spoken(_ROLES[role], texts, state, known_as=said[0], at=said[1])
        for part in objects(item.get("parts")):
            if part.get("type") == "tool":  # how it ended stands in the log alone
                parsed = ended(state, "", parsed, "unknown", below(part, "tool").get("name"))
        return parsed


class _Branch(LineFile):
    """The lines on the way from the first message to the leaf, and those that are no messages."""

    def __init__(self, file: BinaryIO, leaf: str) -> None:
        super().__init__(file)
        self._leaf = leaf

    def read(self, position: int, cutoff: int | None) -> Iterator[Item]:
        end = self.end() if cutoff is None else cutoff
        dead = self._dead()
        for after, line in super().read(position, end):
            if _node_on(line).id not in dead:
                yield after, line

    def head(self, data: bytes) -> str:
        """None: the first item need not be the first line."""
        return ""

    def _dead(self) -> set[str]:
        """The ids of the messages that are on no way to the leaf."""
        parents: dict[str, str] = {}
        before = ""
        for _, line in super().read(0, self.end()):
            node = _node_on(line)
            if node.id and node.id not in parents and len(parents) < TREE_LIMIT:
                parents[node.id] = before if node.parentId is None else node.parentId
                before = node.id
        alive: set[str] = set()
        here = self._leaf if self._leaf in parents else before
        while here in parents and here not in alive:
            alive.add(here)
            here = parents[here]
        return parents.keys() - alive


def _node_on(line: bytes | None) -> _Node:
    try:
        return _node.decode(line) if line else _Node()
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return _Node()


def _meta(path: Path) -> Object:
    try:
        return object_in(read_document(path.parent / "meta.json"))
    except (TranscriptError, OSError):
        return {}


def _is_a_persons(path: Path) -> bool:
    deleted = _meta(path).get("status") == "deleted"
    return not deleted and not path.parent.name.startswith("subagent-")
