"""SIGKILL at every row of the crash table; a restart ends as if nothing had happened."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterator

import pytest
from checker import assert_all_is_told, assert_as_undisturbed, calls, victim
from processes import MEMORYD, World, make_world

#: From here on nothing asks the model again for the same slice.
_AFTER_THE_PLAN = {"plan.recorded", "store.replaced", "store.committed", "cursor.advanced"}
_FIRST = [
    "envelope.inserted",
    "daemon.opened",
    "messages.committed",
    "session.ingested",
    "slice.read",
    *sorted(_AFTER_THE_PLAN),
]
_SECOND = ["slice.read", *sorted(_AFTER_THE_PLAN)]


def end_a_long_session(world: World) -> None:
    """A session of two slices with something to remember in each, whose end is in the inbox."""
    filler = "The build prints a long line here. " * 220
    wanted = {0: "I prefer tabs over spaces.", 1: "I prefer rye over wheat.", 14: ""}
    wanted[14] = "I prefer trains over planes."
    said = [f"{wanted.get(number, 'Go on.')} {filler}" for number in range(15)]
    world.envelope(world.claude(*said))


@pytest.fixture(scope="module")
def undisturbed() -> Iterator[World]:
    """The same session in a world without a crash."""
    with make_world() as world:
        end_a_long_session(world)
        process = world.start(victim(world, "-", "-", "run", "--once"))
        assert process.ended() == 0, process.log.read_text()
        process.close()
        yield world


def test_the_undisturbed_run_has_two_slices_and_a_note_of_each(undisturbed: World) -> None:
    """What the crashed runs are compared with is worth comparing with."""
    assert_all_is_told(undisturbed)
    assert len(undisturbed.notes()) == 3
    assert len(undisturbed.commits()) == 2
    assert set(calls(undisturbed).values()) == {1}


@pytest.mark.slow
@pytest.mark.parametrize("point", _FIRST)
def test_a_daemon_killed_at_this_point_is_made_good_by_the_next(
    world: World, undisturbed: World, point: str
) -> None:
    """The notes, their text and the commits are those of a run that nothing disturbed."""
    end_a_long_session(world)
    killed = world.start(victim(world, point, "1", "run"))
    assert killed.ended() == -signal.SIGKILL, killed.log.read_text()
    killed.close()

    with world.daemon(victim(world, "-", "-", "run")) as daemon:
        assert world.client.ring()
        assert world.client.wait(None, 60.0)
        assert daemon.stop() == 0

    assert_all_is_told(world)
    assert_as_undisturbed(world, undisturbed)
    assert_calls(world, undisturbed, point)


@pytest.mark.slow
@pytest.mark.parametrize("point", _SECOND)
def test_a_run_killed_in_its_second_slice_is_made_good_by_the_next(
    world: World, undisturbed: World, point: str
) -> None:
    """What the first slice gave stays as it is; the second is written once."""
    end_a_long_session(world)
    killed = world.start(victim(world, point, "2", "run", "--once"))
    assert killed.ended() == -signal.SIGKILL, killed.log.read_text()
    killed.close()

    again = world.start(victim(world, "-", "-", "run", "--once"))
    assert again.ended() == 0, again.log.read_text()
    again.close()

    assert_all_is_told(world)
    assert_as_undisturbed(world, undisturbed)
    assert_calls(world, undisturbed, point)


def assert_calls(world: World, undisturbed: World, point: str) -> None:
    """Each chunk was read once; those of a slice whose plan was not on disk, twice."""
    asked, wanted = calls(world), calls(undisturbed)
    if point == "slice.read":
        assert set(asked) == set(wanted)
        assert set(asked.values()) == {1, 2}
    else:
        assert asked == wanted


@pytest.mark.slow
@pytest.mark.parametrize("files", [1, 2, 3])
def test_a_note_is_superseded_whole_whatever_dies(world: World, files: int) -> None:
    """Killed after the new note, the archived copy or the removal: the next run finishes it."""
    world.envelope(world.claude("I prefer tabs over spaces."))
    assert once(world, "-", "-") == 0
    world.envelope(world.claude("I went from tabs to spaces.", session="s-2"), "s-2")

    assert once(world, "store.replaced", str(files)) == -signal.SIGKILL
    assert once(world, "-", "-") == 0

    written = world.notes()
    assert sorted(written) == [
        "archive/feedback/prefers-tabs-over-spaces.md",
        "feedback/uses-spaces-and-no-tabs.md",
    ]
    old, new = written.values()
    assert "superseded_by: uses-spaces-and-no-tabs" in old and "valid_until: " in old
    assert "contradicts: prefers-tabs-over-spaces" in new
    assert len(world.commits()) == 2
    assert world.is_clean()


def once(world: World, point: str, time: str) -> int:
    """``memoryd run --once`` with the trap; its exit code."""
    process = world.start(victim(world, point, time, "run", "--once"))
    code = process.ended()
    process.close()
    return code


@pytest.mark.slow
def test_what_a_skipped_plan_had_begun_is_taken_back(world: World) -> None:
    """Else a minute later it would be committed as the person's own."""
    world.envelope(world.claude("I prefer tabs over spaces."))
    assert once(world, "store.replaced", "1") == -signal.SIGKILL
    with world.ledger() as ledger, ledger.db.writing():
        ledger.db.change("update job set status = 'failed', lease_owner = null")
    assert len(world.notes()) == 1

    world.answer("retry", world.job().id, "--skip")

    assert world.notes() == {}
    assert once(world, "-", "-") == 0
    assert world.notes() == {}
    assert world.is_clean()


@pytest.mark.slow
def test_a_job_that_kills_its_worker_fails_with_the_reason(world: World) -> None:
    """Each rescue counts; after the last allowed crash the job is not tried again."""
    end_a_long_session(world)
    seen = []
    while not seen or seen[-1][0] == "pending":
        made_ready(world)
        killed = world.start(victim(world, "slice.read", "1", "run", "--once"))
        assert killed.ended() == -signal.SIGKILL, killed.log.read_text()
        killed.close()
        with world.ledger() as ledger:
            ledger.rescue(everything=True)
        job = world.job()
        seen.append((job.status, job.failures))

    assert seen == [("pending", n) for n in range(1, 5)] + [("failed", 5)]
    assert job.error_code == "attempt.crashed"
    assert "died" in str(job.error_detail)
    done = world.run("list", "--status", "failed")
    assert "its process died" in done.stdout
    endings = Counter(row["ending"] for row in world.answer("show", job.id[-8:])["attempts"])
    assert endings == {"crashed": 5}


def made_ready(world: World) -> None:
    """Let the time pass that a crashed job waits."""
    with world.ledger() as ledger, ledger.db.writing():
        ledger.db.change("update job set run_at = 0 where status = 'pending'")


@pytest.mark.slow
def test_other_sessions_are_worked_after_one_that_kills_its_worker(world: World) -> None:
    """A poisoned session does not take the rest of the queue with it."""
    world.envelope(world.claude("I prefer tabs over spaces."))
    killed = world.start(victim(world, "slice.read", "1", "run", "--once"))
    killed.ended()
    killed.close()

    world.envelope(world.claude("We use pnpm for packages, not npm.", session="s-2"), "s-2")
    with world.daemon((*MEMORYD, "run")):
        assert world.client.ring()
        assert world.client.wait(None, 60.0)

    assert {job.session: job.status for job in world.jobs()} == {
        "s-1": "completed",
        "s-2": "completed",
    }
