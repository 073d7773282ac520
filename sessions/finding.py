"""One search in an open session history: its filters, its candidates, the best of them."""

from __future__ import annotations

import heapq
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memoryd.sessions.excerpts import excerpt
from memoryd.sessions.hits import Hit, Query
from memoryd.sessions.index import agent_token, first_place, scope_token, session_token
from memoryd.sessions.ranking import WEIGHED, Ranking, Row, held, weights_of
from memoryd.sessions.tokens import Term

#: How many of the newest hits are ranked.
RANKED = 5_000
#: How many of what has only some of the words are looked at.
LOOKED_AT = 200
#: Words of a query that are looked for; what comes after them is not.
WORDS = 32

_STANDING = """
    cross join message on message.id = indexed.message_id
    where {which} and message.state = 'live' and message.text <> '' {only}
"""
_CANDIDATES = f"""
    select full_text.rowid, message.id, message.session_id, message.text
    from full_text cross join indexed on indexed.place = full_text.rowid
    {_STANDING.replace("{which}", "full_text match ?")} order by full_text.rowid desc limit ?
"""
_AT = f"""
    select indexed.place, message.id, message.session_id, message.text
    from indexed {_STANDING.replace("{which}", "indexed.place = ?")}
"""

_PLACES = "select rowid from full_text where full_text match ? {only} order by rowid desc limit ?"

_HIT = """
    select session.agent, session.session, session.kind, message.seq, message.role, message.text,
           message.at_ms, message.cwd, message.project,
           coalesce(message.at_ms, session.last_active_ms, session.ingested_ms),
           message.id, session.id
    from message join session on session.id = message.session_id where message.id = ?
"""


@dataclass(frozen=True)
class _Where:
    """The filters of a query: as tokens, as conditions, and as a span of places."""

    tokens: tuple[str, ...]
    only: str
    values: tuple[object, ...]
    places: tuple[tuple[str, int], ...]

    def match(self, wanted: Iterable[str]) -> str:
        """The FTS5 expression for all of ``wanted`` here."""
        return " AND ".join([*self.tokens, *wanted])

    def span(self, column: str) -> str:
        """The condition on the places."""
        return "".join(f" and {column} {sign} {place}" for sign, place in self.places)


class Finding:
    """One search."""

    def __init__(self, cursor: sqlite3.Cursor, query: Query, wanted: Sequence[Term]) -> None:
        self._cursor = cursor
        self._query = query
        self._wanted = wanted
        self._where = _where_of(cursor, query)

    def best(self) -> tuple[list[tuple[Row, float]], bool, bool]:
        """The best candidates with their shares.

        And whether they have all words, and whether only the newest were ranked.
        """
        rows = self.candidates([term.match() for term in self._wanted], RANKED)
        if rows:
            ranked = Ranking(self._wanted, rows, self._weights()).best(self._query.limit)
            return [(row, 1.0) for row in ranked], True, len(rows) == RANKED
        single = [term for each in self._wanted for term in each.single()][:WORDS]
        if len(single) == 1:
            return [], True, False
        return self._most(single), False, False

    def hit(self, row: Row, share: float) -> Hit:
        """All about one of them."""
        found = self._cursor.execute(_HIT, (row[1],)).fetchone()
        agent, session, kind, seq, role, text, at_ms, cwd, project, *ids = found
        said = excerpt(text, self._wanted)
        return Hit(agent, session, kind, seq, role, at_ms, cwd, project, said, share, *ids)

    def candidates(self, wanted: Iterable[str], limit: int) -> list[Row]:
        """The newest ``limit`` live messages that hold all of ``wanted``."""
        where = self._where
        statement = _CANDIDATES.format(only=where.only + where.span("full_text.rowid"))
        values = (where.match(wanted), *where.values, limit)
        return self._cursor.execute(statement, values).fetchall()

    def _places(self, term: Term, limit: int) -> list[int]:
        statement = _PLACES.format(only=self._where.span("rowid"))
        values = (self._where.match([term.match()]), limit)
        return [place for (place,) in self._cursor.execute(statement, values)]

    def _weights(self) -> list[float]:
        """How much each word says: the rarer the more. Common ones are alike."""
        if len(self._wanted) == 1:
            return [1.0]
        return weights_of([len(self._places(term, WEIGHED)) for term in self._wanted])

    def _most(self, wanted: list[Term]) -> list[tuple[Row, float]]:
        """Those that have most of the words; the sessions that have most come first."""
        places = [self._places(term, RANKED) for term in wanted]
        weights = weights_of([len(each) for each in places])
        having: dict[int, float] = {}
        for each, weight in zip(places, weights, strict=True):
            for place in each:
                having[place] = having.get(place, 0.0) + weight
        likely = heapq.nlargest(LOOKED_AT, having, key=lambda place: (having[place], place))
        rows = [row for place in likely for row in self._at(place)]
        having_words = [held(text, wanted) for *_, text in rows]
        in_session: dict[int, set[int]] = {}
        for (_, _, session_id, _), words in zip(rows, having_words, strict=True):
            in_session.setdefault(session_id, set()).update(words)

        def share(words: Iterable[int]) -> float:
            return sum(weights[word] for word in words) / sum(weights)

        found = [
            (row, share(words)) for row, words in zip(rows, having_words, strict=True) if words
        ]
        return heapq.nlargest(
            self._query.limit,
            found,
            key=lambda hit: (share(in_session[hit[0][2]]), hit[1], hit[0][0]),
        )

    def _at(self, place: int) -> list[Row]:
        statement = _AT.format(only=self._where.only)
        return self._cursor.execute(statement, (place, *self._where.values)).fetchall()


def _where_of(cursor: sqlite3.Cursor, query: Query) -> _Where:
    """The filters of ``query``. A project that nothing was said in has no number: -1."""
    tokens: list[str] = []
    only: list[str] = []
    values: list[object] = []
    if query.project is not None:
        numbers = cursor.execute("select number from scope where project = ?", (query.project,))
        each = [f'"{scope_token(number)}"' for (number,) in numbers] or [f'"{scope_token(-1)}"']
        tokens.append(f"({' OR '.join(each)})")
        only.append("and message.project = ?")
        values.append(query.project)
    if query.agent is not None:
        tokens.append(f'"{agent_token(query.agent)}"')
    if query.session is not None:
        found = cursor.execute("select id from session where session = ?", (query.session,))
        each = [f'"{session_token(row_id)}"' for (row_id,) in found] or [f'"{session_token(-1)}"']
        tokens.append(f"({' OR '.join(each)})")
    for condition, value in (
        ("message.role = ?", query.role),
        ("(select kind from session where id = message.session_id) = ?", query.kind),
        ("message.session_id not in (select id from session where session = ?)", query.without),
    ):
        if value is not None:
            only.append(f"and {condition}")
            values.append(value)
    bounds = ((">=", query.since_ms), ("<", query.until_ms))
    places = tuple((sign, first_place(ms)) for sign, ms in bounds if ms is not None)
    return _Where(tuple(tokens), " ".join(only), tuple(values), places)
