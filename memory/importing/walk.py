"""Reading a directory that is to be imported: its markdown, bounded, nothing followed.

Every folder is held by its descriptor while it is read (``os.fwalk``), so that one swapped for a
link meanwhile leads nowhere. A link, a pipe, a huge or an unreadable file is listed with the reason
and never opened past it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from memoryd.memory.store import MAX_FILE_BYTES

#: Markdown files of one source that are looked at, and their bytes in all; the rest is counted.
MAX_FILES = 10_000
MAX_BYTES = 64 << 20
#: Folders below the source that are entered.
MAX_DEPTH = 32
#: What a note's header may grow by when it is imported.
_HEADER_ROOM = 8 << 10
#: The largest file that becomes a note.
MAX_NOTE_BYTES = MAX_FILE_BYTES - _HEADER_ROOM
_SUFFIXES = (".md", ".markdown")

Refusal = Literal["", "link", "unreadable", "too-large"]


@dataclass(frozen=True)
class SourceFile:
    """One markdown file: its path below the source, its bytes, when it was made and changed (ms).

    ``refusal`` says why it was not read, ``detail`` in words; then ``data`` is empty.
    """

    path: str
    data: bytes = b""
    born_ms: int = 0
    changed_ms: int = 0
    refusal: Refusal = ""
    detail: str = ""

    @property
    def name(self) -> str:
        """The file's name without its folders."""
        return self.path.rpartition("/")[2]

    @property
    def stem(self) -> str:
        """The file's name without folders and ending."""
        return self.name.rpartition(".")[0]


@dataclass
class Walked:
    """What a source holds. ``passed_over`` counts the files that the limits left out."""

    files: list[SourceFile] = field(default_factory=list)
    passed_over: int = 0
    bytes_read: int = 0

    @property
    def is_full(self) -> bool:
        """Whether the limits are reached."""
        return len(self.files) >= MAX_FILES or self.bytes_read >= MAX_BYTES


def read_tree(root: Path) -> Walked:
    """Every markdown file below ``root``, in the order of their paths; hidden ones are left out.

    A file over ``MAX_NOTE_BYTES`` is listed and not read. Past ``MAX_FILES`` files or ``MAX_BYTES``
    bytes the rest is only counted. A ``root`` that is a link is listed as one.
    """
    walked = Walked()
    if root.is_symlink():
        walked.files.append(_refused(root.name, "link", "a linked folder is not followed"))
        return walked

    def unreadable(error: OSError) -> None:
        place = os.path.relpath(error.filename or root, root)
        walked.files.append(_refused(place, "unreadable", error.strerror or "it cannot be listed"))

    for folder, folders, names, descriptor in os.fwalk(root, onerror=unreadable):
        below = os.path.relpath(folder, root)
        prefix = "" if below == "." else f"{below}/"
        folders[:] = sorted(_entered(walked, prefix, folders, descriptor))
        for name in sorted(names):
            if name.lower().endswith(_SUFFIXES) and not name.startswith("."):
                _take(walked, f"{prefix}{name}", name, descriptor)
    walked.files.sort(key=lambda file: file.path)
    return walked


def _entered(walked: Walked, prefix: str, folders: list[str], parent: int) -> Iterator[str]:
    """The folders to go into: no hidden ones, no links, none too deep."""
    too_deep = prefix.count("/") >= MAX_DEPTH
    for name in folders:
        if name.startswith("."):
            continue
        try:
            is_link = stat.S_ISLNK(os.lstat(name, dir_fd=parent).st_mode)
        except OSError:  # gone meanwhile
            continue
        if not is_link and not too_deep:
            yield name
        elif walked.is_full:
            walked.passed_over += 1
        elif is_link:
            walked.files.append(_refused(prefix + name, "link", "a linked folder is not followed"))
        else:
            detail = f"more than {MAX_DEPTH} folders deep"
            walked.files.append(_refused(prefix + name, "unreadable", detail))


def _take(walked: Walked, path: str, name: str, parent: int) -> None:
    if walked.is_full:
        walked.passed_over += 1
        return
    found = read_file(path, name, parent)
    walked.files.append(found)
    walked.bytes_read += len(found.data)


def read_file(path: str, name: str, parent: int | None = None) -> SourceFile:
    """The file ``name`` (in the open folder ``parent``), called ``path``; what cannot be read has
    a ``refusal``."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        if stat.S_ISLNK(os.lstat(name, dir_fd=parent).st_mode):
            return _refused(path, "link", "a link is not followed")
        descriptor = os.open(name, flags, dir_fd=parent)
    except OSError as error:
        return _refused(path, "unreadable", error.strerror or "it cannot be opened")
    with os.fdopen(descriptor, "rb") as file:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode):
            return _refused(path, "unreadable", "it is not a plain file")
        if facts.st_size > MAX_NOTE_BYTES:
            return _refused(path, "too-large", f"it has more than {MAX_NOTE_BYTES} bytes")
        try:
            data = file.read(MAX_NOTE_BYTES + 1)
        except OSError as error:
            return _refused(path, "unreadable", error.strerror or "it cannot be read")
    changed = facts.st_mtime_ns // 1_000_000
    born = int(getattr(facts, "st_birthtime", facts.st_mtime) * 1000)
    return SourceFile(path, data, min(born, changed), changed)


def _refused(path: str, refusal: Refusal, detail: str) -> SourceFile:
    return SourceFile(path, refusal=refusal, detail=detail)
