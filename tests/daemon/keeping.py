"""A watcher and a keeper on real files and real events, with a clock that only the test moves."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field

from memoryd.daemon.stores import StoreKeeper
from memoryd.daemon.watcher import Watcher
from memoryd.memory.edits import EditsOutcome
from memoryd.memory.home import Home
from memoryd.memory.store import Store
from memoryd.memory.testing import FakeClock

PATIENCE_SECONDS = 60.0
_MARK = "zz-mark"


class CountingKeeper(StoreKeeper):
    """A keeper that remembers which indexes it was asked to make, and of which it took edits in."""

    indexes: list[str]
    edits: list[str]

    def _refresh_index(self, key: str) -> None:
        self.indexes.append(key)
        super()._refresh_index(key)

    def _commit_edits(self, key: str) -> None:
        self.edits.append(key)
        super()._commit_edits(key)


@dataclass
class Watched:
    """A home that is watched. The clock starts at the real time, so that new files are new."""

    home: Home
    clock: FakeClock = field(default_factory=lambda: FakeClock(time.time_ns() // 1_000_000))
    settled: list[tuple[str, EditsOutcome]] = field(default_factory=list)
    released: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.keeper = CountingKeeper(
            self.home,
            self.clock,
            set,
            lambda store, path: [],
            lambda key, outcome: self.settled.append((key, outcome)),
            self.released.append,
        )
        self.keeper.indexes, self.keeper.edits = [], []
        self._marks = threading.Semaphore(0)
        self.watcher = Watcher(self.home, lambda: None, self._saw, self.keeper.all_changed)
        mark = Store.for_project(self.home, _MARK)
        (mark.root / "user").mkdir(parents=True)
        self.watcher.start()

    def _saw(self, key: str, path: str) -> None:
        if key == _MARK:
            self._marks.release()
        else:
            self.keeper.saw(key, path)

    def catch_up(self) -> None:
        """Wait until every event so far was seen: they come in order, and a mark is the last."""
        mark = Store.for_project(self.home, _MARK).root / "user" / "mark.md"
        mark.write_text("x")
        mark.unlink()
        for _ in ("created", "closed", "deleted"):
            assert self._marks.acquire(timeout=PATIENCE_SECONDS)

    def settle(self, seconds: float) -> None:
        """Let ``seconds`` pass and do what is due, with all that comes of it."""
        self.catch_up()
        self.clock.advance(seconds)
        while self.keeper.look():
            self.catch_up()

    def close(self) -> None:
        """End the watches."""
        self.watcher.stop()
