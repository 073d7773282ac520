"""Leaving in time: a stop comes to its end whatever a thread does.

What a daemon has promised is on disk before it answers, and what its attempts leave is rescued by
the next start. So nothing is worth waiting for without a limit: not a disk that hangs, not a thread
that reads a file of a terabyte, not a pipe that nobody empties.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

#: How long the services are given to end, once the attempts were drained or given back.
LEAVE_SECONDS = 10.0
#: How long what ends other programs, and what is logged, may take: they could hang as well.
_SAYING_SECONDS = 2.0


class Leaving:
    """Ends the process where a stop does not. ``begin``, then ``drained``, then ``end``.

    ``drain_seconds`` says how long the attempts have, ``code`` with what to leave then.
    """

    def __init__(self, drain_seconds: Callable[[], float], code: Callable[[], int]) -> None:
        self._drain_seconds = drain_seconds
        self._code = code
        self._drained = threading.Event()
        self._ended = threading.Event()

    def begin(self) -> None:
        """The stop begins; returns at once."""
        threading.Thread(target=self._watch, name="leaving", daemon=True).start()

    def drained(self) -> None:
        """No attempt is waited for any more."""
        self._drained.set()

    def end(self) -> None:
        """Everything ended by itself."""
        self._drained.set()
        self._ended.set()

    def _watch(self) -> None:
        self._drained.wait(self._drain_seconds())
        if self._ended.wait(LEAVE_SECONDS):
            return
        saying = threading.Thread(target=_say, name="leaving-say", daemon=True)
        saying.start()
        saying.join(_SAYING_SECONDS)
        os._exit(self._code())


def _say() -> None:
    from memoryd.memory.log import logger
    from memoryd.memory.providers.command import kill_running

    kill_running()
    own = {threading.current_thread().name, "leaving"}
    left = sorted({thread.name for thread in threading.enumerate()} - own)
    logger().error("daemon.left", threads=left)
