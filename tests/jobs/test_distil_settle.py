"""A slice is written once whatever dies on the way; and what a person writes meanwhile stays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from world import DAY, NOTHING, World, answer, fact

from memoryd.jobs import distil
from memoryd.memory import locks, seams
from memoryd.memory.baseline import Baseline
from memoryd.memory.config import Config, ProviderSettings
from memoryd.memory.edits import commit_person_edits
from memoryd.memory.forget import delete_note
from memoryd.memory.locks import FileLock
from memoryd.memory.notes import Note
from memoryd.memory.providers.base import Request
from memoryd.memory.testing import FakeClock

FIRST = "Always run the linter before you commit."
SECOND = "We deploy on Fridays only, never else."
THIRD = "Deploys happen on Mondays and need two people."
NAME = "deploys"


def everything(request: Request) -> str:
    """A model that takes each message of the person for a rule."""
    return answer(*(fact(one.text) for one in request.messages if one.role == "user"))


def note(content: str, name: str = NAME) -> dict[str, object]:
    """A drafted note about deploys."""
    return {"note": {"type": "feedback", "name": name, "description": content, "content": content}}


def about_deploys(statement: str, kind: str, span: str | None = None) -> str:
    """An answer whose fact relates to the note about deploys."""
    return answer(fact(statement, span, relation={"kind": kind, "name": NAME}, **note(statement)))


def clean(world: World) -> bool:
    """Whether the store's files are all as its baseline has them."""
    return Baseline(world.store()).changed_paths() == []


# -- settle --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("point", "calls", "crashes"),
    [
        ("messages.committed", 1, 1),
        ("session.ingested", 1, 1),
        ("slice.read", 2, 1),
        ("plan.recorded", 1, 1),
        ("store.replaced", 1, 1),
        ("store.committed", 1, 1),
        ("cursor.advanced", 1, 0),
    ],
)
def test_a_process_that_dies_leaves_each_note_once(
    tmp_path: Path,
    clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
    point: str,
    calls: int,
    crashes: int,
) -> None:
    """From the recorded plan on no model is asked again; the crash counts until the job ended."""
    world = World(tmp_path, clock, [everything])
    job = world.enqueue(world.transcript().user(FIRST).user(SECOND)).job
    assert job is not None

    world.die_at(point, monkeypatch)
    world.work_to_rest()

    row = world.job(job)
    assert (row.status, row.outcome_code, row.failures) == ("completed", "notes.written", crashes)
    assert world.bodies() == [FIRST, SECOND]
    assert (len(world.commits()), clean(world)) == (1, True)
    assert len(world.model.requests) == calls
    assert [kept.state for kept in world.candidates(job)] == ["applied", "applied"]


