"""Notes: one durable statement, one markdown file, in and out without losing a person's byte."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Literal, get_args

from memoryd.memory import header
from memoryd.memory.errors import NoteError
from memoryd.memory.files import sha256
from memoryd.memory.memo import kept_for_short
from memoryd.memory.text import slug, without_surrogates

NoteType = Literal["user", "feedback", "project", "reference", "episode"]

#: In the order in which they are listed, and in which one name found twice is resolved.
TYPES: tuple[NoteType, ...] = get_args(NoteType)

#: The folder of superseded notes; below it the same folders, one a type.
ARCHIVE = "archive"

_NAME_CHARACTERS = 80
_SAFE_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_INSTANT = re.compile(
    r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:Z|[+-]\d\d:\d\d)?)?"
)
_LISTS = ("tags", "supersedes", "contradicts")
_TIMES = ("happened_at", "created", "valid_from", "valid_until")
_KEYS = (
    "name",
    "description",
    "type",
    "tags",
    "supersedes",
    "happened_at",
    "created",
    "source",
    "valid_from",
    "valid_until",
    "contradicts",
    "superseded_by",
)

Value = str | Sequence[str] | None


@dataclass(frozen=True)
class Note:
    """One note as it is read. ``path`` is relative to its store; its folder decides the type.

    ``body`` is trimmed and has LF line ends; ``sha256`` is that of the whole file. Dates
    (``happened_at`` a day; ``created`` and the ends of validity a day or an RFC 3339 instant) are
    None where the file has none or one that is no date.
    """

    path: str
    type: NoteType
    name: str
    description: str
    body: str
    tags: tuple[str, ...] = ()
    supersedes: tuple[str, ...] = ()
    happened_at: str | None = None
    created: str | None = None
    source: str | None = None
    valid_from: str | None = None
    valid_until: str | None = None
    contradicts: tuple[str, ...] = ()
    superseded_by: str | None = None
    sha256: str = ""

    @property
    def archived(self) -> bool:
        """Superseded: readable, not retrieved."""
        return self.path.startswith(f"{ARCHIVE}/")

    @property
    def id(self) -> str:
        """``type/name``, what citations name."""
        return f"{self.type}/{self.name}"


@kept_for_short
def parse(data: bytes, path: str) -> Note:
    """Read the note at ``path`` (relative to its store).

    A file without a header is all body. Raises ``NoteError``, which names the file, only when the
    header cannot be parsed or the folder is no type.
    """
    try:
        parts = header.split(data)
    except NoteError as error:
        raise NoteError(f"{path}: {error.message}", hint=error.hint) from error

    last = {entry.key: entry for entry in parts.entries}

    def text(key: str) -> str:
        return header.read_text(last.get(key))

    def items(key: str) -> tuple[str, ...]:
        return header.read_list(last.get(key))

    def time(key: str) -> str | None:
        return _time(key, text(key))

    return Note(
        path=path,
        type=type_of(path),
        name=text("name") or PurePosixPath(path).stem,
        description=text("description"),
        body=parts.body.decode("utf-8", "replace").replace("\r\n", "\n").strip(),
        tags=items("tags"),
        supersedes=items("supersedes"),
        happened_at=time("happened_at"),
        created=time("created"),
        source=text("source") or None,
        valid_from=time("valid_from"),
        valid_until=time("valid_until"),
        contradicts=items("contradicts"),
        superseded_by=text("superseded_by") or None,
        sha256=sha256(data),
    )


def type_of(path: str) -> NoteType:
    """The type that the folder of ``path`` stands for; ``NoteError`` for any other folder."""
    folder = path.rpartition("/")[0].rpartition("/")[2]
    for known in TYPES:
        if folder == known:
            return known
    raise NoteError(f"{path} is in no folder of notes", hint=f"folders are {', '.join(TYPES)}")


def file_name(name: str) -> str:
    """The safe kebab-case file name (with ``.md``) of a note called ``name``."""
    if len(name) <= _NAME_CHARACTERS and _SAFE_NAME.fullmatch(name):
        return f"{name}.md"
    return f"{slug(name, _NAME_CHARACTERS)}.md"


def day(text: str) -> str | None:
    """``text`` where it is a day that exists, ``YYYY-MM-DD`` (so not 2026-02-30), else None."""
    return _time("happened_at", text)


def new_note(
    *,
    name: str,
    description: str,
    type: NoteType,
    body: str,
    tags: Sequence[str] = (),
    supersedes: Sequence[str] = (),
    happened_at: str | None = None,
    created: str | None = None,
    source: str | None = None,
    valid_from: str | None = None,
    valid_until: str | None = None,
    contradicts: Sequence[str] = (),
    superseded_by: str | None = None,
) -> bytes:
    """The file of a new note; ``parse`` gives every value back (the body trimmed, lists of blanks
    dropped). Raises ``NoteError`` for a date that is none."""
    given: dict[str, Value] = {
        "name": name,
        "description": description,
        "type": type,
        "tags": tags,
        "supersedes": supersedes,
        "happened_at": happened_at,
        "created": created,
        "source": source,
        "valid_from": valid_from,
        "valid_until": valid_until,
        "contradicts": contradicts,
        "superseded_by": superseded_by,
    }
    parts = header.Split(b"", "---\n", (), "---\n", b"")
    for key in _KEYS:
        parts = parts.with_value(key, _written(key, given[key]))
    text = without_surrogates(body).replace("\r\n", "\n").strip()
    return parts.join() + (f"{text}\n".encode() if text else b"")


def update(data: bytes, **changes: Value) -> bytes:
    """``data`` with only the named keys (and ``body``) changed; every other byte is kept.

    Unknown keys, comments, order, BOM and line ends stay; None or an empty value takes the key
    away; a value that is there already leaves its lines as they are. Raises ``NoteError`` when the
    header cannot be parsed, ``TypeError`` for a key that is none of a note's.
    """
    parts = header.split(data)
    for key, value in changes.items():
        if key == "body":
            parts = _with_body(parts, value)
        elif key not in _KEYS:
            raise TypeError(f"a note has no key {key!r}")
        elif not _holds(parts, key, value):
            parts = parts.with_value(key, _written(key, value))
    return parts.join()


def _holds(parts: header.Split, key: str, value: Value) -> bool:
    entry = parts.last(key)
    if not value:
        return entry is None
    if isinstance(value, str):
        return entry is not None and header.read_text(entry) == value
    return header.read_list(entry) == tuple(value)


def _with_body(parts: header.Split, value: Value) -> header.Split:
    """The note with another body, in the white space the old one stood in."""
    if not isinstance(value, str):
        raise TypeError("a body is text")
    text = without_surrogates(value).replace("\r\n", "\n").strip()
    old, newline = parts.body, parts.newline
    lead = old[: len(old) - len(old.lstrip())] if old.strip() else b""
    trail = old[len(old.rstrip()) :] if old.strip() else newline.encode()
    body = lead + text.replace("\n", newline).encode() + trail
    if not parts.opening and text.startswith("---"):
        parts = parts.with_fences()  # else the new body would be read as a header
    if parts.closing and not parts.closing.endswith("\n"):
        parts = replace(parts, closing=parts.closing + newline)
    return replace(parts, body=body)


def _written(key: str, value: Value) -> str | None:
    if key in _LISTS:
        items = [item.strip() for item in (value or ()) if item.strip()]
        return header.write_list(items) if items else None
    if not isinstance(value, str):
        if value is not None:
            raise TypeError(f"{key} is text")
        return None
    if key in _TIMES and value:
        if _time(key, value) is None:
            raise NoteError(f"{key} is no date: {value[:40]!r}", hint="write it as YYYY-MM-DD")
        return value
    if key in ("name", "description"):
        return header.write_text(value)
    return header.write_text(value) if value else None


def _time(key: str, value: str) -> str | None:
    """``value`` where it is a date that exists; a day only for ``happened_at``."""
    pattern = _DAY if key == "happened_at" else _INSTANT
    if not pattern.fullmatch(value) or not value.isascii():
        return None
    try:
        datetime.datetime.fromisoformat(value)
    except ValueError:
        return None
    return value
