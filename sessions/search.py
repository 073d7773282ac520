"""Searching the session history: what a person types, the messages that hold it, the best first.

All words are looked for; the newest ``RANKED`` messages that have them are ranked by how much of a
message they are (BM25, over what was found), equal ones by time. FTS5's own ``bm25()`` is not used:
it reads every row that has a word, which for a common one takes longer than a person waits. Where
no message has all words, those that have most are told, from the sessions that have most.
"""

from __future__ import annotations

import heapq
import math
import re
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from memoryd.memory.clock import Clock
from memoryd.memory.facts import Role
from memoryd.memory.text import without_surrogates
from memoryd.sessions.adapter import SessionKind
from memoryd.sessions.database import Database
from memoryd.sessions.excerpts import excerpt
from memoryd.sessions.index import (
    Index,
    agent_token,
    first_place,
    never,
    scope_token,
    session_token,
)
from memoryd.sessions.tokens import Term, index_tokens, terms

#: How many of the newest hits are ranked.
RANKED = 5_000
#: How many more than are asked for are counted exactly, of those that look best.
CLOSELY = 60
#: How many of what has only some of the words are looked at.
LOOKED_AT = 200
#: A word that stands in more messages than this is common, and says as little as any such.
WEIGHED = 1_000
#: Words of a query that are looked for; what comes after them is not.
WORDS = 32
#: What of a query is read at all, in characters.
QUERY_CHARACTERS = 10_000

#: Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009).
_K1, _B = 1.2, 0.75

_STANDING = """
    cross join message on message.id = indexed.message_id
    where {which} and message.state = 'live' and message.text <> '' {only}
"""
_CANDIDATES = f"""
    select said.rowid, message.id, message.session_id, message.text
    from said cross join indexed on indexed.place = said.rowid
    {_STANDING.replace("{which}", "said match ?")} order by said.rowid desc limit ?
"""
_AT = f"""
    select indexed.place, message.id, message.session_id, message.text
    from indexed {_STANDING.replace("{which}", "indexed.place = ?")}
"""

_PLACES = "select rowid from said where said match ? {only} order by rowid desc limit ?"

_HIT = """
    select session.agent, session.session, session.kind, message.seq, message.role, message.text,
           message.at_ms, message.cwd, message.project, message.id, session.id
    from message join session on session.id = message.session_id where message.id = ?
"""

_NEAR = """
    select seq, role, text from message
    where session_id = ? and seq {side} ? and state = 'live' and text <> '' order by seq {order}
    limit ?
"""
_LIKE = """
    select distinct session from session where substr(session, 1, length(:named)) = :named
    order by session limit 4
"""
_BEFORE = _NEAR.format(side="<=", order="desc")
_AFTER = _NEAR.format(side=">", order="asc")


@dataclass(frozen=True)
class Query:
    """What is looked for, and where.

    ``project`` is a key; ``since_ms`` and ``until_ms`` bound when it was said, the first included,
    the second not; ``without`` is a session to leave out. None means any.
    """

    text: str
    project: str | None = None
    agent: str | None = None
    session: str | None = None
    role: Role | None = None
    kind: SessionKind | None = None
    since_ms: int | None = None
    until_ms: int | None = None
    without: str | None = None
    limit: int = 20


@dataclass(frozen=True)
class Hit:
    """A message that was found.

    ``excerpt`` is what of it stands around the words, on one line; ``share`` how much of what was
    looked for it has, from 0 to 1: a rare word is more of it than a common one.
    """

    agent: str
    session: str
    kind: SessionKind
    seq: int
    role: Role
    at_ms: int | None
    cwd: str
    project: str
    excerpt: str
    share: float
    #: Row ids, for those who look further.
    message_id: int = field(repr=False)
    session_id: int = field(repr=False)


@dataclass(frozen=True)
class Answer:
    """What a search found.

    ``words`` are those looked for; ``all_words`` says that each hit has all of them, else the hits
    have most; ``capped`` that more than ``RANKED`` have them, of which the newest were ranked;
    ``waiting`` counts messages that could not be looked at, because they are not indexed yet.
    """

    hits: tuple[Hit, ...]
    words: tuple[str, ...]
    all_words: bool
    capped: bool
    waiting: int


@dataclass(frozen=True)
class Near:
    """A message beside a hit, or the hit."""

    seq: int
    role: Role
    text: str


