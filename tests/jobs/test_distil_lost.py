"""What happens to words whose record changed under us: a lost history, a transcript rewritten."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from world import World, answer, fact

from memoryd.memory.clock import iso
from memoryd.memory.providers.base import Request
from memoryd.memory.testing import FakeClock

FIRST = "Always run the linter before you commit."
SECOND = "Never force a push to the main branch."
THIRD = "Use pnpm for the packages of this project."
EVERY = (FIRST, SECOND, THIRD)


def reply(request: Request) -> str:
    """A fact for each of the sentences that was said."""
    said = "\n".join(message.text for message in request.messages)
    return answer(*(fact(each) for each in EVERY if each in said))


@pytest.fixture
def world(tmp_path: Path, clock: FakeClock) -> World:
    """A home with a model that keeps what it is told."""
    return World(tmp_path, clock, [reply])


def test_a_lost_session_history_loses_no_later_word_and_doubles_no_note(world: World) -> None:
    """New numbers come after the cursor, also where the agent has cut its transcript meanwhile."""
    said = world.transcript().user(FIRST).user(SECOND)
    world.finalize(said)
    world.place.close()
    for path in world.home.root.glob("sessions.sqlite*"):
        path.unlink()
    world.restart()

    said.path.write_bytes(b"")
    world.finalize(said.user(THIRD).user(FIRST))

    assert world.bodies() == sorted(EVERY)


def test_a_session_history_from_a_backup_loses_no_word(world: World) -> None:
    """It is behind the cursor: what comes now is read all the same."""
    said = world.transcript().user(FIRST)
    world.finalize(said)
    kept = said.path.read_bytes()
    world.place.close()
    backup = world.folder / "backup.sqlite"
    shutil.copy(world.home.session_history, backup)
    world.restart()
    world.finalize(said.user(SECOND))
    world.place.close()
    for path in world.home.root.glob("sessions.sqlite*"):
        path.unlink()
    shutil.copy(backup, world.home.session_history)
    world.restart()

    said.path.write_bytes(kept)
    world.finalize(said.user(THIRD))

    assert world.bodies() == sorted(EVERY)


def test_words_that_an_agent_cut_from_its_transcript_are_read_all_the_same(world: World) -> None:
    """They were ingested and waited; the transcript is then compacted to less than they were at."""
    said = world.transcript().user("Hello there.").user(FIRST).user(SECOND)
    world.throttle(said)
    assert world.bodies() == []
    lines = said.path.read_bytes().splitlines(keepends=True)
    said.path.write_bytes(lines[0])

    world.finalize(said.user(THIRD))

    assert world.bodies() == sorted(EVERY)


def test_a_transcript_from_the_future_does_not_outrank_what_is_said_now(
    tmp_path: Path, clock: FakeClock
) -> None:
    """An agent's clock a year ahead: its words have no time."""
    world = World(tmp_path, clock, [reply])
    said = world.transcript()
    said.at_ms = clock.now_ms() + 365 * 24 * 3_600_000
    world.finalize(said.user(FIRST))
    (note,) = world.store().notes()
    near = world.transcript("s2")
    near.at_ms = clock.now_ms() + 30_000
    world.finalize(near.user(SECOND))

    assert note.valid_from is None
    assert {n.valid_from for n in world.store().notes()} == {None, iso(clock.now_ms())}


@pytest.mark.parametrize("dated", ["message", "session", "transcript"])
def test_a_note_of_an_old_session_says_when_it_was_said(
    tmp_path: Path, clock: FakeClock, dated: str
) -> None:
    """Where its message has no time, by when: as the session's others, or its transcript, tell."""
    world = World(tmp_path, clock, [answer(fact("I prefer tabs."))])
    said = world.transcript()
    said.at_ms = 1_600_000_000_000
    said.user("I prefer tabs.", **({} if dated == "message" else {"timestamp": None}))
    said.assistant("Fine.", **({"timestamp": None} if dated == "transcript" else {}))
    os.utime(said.path, (1_500_000_000, 1_500_000_000))

    world.finalize(said)

    (note,) = world.store().notes()
    at_ms = {"message": 1_600_000_001_000, "session": 1_600_000_002_000}
    assert note.valid_from == iso(at_ms.get(dated, 1_500_000_000_000))
    assert note.created == iso(clock.now_ms())
