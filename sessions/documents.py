"""Transcripts that are one JSON document, or many small ones: positions are ordinals of messages.

Such a document is written anew by its agent whenever something is said, so it is read whole, once
an ingestion, and never where it is larger than ``DOCUMENT_LIMIT_BYTES``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Self

import msgspec

from memoryd.memory.errors import TranscriptError
from memoryd.sessions.lines import LINE_LIMIT_BYTES, is_bomb, mark_of, open_transcript, stat_file
from memoryd.sessions.source import Item, Look

#: Largest document that is read.
DOCUMENT_LIMIT_BYTES = 64 * 1024 * 1024
#: A document is as large as so many of the longest lines.
_DOCUMENT_TIMES = DOCUMENT_LIMIT_BYTES // LINE_LIMIT_BYTES

#: The items of a document's bytes, in order: parts of it, none copied before it is read. Raises
#: ``ValueError`` where it is no such document.
Split = Callable[[bytes], Sequence[msgspec.Raw]]


class Documents:
    """How a transcript that is one JSON document is read."""

    def __init__(self, split: Split) -> None:
        self._split = split

    def open(self, path: Path, session: str) -> ItemList:
        """The messages of the document at ``path``. See ``Source``."""
        try:
            return ItemList(_Parts(self._split(read_document(path))))
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise TranscriptError(
                f"the transcript {path} is not the JSON that it should be",
                hint="it may be cut; it is read once its agent has written it whole",
            ) from error

    def end(self, path: Path, session: str) -> int:
        """How many messages it has. Raises what ``open`` raises."""
        found = stat_file(path)
        seen = (found.st_ino, found.st_mtime_ns, found.st_size) if found else None
        end = self._end(path, session, seen)
        if isinstance(end, TranscriptError):
            raise end
        return end

    @lru_cache(maxsize=16_384)  # noqa: B019 - sources live as long as the process
    def _end(self, path: Path, session: str, _seen: object) -> int | TranscriptError:
        """The end of a document that looks like this: it is not read at each sweep."""
        try:
            with self.open(path, session) as opened:
                return opened.end()
        except TranscriptError as error:
            return error

    def look(self, path: Path, session: str) -> Look | None:
        """When it was last modified; it has fewer messages than bytes."""
        found = stat_file(path)
        return Look(found.st_mtime_ns // 1_000_000, found.st_size) if found else None


class _Parts(Sequence[bytes]):
    """The parts of a document, each as bytes of its own when it is asked for."""

    def __init__(self, parts: Sequence[msgspec.Raw]) -> None:
        self._parts = parts

    def __len__(self) -> int:
        return len(self._parts)

    def __getitem__(self, at: int) -> bytes:  # type: ignore[override]
        return bytes(self._parts[at])


class ItemList:
    """A transcript whose items can be counted; None stands for one too long. See ``Opened``."""

    def __init__(self, items: Sequence[bytes | None]) -> None:
        self._items = items

    def __enter__(self) -> Self:
        """Ready as it is."""
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is held open."""

    def end(self) -> int:
        """How many items there are."""
        return len(self._items)

    def read(self, position: int, cutoff: int | None) -> Iterator[Item]:
        """The items from ordinal ``position`` (0 for the first) up to ``cutoff``."""
        end = len(self._items) if cutoff is None else min(cutoff, len(self._items))
        for number in range(position, end):
            item = self._items[number]
            fits = item and len(item) <= LINE_LIMIT_BYTES and not is_bomb(item)
            yield number + 1, item if fits else None

    def head(self, data: bytes) -> str:
        """The mark of the first item, whole."""
        return mark_of(data)

    def tail(self, data: bytes | None, end: int) -> str:
        """The mark of the last item, whole: agents write into one that stands already."""
        return "" if data is None else mark_of(data)

    def holds(self, position: int, head: str, tail: str) -> bool:
        """Whether the first item and the one before ``position`` are what they were."""
        if len(self._items) < position:
            return False
        marked = ((head, 0), (tail, position - 1))
        return all(not mark or mark_of(self._items[at] or b"") == mark for mark, at in marked)


def read_document(path: Path) -> bytes:
    """The bytes of the file ``path``.

    Raises ``TranscriptGone``, and ``TranscriptError`` also where it is too large, or would be.
    """
    with open_transcript(path) as file:
        if os.fstat(file.fileno()).st_size <= DOCUMENT_LIMIT_BYTES:
            data = file.read(DOCUMENT_LIMIT_BYTES + 1)
            if len(data) <= DOCUMENT_LIMIT_BYTES and not is_bomb(data, _DOCUMENT_TIMES):
                return data
    raise TranscriptError(
        f"the transcript {path} is larger than {DOCUMENT_LIMIT_BYTES} bytes, or too intricate",
        hint="it is left out; no document of this size is read",
    )


def read_head(path: Path, limit: int = 64 * 1024) -> bytes:
    """The first ``limit`` bytes of ``path``; empty where it cannot be read."""
    try:
        with open_transcript(path) as file:
            return file.read(limit)
    except (TranscriptError, OSError):
        return b""
