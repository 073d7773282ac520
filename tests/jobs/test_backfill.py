"""Backfill: the archive is mined once, in order, within its bounds, and never in the way."""

from __future__ import annotations

from pathlib import Path

import pytest
from archives import HOUR, RULE, TABS, Past, touch
from world import DAY, answer, fact

from memoryd.jobs import backfill
from memoryd.memory.testing import FakeClock


def test_an_old_session_is_found_and_distilled_once(tmp_path: Path, clock: FakeClock) -> None:
    """Nobody told of it; and a second look makes nothing of it."""
    past = Past(tmp_path, clock, [answer(fact(RULE))])
    past.session("s1")

    (job,) = past.mine()

    assert (job.status, job.outcome_code, job.trigger) == ("completed", "notes.written", "archive")
    assert past.bodies() == [RULE]
    clock.advance(DAY)
    past.restart()
    assert past.mine() == [job]


def test_the_newest_come_first_but_for_those_their_agent_deletes(
    tmp_path: Path, clock: FakeClock
) -> None:
    """Claude Code keeps them for thirty days, Codex for ever."""
    past = Past(tmp_path, clock)
    threads = [f"0199c3a0-0000-7000-8000-00000000000{number}" for number in range(3)]
    for days, thread in zip((50, 2, 9), threads, strict=True):
        past.session(thread, agent="codex", days=days)
    past.session("fresher", days=12)
    past.session("at-risk", days=29)

    past.mine()

    assert past.mined() == ["at-risk", "fresher", threads[1], threads[2], threads[0]]


def test_a_day_has_its_number_of_sessions(tmp_path: Path, clock: FakeClock) -> None:
    """The rest waits for the next local day, and is then read without another discovery."""
    past = Past(tmp_path, clock, per_day=2)
    for number in range(5):
        past.session(f"s{number}", days=10 + number)

    past.mine()
    assert past.mined() == ["s4", "s3"]
    past.work()
    assert len(past.mined()) == 2

    clock.advance(DAY)
    past.work()
    assert past.mined() == ["s4", "s3", "s2", "s1"]


def test_a_session_must_have_been_still_for_hours(tmp_path: Path, clock: FakeClock) -> None:
    """A person may go on with it yet."""
    past = Past(tmp_path, clock, min_idle_hours=6)
    past.session("s1", days=5.9 / 24)

    assert past.mine() == []
    clock.advance(0.2 * HOUR)
    past.work()
    assert past.mined() == ["s1"]


def test_one_that_goes_on_after_it_was_found_is_left_for_now(
    tmp_path: Path, clock: FakeClock
) -> None:
    """It is looked at once more when it is its turn."""
    past = Past(tmp_path, clock)
    said = past.session("s1")
    past.discover()
    past.aged(said, TABS, days=0)

    assert backfill.plan(past.place) == 0


def test_the_oldest_may_be_left_out(tmp_path: Path, clock: FakeClock) -> None:
    """As the configuration says; where calls cost, after ninety days."""
    past = Past(tmp_path, clock, max_age_days=20)
    past.session("s1", days=21)
    past.session("s2", days=19)
    past.mine()
    assert past.mined() == ["s2"]

    assert backfill.limits_of(past.home, past.config, 0, costs=True).max_age_ms == 20 * DAY * 1000
    other = Past(tmp_path / "other", clock) if (tmp_path / "other").mkdir() is None else past
    assert backfill.limits_of(other.home, other.config, 0, costs=True).max_age_ms == 90 * DAY * 1000
    assert backfill.limits_of(other.home, other.config, 0, costs=False).max_age_ms == 0


def test_only_a_few_jobs_wait_in_the_ledger(tmp_path: Path, clock: FakeClock) -> None:
    """The rest of the archive waits outside the queue."""
    past = Past(tmp_path, clock)
    for number in range(40):
        past.session(f"s{number:02}")
    past.discover()

    assert backfill.plan(past.place) == backfill.WAITING_JOBS
    assert backfill.plan(past.place) == 0
    past.work()
    assert len(past.mined()) == 40


