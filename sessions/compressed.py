"""Transcripts that their agent compressed with zstd: positions are bytes of the decompressed lines.

So a position stands when an agent compresses a transcript, or decompresses it to go on with it. It
is decompressed in a stream, never to disk, where it would lie beside nothing that redacts it.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO, Self

from memoryd.memory.errors import TranscriptError
from memoryd.sessions.lines import (
    head_mark,
    lines_from,
    mark_length,
    mark_of,
    open_transcript,
    stat_file,
    tail_mark,
)
from memoryd.sessions.source import Item, Look

#: Where a transcript ends at the latest: one that says more is no transcript.
DECOMPRESSED_LIMIT = 8 * 1024**3
#: Largest window that is decompressed with, in bytes.
WINDOW_LIMIT = 128 * 1024 * 1024
#: How much is decompressed to find where a transcript ends: a command may wait for that.
END_BYTES = 256 * 1024 * 1024
_BUFFER_BYTES = 256 * 1024


class Compressed:
    """How a compressed transcript of lines is read. See ``Source``."""

    def open(self, path: Path, session: str) -> CompressedFile:
        """The file at ``path``."""
        return CompressedFile(open_transcript(path))

    def end(self, path: Path, session: str) -> int:
        """Where its last whole line ends, decompressed. Raises what ``open`` raises."""
        found = stat_file(path)
        return _end(path, (found.st_ino, found.st_mtime_ns, found.st_size) if found else None)

    def look(self, path: Path, session: str) -> Look | None:
        """When it was last modified; where it ends is not known without decompressing it."""
        found = stat_file(path)
        return Look(found.st_mtime_ns // 1_000_000, DECOMPRESSED_LIMIT) if found else None


@lru_cache(maxsize=16_384)
def _end(path: Path, _seen: object) -> int:
    """The end of a file that looks like this: an archived one is not decompressed at each look."""
    with CompressedFile(open_transcript(path)) as opened:
        return opened.end()


class CompressedFile:
    """A compressed transcript's file, opened. See ``Opened``."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def __enter__(self) -> Self:
        """Ready as it is."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        self._file.close()

    def end(self) -> int:
        """Where the last whole line ends, found by decompressing it all.

        One longer than ``END_BYTES`` ends at ``DECOMPRESSED_LIMIT``: a reader stops by itself.
        """
        last = 0
        for end, _ in self.read(0, None):
            if end > END_BYTES:
                return DECOMPRESSED_LIMIT
            last = end
        return last

    def read(self, position: int, cutoff: int | None) -> Iterator[Item]:
        """The whole lines from decompressed byte ``position`` to byte ``cutoff``."""
        with _named(self._file):
            lines = self._at(position)
            if lines is not None:
                end = DECOMPRESSED_LIMIT if cutoff is None else min(cutoff, DECOMPRESSED_LIMIT)
                yield from lines_from(lines, position, end)

    def head(self, data: bytes) -> str:
        """The mark of the first line."""
        return head_mark(data)

    def tail(self, data: bytes | None, end: int) -> str:
        """The mark of the last line, none where it was too long to be held."""
        return "" if data is None else tail_mark(data)

    def holds(self, position: int, head: str, tail: str) -> bool:
        """Whether the bytes that the marks are of still stand where they were."""
        with _named(self._file):
            marked = ((head, 0), (tail, position - mark_length(tail)))
            return all(self._marked(mark, start) for mark, start in marked)

    def _marked(self, mark: str, start: int) -> bool:
        if not mark:
            return True
        lines = self._at(start) if start >= 0 else None
        return lines is not None and mark_of(lines.read(mark_length(mark))) == mark

    def _at(self, position: int) -> BinaryIO | None:
        """The decompressed bytes from ``position`` on; None where there are fewer."""
        import zstandard

        self._file.seek(0)
        decompressor = zstandard.ZstdDecompressor(max_window_size=WINDOW_LIMIT)
        stream = decompressor.stream_reader(self._file, read_across_frames=True, closefd=False)
        lines = io.BufferedReader(stream, _BUFFER_BYTES)
        while position > 0:
            skipped = len(lines.read(min(position, _BUFFER_BYTES)))
            if not skipped:
                return None
            position -= skipped
        return lines


@contextmanager
def _named(file: BinaryIO) -> Iterator[None]:
    import zstandard

    try:
        yield
    except (zstandard.ZstdError, MemoryError) as error:
        raise TranscriptError(
            f"the transcript {file.name} cannot be decompressed: {error}",
            hint="it is left out; what was ingested before is kept",
        ) from error
