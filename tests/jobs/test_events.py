"""Events: what was remembered is told once, by name, with an id to go on from."""

from __future__ import annotations

from pathlib import Path

import pytest
from world import NOTHING, World, answer, fact

from memoryd.jobs import events as module
from memoryd.memory.testing import FakeClock

FIRST = "Always run the linter before you commit."
SECOND = "Never force a push to the main branch."


def told(world: World, after: int = 0) -> list[list[str]]:
    """The notes of each event."""
    return [
        [each["note"] for each in event.body["notes"]] for event in world.ledger.events.after(after)
    ]


def test_what_was_saved_is_told_once_by_name(tmp_path: Path, clock: FakeClock) -> None:
    """One event a slice, with its session; a second job that writes nothing is silent."""
    world = World(tmp_path, clock, [answer(fact(FIRST), fact(SECOND))])
    said = world.transcript().user(FIRST).user(SECOND)
    job = world.finalize(said)
    world.finalize(said.user(FIRST))

    (event,) = world.ledger.events.after(0)
    assert event.kind == "memory.saved"
    assert (event.body["job"], event.body["session"]) == (job.id, "s1")
    assert told(world) == [
        [
            "feedback/always-run-the-linter-before-you-commit",
            "feedback/never-force-a-push-to-the-main-branch",
        ]
    ]
    assert world.ledger.events.after(event.id) == []


def test_nothing_saved_is_nothing_told(tmp_path: Path, clock: FakeClock) -> None:
    """Neither of a session without a fact nor of one that waits for review."""
    world = World(tmp_path, clock, [NOTHING, answer(fact(FIRST, explicitness="inferred"))])
    world.finalize(world.transcript("s1").user(FIRST))
    world.finalize(world.transcript("s2").user(FIRST))

    assert (told(world), world.ledger.events.last_id()) == ([], 0)


@pytest.mark.parametrize("point", ["plan.recorded", "store.committed", "cursor.advanced"])
def test_a_crash_tells_it_once(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    """With what it tells of, or not at all."""
    world = World(tmp_path, clock, [answer(fact(FIRST))])
    world.enqueue(world.transcript().user(FIRST))

    world.die_at(point, monkeypatch)
    world.work_to_rest()

    assert told(world) == [["feedback/always-run-the-linter-before-you-commit"]]


def test_the_newest_events_are_kept_and_ids_only_grow(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who comes late hears what is left."""
    monkeypatch.setattr(module, "KEPT", 2)
    world = World(tmp_path, clock, [answer(fact(FIRST))])
    job = world.finalize(world.transcript().user(FIRST))
    with world.ledger.db.writing():
        for _ in range(4):
            world.ledger.events._add("memory.saved", {"job": job.id, "notes": []}, 0)

    assert [event.id for event in world.ledger.events.after(0)] == [4, 5]
