"""Watching the inbox and the stores: events are hints, the files are looked at.

One recursive observer, whatever the number of projects. A new envelope is taken in at once; a
changed store is only remembered, and looked at when it has been still. Losing events costs
latency: the sweep sees everything again.
"""

from __future__ import annotations

import os
import sys
import threading
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from memoryd.memory.home import Home
from memoryd.memory.log import logger

if TYPE_CHECKING:
    from watchdog.events import FileSystemEvent, FileSystemEventHandler
    from watchdog.observers.api import BaseObserver

#: How often the polling fallback looks.
POLL_SECONDS = 10.0


class Watcher:
    """Calls ``on_inbox`` for a new envelope and ``on_store`` with a project key.

    A service: ``start`` returns when the watches stand. Both callbacks run in watchdog's thread.
    """

    def __init__(
        self, home: Home, on_inbox: Callable[[], None], on_store: Callable[[str], None]
    ) -> None:
        self.home = home
        self.on_inbox = on_inbox
        self.on_store = on_store
        #: How the home is watched: by ``events`` of the system, by ``polling``, or ``off``.
        self.mode = "off"
        self._observer: BaseObserver | None = None
        self._guard = threading.Lock()

    def start(self) -> None:
        """Watch; by polling where the system refuses (its limits are often low)."""
        from watchdog.observers import Observer

        # A new directory is met twice, by its event and by a walk; watchdog warns and is right.
        warnings.filterwarnings("ignore", "Callback with id", RuntimeWarning)
        with self._guard:
            try:
                self._watch(Observer(), "events")
            except OSError as error:
                self._poll(str(error))
        self.check()

    def check(self) -> None:
        """Poll where folders are not watched: beyond its limit the system refuses in silence."""
        with self._guard:
            if self.mode == "events" and (missing := self._unwatched()):
                self._end()
                self._poll(f"{missing} folders are not watched; see fs.inotify.max_user_watches")

    def stop(self) -> None:
        """End the watches; safe unstarted and twice."""
        with self._guard:
            self._end()

    def _end(self) -> None:
        if self._observer is not None:
            self._observer.stop()
            self._observer.join()
            self._observer = None
            self.mode = "off"

    def _poll(self, reason: str) -> None:
        from watchdog.observers.polling import PollingObserver

        logger().warning("watch.polling", reason=reason)
        self._watch(PollingObserver(timeout=POLL_SECONDS), "polling")

    def _unwatched(self) -> int:
        """How many folders have no watch; 0 where the system does not tell."""
        if sys.platform != "linux":
            return 0
        # Counted on both sides, so that what is made or removed meanwhile is not missed.
        before = _folders(self.home)
        watches = _watches()
        return max(0, min(before, _folders(self.home)) - watches)

    def _watch(self, observer: BaseObserver, mode: str) -> None:
        from watchdog import events

        # Without a filter the observer's own walk of a large tree overflows its queue for ever.
        wanted: list[type[FileSystemEvent]] = [
            events.FileCreatedEvent,
            events.FileMovedEvent,
            events.FileDeletedEvent,
            events.FileClosedEvent,
            events.DirCreatedEvent,
            events.DirMovedEvent,
            events.DirDeletedEvent,
        ]
        if mode == "polling" or sys.platform != "linux":
            wanted.append(events.FileModifiedEvent)  # these have no event for a closed file
        handler = _handler(self)
        try:
            observer.schedule(handler, str(self.home.inbox), event_filter=wanted)
            observer.schedule(handler, str(self.home.projects), recursive=True, event_filter=wanted)
            observer.start()
        except OSError:
            observer.unschedule_all()  # what began to watch before one was refused
            raise
        self._observer, self.mode = observer, mode

    def saw(self, path: str) -> None:
        """Something happened at ``path``."""
        place = Path(path)
        if place.parent == self.home.inbox:
            if place.suffix == ".json" and not place.name.startswith("."):
                self.on_inbox()
            return
        try:
            key, inside, *_ = place.relative_to(self.home.projects).parts
        except ValueError:
            return
        if inside == "memory" and place.suffix in {"", ".md"} and not place.name.startswith("."):
            self.on_store(key)


def _folders(home: Home) -> int:
    """How many folders there are to watch."""
    return 1 + sum(1 for _ in os.walk(home.projects))


def _watches() -> int:
    """How many folders the kernel watches for this process (proc(5), fdinfo)."""
    count = 0
    for entry in Path("/proc/self/fdinfo").iterdir():
        with suppress(OSError):  # closed meanwhile
            count += entry.read_text().count("inotify wd:")
    return count


def _handler(watcher: Watcher) -> FileSystemEventHandler:
    from watchdog.events import FileSystemEventHandler

    class Handler(FileSystemEventHandler):
        def on_any_event(self, event: FileSystemEvent) -> None:
            """Pass both ends of the event on."""
            try:
                for path in {str(event.src_path), str(event.dest_path or "")} - {""}:
                    watcher.saw(path)
            except Exception:  # noqa: BLE001 - thread top: a failed look must not end the watching
                logger().exception("watch.failed")

    return Handler()
