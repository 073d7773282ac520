"""Two sessions that end together, and a person beside them: what was said is never just gone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from world import World, answer, fact

from memoryd.jobs.job import Job
from memoryd.jobs.reviewing import apply_candidate, waiting
from memoryd.memory import seams
from memoryd.memory.apply import take_back
from memoryd.memory.baseline import Baseline
from memoryd.memory.notes import new_note
from memoryd.memory.renaming import rename_note
from memoryd.memory.testing import FakeClock

PORT = "Staging listens on port 8443."
NIGHT = "Staging is rebuilt each night at two."
OWNER = "Staging is the test server of the shop."


def about(statement: str, name: str = "staging", **changes: object) -> str:
    """An answer: one fact, drafted as a note called ``name``."""
    drafted = {"type": "project", "name": name, "description": f"On {name}", "content": statement}
    return answer(fact(statement, category="project", note=drafted, **changes))


def meanwhile(
    monkeypatch: pytest.MonkeyPatch, action: Callable[[], object], point: str = "slice.read"
) -> None:
    """Have something happen once, when ``point`` is reached: the slice is read, nothing planned."""

    def hook(reached: str) -> None:
        if reached == point:
            monkeypatch.undo()
            action()

    monkeypatch.setattr(seams, "hook", hook)


def beside(
    world: World, monkeypatch: pytest.MonkeyPatch, words: str, reply: str
) -> tuple[World, list[Job]]:
    """Another worker of the home works a whole session while ``world`` has read its slice."""
    other = World(world.folder, world.clock, [reply])
    jobs: list[Job] = []
    said = other.transcript("s2").user(words)
    meanwhile(monkeypatch, lambda: jobs.append(other.finalize(said)))
    return other, jobs


def put(world: World, name: str, body: str) -> None:
    """A committed note of memoryd's."""
    store = world.store()
    Baseline(store).ensure()
    path = f"project/{name}.md"
    (store.root / "project").mkdir(exist_ok=True)
    (store.root / path).write_bytes(
        new_note(
            name=name, description="d", type="project", body=body, created="2025-01-01T00:00:00Z"
        )
    )
    Baseline(store).commit([path], "Put", now_ms=world.clock.now_ms())


def fates(world: World, job: Job) -> list[tuple[str, str]]:
    """What became of the job's candidates, and why."""
    return [(kept.state, kept.reason) for kept in world.candidates(job)]


