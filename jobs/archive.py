"""What the ledger knows of the rollout archive: every session found, and how far mining it came.

A session is the archive's when nobody told of it and it was last active before the home was made;
all others are the hooks' and the sweep's. ``archived.py`` says how far one of the archive has come.

| a row's column | who writes it, and when |
|---|---|
| ``fingerprint``, ``size``, ``at_most``, ``active_at``, ``project``, ``kind`` | discovery; the first is null once the transcript is gone |
| ``seen_at`` | whoever makes a job of the session but backfill; 0: nobody told of it |
| ``hook_at``, ``hook_end_at``, ``sweep_at`` | the same, by who told: a hook of anything, a hook of an end, the sweep |
| ``made_fingerprint`` | with each backfill job: what it was made for |
| ``mined_fingerprint`` | when such a job completed with all read |

Of a forgotten session, of which no job is made, ``made_fingerprint`` is what its digests were read of.
"""  # noqa: E501 - a table

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from memoryd.jobs import archive_statements as sql
from memoryd.jobs.archived import Archived, Known, Read, Seen, well_formed
from memoryd.jobs.database import Database
from memoryd.jobs.records import Rollout
from memoryd.memory.clock import Clock, local_date
from memoryd.memory.home import Home

HOUR_MS = 3600 * 1000
DAY_MS = 24 * HOUR_MS
#: Days whose sessions are counted.
KEPT_DAYS = 30


@dataclass(frozen=True)
class Told:
    """How many sessions of an agent were told of lately.

    ``hook`` and ``sweep`` count those whose end a hook told of, and the sweep found; ``heard``
    those of which a hook told anything.
    """

    agent: str
    hook: int
    sweep: int
    heard: int


def home_made_ms(home: Home) -> int:
    """When the home was made (ms): what was active since is fresh, the rest is the archive."""
    return home.identity.stat().st_mtime_ns // 1_000_000


