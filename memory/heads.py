"""Heads: what each note of a store is called and says, at a glance, without reading every file.

Derived, in ``.graph/heads.jsonl``: one line a note, appended to when a file is new or changed, and
written anew once a quarter of its lines are stale. A line counts while its file has the time of
change and the size it was read with. What a note says is kept as CRC-32 digits of its statements
and of its longest words, to find what resembles it; whoever finds something reads the file before
believing it. A note with a secret in it is never kept here.
"""

from __future__ import annotations

import contextlib
import math
import os
import zlib
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path, PurePosixPath

import msgspec

from memoryd.memory.errors import NoteError, StoreError
from memoryd.memory.files import FILE_MODE, make_directory, write_atomic
from memoryd.memory.known import sayings
from memoryd.memory.notes import TYPES, Note, parse
from memoryd.memory.store import DERIVED, Store
from memoryd.memory.text import fold, words
from memoryd.memory.theirs import has_secret

FILE = "heads.jsonl"

#: The share of the words of two notes, together, that both have when they are nearly the same.
NEAR = 0.8

_SPARE_LINES = 100

Stamp = tuple[int, int]


class Head(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One live note as it was last read. ``stamp`` is its time of change (ns) and size (bytes).

    ``name`` is the file's stem where ``readable`` is false; ``key`` is the name as names are
    compared. ``says`` holds the digits of its statements, ``rare`` those of its longest words
    (``rarest``), parted by spaces; ``size`` is how many distinct words it has.
    """

    path: str
    stamp: Stamp
    readable: bool
    name: str
    key: str
    description: str
    source: str | None
    valid_from: str | None
    says: str
    rare: str
    size: int

    @property
    def type(self) -> str:
        """The folder of its type."""
        return self.path.partition("/")[0]


_LINES = msgspec.json.Decoder(Head)


def heads(store: Store) -> list[Head]:
    """Every live note of a project, by type and file name; new and changed files are read.

    Raises ``StoreError`` when a folder of the store cannot be listed. What cannot be kept for the
    next time is only slower.
    """
    kept, lines = _kept(store)
    found: list[Head] = []
    fresh: list[Head] = []
    for path, stamp in _stamps(store):
        head = kept.get(path)
        if head is None and not store.holds(path):
            continue
        if head is None or head.stamp != stamp:
            head, may_be_kept = _look(store, path, stamp)
            if may_be_kept:
                fresh.append(head)
            kept.pop(path, None)
        found.append(head)
    if fresh or lines > len(found):
        alive = [head for head in found if head.path in kept]
        _keep(store, alive, fresh, lines)
    return found


def warm(store: Store) -> None:
    """Have the heads kept where they never were: reading every note is not for a held lock."""
    if not (store.root / DERIVED / FILE).exists():
        heads(store)


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


def _stamps(store: Store) -> Iterator[tuple[str, Stamp]]:
    """Everything in the folders of live notes, sorted by type and name; it may be no note."""
    for folder in TYPES:
        place = store.root / folder
        if place.is_symlink():
            continue
        try:
            with os.scandir(place) as entries:
                files = [(entry.name, entry.stat(follow_symlinks=False)) for entry in entries]
        except FileNotFoundError:  # no such type yet, or a file that went meanwhile
            files = list(_one_by_one(place))
        except OSError as error:
            reason = error.strerror or "it cannot be listed"
            raise StoreError(f"{folder} cannot be used", hint=reason) from error
        for name, found in sorted(files):
            yield f"{folder}/{name}", (found.st_ctime_ns, found.st_size)


def _one_by_one(place: Path) -> Iterator[tuple[str, os.stat_result]]:
    names = os.listdir(place) if place.is_dir() else []  # noqa: PTH208
    for name in names:
        with contextlib.suppress(FileNotFoundError):
            yield name, (place / name).lstat()


def _look(store: Store, path: str, stamp: Stamp) -> tuple[Head, bool]:
    """Read one note; whether it may be kept."""
    try:
        data = store.read(path)
        note = parse(data or b"", path)
    except (NoteError, StoreError):
        stem = PurePosixPath(path).stem
        return Head(path, stamp, False, stem, name_key(stem), "", None, None, "", "", 0), True
    return head_of(note, stamp), data is not None and not has_secret(data)


def head_of(note: Note, stamp: Stamp) -> Head:
    """The head of a note that was just read."""
    spoken = set(words(f"{note.description} {note.body}"))
    return Head(
        note.path,
        stamp,
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


def _kept(store: Store) -> tuple[dict[str, Head], int]:
    """What is kept, the newest line a note; and how many lines there are."""
    try:
        descriptor = os.open(store.root / DERIVED / FILE, os.O_RDONLY | os.O_NOFOLLOW)
        with os.fdopen(descriptor, "rb") as file:
            data = file.read()
    except OSError:  # derived: without it every note is read
        return {}, 0
    try:
        read = _LINES.decode_lines(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        read = list(_readable_lines(data))
    return {head.path: head for head in read}, len(read)


def _readable_lines(data: bytes) -> Iterator[Head]:
    for line in data.splitlines():
        with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError):
            yield _LINES.decode(line)


def _keep(store: Store, alive: list[Head], fresh: list[Head], lines: int) -> None:
    stale = lines - len(alive)
    path = store.root / DERIVED / FILE
    # Derived: a disk that refuses this must not stop a save that it would take.
    with contextlib.suppress(OSError):
        make_directory(path.parent)
        if stale > len(alive) // 4 + _SPARE_LINES or not lines:
            write_atomic(path, _encoded(alive + fresh))
        elif fresh:
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW
            descriptor = os.open(path, flags, FILE_MODE)
            with os.fdopen(descriptor, "ab") as file:
                file.write(b"\n" + _encoded(fresh))


def _encoded(found: Iterable[Head]) -> bytes:
    return b"".join(msgspec.json.encode(head) + b"\n" for head in found)
