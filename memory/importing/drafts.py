"""From a file of another memory to the note it would be: its own bytes under a header of ours.

The header is optional; what it has is kept, unknown keys too. What is missing is found: the name in
the file's name, the description in the index or the first line, the type in the folder, the dates
in the file's times. ``source`` says where the note came from, and is how it is known again.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from memoryd.memory import header, notes
from memoryd.memory.clock import iso
from memoryd.memory.errors import NoteError
from memoryd.memory.importing.sources import Source
from memoryd.memory.importing.walk import SourceFile
from memoryd.memory.notes import ARCHIVE, TYPES, Note, NoteType
from memoryd.memory.text import clip, without_surrogates

#: The type of a note that neither its header nor its folder gives one.
DEFAULT_TYPE: NoteType = "project"
INDEX = "MEMORY.md"
#: What Claude Code's index says besides its index becomes a note of this name.
INDEX_NOTE = "claude-code-memory"

_NAME_CHARACTERS = 120
_DESCRIPTION_CHARACTERS = 160
_INDEX_LINE = re.compile(r"\s*[-*]\s*\[[^\]\n]*\]\(([^)\n]+)\)\s*(?:[-–—:]+\s*(.*))?")
_MARKS = "#>*-•`_ \t"


@dataclass(frozen=True)
class Undraftable:
    """Why a file cannot become a note: the verdict, and in words."""

    verdict: Literal["unreadable", "empty"]
    detail: str


@dataclass(frozen=True)
class Draft:
    """A note that could be written: where it came from, its whole file, and what that says.

    ``called`` is its name there; ``note.path`` is where it would go if nothing were in the way.
    """

    origin: str
    called: str
    data: bytes
    note: Note


def origin_of(source: Source, file: SourceFile) -> str:
    """What the header key ``source`` of the imported note says: no two files have the same."""
    where = f"{source.key}/{file.path.removesuffix('.md')}"
    return f"import {source.kind}:{os.fsencode(where).decode('utf-8', 'backslashreplace')}"


def draft(
    source: Source, file: SourceFile, hooks: Mapping[str, str], now_ms: int
) -> Draft | Undraftable:
    """The note that ``file`` would be; ``hooks`` are the lines of an index, by file.

    What is no text, has a header that cannot be parsed or says nothing cannot become one.
    """
    if not _is_text(file.data):
        return Undraftable("unreadable", "it is not UTF-8 text")
    try:
        read = notes.parse(file.data, f"{DEFAULT_TYPE}/{file.stem}.md")
    except NoteError as error:
        return Undraftable("unreadable", error.message.partition(": ")[2])
    if not read.body and not read.description:
        return Undraftable("empty", "it says nothing")
    origin = origin_of(source, file)
    description = read.description or hooks.get(file.path, "") or _first_line(read.body)
    name = _name(read.name) or _name(file.stem) or "note"
    type_ = _type(source, file)
    data = notes.update(
        file.data,
        name=name,
        description=description,
        type=type_,
        source=origin,
        created=read.created or iso(min(file.born_ms, now_ms)),
        valid_from=read.valid_from or iso(min(file.changed_ms, now_ms)),
    )
    folder = f"{ARCHIVE}/{type_}" if file.path.startswith(f"{ARCHIVE}/") else type_
    note = notes.parse(data, f"{folder}/{notes.file_name(name)}")
    return Draft(origin, read.name, data, note)


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return b"\0" not in data


def renamed(drafted: Draft, name: str, path: str) -> Draft:
    """The same under another name and at another path."""
    data = notes.update(drafted.data, name=name)
    return replace(drafted, data=data, note=notes.parse(data, path))


def is_index(file: SourceFile) -> bool:
    """Whether ``file`` is an index of the notes beside it, rather than a note of that name."""
    return file.path == INDEX and any(map(_INDEX_LINE.fullmatch, _text(file).splitlines()))


def index_hooks(files: list[SourceFile]) -> dict[str, str]:
    """What an index beside the notes says of each, by file: ``- [title](file.md) - what``."""
    index = next((file for file in files if file.path == INDEX), None)
    lines = _text(index).splitlines() if index else []
    found = (_INDEX_LINE.fullmatch(line) for line in lines)
    return {
        match[1].strip().removeprefix("./"): clip(match[2].strip(), _DESCRIPTION_CHARACTERS)
        for match in found
        if match and match[2]
    }


def without_index_lines(index: SourceFile) -> SourceFile | None:
    """An index as the note it is besides: its other lines; None where they say nothing."""
    lines = [line for line in _text(index).splitlines() if not _INDEX_LINE.fullmatch(line)]
    if not any(line.strip() and not line.lstrip().startswith("#") for line in lines):
        return None
    given = {"name": INDEX_NOTE, "description": "What Claude Code's MEMORY.md says itself"}
    head = "".join(f"{key}: {value}\n" for key, value in given.items())
    data = f"---\n{head}---\n" + "\n".join(lines).strip() + "\n"
    return SourceFile(index.path, data.encode(), index.born_ms, index.changed_ms)


def _text(file: SourceFile) -> str:
    return file.data.decode("utf-8", "replace")


def _type(source: Source, file: SourceFile) -> NoteType:
    """By its folder in FreeCode, which never asks the header; elsewhere by the header first."""
    folder = next((each for each in reversed(file.path.split("/")[:-1]) if each in TYPES), "")
    said = _said_type(file.data)
    order = (folder, said) if source.kind == "freecode" else (said, folder)
    wanted = next((each for each in order if each in TYPES), DEFAULT_TYPE)
    return next(each for each in TYPES if each == wanted)


def _said_type(data: bytes) -> str:
    """``type`` of the header, or of ``metadata`` in it, as Claude Code writes it."""
    parts = header.split(data)
    if said := header.read_text(parts.last("type")):
        return said
    metadata = parts.last("metadata")
    lines = metadata.raw[1:] if metadata else ()
    pairs = (line.strip().partition(":") for line in lines)
    return next((value.strip().strip("\"'") for key, _, value in pairs if key == "type"), "")


def _name(name: str) -> str:
    """``name`` on one line, without what divides a type from a name."""
    plain = without_surrogates(name).replace("/", "-").replace("\\", "-")
    return clip(" ".join(plain.split()).strip(" .-"), _NAME_CHARACTERS)


def _first_line(body: str) -> str:
    lines = (line.strip(_MARKS) for line in body.splitlines())
    return clip(
        " ".join(next((line for line in lines if line), "").split()), _DESCRIPTION_CHARACTERS
    )