class Archive:
    """The archive's part of one ledger: ``rollout``, ``backfill``, ``backfill_day``."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock

    # -- discovery -------------------------------------------------------------------------------

    def known(self, agent: str) -> dict[str, Known]:
        """All sessions of the agent that the ledger has a row of, by their id."""
        rows = self._db.rows(
            "select session, transcript, fingerprint, active_at, seen_at, cwd from rollout"
            " where agent = :agent",
            agent=agent,
        )
        # One that holds something else is looked at as if it were new, and written anew.
        return {
            session: Known(*row)
            for session, *row in rows
            if isinstance(row[0], str) and isinstance(row[1], str | None)
        }

    def saw(self, found: Iterable[Seen]) -> None:
        """Write down what was seen, in one transaction."""
        now = self._clock.now_ms()
        with self._db.writing():
            for each in found:
                self._db.change(sql.SAW, **vars(each), now=now)

    def directories(self) -> list[str]:
        """Every directory that a session of any agent was held in."""
        rows = self._db.rows("select distinct cwd from rollout where cwd <> '' order by cwd")
        return [str(row[0]) for row in rows]

    def place(self, agent: str, session: str, cwd: str) -> None:
        """The session was held in ``cwd``, as was found out only now; what was told stands."""
        with self._db.writing():
            self._db.change(sql.PLACE, agent=agent, session=session, cwd=cwd)

    def still_mined(self, row: Archived) -> bool:
        """A session that was mined looks different and is not: there is nothing to read in it."""
        with self._db.writing():
            changed = self._db.change(
                sql.STILL_MINED, agent=row.agent, session=row.session, fingerprint=row.fingerprint
            )
        return changed > 0

    def lost(self, agent: str, sessions: Iterable[str]) -> None:
        """These transcripts are not there any more."""
        with self._db.writing():
            for session in sessions:
                self._db.change(
                    "update rollout set fingerprint = null"
                    " where agent = :agent and session = :session",
                    agent=agent,
                    session=session,
                )

    # -- looking ---------------------------------------------------------------------------------

    def rows(self, made_ms: int, *, unmade: bool = False) -> list[Archived]:
        """The archive of a home made then; ``unmade``: only what no job was made for as it is."""
        text = sql.ARCHIVED + (sql.UNMADE if unmade else "")
        return well_formed(Archived, self._db.rows(text, made=made_ms))

    def fresh(self, made_ms: int) -> dict[str, int]:
        """How many root sessions of each agent are the hooks' and the sweep's to have read.

        What is excluded or forgotten is nobody's.
        """
        rows = self._db.rows(
            "select agent, count(*) from rollout where kind = 'root' and excluded is null"
            " and (seen_at > 0 or active_at >= :made) group by agent",
            made=made_ms,
        )
        return {str(agent): int(count) for agent, count in rows}

    def unread(self, made_ms: int) -> list[Rollout]:
        """The sessions that are not the archive's and may hold more than a finalize was to read."""
        return well_formed(Rollout, self._db.rows(sql.UNREAD_ROLLOUTS, made=made_ms))

    def rewritten(self) -> list[Rollout]:
        """Those that are shorter than what a finalize read, and none was made for as they are."""
        return well_formed(Rollout, self._db.rows(sql.REWRITTEN_ROLLOUTS))

    def unreadable(self) -> int:
        """How many rows hold what memoryd does not write: they are left out everywhere."""
        rows = self._db.rows(
            "select agent, session, transcript, cwd, cast(last_cutoff as bigint), excluded,"
            " cast(throttled as bigint), cast(extracts as bigint), seen_at from rollout"
        )
        return len(rows) - len(well_formed(Rollout, rows))

    def made(self, agent: str, session: str) -> None:
        """A finalize was made for the session as it is."""
        with self._db.writing():
            self._db.change(sql.MADE, agent=agent, session=session)

    def read(self) -> list[Read]:
        """The root sessions that are there and of which something was read, the oldest first."""
        return well_formed(Read, self._db.rows(sql.READ))

    def forgotten(self, agent: str | None) -> list[tuple[str, str, str, str | None]]:
        """The sessions (of ``agent``) that a person had forgotten: agent, id, transcript, and what
        it looked like when its digests were read."""
        rows = self._db.rows(sql.FORGOTTEN, agent=agent)
        return [(str(row[0]), str(row[1]), str(row[2]), row[3]) for row in rows]

    def learned(self, agent: str, session: str, transcript: str, looks: str | None) -> None:
        """The digests of a forgotten session were read, as it looks."""
        values = {"transcript": transcript, "looks": looks}
        with self._db.writing():
            self._db.change(sql.LEARNED, agent=agent, session=session, **values)

    def open_jobs(self) -> int:
        """Backfill jobs that are not through."""
        rows = self._db.rows(
            "select count(*) from job where kind = 'backfill' and status in ('pending', 'running')"
        )
        return int(rows[0][0])

    # -- a person's word -------------------------------------------------------------------------

    def state(self) -> tuple[str, int] | None:
        """What a person said last, ``started`` or ``paused``, and when (ms); None: nothing."""
        rows = self._db.rows("select state, since from backfill")
        return (str(rows[0][0]), int(rows[0][1])) if rows else None

    def say(self, state: Literal["started", "paused"]) -> None:
        """Keep a person's word, past restarts."""
        with self._db.writing(durable=True):
            self._db.change(
                "insert into backfill (id, state, since) values (1, :state, :now)"
                " on conflict (id) do update set state = excluded.state, since = excluded.since",
                state=state,
                now=self._clock.now_ms(),
            )

    def reset(self) -> tuple[int, int]:
        """Forget what was set aside, and what discovery saw: how many of each.

        Cursors stay, and so does what was read to its end as it still is.
        """
        with self._db.writing(durable=True):
            aside = self._db.change(sql.TAKE_BACK)
            seen = self._db.change(
                "update rollout set fingerprint = null where fingerprint is not null"
            )
        return aside, seen

    # -- counting --------------------------------------------------------------------------------

    def made_today(self) -> int:
        """For how many sessions a backfill job was made this local day."""
        rows = self._db.rows(
            "select sessions from backfill_day where day = :day", day=self._today()
        )
        return int(rows[0][0]) if rows else 0

    def count_made(self) -> None:
        """Count one more; in the caller's transaction."""
        self._db.change(
            "insert into backfill_day (day, sessions) values (:day, 1)"
            " on conflict (day) do update set sessions = sessions + 1",
            day=self._today(),
        )

    def told(self, days: int = 7) -> list[Told]:
        """Who told of the ends of sessions in the last ``days`` days, by agent."""
        since = self._clock.now_ms() - days * DAY_MS
        return [Told(*row) for row in self._db.rows(sql.TOLD, since=since)]

    def prune(self) -> None:
        """Forget what was counted on days long past."""
        before = local_date(self._clock.now_ms() - KEPT_DAYS * DAY_MS)
        with self._db.writing():
            self._db.change("delete from backfill_day where day <= :before", before=before)

    def _today(self) -> str:
        return local_date(self._clock.now_ms())
