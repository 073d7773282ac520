"""Which words the session history lets go of by itself: the old, the excluded, all with no store.

Words that wait to be distilled stay, however old, but where they may not be read at all. Bounded:
what is more than ``LIMIT`` messages waits for the next pass.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from memoryd.jobs.directories import directories
from memoryd.jobs.forgetting import Forgetter
from memoryd.jobs.indexing import index_some
from memoryd.jobs.job import Job
from memoryd.jobs.sessions import has_open_job
from memoryd.jobs.workplace import Workplace
from memoryd.memory.errors import ConfigError, CursorUnreadable, LeaseLost
from memoryd.memory.excluded_places import ExcludedPlaces
from memoryd.memory.log import logger
from memoryd.memory.projects import Resolver, excluded
from memoryd.sessions.directories import Directories
from memoryd.sessions.stripping import Named, Stripper

DAY_MS = 24 * 3600 * 1000
#: Parts of messages that one pass strips, about: it shares its thread with other duties.
LIMIT = 20_000
_ALL = 2**63 - 1


def let_go(place: Workplace) -> int:
    """One pass; how many parts of messages lost their words."""
    found = _Pass(place)
    forgetter = Forgetter(place.home, place.config, place.environ, place.ledger, place.history)
    forgetter.resume()
    forgetter.catch_up()
    for step in (found.old, found.excluded, found.unlisted, found.unstored):
        step()
    if found.stripped:
        index_some(place)
        found.stripper.settle()
        logger().info("words.stripped", messages=found.stripped)
    return found.stripped


def keep_nothing(place: Workplace, job: Job) -> None:
    """With ``store = false`` nothing of a session stays when its job ends.

    Called before that, while the job holds the session: else another attempt could be reading the
    words that go. Raises ``LeaseLost``.
    """
    if place.config.sessions.store:
        return
    if not place.ledger.heartbeat(job):
        raise LeaseLost(f"attempt {job.attempt} of job {job.id} lost its lease")
    stripper = Stripper(place.history.database)
    seq = place.ledger.cursor(job.agent, job.session)
    if stripper.keep_nothing(job.agent, job.session, seq):
        place.history.index.purge()
        stripper.settle()


@dataclass
class _Pass:
    place: Workplace
    stripped: int = 0

    @cached_property
    def stripper(self) -> Stripper:
        return Stripper(self.place.history.database)

    @cached_property
    def _resolver(self) -> Resolver:
        return Resolver(self.place.home, self.place.config.projects.worktrees)

    @cached_property
    def _excluded_places(self) -> ExcludedPlaces:
        return ExcludedPlaces(self._resolver, self.place.config)

    @cached_property
    def _directories(self) -> Directories:
        place = self.place
        return directories(place.home, place.ledger, place.config, place.environ)

    def old(self) -> None:
        """What was said longer ago than ``keep_days`` and is distilled, or never can be."""
        days = self.place.config.sessions.keep_days
        if not days:
            return
        before = self.place.clock.now_ms() - days * DAY_MS

        def strip(one: Named) -> int:
            rollout = self.place.ledger.records.rollout(one.agent, one.session)
            never = rollout is not None and rollout.excluded is not None
            seq = _ALL if never else self.place.ledger.cursor(one.agent, one.session)
            return self.stripper.up_to(one, seq, before)

        self._each(self.stripper.old(before), strip)

    def excluded(self) -> None:
        """What was said in a directory that is excluded by now."""
        known: dict[str, bool] = {}
        for one, cwd in self.stripper.places():
            if self.stripped >= LIMIT:
                return
            where = cwd or self._started_in(one)
            if where not in known:
                known[where] = self._is_excluded(where)
            if known[where]:
                self.stripped += self.stripper.said_in(one, cwd)

    def unlisted(self) -> None:
        """All of the agents that are not to be read any more; what a job is to read stays."""
        agents = self.place.config.sessions.agents
        if agents:
            gone = [one for one in self.stripper.keeping() if one.agent not in agents]
            self._each(gone, lambda one: 0 if self._is_open(one) else self._strip_all(one))

    def unstored(self) -> None:
        """With ``store = false``: of jobs that failed, and from when words were kept."""
        if not self.place.config.sessions.store:
            self._each(self.stripper.keeping(), self._keep_nothing)

    def _each(self, sessions: list[Named], strip: Callable[[Named], int]) -> None:
        for one in sessions:
            if self.stripped >= LIMIT:
                return
            with suppress(CursorUnreadable):  # its words wait; the doctor names it
                self.stripped += strip(one)

    def _strip_all(self, one: Named) -> int:
        return self.stripper.up_to(one, _ALL)

    def _keep_nothing(self, one: Named) -> int:
        if self._is_open(one):
            return 0
        seq = self.place.ledger.cursor(one.agent, one.session)
        return self.stripper.keep_nothing(one.agent, one.session, seq)

    def _is_open(self, one: Named) -> bool:
        return has_open_job(self.place.ledger, one.agent, one.session)

    def _started_in(self, one: Named) -> str:
        rollout = self.place.ledger.records.rollout(one.agent, one.session)
        if rollout is None:
            return ""
        return rollout.cwd or self._directories.of(Path(rollout.transcript))

    def _is_excluded(self, cwd: str) -> bool:
        """As distilling decides it; a project whose own file cannot be read decides nothing."""
        try:
            return self._excluded_places.is_excluded(cwd)
        except ConfigError:
            globs = self.place.config.privacy.exclude
            return excluded(cwd, globs) or excluded(self._resolver.resolve(cwd).path, globs)
