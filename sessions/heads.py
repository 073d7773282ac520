"""The beginning of a transcript: whose it is and where it was held, from a bounded look.

Ingestion finds out more and is what counts; this is what the archive knows of a session before it
is its turn.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from memoryd.memory.errors import TranscriptError
from memoryd.sessions.adapter import Adapter, SessionKind, State
from memoryd.sessions.compressed import Compressed
from memoryd.sessions.lines import Lines
from memoryd.sessions.source import Source

#: How far into a transcript is looked at most, in bytes; few say where they are held later.
HEAD_BYTES = 256 * 1024
#: Lines that are parsed at most.
HEAD_LINES = 200

_SOURCES: dict[str, Source] = {".jsonl": Lines(), ".zst": Compressed()}


@dataclass(frozen=True)
class Head:
    """What the beginning tells; ``cwd`` is empty where it says none."""

    kind: SessionKind = "root"
    cwd: str = ""


def head_of(adapter: Adapter, path: Path, session: str) -> Head:
    """What the beginning of the transcript at ``path`` says; a root's where nothing can be read."""
    try:
        state = adapter.start(session, path)
        if not state.cwd:
            _read_on(adapter, path, state)
    except (TranscriptError, OSError, sqlite3.Error):
        return Head()  # whoever reads it says what is wrong
    return Head(state.kind, state.cwd)


def _read_on(adapter: Adapter, path: Path, state: State) -> None:
    """Parse lines into ``state`` until one says the directory."""
    for _, line in zip(range(HEAD_LINES), _lines(path), strict=False):
        if line is not None:
            adapter.parse(line, state)
        if state.cwd:
            return


def _lines(path: Path) -> Iterator[bytes | None]:
    """The first whole lines; none of a document or a database, whose readers know at the start."""
    source = _SOURCES.get(path.suffix)
    if source is None:
        return
    with source.open(path, "") as opened:
        for _, line in opened.read(0, HEAD_BYTES):
            yield line
