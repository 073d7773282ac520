"""Which stores are due for consolidation: the daily check, and the gates it asks.

Cheapest first: the kill switch, the setting, the hours since the last run, and then the sessions
since then, which are counted at most every ten minutes. A check whose gates say no makes no job.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

from memoryd.jobs.workplace import Workplace
from memoryd.memory.clock import local_date
from memoryd.memory.config import Config, load_project, switched_off
from memoryd.memory.errors import ConfigError
from memoryd.memory.log import logger
from memoryd.memory.projects import identity, path_of
from memoryd.memory.store import Store
from memoryd.sessions.stored import ActiveSession

#: A session of fewer runs tells a project nothing.
SESSION_TURNS = 2
#: Between two counts of a store's sessions.
LOOK_MS = 600_000
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


def check_stores(place: Workplace) -> int:
    """Make the consolidations that are due; how many jobs were made."""
    if switched_off(place.environ, "CONSOLIDATION"):
        return 0
    check = Check(place)
    made = 0
    today = local_date(place.clock.now_ms())
    for store in Store.all(place.home):
        if store.is_profile:
            continue
        looked_at = place.ledger.consolidations.of(store.key).looked_at
        gate = check.refusal(store.key, throttled=True)
        if gate is None:
            made += place.ledger.enqueue_store(
                "consolidate", store.key, key=today, trigger="daily"
            ).created
        elif local_date(looked_at) != today:
            _tell(place, store.key, gate)
    return made


def _tell(place: Workplace, store: str, gate: str) -> None:
    """Log which gate said no to the store, and keep that it was: once a day."""
    logger().info("consolidation.not_due", store=store, gate=gate)
    place.ledger.consolidations.looked(store, place.clock.now_ms())


class Check:
    """One pass over the gates. The sessions are counted once, when the first store asks."""

    def __init__(self, place: Workplace) -> None:
        self._place = place
        self._now = place.clock.now_ms()

    def refusal(self, store: str, *, throttled: bool = False) -> str | None:
        """The code of the first gate that says no to the store; None: it is due.

        ``throttled``: its sessions are not counted again within ten minutes.
        """
        if switched_off(self._place.environ, "CONSOLIDATION"):
            return "consolidation.switched-off"
        config = self._config(store)
        if config is None:
            return "project.config-unusable"
        if not config.memory.auto_consolidate:
            return "consolidation.off"
        return self._by_work(store, config, throttled)

    def _by_work(self, store: str, config: Config, throttled: bool) -> str | None:
        known = self._place.ledger.consolidations.of(store)
        hours = config.memory.consolidate_min_hours
        # A last run tomorrow is a clock that was set back; one beyond that was written by a clock
        # that was wrong, and counts as past.
        if -DAY_MS <= self._now - known.last_run_at < hours * HOUR_MS and known.last_run_at:
            return "consolidation.too-soon"
        if throttled and 0 <= self._now - known.looked_at < LOOK_MS:
            return "consolidation.looked-at"
        self._place.ledger.consolidations.looked(store, self._now)
        since = known.last_run_at if known.last_run_at <= self._now else 0
        active = [each for each in self.sessions(store) if each.read_ms > since]
        if len(active) < config.memory.consolidate_min_sessions:
            return "consolidation.too-few-sessions"
        return None

    def sessions(self, store: str) -> Sequence[ActiveSession]:
        """The sessions of the store's project, the last active first."""
        return self._active.get(store, ())

    @cached_property
    def _active(self) -> Mapping[str, Sequence[ActiveSession]]:
        return self._place.history.active_since(0, SESSION_TURNS)

    def _config(self, store: str) -> Config | None:
        """The configuration under the store's project; None where its own file is unusable."""
        known = identity(self._place.home, store)
        path = known.path if known is not None else path_of(store)
        if not path:
            return self._place.config
        try:
            return load_project(Path(path), self._place.config)
        except ConfigError as error:
            logger().warning("project.config_unusable", store=store, reason=error.message)
            return None
