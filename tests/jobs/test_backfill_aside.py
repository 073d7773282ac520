"""A session of the archive that cannot be read is set aside; nothing else waits for it."""

from __future__ import annotations

from pathlib import Path

import pytest
from archives import RULE, TABS, Past, touch
from world import DAY, NOTHING, answer, fact

from memoryd.jobs.archive import home_made_ms
from memoryd.jobs.archived import Archived, stage
from memoryd.jobs.backfill import limits_of
from memoryd.memory.testing import FakeClock


def stages(past: Past) -> dict[str, str]:
    """How far each session of the archive has come."""
    rows = past.ledger.archive.rows(home_made_ms(past.home))
    limits = limits_of(past.home, past.config, past.clock.now_ms(), costs=True)
    return {row.session: stage(row, limits) for row in rows}


def row_of(past: Past, session: str) -> Archived:
    """The session as the archive knows it."""
    rows = past.ledger.archive.rows(home_made_ms(past.home))
    return next(row for row in rows if row.session == session)


@pytest.fixture
def past(tmp_path: Path, clock: FakeClock) -> Past:
    """A poison transcript, over which every answer is unusable, and a good one."""

    def model(request: object) -> str:
        said = " ".join(message.text for message in request.messages)  # type: ignore[attr-defined]
        return "no answer at all" if RULE in said else answer(fact(TABS))

    made = Past(tmp_path, clock, [model])
    made.poison = made.session("poison", RULE, days=20)  # type: ignore[attr-defined]
    made.session("good", TABS, days=19)
    return made


def test_one_that_fails_three_times_is_set_aside(past: Past) -> None:
    """The others are read, and it is not tried again by itself."""
    past.discover()
    past.work_to_rest()

    assert stages(past) == {"poison": "set-aside", "good": "mined"}
    poison = row_of(past, "poison")
    assert (poison.job_status, poison.job_code) == ("failed", "answer.unusable")
    calls = len(past.model.requests)
    past.clock.advance(3 * DAY)
    past.mine()
    assert len(past.model.requests) == calls


def test_one_that_kills_its_worker_is_set_aside(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each crash is a failure, whoever counts it."""
    past = Past(tmp_path, clock)
    past.session("poison")
    past.discover()
    for _ in range(3):
        past.die_at("slice.read", monkeypatch)
        past.clock.advance(3600)

    assert past.work() == 0
    assert stages(past) == {"poison": "set-aside"}
    assert row_of(past, "poison").job_code == "attempt.crashed"


def test_when_it_changes_it_is_tried_again(past: Past) -> None:
    """With a failure count of its own."""
    past.discover()
    past.work_to_rest()

    past.aged(past.poison, TABS, days=19)  # type: ignore[attr-defined]
    past.model._script = ["again no answer", "nor now", NOTHING]
    past.discover()
    past.work_to_rest()

    assert stages(past) == {"poison": "mined", "good": "mined"}


def test_a_reset_tries_it_again_and_reads_nothing_twice(past: Past) -> None:
    """The model has become better; what was read stays read, and cursors never go back."""
    past.discover()
    past.work_to_rest()
    past.model._script = [NOTHING]
    calls = len(past.model.requests)

    assert past.ledger.archive.reset() == (1, 2)
    past.mine()

    assert stages(past) == {"poison": "mined", "good": "mined"}
    assert len(past.model.requests) == calls + 1
    assert past.ledger.archive.reset() == (0, 2)


def test_a_reset_leaves_what_waits_alone(tmp_path: Path, clock: FakeClock) -> None:
    """A job that is not through stays the only one."""
    from memoryd.jobs import backfill

    past = Past(tmp_path, clock)
    past.session("s1")
    past.discover()
    backfill.plan(past.place)

    assert past.ledger.archive.reset() == (0, 1)
    past.discover()
    assert backfill.plan(past.place) == 0
    past.work()
    assert past.mined() == ["s1"]


def test_a_person_who_cancels_it_has_set_it_aside(tmp_path: Path, clock: FakeClock) -> None:
    """`memoryd cancel` says: not this one."""
    from memoryd.jobs import backfill

    past = Past(tmp_path, clock)
    past.session("s1")
    past.discover()
    backfill.plan(past.place)
    past.ledger.cancel(past.backfills()[0])

    assert past.mine()[0].status == "cancelled"
    assert stages(past) == {"s1": "set-aside"}


def test_a_retry_of_the_failed_job_takes_it_back(past: Past) -> None:
    """`memoryd retry` says: try again."""
    past.discover()
    past.work_to_rest()
    past.model._script = [NOTHING]

    (failed,) = past.ledger.records.jobs(status="failed")
    past.ledger.retry(failed)
    assert stages(past)["poison"] == "queued"
    past.work()

    assert stages(past)["poison"] == "mined"


def test_one_that_cannot_be_opened_is_set_aside(tmp_path: Path, clock: FakeClock) -> None:
    """The reason says so."""
    past = Past(tmp_path, clock)
    said = past.session("s1")
    past.discover()
    said.path.unlink()
    said.path.mkdir()
    (said.path / "x").touch()
    row = row_of(past, "s1")
    past.ledger.enqueue_backfill(row, cutoff=row.at_most, per_day=9)

    past.work_to_rest()

    assert row_of(past, "s1").job_code == "transcript.unreadable"


def test_one_that_is_gone_is_made_again_when_it_comes_back(
    tmp_path: Path, clock: FakeClock
) -> None:
    """Its disk was away when it was its turn."""
    past = Past(tmp_path, clock)
    said = past.session("s1")
    past.discover()
    content = said.path.read_bytes()
    at_ms = said.path.stat().st_mtime_ns // 1_000_000
    row = row_of(past, "s1")
    past.ledger.enqueue_backfill(row, cutoff=row.at_most, per_day=9)
    said.path.unlink()
    (job,) = past.mine()
    assert (job.outcome_code, stages(past)) == ("transcript.gone", {"s1": "gone"})

    said.path.write_bytes(content)
    touch(said.path, at_ms)
    (job,) = past.mine()

    assert (job.status, job.outcome_code, stages(past)) == (
        "completed",
        "nothing.durable",
        {"s1": "mined"},
    )


def test_a_session_that_is_excluded_meanwhile_is_never_read(
    tmp_path: Path, clock: FakeClock
) -> None:
    """Its job is called off."""
    from memoryd.jobs import backfill

    past = Past(tmp_path, clock)
    past.session("s1")
    past.discover()
    backfill.plan(past.place)
    past.ledger.exclude("claude-code", "s1", "session.excluded")

    past.mine()

    assert [job.outcome_code for job in past.backfills()] == ["session.excluded"]
    assert past.model.requests == []


@pytest.mark.parametrize(
    "line", ['[privacy]\nexclude = ["**"]\n', "[memory]\nauto_extract = false\n", "nonsense = \n"]
)
def test_a_project_that_is_not_to_be_read_is_left_out_until_it_is(
    tmp_path: Path, clock: FakeClock, line: str
) -> None:
    """Excluded, switched off, or with a file that cannot be used: no job is made."""
    past = Past(tmp_path, clock)
    past.session("s1")
    (past.project / ".memoryd.toml").write_text(line)
    assert past.mine() == []
    assert stages(past) == {"s1": "excluded"}

    (past.project / ".memoryd.toml").unlink()
    past.work()
    assert past.mined() == ["s1"]
