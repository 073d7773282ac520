"""Watching the inbox and the stores: events are hints, the files are looked at.

One recursive observer, whatever the number of projects. A new envelope is taken in at once; a
changed store is only remembered, and looked at when it has been still. Losing events costs
latency: the sweep sees everything again.

The home itself is watched too, for its folders only: an inbox or a ``projects`` that is taken away,
replaced or put back is watched anew, and everything is looked at once. Where that is not seen (the
whole home is gone, a link leads elsewhere) ``renew`` finds it, which is called now and then. None
of the folders is made here: a person who moves one back must not find another in its place.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from memoryd.memory.home import Home
from memoryd.memory.log import failed, logger
from memoryd.memory.store import concerns_store

if TYPE_CHECKING:
    from watchdog.events import FileSystemEvent, FileSystemEventHandler
    from watchdog.observers.api import BaseObserver

#: How often the polling fallback looks.
POLL_SECONDS = 10.0


def _nothing() -> None:
    """Nobody looks."""


class Watcher:
    """Calls ``on_inbox`` for a new envelope and ``on_store`` with a project's key and a path.

    The path is relative to the project's store. ``on_lost`` says that events may have been lost.
    A service: ``start`` returns when the watches stand. The callbacks run in threads of its own.
    """

    def __init__(
        self,
        home: Home,
        on_inbox: Callable[[], None],
        on_store: Callable[[str, str], None],
        on_lost: Callable[[], None] = _nothing,
    ) -> None:
        self.home = home
        self.on_inbox = on_inbox
        self.on_store = on_store
        self.on_lost = on_lost
        #: How the home is watched: by ``events`` of the system, by ``polling``; ``lost`` where
        #: there is nothing to watch, ``off`` before the start and after the end.
        self.mode = "off"
        self._observer: BaseObserver | None = None
        self._guard = threading.Lock()
        self._watched: dict[Path, tuple[int, int] | None] = {}
        self._warned = False
        self._trouble = _Trouble(lambda: self._look_soon(lost=True))
        self._soon = threading.Lock()
        self._pending = self._lost = False

    def start(self) -> None:
        """Watch; by polling where the system refuses (its limits are often low)."""
        # A new directory is met twice, by its event and by a walk; watchdog warns and is right.
        warnings.filterwarnings("ignore", "Callback with id", RuntimeWarning)
        logging.getLogger("watchdog").addHandler(self._trouble)
        with self._guard:
            self._begin()
        self.check()

    def check(self) -> None:
        """Poll where folders are not watched: beyond its limit the system refuses in silence."""
        self.renew()
        with self._guard:
            if self.mode == "events" and (missing := self._unwatched()):
                self._end()
                self._poll(f"{missing} folders are not watched; see fs.inotify.max_user_watches")

    def renew(self) -> None:
        """Watch anew where a watched folder is another by now.

        Costs three looks at the file system where nothing changed.
        """
        self._renew()

    def _renew(self) -> bool:
        with self._guard:
            if self.mode == "off" or self._watched == self._places():
                return False
            was_lost = self.mode == "lost"
            self._end()
            self._begin()
            if was_lost and self.mode != "lost":
                logger().info("watch.renewed", mode=self.mode)
        self.on_lost()
        return True

    def stop(self) -> None:
        """End the watches; safe unstarted and twice."""
        logging.getLogger("watchdog").removeHandler(self._trouble)
        with self._guard:
            self._end()

    def _begin(self) -> None:
        from watchdog.observers import Observer

        self._watched = self._places()
        if self._watched[self.home.root] is None:
            self._lose("the home is not there")
            return
        try:
            self._watch(Observer(), "events")
        except OSError as error:
            self._poll(str(error))

    def _end(self) -> None:
        if self._observer is not None:
            self._observer.stop()
            self._observer.join()
            self._observer = None
        self.mode = "off"

    def _lose(self, reason: str) -> None:
        """Nothing can be watched; ``renew`` tries again."""
        logger().error("watch.lost", reason=reason)
        self.mode = "lost"

    def _poll(self, reason: str) -> None:
        from watchdog.observers.polling import PollingObserver

        if not self._warned:
            logger().warning("watch.polling", reason=reason)
        self._warned = True
        try:
            self._watch(PollingObserver(timeout=POLL_SECONDS), "polling")
        except OSError as error:  # a folder went away meanwhile
            self._watched = {}
            self._lose(str(error))

    def _places(self) -> dict[Path, tuple[int, int] | None]:
        """What stands for each folder that is watched: its device and inode, None for nothing."""
        found: dict[Path, tuple[int, int] | None] = {}
        for path in (self.home.root, self.home.inbox, self.home.projects):
            found[path] = None
            with suppress(OSError):
                seen = path.stat()
                found[path] = (seen.st_dev, seen.st_ino) if path.is_dir() else None
        return found

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
        folders: list[type[FileSystemEvent]] = [
            events.DirCreatedEvent,
            events.DirMovedEvent,
            events.DirDeletedEvent,
        ]
        wanted: list[type[FileSystemEvent]] = [
            *folders,
            events.FileCreatedEvent,
            events.FileMovedEvent,
            events.FileDeletedEvent,
            events.FileClosedEvent,
        ]
        if mode == "polling" or sys.platform != "linux":
            wanted.append(events.FileModifiedEvent)  # these have no event for a closed file
        try:
            for path, place in self._watched.items():
                if place is not None:
                    # A link is never followed by the observer, so it is given what the link names.
                    observer.schedule(
                        _handler(self, path, Path(os.path.realpath(path))),
                        os.path.realpath(path),
                        recursive=path == self.home.projects,
                        event_filter=folders if path == self.home.root else wanted,
                    )
            observer.start()
        except OSError:
            observer.stop()  # what began to watch before one was refused
            raise
        self._observer, self.mode = observer, mode

    def saw(self, path: Path) -> None:
        """Something happened at ``path``."""
        if path in (self.home.root, self.home.inbox, self.home.projects):
            self._look_soon(lost=False)
        elif path.parent == self.home.inbox:
            if path.suffix == ".json" and not path.name.startswith("."):
                self.on_inbox()
        elif path.is_relative_to(self.home.projects):
            key, *inside = path.relative_to(self.home.projects).parts
            within = "/".join(inside[1:])
            if inside[:1] in ([], ["memory"]) and concerns_store(within):
                self.on_store(key, within)

    def _look_soon(self, *, lost: bool) -> None:
        """Look at what is watched, in a thread: the one that calls this is what may have to end."""
        with self._soon:
            self._lost |= lost
            if self._pending:
                return
            self._pending = True
        threading.Thread(target=_safely, args=(self._look,), name="watch", daemon=True).start()

    def _look(self) -> None:
        with self._soon:
            lost, self._lost, self._pending = self._lost, False, False
        if not self._renew() and lost and self.mode != "off":
            logger().warning("watch.overflowed")
            self.on_lost()


class _Trouble(logging.Handler):
    """Hears what watchdog warns of: its queue overflowed, or a folder could not be watched."""

    def __init__(self, heard: Callable[[], None]) -> None:
        super().__init__(logging.WARNING)
        self._heard = heard

    def emit(self, record: logging.LogRecord) -> None:
        """Take an overflow, and a failure to watch, for lost events; the rest says nothing new."""
        if record.exc_info or "overflow" in record.getMessage():
            self._heard()


def _folders(home: Home) -> int:
    """How many folders there are to watch."""
    single = sum(1 for path in (home.root, home.inbox) if path.is_dir())
    return single + sum(1 for _ in os.walk(home.projects))


def _watches() -> int:
    """How many folders the kernel watches for this process (proc(5), fdinfo)."""
    count = 0
    for entry in Path("/proc/self/fdinfo").iterdir():
        with suppress(OSError):  # closed meanwhile
            count += entry.read_text().count("inotify wd:")
    return count


def _safely(look: Callable[[], object]) -> None:
    try:
        look()
    except Exception as error:  # noqa: BLE001 - thread top: the watching goes on
        failed("watch.failed", error)


def _handler(watcher: Watcher, place: Path, real: Path) -> FileSystemEventHandler:
    from watchdog.events import FileSystemEventHandler

    class Handler(FileSystemEventHandler):
        def on_any_event(self, event: FileSystemEvent) -> None:
            """Pass both ends of the event on, under the home's own names."""
            for path in {str(event.src_path), str(event.dest_path or "")} - {""}:
                if Path(path).is_relative_to(real):
                    seen = place / Path(path).relative_to(real)
                    _safely(partial(watcher.saw, seen))

    return Handler()
