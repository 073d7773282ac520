"""A head: what one note is called and says, at a glance, and what tells that its file changed.

What a note says is kept as CRC-32 digits of its statements and of its longest words, to find what
resembles it; whoever finds something reads the file before believing it.
"""

from __future__ import annotations

import contextlib
import math
import os
import stat
import zlib
from collections.abc import Collection
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from memoryd.memory.errors import NoteError, StoreError
from memoryd.memory.known import sayings
from memoryd.memory.notes import Note, parse
from memoryd.memory.store import Store
from memoryd.memory.text import fold, words
from memoryd.memory.theirs import has_secret

#: The share of the words of two notes, together, that both have when they are nearly the same.
NEAR = 0.8

#: The time of change (ns) and the size (bytes) of a file.
Stamp = tuple[int, int]


class Head(NamedTuple):
    """One live note as it was last read, its file changed at ``changed_ns`` and of ``size`` bytes.

    ``name`` is the file's stem where ``readable`` is false; ``key`` is the name as names are
    compared. ``says`` holds the digits of its statements, ``rare`` those of its longest words
    (``rarest``), parted by spaces; ``words`` is how many distinct words it has.
    """

    path: str
    changed_ns: int
    size: int
    readable: bool
    name: str
    key: str
    description: str
    source: str | None
    valid_from: str | None
    says: str
    rare: str
    words: int

    @property
    def type(self) -> str:
        """The folder of its type."""
        return self.path.partition("/")[0]

    @property
    def stamp(self) -> Stamp:
        """What tells that the file is still as it was read."""
        return self.changed_ns, self.size


def name_key(name: str) -> str:
    """The form in which two names count as the same: folded and caseless."""
    return fold(name).casefold()


def digits(text: str) -> str:
    """The CRC-32 of ``text``, 8 hex digits."""
    return f"{zlib.crc32(text.encode('utf-8', 'replace')):08x}"


def rarest(found: Collection[str]) -> list[str]:
    """So many of a set's words, the longest first, that any set at least ``NEAR`` like it has one
    of them among its own: the prefix of a similarity join (Chaudhuri and others, 2006)."""
    ordered = sorted(found, key=lambda word: (-len(word), word))
    return ordered[: len(ordered) - math.ceil(NEAR * len(ordered)) + 1]


def head_of(note: Note, stamp: Stamp) -> Head:
    """The head of a note that was just read."""
    spoken = set(words(f"{note.description} {note.body}"))
    return Head(
        note.path,
        *stamp,
        True,
        note.name,
        name_key(note.name),
        note.description,
        note.source,
        note.valid_from,
        " ".join(map(digits, dict.fromkeys(filter(None, sayings(note))))),
        " ".join(map(digits, rarest(spoken))),
        len(spoken),
    )


def look(store: Store, path: str, stamp: Stamp) -> tuple[Head, bool]:
    """Read one note; whether its head may be kept: no secret is in it, and it is plain text."""
    try:
        data = store.read(path)
        note = parse(data or b"", path)
    except (NoteError, StoreError):
        stem = PurePosixPath(path).stem
        head = Head(path, *stamp, False, stem, name_key(stem), "", None, None, "", "", 0)
        return head, not has_secret(b"", path) and _is_text(head)
    head = head_of(note, stamp)
    return head, data is not None and not has_secret(data, path) and _is_text(head)


def _is_text(head: Head) -> bool:
    """Whether it can be written down: a file's name may be any bytes."""
    try:
        "".join(value for value in head if isinstance(value, str)).encode()
    except UnicodeEncodeError:
        return False
    return True


def stamp_of(place: Path) -> Stamp | None:
    """The stamp of a file, None where there is none."""
    try:
        seen = place.lstat()
    except OSError:
        return None
    return seen.st_ctime_ns, seen.st_size


def stamps_in(store: Store, folder: str) -> dict[str, Stamp]:
    """Every note of a folder by its path. Raises ``StoreError`` when it cannot be listed."""
    found: dict[str, Stamp] = {}
    try:
        with os.scandir(store.root / folder) as entries:
            for entry in entries:
                path = f"{folder}/{entry.name}"
                if store.holds(path):
                    with contextlib.suppress(FileNotFoundError):  # gone meanwhile
                        seen = entry.stat(follow_symlinks=False)
                        found[path] = seen.st_ctime_ns, seen.st_size
    except FileNotFoundError:
        return {}
    except OSError as error:
        reason = error.strerror or "it cannot be listed"
        raise StoreError(f"{folder} cannot be used", hint=reason) from error
    return found


class FolderStamp(NamedTuple):
    """What changes with every file that comes to a folder or goes: its own times (ns), and which
    folder it is. What is written into a file in place changes none of it."""

    inode: int
    modified_ns: int
    changed_ns: int

    @classmethod
    def of(cls, place: Path) -> FolderStamp | None:
        """The stamp of the folder; None where none is, and for a link: nothing is followed."""
        try:
            seen = place.lstat()
        except OSError:
            return None
        if stat.S_ISLNK(seen.st_mode):
            return None
        return cls(seen.st_ino, seen.st_mtime_ns, seen.st_ctime_ns)

    def tells(self, now_ns: int) -> bool:
        """Whether the next change will show, seen from ``now_ns``, when the stamp was taken.

        Not where the last change was in the tick of the file system's clock that may still last
        (10 ms at most on what counts in nanoseconds), nor where that clock counts in more.
        """
        last = max(self.modified_ns, self.changed_ns)
        return now_ns - last > _TICK_NS and last % 1_000_000 != 0

    def text(self) -> str:
        """As it is kept."""
        return " ".join(map(str, self))


_TICK_NS = 12_000_000
