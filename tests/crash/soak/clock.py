"""A clock that all processes of a soak share, and that its chaos steps forward and back."""

from __future__ import annotations

import mmap
import struct
import time
from pathlib import Path


class SteppedClock:
    """The machine's clocks, and what the file ``path`` says to add to the wall's (seconds)."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            path.write_bytes(struct.pack("d", 0.0))
        with path.open("r+b") as file:
            self._place = mmap.mmap(file.fileno(), 8)

    @property
    def offset(self) -> float:
        """What is added (seconds)."""
        return float(struct.unpack("d", self._place[:8])[0])

    def step(self, seconds: float) -> None:
        """Set the wall clock forward or back, for every process."""
        self._place[:8] = struct.pack("d", self.offset + seconds)

    def now_ms(self) -> int:
        """Wall time, milliseconds."""
        return int((time.time() + self.offset) * 1000)

    def monotonic(self) -> float:
        """Seconds; never stepped."""
        return time.monotonic()
