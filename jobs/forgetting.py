"""A session that a person wants gone: its words leave the home, and none of them comes back.

The session is excluded first, so that whoever works on it is stopped; then its words leave the
ledger; then the session history, where only digests stay by which a fork or a copy is known. A
crash in between leaves a session that is never distilled again; the next pass does the rest.

Where its agent goes on with it all the same, or the history was lost, what it says now is learned
again in digests (``catch_up``), before any session that may be a fork of it is read.

Notes that came of it are the person's memory and stay. What was deleted from a database is
overwritten, the log beside it is cut and the ledger rewritten, since older versions of a row lie in
its free pages.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from memoryd.jobs import sessions as known
from memoryd.jobs.ledger import Ledger
from memoryd.jobs.scrub import rewrite
from memoryd.memory.config import Config
from memoryd.memory.errors import StoreBusy, TranscriptError
from memoryd.memory.home import Home
from memoryd.memory.ids import short
from memoryd.memory.projects import Resolver, excluded
from memoryd.sessions.history import History
from memoryd.sessions.stripping import Stripper

FORGOTTEN = "session.forgotten"
#: One at a time: two that read the same transcript would only get in each other's way.
_catching_up = threading.Lock()


@dataclass(frozen=True)
class Forgotten:
    """What forgetting one session did.

    ``messages`` parts of messages lost their words, ``cancelled`` jobs were called off. ``read``:
    its transcript was read to its end, so that all that others may copy of it is known.
    """

    agent: str
    session: str
    messages: int
    cancelled: int
    read: bool


@dataclass(frozen=True)
class Forgetter:
    """What forgetting sessions works with, opened."""

    home: Home
    config: Config
    environ: Mapping[str, str]
    ledger: Ledger
    history: History
    #: By agent where each session's transcript is, looked up once for all that are forgotten.
    discovered: dict[str, dict[str, Path]] = field(default_factory=dict)

    def exclude(self, agent: str, session: str) -> int:
        """Have the session never distilled again; how many jobs were called off.

        Raises ``StoreBusy`` while a plan of it stands, which is written all the same.
        """
        cancelled = self.ledger.exclude(agent, session, FORGOTTEN)
        job = known.planned_by(self.ledger, agent, session)
        if job is not None:
            raise StoreBusy(
                f"what job {short(job)} decided on {agent}/{session} is not written yet",
                hint="`memoryd run --once` finishes it, `memoryd retry --skip` of a failed job"
                " gives it up; then its words go with the next pass",
            )
        return cancelled

    def forget(self, agent: str, session: str) -> Forgotten:
        """Forget one session, known or not. Raises as ``exclude`` does; then its words stay."""
        cancelled = self.exclude(agent, session)
        # The history last: while it keeps words, ``resume`` knows that this is not done.
        known.scrub(self.ledger, agent, session)
        stripper = Stripper(self.history.database)
        messages = stripper.forget(agent, session)
        read = self._read(agent, session)
        messages += stripper.forget_copies(agent, session)
        return Forgotten(agent, session, messages, cancelled, read)

    def resume(self) -> int:
        """Go on where a crash, or a plan that stood, left a session half forgotten; how many."""
        done = 0
        for one in Stripper(self.history.database).keeping():
            rollout = self.ledger.records.rollout(one.agent, one.session)
            if rollout is None or rollout.excluded != FORGOTTEN:
                continue
            if known.planned_by(self.ledger, one.agent, one.session) is None:
                self.forget(one.agent, one.session)
                done += 1
        if done:
            self.finish()
        return done

    def catch_up(self, agent: str | None = None) -> int:
        """Learn what forgotten sessions (of ``agent``) say by now, in digests only; of how many.

        One that looks as it did is not opened. A plan that stands, or a transcript that is gone or
        held by its agent, leaves its session for another time.
        """
        learned = 0
        with _catching_up:
            for one in self.ledger.archive.forgotten(agent):
                learned += self._catch_up(*one)
        return learned

    def _catch_up(self, agent: str, session: str, told: str, learned: str | None) -> bool:
        looks = _looks(agent, session, Path(told)) if told else None
        stored = self.history.session(agent, session)
        is_marked = stored is not None and stored.forgotten
        if (is_marked and looks in (None, learned)) or known.planned_by(
            self.ledger, agent, session
        ):
            return False
        stripper = Stripper(self.history.database)
        if not is_marked:
            stripper.forget(agent, session)
        if looks is None or not self._read(agent, session):
            return False
        stripper.forget_copies(agent, session)
        return True

    def finish(self) -> list[str]:
        """Have nothing of what was forgotten stay readable on the disk, once after all of them.

        Where it may, that comes back, as lines for a person.
        """
        left = []
        self.history.index.purge()
        if not Stripper(self.history.database).settle():
            left.append(f"{self.history.database.path}-wal is in use: a restart empties it")
        left += rewrite(self.ledger)
        return left

    def _read(self, agent: str, session: str) -> bool:
        """Learn the digests of all that the transcript says; no word of it is kept."""
        from memoryd.sessions.agents import adapter_for
        from memoryd.sessions.ingest import ingest

        path = self._transcript(agent, session)
        if path is None:
            return False
        resolver = Resolver(self.home, self.config.projects.worktrees)
        looks = _looks(agent, session, path)
        try:
            ingest(
                self.history,
                adapter_for(agent),
                agent,
                session,
                path,
                None,
                resolver=lambda cwd: resolver.resolve(cwd).key,
                exclude=lambda cwd: excluded(cwd, self.config.privacy.exclude),
                seq_after=self.ledger.cursor(agent, session),
            )
        except TranscriptError:
            return False
        self.ledger.archive.learned(agent, session, str(path), looks)
        return True

    def _transcript(self, agent: str, session: str) -> Path | None:
        from memoryd.sessions.agents import adapter_for
        from memoryd.sessions.lines import stat_file
        from memoryd.sessions.places import once_each

        rollout = self.ledger.records.rollout(agent, session)
        told = Path(rollout.transcript) if rollout is not None and rollout.transcript else None
        if told is not None and stat_file(told) is not None:
            return told
        if agent not in self.discovered:
            found = once_each(adapter_for(agent), self.environ)
            self.discovered[agent] = {each.session: each.path for each in found}
        return self.discovered[agent].get(session)


def _looks(agent: str, session: str, path: Path) -> str | None:
    """What the transcript looks like from outside; None where it is gone."""
    from memoryd.sessions.agents import adapter_for

    look = adapter_for(agent).look(path, session)
    return None if look is None else f"{look.at_most}-{look.active_ms}"