@pytest.mark.parametrize("point", ["plan.recorded", "store.replaced", "store.committed"])
def test_another_job_of_the_session_settles_what_a_killed_one_left(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    """The extract died and gave up; the finalize writes its notes and asks about what is new."""
    world = World(tmp_path, clock, [everything])
    said = world.transcript().user(FIRST)
    left = world.enqueue(said, "extract", reason="compact").job
    assert left is not None
    world.die_at(point, monkeypatch)
    world.ledger.db.change("update job set failures = max_failures, status = 'failed'")

    job = world.finalize(said.user(SECOND))

    assert job.outcome_code == "notes.written"
    assert world.bodies() == [FIRST, SECOND]
    assert [[m.text for m in asked.messages] for asked in world.model.requests] == [
        [FIRST],
        [SECOND],
    ]
    assert [kept.state for kept in world.candidates(left)] == ["applied"]
    assert (len(world.commits()), clean(world)) == (2, True)


def test_a_plan_that_cannot_be_written_is_applied_when_the_store_is_mended(
    tmp_path: Path, clock: FakeClock
) -> None:
    """It waits at no cost, and no model is called a second time."""
    world = World(tmp_path, clock, [everything])
    said = world.transcript().user(FIRST)
    root = world.store().root
    world.home.projects.joinpath(world.store().key).mkdir()
    root.symlink_to(tmp_path / "nowhere")
    job = world.finalize(said)
    world.clock.advance(DAY)
    world.work()
    assert world.job(job).shown_status == "waiting"
    assert (world.job(job).failures, len(world.model.requests)) == (0, 1)

    root.unlink()
    world.clock.advance(DAY)
    world.finalize(said.user(SECOND))

    assert world.bodies() == [FIRST, SECOND]
    assert len(world.model.requests) == 2
    assert [kept.state for kept in world.candidates(job)] == ["applied"]


def test_a_store_that_is_being_written_is_waited_for(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lock is held elsewhere: a snooze, doubling, at no cost; then the plan is applied."""
    monkeypatch.setattr(distil, "WRITER_WAIT_SECONDS", 0.0)
    world = World(tmp_path, clock, [everything])
    said = world.transcript().user(FIRST)

    with world.store().writer_lock():
        job = world.finalize(said)
        assert (job.wait_reason, job.failures) == ("store.busy", 0)
        assert job.run_at == clock.now_ms() + 15_000
        clock.advance(15)
        world.work()
        assert world.job(job).run_at == clock.now_ms() + 30_000
    clock.advance(30)
    world.work()

    assert (world.job(job).outcome_code, world.job(job).failures) == ("notes.written", 0)
    assert (world.bodies(), len(world.model.requests)) == ([FIRST], 1)


def test_a_store_that_is_written_for_a_moment_costs_no_snooze(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two workers end sessions of one project together: the second waits for the commit."""
    world = World(tmp_path, clock, [everything])
    said = world.transcript().user(FIRST)
    lock = FileLock(world.store().lock_path)
    assert lock.acquire()

    def release_when_it_waits(wait: locks._Wait, timeout: float) -> bool:
        lock.release()
        return waited(wait, timeout)

    waited = locks._Wait.within
    monkeypatch.setattr(locks._Wait, "within", release_when_it_waits)
    job = world.finalize(said)

    assert (job.outcome_code, job.snoozes) == ("notes.written", 0)


def test_the_second_slice_may_die_and_the_first_stays_done(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twelve chunks: only the second slice's four are at stake, and nothing is asked twice."""
    texts = [f"Rule number {number:02} holds always." for number in range(12)]
    world = World(tmp_path, clock, [answer(fact(text)) for text in texts])
    said = world.transcript()
    for text in texts:
        said.user(text + " lorem ipsum" * 600)
    job = world.enqueue(said).job
    assert job is not None

    world.die_at("store.replaced", monkeypatch, time=10)
    world.work_to_rest()

    assert (world.job(job).outcome_code, len(world.model.requests)) == ("notes.written", 12)
    assert world.bodies() == texts
    assert (len(world.commits()), clean(world)) == (2, True)


def test_an_attempt_that_lost_its_lease_changes_nothing(tmp_path: Path, clock: FakeClock) -> None:
    """It slept through its lease inside the call; another wrote the notes; its answer is void."""
    other: list[int] = []

    def slow(request: Request) -> str:
        if not other:
            other.append(1)
            world.keeper.drop(world.ledger.records.jobs()[0])
            clock.advance(400)
            other.append(world.worker.work_ready())
        return everything(request)

    world = World(tmp_path, clock, [slow])
    job = world.finalize(world.transcript().user(FIRST))

    assert (job.outcome_code, job.attempt, job.failures) == ("notes.written", 2, 1)
    assert (world.bodies(), len(world.commits())) == ([FIRST], 1)
    assert [one.ending for one in world.ledger.records.attempts(job)] == ["crashed", "completed"]
    assert len(world.candidates(job)) == 1


def test_a_job_cancelled_while_it_is_read_writes_nothing(tmp_path: Path, clock: FakeClock) -> None:
    """Cancel wins until the plan is recorded."""

    def cancelled(request: Request) -> str:
        assert world.ledger.cancel(world.ledger.records.jobs()[0])
        return everything(request)

    world = World(tmp_path, clock, [cancelled])
    job = world.finalize(world.transcript().user(FIRST))

    assert job.status == "cancelled"
    assert (world.bodies(), world.candidates(job)) == ([], [])


# -- relations to what is known ------------------------------------------------------------------


def learned(world: World, statement: str = SECOND) -> Note:
    """The note about deploys, learned from a first session."""
    world.model._script = [answer(fact(statement, **note(statement)))]
    world.finalize(world.transcript("first").user(statement))
    (found,) = world.store().notes()
    return found


def meets(world: World, script: str, said: str = THIRD) -> list[tuple[str, str]]:
    """What became of the candidates of a second session: reason and state."""
    world.clock.advance(7200)
    world.model._script = [script]
    job = world.finalize(world.transcript("second").user(said))
    return [(kept.reason, kept.state) for kept in world.candidates(job)]


def test_the_same_is_not_written_again(tmp_path: Path, clock: FakeClock) -> None:
    """Whether the model says so or the words do."""
    world = World(tmp_path, clock)
    learned(world)

    said_so = fact("Fridays it is.", THIRD, relation={"kind": "same", "name": NAME})
    same_words = fact(SECOND.upper(), THIRD)

    assert meets(world, answer(said_so, same_words)) == [("same", "ignored")] * 2
    assert (world.bodies(), len(world.commits())) == ([SECOND], 1)


def test_an_update_is_the_notes_new_body(tmp_path: Path, clock: FakeClock) -> None:
    """Same file, new words, nothing lost; the job that wrote it is in the header."""
    world = World(tmp_path, clock)
    old = learned(world)
    longer = f"{SECOND}\n{THIRD}"
    update = answer(fact(THIRD, relation={"kind": "updates", "name": NAME}, **note(longer)))

    assert meets(world, update) == [("policy.passed", "applied")]
    (new,) = world.store().notes()
    assert (new.path, new.body) == (old.path, longer)
    assert new.source != old.source


def test_an_update_that_would_lose_words_becomes_a_line(tmp_path: Path, clock: FakeClock) -> None:
    """A model never rewrites a note into less."""
    world = World(tmp_path, clock)
    learned(world, "Deploy host is build-7.example, port 8443, on Fridays.")

    assert meets(world, about_deploys(THIRD, "updates")) == [("policy.passed", "applied")]
    (body,) = world.bodies()
    assert body == f"Deploy host is build-7.example, port 8443, on Fridays.\n{THIRD}"


def test_a_contradiction_supersedes_and_keeps_the_old_in_the_archive(
    tmp_path: Path, clock: FakeClock
) -> None:
    """Both ends are linked; the old one is readable and no longer current."""
    world = World(tmp_path, clock)
    learned(world)

    assert meets(world, about_deploys(THIRD, "contradicts")) == [("policy.passed", "applied")]
    assert world.bodies() == [THIRD]
    old = next(one for one in world.store().notes() if one.archived)
    new = next(one for one in world.store().notes() if not one.archived)
    assert (old.body, old.superseded_by, new.supersedes) == (SECOND, new.name, (old.name,))
    assert (len(world.commits()), clean(world)) == (2, True)


# -- a person's hand -----------------------------------------------------------------------------


def by_hand(found: Note, world: World, text: str = "- and never in August\n") -> Path:
    """A person adds a line to a note."""
    path = world.store().root / found.path
    path.write_text(path.read_text() + text)
    return path


@pytest.mark.parametrize("committed", [True, False])
@pytest.mark.parametrize("kind", ["updates", "contradicts"])
def test_a_note_that_a_person_edited_is_touched_only_through_review(
    tmp_path: Path, clock: FakeClock, kind: str, committed: bool
) -> None:
    """Whether the edit is in the baseline yet or not."""
    world = World(tmp_path, clock)
    path = by_hand(learned(world), world)
    theirs = path.read_bytes()
    if committed:
        later = path.stat().st_mtime_ns // 1_000_000 + 61_000
        commit_person_edits(world.store(), now_ms=later)

    assert meets(world, about_deploys(THIRD, kind)) == [("person", "pending")]
    assert path.read_bytes() == theirs
    assert len(world.commits()) == 1


def between(monkeypatch: pytest.MonkeyPatch, point: str, action: Callable[[], object]) -> None:
    """Have a person do something just when ``point`` is reached."""
    monkeypatch.setattr(seams, "hook", lambda reached: action() if reached == point else None)


def test_an_edit_made_between_plan_and_apply_wins_and_gets_the_line(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An update: theirs stands, is theirs in the history, and our statement is one line more."""
    world = World(tmp_path, clock)
    old = learned(world)
    between(monkeypatch, "plan.recorded", lambda: by_hand(old, world))
    longer = f"{SECOND}\n{THIRD}"
    update = answer(fact(THIRD, relation={"kind": "updates", "name": NAME}, **note(longer)))

    assert meets(world, update) == [("policy.passed", "appended")]
    (body,) = world.bodies()
    assert body.splitlines() == [SECOND, "- and never in August", f"- {THIRD}"]
    assert clean(world)
    assert "person" in {made.author for made in Baseline(world.store()).log()}


def test_an_edit_made_between_plan_and_apply_drops_what_would_supersede_it(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their note stays where it is; what was said waits in review."""
    world = World(tmp_path, clock)
    old = learned(world)
    between(monkeypatch, "plan.recorded", lambda: by_hand(old, world))

    assert meets(world, about_deploys(THIRD, "contradicts")) == [("changed", "pending")]
    assert any("never in August" in body for body in world.bodies())


def test_a_file_a_person_made_in_the_new_notes_place_stays_theirs(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was said waits in review, ``changed``."""
    world = World(tmp_path, clock, [answer(fact(SECOND, **note(SECOND)))])
    path = world.store().root / "feedback" / f"{NAME}.md"

    def mine() -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("my own words\n")

    between(monkeypatch, "plan.recorded", mine)

    job = world.finalize(world.transcript().user(SECOND))

    assert [(kept.reason, kept.state) for kept in world.candidates(job)] == [("changed", "pending")]
    assert path.read_text() == "my own words\n"
    assert (job.status, job.outcome_code) == ("completed", "review.pending")


def test_what_was_forgotten_is_not_learned_again(tmp_path: Path, clock: FakeClock) -> None:
    """Not from the same statement, nor another wording of it under the same name."""
    world = World(tmp_path, clock)
    old = learned(world)
    clock.advance(60)
    delete_note(world.home, world.store(), old.path, clock=clock)
    later = clock.now_ms()
    world.model._script = [answer(fact(SECOND), fact("Fridays.", SECOND, **note("Fridays.")))]
    said = world.transcript("second")
    said.at_ms = later - 3_600_000

    job = world.finalize(said.user(SECOND))

    assert [(kept.reason, kept.state) for kept in world.candidates(job)] == [
        ("forgotten", "ignored"),
        ("forgotten", "ignored"),
    ]
    assert world.bodies() == []


def test_what_the_person_says_again_later_is_learned(tmp_path: Path, clock: FakeClock) -> None:
    """Their word stands above the tombstone."""
    world = World(tmp_path, clock)
    old = learned(world)
    clock.advance(60)
    delete_note(world.home, world.store(), old.path, clock=clock)
    clock.advance(3 * 3600)

    world.model._script = [answer(fact(SECOND))]
    world.finalize(world.transcript("second").user(SECOND))

    assert world.bodies() == [SECOND]


def test_a_budget_that_ends_leaves_no_plan_behind(tmp_path: Path, clock: FakeClock) -> None:
    """What was read is applied before the job waits."""
    world = World(
        tmp_path,
        clock,
        [answer(fact(FIRST)), NOTHING],
        config=Config(provider=replace(ProviderSettings(), daily_calls=1)),
    )
    said = world.transcript().user(FIRST + " lorem ipsum" * 600).user("x " * 4000)

    job = world.finalize(said)

    assert job.wait_reason == "budget.spent"
    assert world.ledger.standing_plan(job) is None
    assert (world.bodies(), clean(world)) == ([FIRST], True)


def test_a_note_deleted_while_nothing_ran_is_not_written_again(
    tmp_path: Path, clock: FakeClock
) -> None:
    """The deletion is taken in before the same words are decided on."""
    world = World(tmp_path, clock, [answer(fact(FIRST))])
    world.finalize(world.transcript().user(FIRST))
    (note,) = [note for note in world.store().notes() if not note.archived]
    (world.store().root / note.path).unlink()

    later = world.finalize(world.transcript("s2").user(FIRST))

    assert world.bodies() == []
    assert [kept.reason for kept in world.candidates(later)] == ["forgotten"]


def test_a_store_in_which_too_much_vanished_holds_its_jobs(
    tmp_path: Path, clock: FakeClock
) -> None:
    """Nothing is decided against an emptied store until a person has looked; it costs nothing."""
    texts = [f"Rule number {number:02} holds always." for number in range(3)]
    world = World(tmp_path, clock, [answer(*(fact(text) for text in texts))])
    said = world.transcript()
    for text in texts:
        said.user(text)
    world.finalize(said)
    for note in world.store().notes():
        (world.store().root / note.path).unlink()

    job = world.finalize(world.transcript("s2").user(FIRST))

    assert (job.status, job.wait_reason, job.failures) == ("pending", "store.held", 0)
    assert len(world.model.requests) == 1
