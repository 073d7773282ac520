"""Whole lines of a transcript, one at a time, in flat memory.

A transcript belongs to the agent, which may be writing it now: its last line may be incomplete,
the file may shrink, be replaced or vanish. So a reader holds one open file, never goes past the
last line break, and remembers what it read by a *mark*, a fingerprint of the bytes themselves,
because path, time and inode all change when an agent archives or rewrites a session.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Self

from memoryd.memory.errors import TranscriptError, TranscriptGone
from memoryd.sessions.line_ends import last_line_end, pass_line, read_line
from memoryd.sessions.source import Item, Look

#: Longest line that is read into memory; a longer one is skipped and counted.
LINE_LIMIT_BYTES = 16 * 1024 * 1024
#: More brackets or commas than this in a long line are a bomb: parsed, 16 MiB of ``[],`` are 1 GB.
BRACKETS_LIMIT = 500_000
COMMAS_LIMIT = 2_000_000
#: What is shorter cannot become large.
_DENSE_BYTES = 1024 * 1024
#: How much of a first or last line a mark is made of.
MARK_BYTES = 4096

_BUFFER_BYTES = 256 * 1024


class Lines:
    """How a transcript in a file of its own is read, a JSON value a line; positions are bytes."""

    def open(self, path: Path, session: str) -> LineFile:
        """The file at ``path``; whose session it is does not matter. See ``Source``."""
        return LineFile(open_transcript(path))

    def end(self, path: Path, session: str) -> int:
        """Where its last whole line ends. Raises what ``open`` raises."""
        return whole_lines_end(path)

    def look(self, path: Path, session: str) -> Look | None:
        """When it was last modified and its size; None where it is no file or cannot be seen."""
        found = stat_file(path)
        return Look(found.st_mtime_ns // 1_000_000, found.st_size) if found else None


class LineFile:
    """A transcript's file, opened. See ``Opened`` for what its methods promise."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file

    def __enter__(self) -> Self:
        """Ready as it is."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        self.file.close()

    def end(self) -> int:
        """Where the last whole line ends, found from the tail. See ``last_line_end``."""
        return last_line_end(self.file)

    def read(self, position: int, cutoff: int | None) -> Iterator[Item]:
        """The whole lines from byte ``position`` to byte ``cutoff``."""
        return read_lines(self.file, position, cutoff)

    def head(self, data: bytes) -> str:
        """The mark of the first line."""
        return head_mark(data)

    def tail(self, data: bytes | None, end: int) -> str:
        """The mark of the last line, read again from the file where it was too long to be held."""
        if data is None:
            data = os.pread(self.file.fileno(), MARK_BYTES, end - MARK_BYTES)
        return tail_mark(data)

    def holds(self, position: int, head: str, tail: str) -> bool:
        """Whether the bytes that the marks are of still stand where they were."""
        return holds(self.file, position, head, tail)


def stat_file(path: Path) -> os.stat_result | None:
    """What the system says of the regular file ``path``; None where there is none to be seen."""
    try:
        found = path.stat()
    except (OSError, ValueError):
        return None
    return found if stat.S_ISREG(found.st_mode) else None


def open_transcript(path: Path) -> BinaryIO:
    """Open a transcript for reading in bytes; only a regular file is one.

    Raises ``TranscriptGone`` where there is none, ``TranscriptError`` where it cannot be read.
    """
    try:
        # O_NONBLOCK: a pipe in place of a transcript must not hang the worker.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise TranscriptGone(
            f"the transcript {path} is not there any more",
            hint="the agent deleted or moved it; what was ingested before is kept",
        ) from error
    except (OSError, ValueError) as error:
        raise TranscriptError(
            f"the transcript {path} cannot be opened: {_reason(error)}",
            hint="check who may read it",
        ) from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise TranscriptError(
            f"the transcript {path} is not a file", hint="give the path of the session's own file"
        )
    return os.fdopen(descriptor, "rb", buffering=_BUFFER_BYTES)


def read_lines(file: BinaryIO, position: int, cutoff: int | None) -> Iterator[Item]:
    """The whole lines of ``file`` from byte ``position`` that end at or before byte ``cutoff``.

    None as cutoff means the file as long as it is now, so that a reader never chases a writer.
    Reading stops at an incomplete last line. Raises ``TranscriptError`` on a read error.
    """
    if cutoff is None:
        cutoff = os.fstat(file.fileno()).st_size
    file.seek(position)
    return lines_from(file, position, cutoff)


def lines_from(file: BinaryIO, position: int, cutoff: int) -> Iterator[Item]:
    """The whole lines that ``file``, which stands at byte ``position``, gives up to ``cutoff``.

    A line so long that it is passed over in more than one go (``PASS_BYTES``) is that many items.
    """
    while position < cutoff:
        left = cutoff - position
        data = read_line(file, left if left < LINE_LIMIT_BYTES else LINE_LIMIT_BYTES)
        end = position + len(data)
        if data.endswith(b"\n"):
            yield end, None if is_bomb(data) else data
        elif len(data) < LINE_LIMIT_BYTES:
            return
        else:
            end = pass_line(file, end, cutoff)
            if end < 0:
                return
            yield end, None
        position = end


def is_bomb(data: bytes, times: int = 1) -> bool:
    """Whether JSON in ``data`` is of so many small values that parsing it would fill the memory.

    ``times`` the limits hold for what is read as one but taken apart unparsed.
    """
    if len(data) < _DENSE_BYTES:
        return False
    brackets = data.count(b"[") + data.count(b"{")
    return brackets > times * BRACKETS_LIMIT or data.count(b",") > times * COMMAS_LIMIT


def whole_lines_end(path: Path) -> int:
    """Where the whole lines of ``path`` end, in bytes; see ``last_line_end``.

    Raises what ``open_transcript`` raises.
    """
    with open_transcript(path) as file:
        return last_line_end(file)


def mark_of(data: bytes) -> str:
    """The mark of some bytes of a transcript: how many there were, and their sha256."""
    return f"{len(data)}:{hashlib.sha256(data).hexdigest()}"


def head_mark(line: bytes) -> str:
    """The mark of a transcript's first line: of its first ``MARK_BYTES`` bytes."""
    return mark_of(line[:MARK_BYTES])


def tail_mark(line: bytes) -> str:
    """The mark of the last line read: of its last ``MARK_BYTES`` bytes."""
    return mark_of(line[-MARK_BYTES:])


def holds(file: BinaryIO, position: int, head: str, tail: str) -> bool:
    """Whether what was read of a transcript up to ``position`` is still what ``file`` begins with.

    ``head`` and ``tail`` are marks, empty where there is none to compare. False also when the file
    became shorter. Raises ``OSError`` when it cannot be read.
    """
    if os.fstat(file.fileno()).st_size < position:
        return False
    return _marked(file, head, 0) and _marked(file, tail, position - mark_length(tail))


def _marked(file: BinaryIO, mark: str, start: int) -> bool:
    if not mark:
        return True
    return start >= 0 and mark_of(os.pread(file.fileno(), mark_length(mark), start)) == mark


def mark_length(mark: str) -> int:
    """How many bytes a mark is of, 0 for an empty one."""
    return int(mark.partition(":")[0] or 0)


def _reason(error: Exception) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