#: A candidate: its place, the row ids of its message and session, its text. Thousands are made.
_Row = tuple[int, int, int, str]


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


class Search:
    """Searches the session history at ``path``; ``index`` is its full-text index.

    Use it as a context. All methods raise ``HistoryError`` where the file cannot be used.
    """

    def __init__(self, path: Path, clock: Clock) -> None:
        self._database = Database(path)
        self.index = Index(self._database, clock)

    def __enter__(self) -> Search:
        self._database.open()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._database.close()

    def find(self, query: Query, *, stop: Callable[[], bool] = never) -> Answer:
        """The messages that hold what ``query`` looks for, the best first.

        What is not indexed yet is indexed first, until ``stop``; so the answer is whole unless it
        says ``waiting``. Any text can be looked for; one without a word finds nothing.
        """
        text = without_surrogates(query.text[:QUERY_CHARACTERS])
        wanted = terms(text)[:WORDS]
        self.index.catch_up(stop)
        waiting = self.index.waiting()
        if not wanted:
            return Answer((), (), True, False, waiting)
        with self._database.reading() as cursor:
            found = _Finding(cursor, query, wanted)
            best, all_words, capped = found.best()
            hits = tuple(found.hit(*each) for each in best)
        words = tuple(term.typed for term in wanted)
        return Answer(hits, words, all_words, capped, waiting)

    def sessions_like(self, named: str) -> list[str]:
        """The session of this id, or else those whose ids begin so, at most a few."""
        with self._database.reading() as cursor:
            rows = cursor.execute(_LIKE, {"named": named}).fetchall()
        ids = [session for (session,) in rows]
        return [named] if named in ids else ids

    def around(self, hit: Hit, count: int) -> list[Near]:
        """The ``count`` live messages before a hit in its session, the hit, and ``count`` after."""
        with self._database.reading() as cursor:
            before = cursor.execute(_BEFORE, (hit.session_id, hit.seq, count + 1)).fetchall()
            after = cursor.execute(_AFTER, (hit.session_id, hit.seq, count)).fetchall()
        return [Near(*row) for row in (*reversed(before), *after)]

    def newest(self, query: Query) -> tuple[Hit, ...]:
        """The newest messages of a project, agent or session, whatever they say.

        ``query`` names one of them; its text is passed over.
        """
        with self._database.reading() as cursor:
            found = _Finding(cursor, query, [])
            return tuple(found.hit(row, 1.0) for row in found.candidates([], query.limit))


class _Finding:
    """One search."""

    def __init__(self, cursor: sqlite3.Cursor, query: Query, wanted: Sequence[Term]) -> None:
        self._cursor = cursor
        self._query = query
        self._wanted = wanted
        self._where = _where(cursor, query)

    def best(self) -> tuple[list[tuple[_Row, float]], bool, bool]:
        """The best candidates with their shares.

        And whether they have all words, and whether only the newest were ranked.
        """
        rows = self.candidates([term.match() for term in self._wanted], RANKED)
        if rows:
            ranked = _Ranking(self._wanted, rows, self._weights()).best(self._query.limit)
            return [(row, 1.0) for row in ranked], True, len(rows) == RANKED
        single = [term for each in self._wanted for term in each.single()][:WORDS]
        if len(single) == 1:
            return [], True, False
        return self._most(single), False, False

    def hit(self, row: _Row, share: float) -> Hit:
        """All about one of them."""
        found = self._cursor.execute(_HIT, (row[1],)).fetchone()
        agent, session, kind, seq, role, text, at_ms, cwd, project, *ids = found
        said = excerpt(text, self._wanted)
        return Hit(agent, session, kind, seq, role, at_ms, cwd, project, said, share, *ids)

    def candidates(self, wanted: Iterable[str], limit: int) -> list[_Row]:
        """The newest ``limit`` live messages that hold all of ``wanted``."""
        where = self._where
        statement = _CANDIDATES.format(only=where.only + where.span("said.rowid"))
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
        return _weights([len(self._places(term, WEIGHED)) for term in self._wanted])

    def _most(self, wanted: list[Term]) -> list[tuple[_Row, float]]:
        """Those that have most of the words; the sessions that have most come first."""
        places = [self._places(term, RANKED) for term in wanted]
        weights = _weights([len(each) for each in places])
        having: dict[int, float] = {}
        for each, weight in zip(places, weights, strict=True):
            for place in each:
                having[place] = having.get(place, 0.0) + weight
        likely = heapq.nlargest(LOOKED_AT, having, key=lambda place: (having[place], place))
        rows = [row for place in likely for row in self._at(place)]
        held = [_held(text, wanted) for *_, text in rows]
        in_session: dict[int, set[int]] = {}
        for (_, _, session_id, _), words in zip(rows, held, strict=True):
            in_session.setdefault(session_id, set()).update(words)

        def share(words: Iterable[int]) -> float:
            return sum(weights[word] for word in words) / sum(weights)

        found = [(row, share(words)) for row, words in zip(rows, held, strict=True) if words]
        return heapq.nlargest(
            self._query.limit,
            found,
            key=lambda hit: (share(in_session[hit[0][2]]), hit[1], hit[0][0]),
        )

    def _at(self, place: int) -> list[_Row]:
        statement = _AT.format(only=self._where.only)
        return self._cursor.execute(statement, (place, *self._where.values)).fetchall()


