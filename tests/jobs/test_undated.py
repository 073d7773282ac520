"""Messages that say no time, as Cursor's: the transcript's own time says by when."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent.parent / "sessions"))

from archives import RULE, touch
from scribes import SCRIBES, talk
from world import NOTHING, World, answer, fact

from memoryd.jobs.letting_go import let_go
from memoryd.jobs.projects import Projects
from memoryd.memory.clock import iso
from memoryd.memory.config import SessionSettings
from memoryd.memory.testing import FakeClock
from memoryd.sessions.hits import Query
from memoryd.sessions.listing import Which, choose
from memoryd.sessions.search import Search

DAY_MS = 24 * 3600 * 1000
OLD = "0199c3a0-0000-7000-8000-00000000000d"


def undated(world: World, days: float, *, session: str = OLD) -> int:
    """A session of Cursor whose transcript was last written to so long ago, read; when that was."""
    scribe = SCRIBES["cursor"](world.folder / "person")
    scribe.cwd = str(world.project)
    path = scribe.write(talk(("user", f"heron: {RULE}"), ("assistant", "Yes.")), session)
    written_ms = world.clock.now_ms() - int(days * DAY_MS)
    touch(path, written_ms)
    asked = {"cutoff": path.stat().st_size, "transcript": str(path), "trigger": "hook"}
    world.ledger.enqueue("finalize", "cursor", session, cwd="", reason="end", **asked)
    world.work()
    return written_ms


@pytest.fixture
def world(tmp_path: Path, clock: FakeClock) -> World:
    """A world whose model finds nothing."""
    return World(tmp_path, clock, [NOTHING] * 3)


def test_a_session_without_times_is_as_old_as_its_transcript(world: World) -> None:
    """Lists are in that order, projects were active then, and forgetting by age reaches it."""
    written_ms = undated(world, 40)
    world.finalize(world.transcript("new").user(RULE))

    history = world.place.history
    session = history.session("cursor", OLD)
    assert session is not None and session.last_active_ms == written_ms
    assert [name for _, name in choose(history, Which(), 5)] == ["new", OLD]
    before = Which(before_ms=world.clock.now_ms() - 30 * DAY_MS)
    assert choose(history, before, 5) == [("cursor", OLD)]


def test_what_was_said_last_in_a_project_counts_though_it_says_no_time(world: World) -> None:
    """The list of projects says when."""
    written_ms = undated(world, 40)

    (project,) = Projects(world.home, world.config, world.place.history).all()

    assert project.last_active_ms == written_ms


def test_words_without_times_go_when_their_transcript_is_old(world: World) -> None:
    """They were said by then at the latest."""
    undated(world, 40)
    undated(world, 10, session=OLD.replace("d", "e"))

    world.restart(config=replace(world.config, sessions=SessionSettings(keep_days=30)))

    assert let_go(world.place) == 2


def test_a_search_between_times_finds_what_says_none(world: World) -> None:
    """At the time of its session, which is what the hit says."""
    written_ms = undated(world, 40)

    def found(**bounds: int) -> list[int | None]:
        with Search(world.home.session_history, world.clock) as search:
            answered = search.find(Query("heron", **bounds))  # type: ignore[arg-type]
        return [hit.about_ms for hit in answered.hits]

    assert found(since_ms=written_ms - 1, until_ms=written_ms + 1000) == [written_ms]
    assert found(since_ms=written_ms + DAY_MS) == []
    assert found(until_ms=written_ms - DAY_MS) == []


def test_a_note_of_what_says_no_time_holds_since_the_transcript_was_written(
    tmp_path: Path, clock: FakeClock
) -> None:
    """Not since it was read, which may be years later."""
    world = World(tmp_path, clock, [answer(fact(RULE))])

    written_ms = undated(world, 40)

    (note,) = world.store().notes()
    assert note.valid_from == iso(written_ms)


def test_a_transcript_of_tomorrow_was_said_before_it_was_read(world: World) -> None:
    """A clock that was ahead does not make words stay for ever."""
    undated(world, -3)

    session = world.place.history.session("cursor", OLD)
    assert session is not None and session.last_active_ms == world.clock.now_ms()