def test_a_session_that_grew_is_distilled_from_its_cursor(tmp_path: Path, clock: FakeClock) -> None:
    """A longer copy of it came from another machine: only what is new is read."""
    past = Past(tmp_path, clock)
    said = past.session("s1", RULE, days=20)
    past.mine()

    past.aged(said, TABS, days=15)
    first, second = past.mine()

    assert (first.status, second.status) == ("completed", "completed")
    assert [[m.text for m in asked.messages] for asked in past.model.requests] == [
        [RULE, "Understood."],
        [TABS, "Understood."],
    ]


@pytest.mark.parametrize("keeps", [1, 2])
def test_a_session_that_was_rewritten_is_read_again_without_doubling(
    tmp_path: Path, clock: FakeClock, keeps: int
) -> None:
    """Shorter, as its agent compacted it; or with other words before the ones it keeps."""
    past = Past(tmp_path, clock, [answer(fact(RULE)), answer(fact(RULE), fact(TABS))])
    said = past.session("s1", RULE, "And a question?", days=20)
    past.mine()

    lines = said.path.read_bytes().splitlines(keepends=True)
    said.path.write_bytes(b"".join(lines[:keeps]))
    past.aged(said, TABS, days=15)
    past.mine()

    assert sorted(past.bodies()) == [RULE, TABS]
    history = past.place.history.messages("claude-code", "s1", 0, 100)
    texts = [each.text for each in history if each.role == "user"]
    assert sorted(texts) == sorted({RULE, "And a question?", TABS})


def test_a_session_that_only_was_touched_is_not_made_again(
    tmp_path: Path, clock: FakeClock
) -> None:
    """There is nothing new in it, and none of the day's sessions is spent on it."""
    past = Past(tmp_path, clock)
    said = past.session("s1", days=20)
    past.mine()

    touch(said.path, clock.now_ms() - 19 * DAY * 1000)
    past.mine()

    assert len(past.mined()) == 1
    assert past.ledger.archive.made_today() == 1
    assert past.work() == 0


def test_what_was_active_since_the_home_was_made_is_the_sweeps(
    tmp_path: Path, clock: FakeClock
) -> None:
    """And an old session that goes on is finalized from where backfill came to."""
    past = Past(tmp_path, clock)
    said = past.session("s1", RULE, days=20)
    past.mine()

    past.aged(said, TABS, days=31 / (24 * 60))
    past.discover()
    from memoryd.jobs.sweep import finalize_idle

    assert backfill.plan(past.place) == 0
    assert finalize_idle(past.place) == 1
    past.work()
    assert len(past.backfills()) == 1
    assert [m.text for m in past.model.requests[-1].messages] == [TABS, "Understood."]


def test_a_forgotten_statement_does_not_come_back(tmp_path: Path, clock: FakeClock) -> None:
    """It was said again in an old session that nobody had read when it was forgotten."""
    from memoryd.memory.forget import delete_note

    past = Past(tmp_path, clock, [answer(fact(RULE))])
    past.finalize(past.transcript("now").user(RULE))
    (note,) = past.store().notes()
    delete_note(past.home, past.store(), note.path, clock=clock)
    past.session("old", RULE, days=20)

    (job,) = past.mine()

    assert past.reasons(job) == ["forgotten"]
    assert past.bodies() == []


def test_an_old_fact_never_changes_a_newer_note(tmp_path: Path, clock: FakeClock) -> None:
    """What it says goes to the archive of the store, where it contradicts."""
    newer = "We use bun for the packages, pnpm is gone."
    older = "We use pnpm for the packages of this repository."
    named = {"type": "project", "name": "packages", "description": newer, "content": newer}

    def model(request: object) -> str:
        said = " ".join(message.text for message in request.messages)  # type: ignore[attr-defined]
        if newer in said:
            return answer(fact(newer, category="technical-default", note=named))
        other = {"type": "project", "name": "pnpm", "description": older, "content": older}
        relation = {"kind": "contradicts", "name": "packages"}
        return answer(fact(older, category="technical-default", note=other, relation=relation))

    past = Past(tmp_path, clock, [model])
    past.finalize(past.transcript("now").user(newer))
    past.session("old", older, days=20)
    past.mine()

    assert past.bodies() == [newer]
