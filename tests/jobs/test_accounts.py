"""What one attempt did: its one line in the log, and what is counted of it."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from world import NOTHING, World, answer, fact

from memoryd.jobs import worker as workers
from memoryd.jobs.accounts import Account
from memoryd.jobs.control import GiveBack, Snooze
from memoryd.jobs.job import Job
from memoryd.jobs.keeper import LeaseKeeper
from memoryd.jobs.worker import Worker
from memoryd.jobs.workplace import Workplace
from memoryd.memory import log
from memoryd.memory.errors import LeaseLost, StoreError
from memoryd.memory.testing import FakeClock

LATER = 1_767_603_600_000 + 3_600_000
RULE = "Always run the linter before you commit."
SURE = fact(RULE)
UNSURE = {**fact(RULE), "statement": "Maybe runs linters.", "confidence": 0.1}


@pytest.fixture
def lines() -> io.StringIO:
    """What is logged, as a daemon would write it."""
    written = io.StringIO()
    log.configure(written)
    return written


@pytest.fixture
def world(tmp_path: Path, clock: FakeClock, lines: io.StringIO) -> World:
    """A home whose model takes the rule for a fact, and is not sure of another."""
    return World(tmp_path, clock, [answer(SURE, UNSURE), NOTHING])


def ended(lines: io.StringIO) -> dict[str, Any]:
    """The one line of the one attempt."""
    logged = [json.loads(line) for line in lines.getvalue().splitlines()]
    (line,) = [each for each in logged if each["event"] == "attempt.ended"]
    return line


def told(world: World) -> Account:
    """What a worker tells of the next attempt."""
    accounts: list[Account] = []
    Worker(lambda: world.place, world.keeper, told=accounts.append).work_ready()
    (found,) = accounts
    return found


def test_the_line_of_an_attempt_says_all_that_it_did(world: World, lines: io.StringIO) -> None:
    """Counts and codes; not a word of the session, its transcript or a note."""
    transcript = world.transcript().user(RULE).assistant("Fine.")
    job = world.finalize(transcript)

    line = ended(lines)

    del line["time"], line["seconds"], line["input_tokens"], line["output_tokens"]
    assert line == {
        "event": "attempt.ended",
        "level": "info",
        "job": job.id,
        "kind": "finalize",
        "attempt": 1,
        "agent": "claude-code",
        "session": "s1",
        "ending": "completed",
        "code": "notes.written",
        "status": "completed",
        "slices": 1,
        "messages": 2,
        "calls": 1,
        "facts": {"apply": 1, "review": 1},
        "notes": 1,
        "failures": 0,
    }
    assert "linter" not in lines.getvalue() and str(transcript.path) not in lines.getvalue()


def test_a_line_counts_its_own_attempt_alone(world: World, clock: FakeClock) -> None:
    """What an earlier job of the session did, or an earlier attempt, is not counted again."""
    transcript = world.transcript().user(RULE)
    world.finalize(transcript)
    clock.advance(60)
    world.enqueue(transcript.user("What is the time in Lima?").assistant("Noon."))

    second = told(world)

    assert (second.messages, second.notes, second.facts, second.calls) == (2, 0, {}, 1)


def test_what_an_attempt_that_died_had_found_is_not_counted_again(
    world: World, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next one writes it, and says so."""
    world.enqueue(world.transcript().user(RULE))
    world.die_at("plan.recorded", monkeypatch)
    clock.advance(3600)

    second = told(world)

    assert (second.ending, second.facts, second.notes, second.calls) == ("completed", {}, 1, 0)


@pytest.mark.parametrize(
    ("error", "ending", "code", "status", "waits"),
    [
        (Snooze(LATER, "budget.spent"), "snoozed", "budget.spent", "waiting", True),
        (GiveBack(), "released", None, "pending", True),
        (StoreError("no"), "failed", "store.unusable", "retrying", True),
        (LeaseLost("gone"), "lost", None, "running", False),
    ],
    ids=["snoozed", "released", "failed", "lost"],
)
def test_each_ending_is_told_with_its_code_and_until_when_the_job_waits(
    world: World,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    ending: str,
    code: str | None,
    status: str,
    waits: bool,
) -> None:
    """As the log of attempts has it, and how the job stands then."""

    def handler(job: Job, place: Workplace, keeper: LeaseKeeper) -> None:
        monkeypatch.setattr(world.ledger, "claim", lambda *_, **__: None)
        raise error

    monkeypatch.setitem(workers.HANDLERS, "finalize", handler)
    job = world.enqueue(world.transcript().user(RULE)).job
    assert job is not None

    done = told(world)

    assert (done.ending, done.code, done.status) == (ending, code, status)
    assert (done.wait_until == world.job(job).run_at) is waits
    assert done.failures == int(ending == "failed")


def test_an_extract_that_came_too_soon_has_a_line_and_no_row(world: World) -> None:
    """Its row and its log of attempts are gone."""
    world.enqueue(world.transcript().user("Hello."), "extract", reason="stop")

    done = told(world)

    assert (done.kind, done.ending, done.calls) == ("extract", "throttled", 0)
    assert world.ledger.records.jobs() == []


def test_what_was_given_up_for_dead_is_counted_in_this_process(
    world: World, clock: FakeClock
) -> None:
    """Once for each attempt, whoever rescues it."""
    world.enqueue(world.transcript().user(RULE))
    world.ledger.claim("another")
    clock.advance(world.ledger.lease_ms / 1000 + 1)

    assert (world.ledger.rescued, world.ledger.rescue(), world.ledger.rescued) == (0, 1, 1)
    assert world.ledger.rescue() == 0 and world.ledger.rescued == 1


def test_what_was_asked_of_the_log_is_done_with_the_first_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Once; a command that logs nothing pays nothing for it."""
    done: list[str] = []
    monkeypatch.setattr(log, "_configure", lambda *asked: done.append("configured"))

    log.configure(io.StringIO())
    assert done == []
    log.logger()
    log.logger()

    assert done == ["configured"]
