"""Searching the session history: what a person types, the messages that hold it, the best first.

All words are looked for; the newest ``RANKED`` messages that have them are ranked by how much of a
message they are (BM25, over what was found), equal ones by time. FTS5's own ``bm25()`` is not used:
it reads every row that has a word, which for a common one takes longer than a person waits. Where
no message has all words, those that have most are told, from the sessions that have most.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from memoryd.memory.clock import Clock
from memoryd.memory.text import without_surrogates
from memoryd.sessions.database import Database
from memoryd.sessions.finding import WORDS, Finding
from memoryd.sessions.hits import Answer, Hit, Near, Query
from memoryd.sessions.index import Index, never
from memoryd.sessions.tokens import terms

__all__ = ["Answer", "Hit", "Near", "Query", "Search"]

#: What of a query is read at all, in characters.
QUERY_CHARACTERS = 10_000
#: A search for a common word comes by thousands of rows: their tree is read once, not for each.
CACHE_KIB = 32_000

_NEAR = """
    select seq, role, text, cwd, project from message
    where session_id = ? and seq {side} ? and state = 'live' and text <> '' order by seq {order}
    limit ?
"""
_LIKE = """
    select distinct session from session where substr(session, 1, length(:named)) = :named
    order by session limit 4
"""
_BEFORE = _NEAR.format(side="<=", order="desc")
_AFTER = _NEAR.format(side=">", order="asc")


class Search:
    """Searches the session history at ``path``; ``index`` is its full-text index.

    Use it as a context. All methods raise ``HistoryError`` where the file cannot be used.
    """

    def __init__(self, path: Path, clock: Clock) -> None:
        self._database = Database(path, CACHE_KIB)
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

    def find(self, query: Query, *, stop: Callable[[], bool] | None = never) -> Answer:
        """The messages that hold what ``query`` looks for, the best first.

        What is not indexed yet is indexed first, until ``stop``, None for nothing; so the answer is
        whole unless it says ``waiting``. Any text can be looked for; one without a word finds
        nothing.
        """
        text = without_surrogates(query.text[:QUERY_CHARACTERS])
        wanted = terms(text)[:WORDS]
        if stop is not None:
            self.index.catch_up(stop)
        waiting = self.index.waiting()
        if not wanted or not self.index.is_made():
            return Answer((), (), True, False, waiting)
        with self._database.reading() as cursor:
            found = Finding(cursor, query, wanted)
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
            found = Finding(cursor, query, [])
            return tuple(found.hit(row, 1.0) for row in found.candidates([], query.limit))
