"""What a person forgot is not learned again: from the same words, however they are asked for."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from world import World, answer, fact

from memoryd.memory.baseline import Baseline
from memoryd.memory.forget import forget
from memoryd.memory.testing import FakeClock
from memoryd.memory.tombstones import Forgotten

SAID = "Please always run the linter before you commit."
RULE = "The linter is run before each commit."
OTHER_WORDS = "Linting comes first, committing second."


def tells(statement: str, span: str = SAID) -> str:
    """A model's answer of one fact that stands on ``span``."""
    return answer(fact(statement, span))


def learned(tmp_path: Path, clock: FakeClock, agent: str = "claude-code") -> World:
    """A home that learned the rule from session s1 and was made to forget it an hour later."""
    world = World(tmp_path, clock, [tells(RULE)])
    world.finalize(world.transcript("s1", agent=agent).user(SAID))
    assert world.bodies() == [RULE]
    clock.advance(3600)
    store = world.store()
    paths = [note.path for note in store.notes()]
    forget(
        store, paths, clock=clock, spans=lambda path: world.ledger.records.evidence(store.key, path)
    )
    assert world.bodies() == []
    return world


def again(world: World, script: str, said: object, **asked: object) -> list[str]:
    """Have a session distilled with that answer: the reasons of what came of it."""
    world.model._script = [script]
    job = world.finalize(said, **asked)  # type: ignore[arg-type]
    return world.reasons(job)[-1:]


@pytest.mark.parametrize("agent", ["claude-code", "codex"])
@pytest.mark.parametrize(
    "span", [SAID, "always run the linter before you commit", "run the linter before"]
)
def test_other_words_for_the_same_message_are_not_learned(
    tmp_path: Path, clock: FakeClock, agent: str, span: str
) -> None:
    """Neither from the same span nor from another piece of it, when the session is read anew."""
    world = learned(tmp_path, clock, agent)
    said = world.transcript("s1", agent=agent)
    world.ledger.db.change("delete from cursor")
    world.ledger.db.change("delete from job")

    assert again(world, tells(OTHER_WORDS, span), said, trigger="cli") == ["forgotten"]
    assert world.bodies() == []


@pytest.mark.parametrize("agent", ["claude-code", "codex"])
def test_a_rebuilt_session_history_knows_the_forgotten_words(
    tmp_path: Path, clock: FakeClock, agent: str
) -> None:
    """Its messages get the ids they had, also those of an agent that gives none."""
    world = learned(tmp_path, clock, agent)
    world.place.close()
    for path in world.home.root.glob("sessions.sqlite*"):
        path.unlink()
    world.restart()
    world.ledger.db.change("delete from cursor")
    world.ledger.db.change("delete from job")
    said = world.transcript("s1", agent=agent)
    if agent == "codex":  # the builder writes its first line once more
        lines = said.path.read_text().splitlines(keepends=True)
        said.path.write_text("".join(lines[:-1]))

    assert again(world, tells(OTHER_WORDS), said, trigger="cli") == ["forgotten"]


def test_the_same_statement_of_another_session_is_not_learned(
    tmp_path: Path, clock: FakeClock
) -> None:
    """Said before it was forgotten, read after: the words decide, and the drafted note's too."""
    world = learned(tmp_path, clock)
    clock.advance(-1800)
    older = world.transcript("s2").user(SAID)
    clock.advance(1800)

    note = {"type": "user", "name": "other", "description": "Another", "content": f"- {RULE}"}
    told = answer(fact("Something about linters", SAID, note=note))

    assert again(world, told, older) == ["forgotten"]


def test_a_persons_own_later_message_lifts_it_and_an_assistants_does_not(
    tmp_path: Path, clock: FakeClock
) -> None:
    """Only the person says it again."""
    world = learned(tmp_path, clock)
    clock.advance(2 * 3600)
    told = fact("The linter runs first.", SAID, category="project")
    note = {"type": "project", "name": "n", "description": RULE, "content": RULE}

    theirs = world.transcript("s2").user("What is the rule?").assistant(SAID)
    assert again(world, answer({**told, "note": note}), theirs) == ["forgotten"]

    mine = world.transcript("s3").user(SAID)
    assert again(world, tells(RULE), mine) == ["policy.passed"]
    assert world.bodies() == [RULE]


def test_a_retried_job_obeys(tmp_path: Path, clock: FakeClock) -> None:
    """It was cancelled before the note was forgotten, and is tried after."""
    world = learned(tmp_path, clock)
    clock.advance(-1800)
    older = world.transcript("s2").user(SAID)
    job = world.enqueue(older).job
    assert job is not None and world.ledger.cancel(job)
    clock.advance(1800)

    world.ledger.retry(world.job(job))
    world.model._script = [tells(RULE)]
    world.work()

    assert world.reasons(world.job(job)) == ["forgotten"]


