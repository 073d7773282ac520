"""Looking after the stores: what is derived follows a change, a person's edits become commits.

Events only say where to look. A store is looked at when it has been quiet for a moment (its index
is then made again) and once more when it has been still for a minute (a person's edits are then
theirs in its history). At the start every store counts as changed, so that nothing done while no
daemon ran is missed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from memoryd.memory.baseline import Baseline
from memoryd.memory.clock import Clock
from memoryd.memory.edits import EditsOutcome, commit_person_edits
from memoryd.memory.errors import StoreBusy, StoreError, StoreHeld
from memoryd.memory.home import Home
from memoryd.memory.log import logger
from memoryd.memory.store import Store

#: The index follows a change after this much quiet, but never later than the second number.
QUIET_SECONDS = 0.5
LATEST_SECONDS = 1.5
#: A person's edit is theirs once still for this long (a little more than the rule's 60 s).
STILL_SECONDS = 61.0
#: How soon a store is looked at again that was busy, and one that is held or cannot be read.
BUSY_SECONDS = 5.0
HELD_SECONDS = 600.0


def _nobody(store: str, edits: EditsOutcome) -> None:
    """Nothing is kept elsewhere."""


@dataclass
class _Changed:
    #: Monotonic seconds: when the index is due at the latest, when next, and when the edits are.
    latest: float
    index: float | None
    edits: float


class StoreKeeper:
    """One thread for all stores of a home. A service: ``start`` and ``stop``."""

    def __init__(
        self,
        home: Home,
        clock: Clock,
        planned: Callable[[], set[str]],
        evidence: Callable[[str, str], list[tuple[str, str]]],
        follow: Callable[[str, EditsOutcome], None] = _nobody,
    ) -> None:
        self.home = home
        self.clock = clock
        #: sha256 of what standing plans leave: never a person's edit.
        self._planned = planned
        #: (store, path) -> the words a note stands on: not learned again once it is deleted.
        self._evidence = evidence
        #: (store, what a person did in it): what is kept elsewhere follows.
        self._follow = follow
        self._stores: dict[str, _Changed] = {}
        #: Stores in which too much vanished at once, with the reason, for ``status``.
        self.held: dict[str, str] = {}
        self._wake = threading.Condition()
        self._stopping = False
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin; every store is looked at once."""
        self.all_changed()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="stores", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread; safe unstarted and twice."""
        with self._wake:
            self._stopping = True
            self._wake.notify_all()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def all_changed(self) -> None:
        """Look at every store: events may be lost, and may never have been there."""
        for store in Store.all(self.home):
            if not store.is_profile:
                self.changed(store.key)

    def changed(self, key: str) -> None:
        """Something happened in the store ``key``."""
        now = self.clock.monotonic()
        with self._wake:
            known = self._stores.get(key)
            latest = known.latest if known and known.index is not None else now + LATEST_SECONDS
            # A store that is never quiet is looked at all the same: stillness is each file's own.
            edits = known.edits if known else now + STILL_SECONDS
            self._stores[key] = _Changed(latest, min(now + QUIET_SECONDS, latest), edits)
            self._wake.notify_all()

    def look(self) -> bool:
        """Do what is due now; False when nothing was. Called by the keeper's own thread."""
        with self._wake:
            work = self._due()
        for key, duty in work:
            try:
                duty(key)
            except Exception:  # noqa: BLE001 - thread top: one store must not stop the others
                logger().exception("store.failed", store=key)
                self._again(key, HELD_SECONDS)
        return bool(work)

    def _run(self) -> None:
        while not self._stopping:
            if self.look():
                continue
            with self._wake:
                if not self._stopping:
                    self._wake.wait(self._seconds_to_next())

    def _due(self) -> list[tuple[str, Callable[[str], None]]]:
        """What is due now; what is handed out is no longer pending."""
        now = self.clock.monotonic()
        work: list[tuple[str, Callable[[str], None]]] = []
        for key, store in list(self._stores.items()):
            if store.index is not None and store.index <= now:
                store.index = None
                work.append((key, self._refresh_index))
            if store.edits <= now:
                del self._stores[key]
                work.append((key, self._commit_edits))
        return work

    def _seconds_to_next(self) -> float | None:
        now = self.clock.monotonic()
        times = [store.index for store in self._stores.values() if store.index is not None]
        times += [store.edits for store in self._stores.values()]
        return max(0.0, min(times) - now) if times else None

    def _again(self, key: str, seconds: float) -> None:
        now = self.clock.monotonic()
        with self._wake:
            known = self._stores.setdefault(key, _Changed(now, None, now + seconds))
            known.edits = min(known.edits, now + seconds)

    def _refresh_index(self, key: str) -> None:
        store = Store.for_project(self.home, key)
        if not store.root.is_dir():
            return
        try:
            with store.writer_lock():
                store.write_index()
        except StoreBusy:
            self.changed(key)  # whoever writes also writes the index; look again after them

    def _commit_edits(self, key: str) -> None:
        store = Store.for_project(self.home, key)
        try:
            outcome = commit_person_edits(
                store,
                now_ms=self.clock.now_ms(),
                planned=self._planned(),
                spans=lambda path: self._evidence(key, path),
            )
        except StoreBusy:
            self._again(key, BUSY_SECONDS)
            return
        except StoreHeld as error:
            if key not in self.held:
                logger().warning("store.held", store=key, reason=error.message)
            self.held[key] = error.message
            self._again(key, HELD_SECONDS)
            return
        except StoreError as error:
            logger().warning("store.unusable", store=key, reason=str(error))
            self._again(key, HELD_SECONDS)
            return
        self.held.pop(key, None)
        self._follow(key, outcome)
        baseline = Baseline(store)
        if baseline.is_loose():
            baseline.collect_garbage()
        if outcome.waiting:
            self._again(key, STILL_SECONDS)
