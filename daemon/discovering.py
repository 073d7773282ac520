"""Discovery in the daemon: in a thread of its own, because the first one may take half a minute."""

from __future__ import annotations

import threading
from collections.abc import Callable

from memoryd.jobs.discovery import discover
from memoryd.jobs.rebuilding import rebuild
from memoryd.jobs.workplace import Workplace
from memoryd.memory.log import failed, logger


class Discovering:
    """Looks at all sessions whenever it is told to ``begin``; ``then`` is called after each look.

    ``then`` runs in the thread that looked: what ended unheard is known only now.
    """

    def __init__(self, place: Callable[[], Workplace], then: Callable[[], object]) -> None:
        self._place = place
        self._then = then
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        #: When a look last came to its end (wall ms).
        self.last_at: int | None = None

    def begin(self) -> None:
        """Look; returns at once. One that is still looking goes on instead."""
        if self._stopping.is_set() or (self._thread is not None and self._thread.is_alive()):
            return
        self._thread = threading.Thread(target=self._run, name="discovery", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End a look that is on, and begin no other."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        place = self._place()
        try:
            stopping = self._stopping.is_set
            done = discover(
                place.home, place.ledger, place.config, place.environ, stopping=stopping
            )
            if not stopping():
                self.last_at = place.clock.now_ms()
                if done.written or done.lost:
                    logger().info("archive.discovered", **vars(done))
                rebuild(place, stopping=stopping)
                self._then()
        except Exception as error:  # noqa: BLE001 - thread top: the next look finds it
            failed("discovery.failed", error)
        finally:
            place.close()
