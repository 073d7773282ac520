"""Looking after the stores: what is derived follows a change, a person's edits become commits.

Events only say where to look. A store is looked at when it has been quiet for a moment (its index
is then made again) and once more when it has been still for a minute (a person's edits are then
theirs in its history). At the start every store counts as changed, so that nothing done while no
daemon ran is missed. One look at a time, and indexes first: a thousand stores that are due for
their edits do not keep one person's change waiting.

A store in which too much vanished at once is held: its index stays as it was, nothing is committed,
and each change in it is looked at at once, so that it goes on when the notes are back.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from memoryd.daemon.troubles import Troubles
from memoryd.memory.baseline import Baseline
from memoryd.memory.clock import Clock
from memoryd.memory.edits import EditsOutcome, commit_person_edits, require_not_held
from memoryd.memory.errors import BaselineError, StoreBusy, StoreError, StoreHeld
from memoryd.memory.files import sha256
from memoryd.memory.heads import refresh_heads
from memoryd.memory.home import Home
from memoryd.memory.log import failed, logger
from memoryd.memory.store import INDEX, TOMBSTONES, Store

#: The index follows a change after this much quiet, but never later than the second number.
QUIET_SECONDS = 0.5
LATEST_SECONDS = 1.5
#: A person's edit is theirs once still for this long (a little more than the rule's 60 s).
STILL_SECONDS = 61.0
#: How soon a store is looked at again that was busy, one that is held, one that cannot be used.
BUSY_SECONDS = 5.0
HELD_SECONDS = 60.0
UNUSABLE_SECONDS = 600.0


@dataclass
class _Changed:
    #: Monotonic seconds: when the index is due at the latest, when next, and when the edits are.
    latest: float
    index: float | None
    edits: float


def _nobody(store: str, edits: EditsOutcome) -> None:
    """Nothing is kept elsewhere."""


def _released(key: str) -> None:
    """Nobody waits for the store."""


class StoreKeeper:
    """One thread for all stores of a home. A service: ``start`` and ``stop``.

    ``planned`` gives the sha256 of what standing plans leave, which is never a person's edit;
    ``evidence`` the words a note (store, path) stands on, which are not learned again once it is
    deleted. ``follow`` is told what a person did once it is in the history of the store;
    ``on_released`` that a store is held no more. Both are called in the keeper's thread.
    """

    def __init__(
        self,
        home: Home,
        clock: Clock,
        planned: Callable[[], set[str]],
        evidence: Callable[[str, str], list[tuple[str, str]]],
        follow: Callable[[str, EditsOutcome], None] = _nobody,
        on_released: Callable[[str], None] = _released,
    ) -> None:
        self.home = home
        self.clock = clock
        self.troubles = Troubles()
        self._planned = planned
        self._evidence = evidence
        self._follow = follow
        self._on_released = on_released
        self._stores: dict[str, _Changed] = {}
        #: sha256 of the index as it was last made: an event about that one is our own.
        self._indexes: dict[str, str] = {}
        #: What each store looked like when nothing was left to do in it.
        self._looked: dict[str, frozenset[tuple[object, ...]]] = {}
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
        """Look at every store: events may be lost, and may never have been there.

        One that is as the last look left it is passed over.
        """
        for key in self._keys():
            known = self._looked.get(key)
            if known is None or known != Store.for_project(self.home, key).fingerprint():
                self.changed(key)

    def _keys(self) -> list[str]:
        """Every project's store: those with a history, and folders a person made notes in."""
        stores = [store for store in Store.all(self.home) if not store.is_profile]
        return [each.key for each in stores if each.git_dir.is_dir() or _has_files(each)]

    def saw(self, key: str, path: str = "") -> None:
        """An event at ``path``, relative to the store ``key``'s root; our own are passed over."""
        if path == INDEX and self._is_our_index(key):
            return
        self.changed(key, index=path != TOMBSTONES)

    def _is_our_index(self, key: str) -> bool:
        data = Store.for_project(self.home, key).shown_index()
        return data is not None and sha256(data) == self._indexes.get(key)

    def changed(self, key: str, *, index: bool = True) -> None:
        """Something happened in the store ``key``; its index follows unless told otherwise."""
        now = self.clock.monotonic()
        with self._wake:
            known = self._stores.get(key)
            # A store that is never quiet is looked at all the same: stillness is each file's own.
            edits = known.edits if known else now + STILL_SECONDS
            latest = known.latest if known and known.index is not None else now + LATEST_SECONDS
            due = known.index if known else None
            if index:
                due = min(now + QUIET_SECONDS, latest)
            if key in self.troubles.held:  # perhaps the notes are back
                edits = min(edits, now + QUIET_SECONDS)
            self._stores[key] = _Changed(latest, due, edits)
            self._wake.notify_all()

    def look(self) -> bool:
        """Do one thing that is due now; False when nothing was. Called by the keeper's thread."""
        with self._wake:
            work = self._next_due()
        if work is None:
            return False
        key, duty = work
        try:
            duty(key)
        except Exception as error:  # noqa: BLE001 - thread top: the others go on
            failed("store.failed", error, store=key)
            self._again(key, UNUSABLE_SECONDS)
        return True

    def _run(self) -> None:
        while not self._stopping:
            if self.look():
                continue
            with self._wake:
                if not self._stopping:
                    self._wake.wait(self._seconds_to_next())

    def _next_due(self) -> tuple[str, Callable[[str], None]] | None:
        """What is due now, an index before any edits; what is handed out is no longer pending."""
        now = self.clock.monotonic()
        for key, store in self._stores.items():
            if store.index is not None and store.index <= now:
                store.index = None
                return key, self._refresh_index
        for key, store in self._stores.items():
            if store.edits <= now:
                del self._stores[key]
                return key, self._commit_edits
        return None

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
        try:
            store = Store.for_project(self.home, key)
            with store.writer_lock():
                self._require_not_held(store)
                if store.root.is_dir():
                    self._write_index(store)
        except StoreBusy:
            self.changed(key)  # whoever writes also writes the index; look again after them
        except StoreHeld as error:
            self._hold(key, error)
        except StoreError as error:
            self.troubles.refuse(key, str(error))

    def _require_not_held(self, store: Store) -> None:
        try:
            require_not_held(store, now_ms=self.clock.now_ms(), planned=self._planned)
        except BaselineError as error:  # without history the files are all there is to go by
            self.troubles.refuse(store.key, str(error))

    def _write_index(self, store: Store) -> None:
        text, unreadable = store.survey_index()
        self._indexes[store.key] = sha256(text.encode())
        try:
            store.put_index(text)
        except StoreError as error:  # it is derived: the store is as good as before
            self.troubles.name_index(store.key, str(error))
        else:
            self.troubles.name_index(store.key, None)
        refresh_heads(store)
        self.troubles.name_unreadable(store.key, unreadable)

    def _commit_edits(self, key: str) -> None:
        try:
            self._looked.pop(key, None)
            store = Store.for_project(self.home, key)
            before = store.fingerprint()
            outcome = commit_person_edits(
                store,
                now_ms=self.clock.now_ms(),
                planned=self._planned(),
                spans=lambda path: self._evidence(key, path),
            )
        except StoreBusy:
            return self._again(key, BUSY_SECONDS)
        except StoreHeld as error:
            return self._hold(key, error)
        except StoreError as error:
            self.troubles.refuse(key, str(error))
            return self._again(key, UNUSABLE_SECONDS)
        self._settle(store, outcome)
        baseline = Baseline(store)
        if baseline.is_loose():
            baseline.collect_garbage()
        if outcome.waiting:
            self._again(key, STILL_SECONDS)
        elif outcome == EditsOutcome():
            self._looked[key] = before
        return None

    def _hold(self, key: str, error: StoreHeld) -> None:
        self.troubles.hold(key, error.message)
        self._again(key, HELD_SECONDS)

    def _settle(self, store: Store, outcome: EditsOutcome) -> None:
        """The store could be looked at: tell who waited for that, and who follows its notes."""
        if self.troubles.unusable.pop(store.key, None) is not None:
            self.changed(store.key)
        self.troubles.name_secret(store.key, outcome.secret)
        if self.troubles.held.pop(store.key, None) is not None:
            logger().info("store.released", store=store.key)
            self.changed(store.key)
            self._on_released(store.key)
        if outcome.commit is not None:
            self._follow(store.key, outcome)


def _has_files(store: Store) -> bool:
    try:
        return bool(store.paths())
    except StoreError:  # to be looked at and said
        return True