def test_the_file_put_back_by_git_lifts_it(tmp_path: Path, clock: FakeClock) -> None:
    """`git checkout` of the version before: what a person puts back is theirs and known."""
    world = learned(tmp_path, clock)
    store = world.store()
    subprocess.run(["git", "checkout", "-q", "HEAD~1", "--", "."], cwd=store.root, check=True)
    past = clock.now_ms() / 1000 - 61
    for path in store.paths():
        os.utime(store.root / path, (past, past))

    older = world.transcript("s2").user("Something else entirely, about ports.")
    told = answer(fact(RULE, "Something else entirely"))
    assert again(world, told, older) == ["same"]
    assert world.bodies() == [RULE]


def test_a_candidate_that_was_forgotten_waits_no_more(tmp_path: Path, clock: FakeClock) -> None:
    """It keeps no draft, and its own words are not learned from again."""
    world = World(tmp_path, clock, [answer(fact(RULE, SAID, explicitness="inferred"))])
    said = world.transcript("s1").user(SAID)
    job = world.finalize(said)
    store = world.store()
    (waiting,) = world.ledger.records.in_review(store.key)

    assert world.ledger.forget_candidates([waiting.id, waiting.id, "unknown"]) == 1

    assert world.ledger.records.in_review(store.key) == []
    (kept,) = world.candidates(job)
    assert (kept.state, kept.reason) == ("ignored", "forgotten")
    assert world.ledger.db.rows("select draft from candidate") == [(None,)]


@pytest.mark.parametrize("point", ["plan.recorded", "store.replaced"])
def test_what_is_forgotten_after_it_was_decided_is_not_written(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    """Neither from a plan that waits nor from one whose file stands already; its sibling is."""
    sibling = "Use pnpm for the packages."
    world = World(tmp_path, clock, [answer(fact(RULE, SAID), fact(sibling))])
    job = world.enqueue(world.transcript().user(SAID).user(sibling)).job
    assert job is not None
    world.die_at(point, monkeypatch)
    clock.advance(60)
    world.ledger.db.change("update job set run_at = 0")

    store = world.store()
    forget(store, [], clock=clock, said=[Forgotten("", (RULE,))])
    world.work()

    assert world.bodies() == [sibling]
    assert Baseline(store).changed_paths() == []
    states = {kept.statement: (kept.state, kept.reason) for kept in world.candidates(job)}
    assert states == {
        RULE: ("ignored", "forgotten"),
        sibling: ("applied", "policy.passed"),
    }


def test_words_forgotten_while_a_plan_waits_are_not_written_in_other_words(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message and the span count, as they do when it is decided."""
    world = World(tmp_path, clock, [tells(OTHER_WORDS)])
    job = world.enqueue(world.transcript().user(SAID)).job
    assert job is not None
    world.die_at("plan.recorded", monkeypatch)
    clock.advance(60)
    (waiting,) = world.candidates(job)
    spans = tuple((message, span) for message, _, span in waiting.evidence)

    forget(world.store(), [], clock=clock, said=[Forgotten("", (), spans)])
    world.work_to_rest()

    assert world.bodies() == []
    assert world.reasons(job) == ["forgotten"]


def test_words_from_a_clock_that_is_ahead_are_of_an_unknown_time(
    tmp_path: Path, clock: FakeClock
) -> None:
    """Else, forgotten, they would be said again later when they are met in another session."""
    world = World(tmp_path, clock, [tells(RULE)])
    said = world.transcript("s1")
    said.at_ms += 40 * 86400 * 1000
    world.finalize(said.user(SAID))
    copy = world.transcript("s2")
    copy.at_ms = said.at_ms
    store = world.store()

    forget(store, [note.path for note in store.notes()], clock=clock)

    assert again(world, tells(RULE), copy.user(SAID)) == ["forgotten"]
    assert world.place.history.newest_said_ms(store.key) == 0


def test_a_clock_that_was_back_makes_no_news_of_what_was_said_before(
    tmp_path: Path, clock: FakeClock
) -> None:
    """Neither of the same message, read anew, nor of the same words in a session not read yet."""
    world = World(tmp_path, clock, [tells(RULE)])
    said, other = world.transcript("s1").user(SAID), world.transcript("s2").user(SAID)
    world.finalize(said)
    store = world.store()
    clock.step(-30 * 86400)
    forget(
        store,
        [note.path for note in store.notes()],
        clock=clock,
        spans=lambda path: world.ledger.records.evidence(store.key, path),
    )
    clock.step(30 * 86400)

    assert again(world, tells(RULE), other) == ["forgotten"]
    world.ledger.db.change("delete from cursor")
    world.ledger.db.change("delete from job")
    assert again(world, tells(RULE), said.assistant("ok"), trigger="cli") == ["forgotten"]
    assert world.place.history.newest_said_ms(store.key) > clock.now_ms() - 2 * 3600 * 1000
