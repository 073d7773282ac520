"""``run --once``: from the agent's hook to committed notes, and nothing more the second time."""

from __future__ import annotations

import signal

import pytest
from processes import MEMORYD, PNPM, TABS, Gate, World, snapshot

from memoryd.memory.locks import FileLock

CODEX = "019b8f2a-4c00-7d31-a5e2-6b0f93c1d7e8"


@pytest.mark.parametrize("agent", ["claude-code", "codex"])
def test_a_finished_session_becomes_notes_once(world: World, agent: str) -> None:
    """One completed job, one commit with its trailers; the same again changes nothing at all."""
    session = CODEX if agent == "codex" else "s-1"
    said = (TABS, PNPM)
    transcript = world.codex(*said) if agent == "codex" else world.claude(*said)

    world.hook(transcript, session, agent=agent)
    first = world.answer("run", "--once")

    job = world.job()
    assert first == {"by": "self", "attempts": 1, "rested": True}
    assert (job.status, job.outcome_code, job.attempt) == ("completed", "notes.written", 1)
    assert (job.agent, job.session, job.cutoff) == (agent, session, transcript.stat().st_size)
    (trailers,) = world.commits()
    assert trailers["Memoryd-Job"] == job.id
    assert trailers["Memoryd-Slice"].startswith(f"{agent}/{session} 1..")
    assert trailers["Memoryd-Provider"] == "rules"
    assert sorted(world.notes()) == [
        "feedback/prefer-tabs-over-spaces.md",
        "project/project-uses-pnpm-packages-not-npm.md",
    ]
    assert world.is_clean()

    before = snapshot(world)
    again = world.answer("run", "--once")
    assert again == {"by": "self", "attempts": 0, "rested": True}
    assert snapshot(world) == before

    world.hook(transcript, session, agent=agent)
    world.answer("run", "--once")
    after = snapshot(world)
    # The end was told once more: only the time at which the session was last heard of moves.
    for found in (before, after):
        found["rows"].pop("memoryd.sqlite:rollout")  # type: ignore[attr-defined]
    assert after == before


def test_a_session_history_that_was_moved_away_is_built_again(world: World) -> None:
    """From the transcripts, by the next run; no job is made and no note written for it."""
    world.hook(world.claude(TABS))
    world.answer("run", "--once")
    before = world.answer("sessions", "show", "s-1")["said"]
    commits = world.commits()
    for path in world.home.root.glob("sessions.sqlite*"):
        path.unlink()

    assert world.answer("run", "--once")["attempts"] == 0

    assert world.answer("sessions", "show", "s-1")["said"] == before
    assert world.commits() == commits


def test_a_session_under_a_kill_switch_leaves_nothing(world: World) -> None:
    """The words of an excluded session are not even ingested."""
    transcript = world.claude(TABS)

    world.hook(transcript, MEMORYD_DISABLE="1")
    world.answer("run", "--once")

    assert world.jobs() == []
    assert list(world.home.projects.iterdir()) == []
    stored = b"".join(p.read_bytes() for p in world.home.root.rglob("*") if p.is_file())
    assert b"prefer tabs" not in stored


@pytest.mark.slow
def test_where_a_daemon_runs_it_does_the_work(world: World) -> None:
    """The run rings, waits until the daemon is done, and says whose work it was."""
    with world.daemon() as daemon:
        world.hook(world.claude(TABS))

        worked = world.answer("run", "--once")

        assert worked == {"by": "daemon", "attempts": 0, "rested": True}
        assert world.job().outcome_code == "notes.written"
        assert daemon.stop() == 0


def test_a_holder_that_does_not_answer_is_named(world: World) -> None:
    """Another run holds the lock: exit code 1 and one line with its pid."""
    world.home.prepare()
    lock = FileLock(world.home.daemon_lock)
    assert lock.acquire()

    done = world.run("run", "--once")

    lock.release()
    assert done.returncode == 1
    assert done.stdout == ""
    first, hint = done.stderr.splitlines()
    assert first.startswith("memoryd: process ")
    assert first.endswith(f" works {world.home.root} and does not answer")
    assert "memoryd status" in hint and "memoryd doctor" in hint


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_run_that_is_called_off_gives_its_job_back(world: World, number: int) -> None:
    """At no cost, and the provider's program ends with it."""
    gate = Gate(world)
    world.envelope(world.claude(TABS))
    running = world.start((*MEMORYD, "run", "--once"))
    gate.wait_until_asked()

    assert running.stop(number) in {128 + number, 130}
    running.close()

    job = world.job()
    assert (job.status, job.failures, job.crashes) == ("pending", 0, 0)
    assert world.children() == []
