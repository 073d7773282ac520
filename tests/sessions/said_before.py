"""A history for the search tests: sessions written as ingestion writes them."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, field
from pathlib import Path

from memoryd.memory.testing import FakeClock
from memoryd.sessions.adapter import State, Tally
from memoryd.sessions.history import History
from memoryd.sessions.search import Answer, Query, Search
from memoryd.sessions.stored import Batch, Keep, RollBack

DAY_MS = 86_400_000


@dataclass
class Past:
    """A session history in which things were said; ``search`` looks into it."""

    path: Path
    clock: FakeClock = field(default_factory=FakeClock)

    def say(
        self,
        *texts: str,
        session: str = "s1",
        agent: str = "codex",
        project: str = "shop",
        at_ms: int | None = None,
        role: str = "user",
    ) -> None:
        """Have each of ``texts`` said in a session, one after the other."""
        said = [
            Keep(role, (text,), "", None if at_ms is None else at_ms + n, "/srv/shop", project)  # type: ignore[arg-type]
            for n, text in enumerate(texts)
        ]
        self.record(*said, session=session, agent=agent)

    def record(
        self,
        *events: Keep | RollBack,
        session: str = "s1",
        agent: str = "codex",
        kind: str = "root",
    ) -> None:
        """Commit events to a session's history."""
        with History(self.path, self.clock) as history:
            progress = history.progress(agent, session)
            begun = progress.position if progress else 0
            batch = Batch(
                events,
                begun + 10,
                1,
                "h",
                "t",
                State(kind=kind, session=session),
                Tally(),
                0,
                None,  # type: ignore[arg-type]
            )
            assert history.record(agent, session, Path("t.jsonl"), progress, batch) is not None

    def find(self, text: str, **where: object) -> list[str]:
        """The excerpts found, the best first."""
        return [hit.excerpt for hit in self.answer(text, **where).hits]

    def answer(self, text: str, **where: object) -> Answer:
        """All that a search says."""
        with Search(self.path, self.clock) as search:
            return search.find(Query(text, **where))  # type: ignore[arg-type]

    def ask(self, statement: str, *values: object, then: str = "") -> list[tuple[object, ...]]:
        """The rows of a statement; ``then`` is another one after it."""
        database = sqlite3.connect(self.path)
        with database:
            rows = database.execute(statement, values).fetchall()
            database.execute(then)
        database.close()
        return rows
