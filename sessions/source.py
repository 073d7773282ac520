"""Where an agent keeps a transcript, and how it is read: items in the agent's own order.

A *position* is a number that only grows along a transcript: bytes of whole lines (of the
decompressed ones where the file is compressed), the id of a row in a database, the ordinal of a
message in a document. An *item* is the JSON of one line, row or message. A cutoff is a position.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

#: The position after an item, and its bytes; None where it is too long to be held.
Item = tuple[int, bytes | None]


@dataclass(frozen=True, slots=True)
class Look:
    """What a cheap look at a transcript told: nothing was read through.

    ``active_ms`` is when it was last written to; ``at_most`` a position that its end cannot exceed.
    """

    active_ms: int
    at_most: int


class Opened(AbstractContextManager["Opened"], Protocol):
    """One session's transcript, opened; it stays the same one while the agent moves or replaces it.

    Every method raises ``TranscriptError`` where the medium cannot be read on, ``TranscriptBusy``
    where its agent holds it just now.
    """

    def end(self) -> int:
        """The position after the last whole item there is now; 0 where there is none."""
        ...

    def read(self, position: int, cutoff: int | None) -> Iterator[Item]:
        """The items after ``position`` that end at or before ``cutoff``, None meaning its end now.

        Never goes past an item that the agent is still writing.
        """
        ...

    def head(self, data: bytes) -> str:
        """The mark of the first item, empty where the medium needs none."""
        ...

    def tail(self, data: bytes | None, end: int) -> str:
        """The mark of the item that was read last, which ends at ``end``."""
        ...

    def holds(self, position: int, head: str, tail: str) -> bool:
        """Whether what was read up to ``position`` still stands there, as far as marks tell.

        An empty mark says nothing. False also when the transcript became shorter.
        """
        ...


class Source(Protocol):
    """How one agent's transcripts are opened. ``path`` is the file they are in."""

    def open(self, path: Path, session: str) -> Opened:
        """The transcript of ``session`` at ``path``.

        Raises ``TranscriptGone`` where there is none, ``TranscriptError`` where it cannot be read.
        """
        ...

    def end(self, path: Path, session: str) -> int:
        """The cutoff of a job made now. Raises what ``open`` raises."""
        ...

    def look(self, path: Path, session: str) -> Look | None:
        """A cheap look at it; None where it is gone or cannot be looked at."""
        ...
