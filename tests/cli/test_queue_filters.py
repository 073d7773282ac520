"""``memoryd list`` with filters, ``show`` with its attempts, ``retry --all-failed``."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

sys.path.append(str(Path(__file__).parent.parent / "jobs"))

from builders import claim, enqueue, make_job

from memoryd.cli.common import lasted
from memoryd.cli.main import cli
from memoryd.cli.words import to_do
from memoryd.jobs.ledger import Ledger
from memoryd.jobs.workplace import open_ledger
from memoryd.memory.clock import SystemClock
from memoryd.memory.config import Config
from memoryd.memory.errors import UsageError
from memoryd.memory.home import Home

HOUR = 3_600_000
DAY = 24 * HOUR


@pytest.fixture
def ledger(home: Home) -> Iterator[Ledger]:
    """The ledger of the home."""
    ledger = open_ledger(home, Config(), SystemClock())
    yield ledger
    ledger.close()


def run(home: Home, *words: str) -> Result:
    """``memoryd WORDS``, in this process."""
    return CliRunner().invoke(cli, [words[0], "--home", str(home.root), *words[1:]])


def answer(home: Home, *words: str) -> Any:
    """What it prints with ``--json``."""
    done = run(home, *words, "--json")
    assert done.exit_code == 0, (done.output, done.exception)
    return json.loads(done.output)


def listed(home: Home, *words: str) -> list[str]:
    """The sessions of the jobs that ``memoryd list`` shows."""
    return [job["session"] for job in answer(home, "list", *words)["jobs"]]


def fill(ledger: Ledger) -> None:
    """A job of every sort, made a day apart, the newest last."""
    now = ledger.clock.now_ms()
    rows: list[dict[str, Any]] = [
        {"status": "completed", "outcome_code": "notes.written", "project": "-code"},
        {"failures": 1, "error_code": "attempt.error"},
        {"wait_reason": "budget.spent", "failures": 1},
        {"status": "running", "serial_key": "a", "kind": "extract", "agent": "codex"},
        {"status": "failed", "error_code": "attempt.crashed", "kind": "backfill"},
        {"status": "failed", "error_code": "answer.unusable"},
        {},
    ]
    for number, changes in enumerate(rows):
        made = now - (len(rows) - number) * DAY
        identifier = f"{made:012x}"
        identifier = f"{identifier[:8]}-{identifier[8:]}-7000-8000-{number:012x}"
        make_job(ledger, f"s{number}", id=identifier, created_at=made, **changes)


@pytest.mark.parametrize(
    ("words", "sessions"),
    [
        ("", "s6 s5 s4 s3 s2 s1 s0"),
        ("--limit 2", "s6 s5"),
        ("--status pending", "s6 s2 s1"),
        ("--status waiting", "s2"),
        ("--status retrying", "s1"),
        ("--status failed", "s5 s4"),
        ("--status failed --kind backfill", "s4"),
        ("--agent codex", "s3"),
        ("--session s2", "s2"),
        ("--project -code", "s0"),
        ("--reason notes.written", "s0"),
        ("--reason budget.spent", "s2"),
        ("--reason attempt.crashed", "s4"),
        ("--reason nobody.said", ""),
        ("--session \udc80", ""),
        ("--reason a\0b", ""),
        ("--since 36h", "s6"),
        ("--since 2w --until 5d", "s2 s1 s0"),
        ("--until 1970-01-02", ""),
        ("--since 1970-01-02T03:04:05", "s6 s5 s4 s3 s2 s1 s0"),
    ],
)
def test_a_list_holds_what_fits_every_option(
    home: Home, ledger: Ledger, words: str, sessions: str
) -> None:
    """The newest first; an unfit word is an empty list."""
    (home.projects / "-code").mkdir()
    (home.projects / "-code" / "project.json").write_text('{"path": "/code"}')
    fill(ledger)

    assert " ".join(listed(home, *words.split())) == sessions


def test_a_job_that_was_not_read_yet_is_of_its_transcripts_project(
    home: Home, ledger: Ledger
) -> None:
    """Discovery has said which that is."""
    (home.projects / "-code").mkdir()
    (home.projects / "-code" / "project.json").write_text('{"path": "/code"}')
    enqueue(ledger, "s1")
    enqueue(ledger, "s2")
    with ledger.db.writing():
        ledger.db.change("update rollout set project = '-code' where session = 's2'")

    assert listed(home, "--project", "-code") == ["s2"]


@pytest.mark.parametrize("typed", ["soon", "2y", "", "-1d", "2026-13-01", "9" * 400, "1000000w"])
def test_what_is_no_time_is_refused(home: Home, ledger: Ledger, typed: str) -> None:
    """With what a time looks like."""
    done = run(home, "list", "--since", typed)

    assert done.exit_code == 2 and "is no time" in done.output


def test_show_tells_each_attempt_and_what_can_be_done_about_a_wait(
    home: Home, ledger: Ledger
) -> None:
    """When it began, how long it took, how it ended and why, what it asked for, who worked it."""
    enqueue(ledger, "s1")
    job = claim(ledger, "77-abc")
    ledger.count_call(job, 1000, 50)
    ledger.snooze(job, ledger.clock.now_ms() + 2 * HOUR + 500, "budget.spent")

    text = run(home, "show", job.id).output
    (attempt,) = answer(home, "show", job.id)["attempts"]

    assert "status    waiting: today's budget is spent\n" in text
    assert "(in 2h)\nto do     nothing, or raise daily_calls" in text
    assert "BEGAN                TOOK  ENDED    WHY" in text
    line = next(line for line in text.splitlines() if line.startswith("  1."))
    assert "0.0s  snoozed  today's budget is spent  1 call, 1050 tokens  77-abc" in line
    assert (attempt["ending"], attempt["detail"]) == ("snoozed", "budget.spent")


def test_columns_of_attempts_in_which_nothing_stands_are_left_out(
    home: Home, ledger: Ledger
) -> None:
    """A running attempt has no end and has asked nothing."""
    enqueue(ledger, "s1")
    text = run(home, "show", claim(ledger).id).output

    assert "BEGAN" in text and "running" in text
    assert not any(word in text for word in ("TOOK", "WHY", "ASKED"))


def test_all_that_failed_is_tried_again_or_some_of_it(home: Home, ledger: Ledger) -> None:
    """How many is said; jobs that did not fail are left alone, and a second time there are none."""
    fill(ledger)
    make_job(ledger, "s9", status="cancelled", outcome_code="job.cancelled")

    none = run(home, "retry", "--all-failed", "--reason", "attempt.error").output
    one = answer(home, "retry", "--all-failed", "--kind", "finalize")
    rest = run(home, "retry", "--all-failed").output

    assert none == "no such job has failed\n"
    assert one["retried"] == 1 and ledger.records.job(one["jobs"][0]).session == "s5"
    assert rest.startswith("1 job is to be tried again\n  no daemon runs: `memoryd run --once`")
    assert answer(home, "retry", "--all-failed") == {"retried": 0, "jobs": []}
    assert listed(home, "--status", "cancelled") == ["s9"]
    again = ledger.records.job(one["jobs"][0])
    assert (again.failures, again.error_code, again.status) == (0, None, "pending")


@pytest.mark.parametrize(
    "words",
    [
        ("retry",),
        ("retry", "--all-failed", "--skip"),
        ("retry", "5f3a9c21", "--all-failed"),
        ("retry", "5f3a9c21", "--kind", "extract"),
        ("retry", "5f3a9c21", "--reason", "x"),
    ],
    ids=" ".join,
)
def test_a_retry_of_nothing_or_of_two_things_is_refused(home: Home, words: tuple[str, ...]) -> None:
    """Usage: one job, or all that failed."""
    done = run(home, *words)

    assert (done.exit_code, done.output.count("Error: ")) == (2, 1)


def test_an_unknown_project_is_refused(home: Home, ledger: Ledger) -> None:
    """Not answered with an empty list."""
    assert isinstance(run(home, "list", "--project", "-nowhere").exception, UsageError)


@pytest.mark.parametrize(
    ("milliseconds", "said"),
    [(-5, "0.0s"), (320, "0.3s"), (12_400, "12s"), (185_000, "3m 5s"), (7_440_000, "2h 4m")],
)
def test_durations_are_said_in_a_unit_or_two(milliseconds: int, said: str) -> None:
    """Of what a person can picture."""
    assert lasted(milliseconds) == said


def test_only_a_reason_to_wait_has_something_to_do() -> None:
    """What nobody knows has none."""
    assert to_do(None) == to_do("notes.written") == ""
    assert "disk" in to_do("disk.full")