class _Ranking:
    """BM25 over the candidates, whose texts all hold each of the words at least once."""

    def __init__(
        self, wanted: Sequence[Term], rows: Sequence[_Row], weights: Sequence[float]
    ) -> None:
        self._rows = rows
        self._terms = [
            (*_needle(term), weight) for term, weight in zip(wanted, weights, strict=True)
        ]
        mean = sum(len(text) for *_, text in rows) / len(rows)
        self._lengths = [_K1 * (1 - _B + _B * len(text) / mean) for *_, text in rows]

    def best(self, limit: int) -> list[_Row]:
        """The ``limit`` best of them, equal ones by time.

        All are scored by a count that also sees a word inside of others, the best again without.
        """
        likely = self._order(limit + CLOSELY, self._rough(), range(len(self._rows)))
        exact = [self._exact(at) for at in likely]
        return [self._rows[at] for at in self._order(limit, exact, likely)]

    def _order(self, limit: int, scores: list[float], of: Sequence[int]) -> list[int]:
        places = [self._rows[at][0] for at in of]
        return [at for *_, at in heapq.nlargest(limit, zip(scores, places, of, strict=True))]

    def _rough(self) -> list[float]:
        """The score of each row. Row by row this takes twice as long, for thousands of them."""
        texts = [f" {text.casefold()} " for *_, text in self._rows]
        scores = [0.0] * len(texts)
        for needle, _, weight in self._terms:
            counts = [text.count(needle) or 1 for text in texts]
            scores = [
                score + weight * often / (often + length)
                for score, often, length in zip(scores, counts, self._lengths, strict=True)
            ]
        return scores

    def _exact(self, at: int) -> float:
        text = self._rows[at][3].casefold()
        counts = [(len(whole.findall(text)) or 1, weight) for _, whole, weight in self._terms]
        return sum(weight * often / (often + self._lengths[at]) for often, weight in counts)


def _needle(term: Term) -> tuple[str, re.Pattern[str]]:
    """What is counted in a caseless text for a term, quickly and well.

    Where the text writes it otherwise it is not seen; it then counts as standing there once.
    """
    tokens = term.phrases[0]
    needle = tokens[0] if len(tokens) == 1 else term.typed.casefold()
    if term.begins or not needle.isascii():
        return needle, re.compile(re.escape(needle))
    whole = re.compile(f"(?<![a-z0-9]){re.escape(needle)}(?![a-z0-9])")
    return f" {needle} " if len(needle) < 4 else needle, whole


def _weights(hits: list[int]) -> list[float]:
    """The weight of each word by in how many messages it stands; one in none weighs the least."""
    weights = [math.log(1 + WEIGHED / (min(each, WEIGHED) + 0.5)) for each in hits]
    least = min((weight for weight, each in zip(weights, hits, strict=True) if each), default=1.0)
    return [weight if each else least for weight, each in zip(weights, hits, strict=True)]


def _held(text: str, wanted: Sequence[Term]) -> set[int]:
    """Which of the words, by their places in ``wanted``, a text holds."""
    words, parts = (f" {each} " for each in index_tokens(text))
    held = set()
    for at, term in enumerate(wanted):
        end = "" if term.begins else " "
        sought = [f" {' '.join(phrase)}{end}" for phrase in term.phrases]
        if any(each in words or each in parts for each in sought):
            held.add(at)
    return held


def _where(cursor: sqlite3.Cursor, query: Query) -> _Where:
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
