"""Where lines end, looked for within bounds: a transcript may be a terabyte without one.

Whoever looks may be a command that a person waits for, or a daemon that is to stop. So no look
reads more than so many bytes: what it does not find by then, it answers without.
"""

from __future__ import annotations

import errno
import os
from typing import BinaryIO

from memoryd.memory.errors import TranscriptError

#: How far back from its end a file is searched for the end of a line.
LOOK_BACK_BYTES = 1 << 20
#: How much of one line is passed over at a time, in bytes that are read. Holes cost nothing.
PASS_BYTES = 256 * 1024 * 1024

_BLOCK_BYTES = 64 * 1024


def last_line_end(file: BinaryIO) -> int:
    """A cutoff that all whole lines of ``file`` end at or before, in bytes; 0 if none does.

    That is where the last of them ends, or, where no line ends within ``LOOK_BACK_BYTES`` of the
    end, its size: a reader stops at an incomplete line by itself.
    """
    size = end = os.fstat(file.fileno()).st_size
    while end > 0:
        if size - end >= LOOK_BACK_BYTES:
            return size
        start = max(0, end - _BLOCK_BYTES)
        found = os.pread(file.fileno(), end - start, start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0


def pass_line(file: BinaryIO, position: int, cutoff: int) -> int:
    """Pass over the rest of the line in which ``file`` stands, at byte ``position``.

    Where the next line begins comes back; -1 where this one does not end before ``cutoff``; or,
    where it does not end within ``PASS_BYTES``, how far that was. Raises ``TranscriptError``.
    """
    left = PASS_BYTES
    while position < cutoff and left > 0:
        data = read_line(file, min(_BLOCK_BYTES, cutoff - position))
        position += len(data)
        left -= len(data)
        if data.endswith(b"\n"):
            return position
        if not data:
            return -1
        if not data.strip(b"\0"):
            position = _behind_hole(file, position, cutoff)
    return position if position < cutoff else -1


def read_line(file: BinaryIO, limit: int) -> bytes:
    """At most ``limit`` bytes of a line. Raises ``TranscriptError`` on a read error."""
    try:
        return file.readline(limit)
    except OSError as error:
        raise TranscriptError(
            f"the transcript could not be read on: {error.strerror or error}",
            hint="check the disk it is on",
        ) from error


def _behind_hole(file: BinaryIO, position: int, cutoff: int) -> int:
    """Where the file has bytes again, after a hole at ``position`` if there is one.

    A power cut leaves holes, and they may be of any size. ``file`` stands there then.
    """
    try:
        number = file.fileno()
        stood = os.lseek(number, 0, os.SEEK_CUR)
    except (OSError, ValueError):
        return position  # a stream, which has none
    try:
        found = os.lseek(number, position, os.SEEK_DATA)
    except OSError as error:  # nothing but a hole follows; or this system knows of none
        found = cutoff if error.errno == errno.ENXIO else position
    finally:
        os.lseek(number, stood, os.SEEK_SET)
    if found > position:
        file.seek(found)
    return found