def test_of_two_facts_under_one_name_the_second_waits_for_a_person(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two sessions at once; a yes then writes it beside the first."""
    world = World(tmp_path, clock, [about(PORT)])
    beside(world, monkeypatch, NIGHT, about(NIGHT))

    job = world.finalize(world.transcript().user(PORT))

    assert world.bodies() == [NIGHT]
    assert (job.outcome_code, fates(world, job)) == ("review.pending", [("pending", "changed")])
    (one,) = waiting(world.ledger, world.store().key)
    apply_candidate(world.home, world.ledger, one, clock)
    assert world.bodies() == sorted([NIGHT, PORT])


def test_an_update_whose_note_was_renamed_meanwhile_waits_for_a_person(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it says stands nowhere."""
    world = World(tmp_path, clock, [about(PORT, relation={"kind": "updates", "name": "staging"})])
    put(world, "staging", OWNER)
    meanwhile(
        monkeypatch, lambda: rename_note(world.store(), "staging", "staging-server", clock=clock)
    )

    job = world.finalize(world.transcript().user(PORT))

    assert fates(world, job) == [("pending", "changed")]
    assert world.bodies() == [OWNER]


def test_all_facts_of_a_file_that_cannot_be_written_wait(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plan knows such a file by its first fact only."""
    updates = {"kind": "updates", "name": "staging"}
    both = answer(*(fact(x, category="project", relation=updates) for x in (PORT, NIGHT)))
    world = World(tmp_path, clock, [both])
    put(world, "staging", OWNER)
    note = world.store().root / "project/staging.md"
    meanwhile(monkeypatch, note.unlink, "plan.recorded")

    job = world.finalize(world.transcript().user(f"{PORT} {NIGHT}"))

    assert fates(world, job) == [("pending", "changed")] * 2


def test_what_met_a_change_and_stands_in_a_note_by_now_waits_for_nobody(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A person has written it themselves."""
    world = World(
        tmp_path, clock, [about(PORT, relation={"kind": "contradicts", "name": "staging"})]
    )
    put(world, "staging", "Staging has no port.")
    note = world.store().root / "project/staging.md"
    data = note.read_bytes().replace(b"Staging has no port.", PORT.encode())
    meanwhile(monkeypatch, lambda: note.write_bytes(data), "plan.recorded")

    job = world.finalize(world.transcript().user(PORT))

    assert fates(world, job) == [("changed", "policy.passed")]
    assert world.bodies() == [PORT]


def test_the_same_under_two_names_is_one_note(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second is decided once more, with the store in its hands."""
    world = World(tmp_path, clock, [about(PORT, "port")])
    _, others = beside(world, monkeypatch, PORT, about(PORT, "staging"))

    job = world.finalize(world.transcript().user(PORT))

    assert [note.name for note in world.store().notes()] == ["staging"]
    assert fates(world, job) == [("ignored", "same")]
    assert fates(world, others[0]) == [("applied", "policy.passed")]


def failed_before_its_commit(world: World, monkeypatch: pytest.MonkeyPatch) -> Job:
    """A job that wrote its note, died, and failed; its plan stands."""
    job = world.enqueue(world.transcript().user(PORT)).job
    assert job is not None
    world.die_at("store.replaced", monkeypatch)
    world.ledger.db.change(
        "update job set status = 'failed', failures = 5, lease_owner = null,"
        " lease_expires_at = null, finished_at = 1"
    )
    return job


@pytest.mark.parametrize("skip", [True, False])
def test_what_a_failed_job_left_uncommitted_does_not_count_as_said(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, skip: bool
) -> None:
    """Another session that says it is written, and the words are there once, however it ends."""
    world = World(tmp_path, clock, [about(PORT), about(PORT)])
    failed = failed_before_its_commit(world, monkeypatch)

    later = world.finalize(world.transcript("s2").user(PORT))
    if skip:
        plan = world.ledger.standing_plan(failed)
        assert plan is not None
        take_back(world.home, plan, clock=clock)
    world.ledger.retry(world.job(failed), skip=skip)
    world.work_to_rest()

    assert fates(world, later) == [("applied", "policy.passed")]
    assert world.bodies() == [PORT]
    expected = ("skipped", "policy.passed") if skip else ("ignored", "same")
    assert fates(world, failed) == [expected]


def test_an_update_that_a_failed_job_left_uncommitted_leaves_the_note_as_committed(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the note said before is known still: it is not written a second time."""
    updates = {"kind": "updates", "name": "staging"}
    world = World(tmp_path, clock, [about(PORT, relation=updates), about(OWNER, "shop")])
    put(world, "staging", OWNER)
    failed_before_its_commit(world, monkeypatch)

    later = world.finalize(world.transcript("s2").user(OWNER))

    assert fates(world, later) == [("ignored", "same")]


def test_a_note_that_a_person_took_away_is_not_put_before_them_again(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was written, the process died, they deleted it: that was their word on it."""
    world = World(tmp_path, clock, [about(PORT)])
    job = world.enqueue(world.transcript().user(PORT)).job
    assert job is not None
    world.die_at("store.replaced", monkeypatch)
    (world.store().root / "project/staging.md").unlink()

    world.work_to_rest()

    assert world.bodies() == []
    assert fates(world, job) == [("changed", "policy.passed")]


def test_a_slice_that_another_plan_was_committed_for_is_not_told_as_written(
    tmp_path: Path, clock: FakeClock
) -> None:
    """The cursor was lost: nothing is written twice, and nothing counts as written that is not."""
    world = World(tmp_path, clock, [about(PORT), about(NIGHT)])
    said = world.transcript().user(f"{PORT} {NIGHT}")
    world.finalize(said)
    for table in ("cursor", "candidate", "attempt_log", "job"):
        world.ledger.db.change(f"delete from {table}")

    job = world.finalize(said)

    assert world.bodies() == [PORT]
    assert fates(world, job) == [("ignored", "slice.done")]
    assert job.outcome_code == "nothing.durable"
    assert len(world.commits()) == 1


def test_a_draft_is_kept_only_for_a_person_to_decide_on(tmp_path: Path, clock: FakeClock) -> None:
    """What was written is in its note."""
    world = World(tmp_path, clock, [about(PORT)])

    world.finalize(world.transcript().user(PORT))

    assert world.ledger.db.rows("select state, draft from candidate") == [("applied", None)]
