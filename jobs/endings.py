"""Waiting for a job to end, inside the process that works it: events, never polling."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class Endings:
    """A bell for those who wait. ``rang`` after each attempt; ``wait`` until a predicate holds.

    ``count`` is how often it rang: whoever knows it waits for the next time.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._closed = False
        self.count = 0

    def rang(self) -> None:
        """An attempt ended, or something else happened that a watcher shows."""
        with self._changed:
            self.count += 1
            self._changed.notify_all()

    def close(self) -> None:
        """Let everybody go: nothing will end any more."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def wait(self, holds: Callable[[], bool], seconds: float) -> bool:
        """Whether ``holds`` became true within ``seconds``; looked at after each attempt."""
        deadline = time.monotonic() + seconds
        with self._changed:
            while not holds():
                left = deadline - time.monotonic()
                if left <= 0 or self._closed:
                    return False
                self._changed.wait(left)
        return True
