"""A session history that was lost, or is older than the ledger, is read again from the transcripts.

A session lacks in it what the ledger's cursor says was distilled and it never numbered. Where its
transcript is as it was when it was read, its messages get the numbers they had, so that nothing is
distilled twice and no provider is asked. One that has changed since is left to its next job, which
reads it as a whole. What the person had forgotten is learned first, in digests.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from memoryd.jobs.archived import Read
from memoryd.jobs.discovery import adapters
from memoryd.jobs.forgetting import Forgetter
from memoryd.jobs.gates import all_off
from memoryd.jobs.sessions import has_open_job
from memoryd.jobs.workplace import Workplace
from memoryd.memory.errors import ConfigError, TranscriptError
from memoryd.memory.excluded_places import ExcludedPlaces
from memoryd.memory.log import logger
from memoryd.memory.projects import Resolver

if TYPE_CHECKING:
    from memoryd.sessions.adapter import Adapter


def rebuild(place: Workplace, *, stopping: Callable[[], bool] = lambda: False) -> int:
    """Read what the session history lacks again, the oldest first; how many sessions.

    At most ``[backfill] per_day`` of them at a time. Raises ``HistoryError``.
    """
    if all_off(place.environ) or not place.config.sessions.store:
        return 0
    kept = place.history.last_seqs()
    lacking = [
        row
        for row in place.ledger.archive.read()
        if kept.get((row.agent, row.session), -1) < row.seq
    ]
    if not lacking:
        return 0
    Forgetter(place.home, place.config, place.environ, place.ledger, place.history).catch_up()
    again = _Again(place, {adapter.name: adapter for adapter in adapters(place.config)})
    done = 0
    for row in lacking:
        if stopping() or done >= place.config.backfill.per_day:
            break
        done += again.read(row)
    if done:
        logger().info("history.rebuilt", sessions=done, lacking=len(lacking) - done)
    return done


@dataclass(frozen=True)
class _Again:
    """Reads sessions again, and what it found out about their directories."""

    place: Workplace
    adapters: dict[str, Adapter]

    def read(self, row: Read) -> bool:
        """Read one again; False where it cannot be, or is for its next job to read."""
        adapter = self.adapters.get(row.agent)
        if adapter is None or has_open_job(self.place.ledger, row.agent, row.session):
            return False
        try:
            return self._ingest(adapter, row)
        except (TranscriptError, ConfigError) as error:
            logger().warning("transcript.left", agent=row.agent, reason=error.code)
            return False

    def _ingest(self, adapter: Adapter, row: Read) -> bool:
        from memoryd.sessions.ingest import ingest

        path = Path(row.transcript)
        look = adapter.look(path, row.session)
        if look is None or look.at_most != row.at_most:
            return False
        end = min(adapter.end(path, row.session), row.at_most)
        if not row.is_as_mined and row.last_cutoff not in (end, row.at_most):
            return False
        resolver = Resolver(self.place.home, self.place.config.projects.worktrees)
        ingest(
            self.place.history,
            adapter,
            row.agent,
            row.session,
            path,
            end,
            resolver=lambda cwd: resolver.resolve(cwd).key,
            exclude=ExcludedPlaces(resolver, self.place.config).is_excluded,
            cwd=row.cwd,
        )
        self.place.history.number_after(row.agent, row.session, row.seq)
        return self.place.history.progress(row.agent, row.session) is not None
