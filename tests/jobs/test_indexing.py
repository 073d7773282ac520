"""Full text is kept up beside the work: what was read is indexed, what was forgotten is purged."""

from __future__ import annotations

from pathlib import Path

import pytest
from structlog.testing import capture_logs
from world import World

from memoryd.jobs.indexing import INDEX_SECONDS, index_some
from memoryd.memory.testing import FakeClock
from memoryd.sessions import index as index_module
from memoryd.sessions.database import Database
from memoryd.sessions.index import unindex
from memoryd.sessions.search import Query, Search


@pytest.fixture
def world(tmp_path: Path, clock: FakeClock) -> World:
    """A home in which one session was distilled."""
    made = World(tmp_path, clock)
    made.finalize(made.transcript("s1").user("Use pnpm here.").assistant("Done, with pnpm."))
    made.work_to_rest()
    return made


def test_what_was_read_is_indexed(world: World) -> None:
    """So that a search finds it at once."""
    assert world.place.history.index.waiting() == 2

    assert index_some(world.place) == 2

    assert world.place.history.index.waiting() == 0
    with Search(world.home.session_history, world.clock) as search:
        assert len(search.find(Query("pnpm")).hits) == 2


def test_it_ends_when_its_time_is_over(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest waits for the next time."""
    monkeypatch.setattr(index_module, "BATCH_MESSAGES", 1)
    monkeypatch.setattr(index_module, "reach", lambda point: world.clock.advance(INDEX_SECONDS))

    assert index_some(world.place) == 1
    assert index_some(world.place) == 1
    assert index_some(world.place) == 0


def test_words_taken_out_are_purged(world: World) -> None:
    """With nothing else to do for it."""
    index_some(world.place)
    database = Database(world.home.session_history)
    database.open()
    with database.transaction() as cursor:
        unindex(cursor, [1, 2])
        cursor.execute("update message set text = ''")
    database.close()

    index_some(world.place)

    assert world.place.history.index.purge()
    assert b"pnpm" not in world.home.session_history.read_bytes()


def test_an_index_that_cannot_be_written_stops_no_job(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is logged, and a search will say it."""
    monkeypatch.setattr(
        index_module, "_CREATE", "create virtual table full_text using nothing (words)"
    )

    with capture_logs() as logged:
        assert index_some(world.place) == 0

    assert [each["event"] for each in logged] == ["index.left"]
