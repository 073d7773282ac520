"""Gemini CLI's transcripts: ``tmp/<project>/chats/session-<time>-<id8>.jsonl``, older: ``.json``.

The first line is metadata, ``{"$set": ...}`` lines patch it, ``{"$rewindTo": id}`` takes back the
message of that id and all after it, and any other line is a message. A message that changes is
appended again under its id: the last one counts. The older document holds the same messages in a
list. The working directory stands in ``.project_root`` beside ``chats``. A sub-agent's transcript
lies in a folder named by its parent, or says ``kind: subagent``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from memoryd.sessions.adapter import (
    Found,
    Parsed,
    SessionKind,
    State,
    ToolEnd,
    as_id,
    as_text,
    skip,
)
from memoryd.sessions.documents import Documents, read_head
from memoryd.sessions.lines import LineFile, Lines, open_transcript, stat_file
from memoryd.sessions.loose import (
    Loose,
    Media,
    Object,
    called,
    ended_once,
    folder,
    names_in,
    note_cwd,
    objects,
    rewound,
    spoken,
    words,
)
from memoryd.sessions.source import Item, Source

#: Messages whose later versions are looked for in one reading.
VERSIONS_LIMIT = 200_000

_FILE_NAME = re.compile(r"(session-.+)\.jsonl?")
_SESSION = re.compile(rb'"sessionId"\s*:\s*"([^"\\]{1,200})"')
_KIND = re.compile(rb'"kind"\s*:\s*"subagent"')
_HEAD_BYTES = 4096
_ENDS: dict[str, ToolEnd] = {"success": "ok", "error": "failed", "cancelled": "failed"}


class _Document(msgspec.Struct):
    messages: list[msgspec.Raw] = []


class _Id(msgspec.Struct):
    id: str | None = None
    type: str | None = None


class _Call(msgspec.Struct, omit_defaults=True, gc=False):
    id: Any = None
    name: Any = None
    args: Any = None
    status: Any = None


class _Slim(msgspec.Struct, rename={"patch": "$set", "turn": "$rewindTo"}, omit_defaults=True):
    """What is looked at of a line. What tools gave, nine tenths of it, is passed over."""

    patch: Any = msgspec.UNSET
    turn: Any = msgspec.UNSET
    id: Any = msgspec.UNSET
    type: Any = msgspec.UNSET
    kind: Any = msgspec.UNSET
    timestamp: Any = msgspec.UNSET
    content: Any = msgspec.UNSET
    sessionId: Any = msgspec.UNSET
    toolCalls: list[_Call] | msgspec.UnsetType = msgspec.UNSET


_document = msgspec.json.Decoder(_Document)
_id = msgspec.json.Decoder(_Id)


class _LastOfEach(Lines):
    """Lines, of which only the last one of each ``id`` is an item."""

    def open(self, path: Path, session: str) -> LineFile:
        """The file at ``path``."""
        return _LastOfEachFile(open_transcript(path))


class _LastOfEachFile(LineFile):
    def head(self, data: bytes) -> str:
        """None: the first item need not be the first line."""
        return ""

    def read(self, position: int, cutoff: int | None) -> Iterator[Item]:
        """As every source, but of the versions of one message only the last before the cutoff."""
        end = self.end() if cutoff is None else cutoff
        replaced = self._replaced(position, end)
        for number, item in enumerate(super().read(position, end)):
            if number >= len(replaced) or not replaced[number]:  # it may have grown meanwhile
                yield item

    def _replaced(self, position: int, end: int) -> bytearray:
        """For each line whether a later one is the same message: a byte a line, 1 for yes."""
        last: dict[str, int] = {}
        replaced = bytearray()
        for _, line in super().read(position, end):
            known = _id_on(line)
            if known in last:
                replaced[last[known]] = 1
            if known and (known in last or len(last) < VERSIONS_LIMIT):
                last[known] = len(replaced)
            replaced.append(0)
        return replaced


def _id_on(line: bytes | None) -> str:
    """What the versions of one message have in common; empty for what is none."""
    try:
        found = _id.decode(line) if line else _Id()
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return ""
    return f"{found.type} {found.id}" if found.id else ""


def _messages(data: bytes) -> list[msgspec.Raw]:
    return _document.decode(data).messages


class GeminiCli(Loose, Media):
    """Reads Gemini CLI's transcripts. Keeps nothing; see ``Adapter`` for the contract."""

    name = "gemini-cli"
    passed_over = frozenset({"info", "error", "warning", "gemini", "user"})
    slim = msgspec.json.Decoder(_Slim)

    def __init__(self) -> None:
        self._lines, self._document = _LastOfEach(), Documents(_messages)

    def roots(self, environ: Mapping[str, str]) -> tuple[Path, ...]:
        """``~/.gemini/tmp``."""
        return (folder(environ, "", ".gemini", "tmp"),)

    def discover(self, environ: Mapping[str, str]) -> Iterator[Found]:
        """Each session's newest file in each project's ``chats``; lines before a document."""
        seen: set[str] = set()
        for root in self.roots(environ):
            for path in _files(root):
                session, kind = _about(path)
                if kind == "root" and session not in seen:
                    seen.add(session)
                    yield Found(session, path)

    def session_of(self, path: Path) -> str:
        """The id in its metadata, else the name of the file."""
        return _about(path)[0]

    def start(self, session: str, path: Path) -> State:
        """Kind and working directory as far as the files tell."""
        nested = path.parent.parent.name == "chats"
        chats = path.parent.parent if nested else path.parent
        state = State(session=session, kind=_about(path)[1])
        if nested:
            state.parent = as_id(path.parent.name)
        cwd = read_head(chats.parent / ".project_root", _HEAD_BYTES).decode("utf-8", "replace")
        note_cwd(state, cwd.strip())
        return state

    def source_of(self, path: Path) -> Source:
        """A document where the name says so."""
        return self._document if path.suffix == ".json" else self._lines

    def understand(self, item: Object, state: State) -> Parsed:
        """At most one message, or turns taken back."""
        turn = item.get("$rewindTo")
        if isinstance(turn, str):
            return rewound(state, turn, "rewind")
        kind = as_text(item.get("type"))
        said = (item.get("id"), item.get("timestamp"))
        if kind == "user":
            return spoken("user", words(item.get("content")), state, known_as=said[0], at=said[1])
        if kind == "gemini":
            texts = words(item.get("content"))
            parsed = spoken("assistant", texts, state, known_as=said[0], at=said[1])
            return _tools(item, state, parsed)
        if "sessionId" in item and item.get("kind") == "subagent":
            state.kind = "child"
        return skip(kind or ("metadata" if "$set" in item or "sessionId" in item else "untyped"))


def _tools(item: Object, state: State, parsed: Parsed) -> Parsed:
    for call in objects(item.get("toolCalls")):
        end = _ENDS.get(as_text(call.get("status")))
        if end is not None:  # it may still run, and the message come again
            called(state, call.get("id"), call.get("name"), call.get("args"))
            parsed = ended_once(state, call.get("id"), parsed, end)
    return parsed


def _files(root: Path) -> Iterator[Path]:
    """The files of all projects, a project's newest first; ``.jsonl`` before ``.json``."""
    for project in names_in(root):
        chats = root / project / "chats"
        for name in reversed(names_in(chats)):
            path = chats / name
            if _FILE_NAME.fullmatch(name) and stat_file(path):
                yield path


def _about(path: Path) -> tuple[str, SessionKind]:
    """The session and its kind, as the beginning of the file and its place tell."""
    head = read_head(path, _HEAD_BYTES)
    if path.suffix == ".jsonl":
        head = head.partition(b"\n")[0]
    found = _SESSION.search(head)
    session = found[1].decode("utf-8", "replace") if found else path.stem
    child = _KIND.search(head) or path.parent.parent.name == "chats"
    return session, "child" if child else "root"
