"""What a ledger that is younger, or older, than the memory is told by what was not lost with it.

A new ledger, and a copy of an older one, do not know what was done since. The stores' histories do:
each slice that wrote something left a commit whose trailers name it. So the cursors go where the
commits say they were, the plans that they are past are cleared, and nothing is written twice. The
session history says which sessions a person had forgotten. What was said and not yet distilled is
found again by the sweep, and read from the cursor on.

What only the ledger knew (candidates in review, the day's budget, sessions excluded by a kill
switch) is there as far as the damaged file could be read (``salvaging.py``). A slice that wrote
nothing, and whose cursor was lost, is read once more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from memoryd.jobs import candidates
from memoryd.jobs.job import Job
from memoryd.jobs.ledger import Ledger
from memoryd.memory.baseline import Baseline
from memoryd.memory.clock import Clock
from memoryd.memory.errors import HistoryError, MemorydError, PlanUnreadable, StoreError
from memoryd.memory.home import Home
from memoryd.memory.log import logger
from memoryd.memory.plan import Plan, SliceRange
from memoryd.memory.store import Store

_SLICE = re.compile(r"([^/ ]+)/(\S+) (\d{1,18})\.\.(\d{1,18})")
#: The time 0 marks a cursor that was recovered, until a slice moves it.
_RAISE = """
insert into cursor (agent, session, seq, updated_at) values (:agent, :session, :seq, 0)
on conflict (agent, session) do update set seq = excluded.seq, updated_at = 0
    where cursor.seq < excluded.seq
"""


@dataclass
class _Done:
    """What the histories of the stores know: where the last slice of each session ended."""

    cursors: dict[tuple[str, str], int] = field(default_factory=dict)
    #: What could not be asked.
    left: list[MemorydError] = field(default_factory=list)


def recover(home: Home, ledger: Ledger, clock: Clock) -> None:
    """Tell a ledger that is new or was put back what was done since.

    A store whose history cannot be read is asked again at the next open. Raises ``LedgerError``.
    """
    done = _done(home)
    forgotten = list(_forgotten(home, clock, done))
    for agent, session in forgotten:
        ledger.exclude(agent, session, "session.forgotten")
    with ledger.db.writing(durable=True):
        settled = _clear_plans(ledger, done)
        raised = sum(
            ledger.db.change(_RAISE, agent=agent, session=session, seq=seq)
            for (agent, session), seq in done.cursors.items()
        )
        if not done.left:
            ledger.db.rows("pragma application_id = 0")
    for error in done.left:
        logger().warning("ledger.recovering", code=error.code, reason=str(error))
    if raised or settled or forgotten:
        found = {"cursors": raised, "plans": settled, "forgotten": len(forgotten)}
        logger().info("ledger.recovered", **found)


def standing_plan(home: Home, ledger: Ledger, job: Job) -> Plan | None:
    """The plan that stands for the job's serial key, and can be read.

    One that cannot is dropped, and its slice read again: the cursor is before it. Where the stores'
    histories say that it was written, the cursor goes past it instead. Raises ``LeaseLost``, and
    ``StoreError`` where a history cannot be asked.
    """
    try:
        return ledger.standing_plan(job)
    except PlanUnreadable as error:
        done = _done(home)
        if done.left:
            raise done.left[0] from error
        written = done.cursors.get((job.agent, job.session), 0)
        ledger.drop_plan(job, written)
        logger().warning("plan.unreadable", written=written)
        return None


def is_recovered(ledger: Ledger, agent: str, session: str) -> bool:
    """Whether all that is known of the session's cursor is what the commits say."""
    rows = ledger.db.rows(
        "select 1 from cursor where agent = :agent and session = :session and updated_at = 0",
        agent=agent,
        session=session,
    )
    return bool(rows)


def _done(home: Home) -> _Done:
    done = _Done()
    for store in Store.all(home):
        baseline = Baseline(store)
        try:
            baseline.require_history()
            commits = baseline.with_trailer("Memoryd-Slice") if baseline.exists() else []
        except StoreError as error:
            done.left.append(error)
            continue
        for commit in commits:
            for value in commit.values("Memoryd-Slice"):
                if match := _SLICE.fullmatch(value):
                    whose, last = (match[1], match[2]), int(match[4])
                    done.cursors[whose] = max(last, done.cursors.get(whose, 0))
    return done


def _forgotten(home: Home, clock: Clock, done: _Done) -> Iterator[tuple[str, str]]:
    from memoryd.sessions.history import History

    if not home.session_history.exists():
        return
    try:
        with History(home.session_history, clock) as history:
            yield from history.forgotten()
    except HistoryError as error:
        done.left.append(error)


def _clear_plans(ledger: Ledger, done: _Done) -> int:
    """Clear the plans of slices that a later one was written after; how many.

    A plan that nothing came after stands, before its cursor: its job finds what of it is done, in
    each store, and does the rest.
    """
    cleared = 0
    for key, text in ledger.db.rows("select serial_key, plan from plan"):
        part = _slice(str(text))
        if part is None:
            continue
        whose = (part.agent, part.session)
        if done.cursors.get(whose, 0) <= part.last:
            done.cursors.pop(whose, None)
            continue
        ledger.db.change("delete from plan where serial_key = :key", key=key)
        candidates.settle(ledger.db, part, {})
        cleared += 1
    return cleared


def _slice(text: str) -> SliceRange | None:
    """The slice of a plan; None for a store's, and for one that its next job finds unreadable."""
    try:
        return Plan.from_json(text).slice
    except PlanUnreadable:
        return None
