"""The session history as a person reads it: a list, one session found by a piece of its id, pages.

Everything here only reads. What is kept no longer is told as a message without words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memoryd.memory.errors import UsageError
from memoryd.memory.text import clip
from memoryd.sessions.agents import known
from memoryd.sessions.history import History

#: Most characters of what was said first.
FIRST_CHARACTERS = 80
#: Sessions that a choice for forgetting may hold at most.
CHOSEN_LIMIT = 100_000

_WHICH = """
    from session where kind = 'root' and (:forgotten or forgotten = 0)
      and (:agent is null or agent = :agent)
      and (:before is null or coalesce(last_active_ms, ingested_ms) < :before)
      and (:project is null or exists (select 1 from message
           where message.session_id = session.id and message.project = :project))
"""
_LIST = f"""
    select agent, session {_WHICH}
    order by coalesce(last_active_ms, ingested_ms) desc, id desc limit :limit
"""
_FIRST = """
    select text from message where state = 'live' and role = 'user' and part = 1
      and session_id = (select id from session where agent = ? and session = ?)
    order by seq limit 1
"""
_WAITS = """
    select 1 from message where state = 'live' and role = 'user' and said is null and seq > ?
      and session_id = (select id from session where agent = ? and session = ?) limit 1
"""
_KEPT = """
    select count(*) from message where part = 1 and state = 'live' and said is null
      and session_id = (select id from session where agent = ? and session = ?)
"""
_LIKE = """
    select agent, session from session
    where (:agent is null or agent = :agent)
      and (session = :piece or (not :exact and (substr(session, 1, length(:piece)) = :piece
           or substr(session, -length(:piece)) = :piece)))
    order by coalesce(last_active_ms, ingested_ms) desc, id desc limit 5
"""
_FORKS = """
    select agent, session from session where agent = :agent and (forked_from = :session
      or id in (select copied.session_id from copied
                join message on message.id = copied.message_id
                join session origin on origin.id = message.session_id
                where origin.agent = :agent and origin.session = :session))
    order by id
"""
_ORIGINS = """
    select distinct origin.agent, origin.session from copied
    join session mine on mine.id = copied.session_id
    join message on message.id = copied.message_id and message.said is null
    join session origin on origin.id = message.session_id
    where mine.agent = ? and mine.session = ? order by origin.id
"""
_PAGE = """
    select seq, role, text, at_ms, cwd, project, said is null from message
    where state = 'live' and seq > ? and session_id =
        (select id from session where agent = ? and session = ?)
    order by seq {order} limit ?
"""


@dataclass(frozen=True)
class Which:
    """Which sessions are meant: of an agent, of a project (key), last active before a time.

    ``forgotten``: those too that are forgotten already.
    """

    agent: str | None = None
    project: str | None = None
    before_ms: int | None = None
    forgotten: bool = True


@dataclass(frozen=True)
class Line:
    """One message, or a part of a long one, as it is shown; ``kept`` is false without its words."""

    seq: int
    role: str
    text: str
    at_ms: int | None
    cwd: str
    project: str
    kept: bool


def choose(history: History, which: Which, limit: int) -> list[tuple[str, str]]:
    """Agent and id of at most ``limit`` root sessions, the last active first."""
    values = {
        "agent": which.agent,
        "project": which.project,
        "before": which.before_ms,
        "forgotten": which.forgotten,
        "limit": limit,
    }
    with history.database.reading() as cursor:
        return cursor.execute(_LIST, values).fetchall()


def first_words(history: History, agent: str, session: str) -> str:
    """The first line of what a person said first in the session; empty where that is not kept."""
    with history.database.reading() as cursor:
        row = cursor.execute(_FIRST, (agent, session)).fetchone()
    lines = row[0].split("\n") if row else []
    first = next((line for line in lines if line.strip()), "")
    return clip(" ".join(first.split()), FIRST_CHARACTERS)


def words_wait(history: History, agent: str, session: str, cursor_seq: int) -> bool:
    """Whether a person said something after ``cursor_seq`` that is still to be distilled."""
    with history.database.reading() as cursor:
        return cursor.execute(_WAITS, (cursor_seq, agent, session)).fetchone() is not None


def messages_kept(history: History, agent: str, session: str) -> int:
    """How many of the session's messages still have their words."""
    with history.database.reading() as cursor:
        return int(cursor.execute(_KEPT, (agent, session)).fetchone()[0])


def forks_of(history: History, agent: str, session: str) -> list[tuple[str, str]]:
    """The sessions that go on from this one, or repeat something of it."""
    with history.database.reading() as cursor:
        return cursor.execute(_FORKS, {"agent": agent, "session": session}).fetchall()


def origins_of(history: History, agent: str, session: str) -> list[tuple[str, str]]:
    """The sessions that keep words which this one repeats."""
    with history.database.reading() as cursor:
        return cursor.execute(_ORIGINS, (agent, session)).fetchall()


def page(
    history: History, agent: str, session: str, limit: int, *, after: int = 0, tail: bool = False
) -> list[Line]:
    """At most ``limit`` messages after ``after`` (a ``seq``), in order; with ``tail`` the last."""
    statement = _PAGE.format(order="desc" if tail else "asc")
    with history.database.reading() as cursor:
        rows = cursor.execute(statement, (after, agent, session, limit)).fetchall()
    lines = [
        Line(seq, role, text, at_ms, cwd, project, bool(kept))
        for seq, role, text, at_ms, cwd, project, kept in rows
    ]
    return lines[::-1] if tail else lines


def find(history: History, named: str, others: Sequence[tuple[str, str]] = ()) -> tuple[str, str]:
    """Agent and id of the one session that ``named`` fits.

    It is an id, its beginning or its ending, with ``agent/`` before it where that helps. ``others``
    are sessions that are known elsewhere. Raises ``UsageError`` where none or several fit.
    """
    agent, piece = _split(named)
    found = _fitting(history, agent, piece, exact=True) or _fitting(history, agent, piece)
    found = found or _among(others, agent, piece)
    if len(found) == 1:
        return found[0]
    if found:
        both = ", ".join(f"{agent}/{session}" for agent, session in found[:3])
        raise UsageError(
            f"{clip(named, 80)!a} fits more than one session: {both}", hint="type more of the id"
        )
    raise UsageError(
        f"no session is called {clip(named, 80)!a}",
        hint="`memoryd sessions list` shows the sessions",
    )


def _split(named: str) -> tuple[str | None, str]:
    agent, slash, piece = named.partition("/")
    return (agent, piece) if slash and agent in known() else (None, named)


def _fitting(
    history: History, agent: str | None, piece: str, *, exact: bool = False
) -> list[tuple[str, str]]:
    if not piece or len(piece) > 200 or not piece.isascii():
        return []
    with history.database.reading() as cursor:
        values = {"agent": agent, "piece": piece, "exact": exact}
        return cursor.execute(_LIKE, values).fetchall()


def _among(
    others: Sequence[tuple[str, str]], agent: str | None, piece: str
) -> list[tuple[str, str]]:
    mine = [other for other in others if piece and agent in (None, other[0])]
    exact = [other for other in mine if other[1] == piece]
    return exact or [
        other for other in mine if other[1].startswith(piece) or other[1].endswith(piece)
    ]
