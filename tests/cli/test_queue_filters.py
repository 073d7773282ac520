"""``memoryd list`` with filters, ``show`` with its attempts, ``retry --all-failed``."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

sys.path.append(str(Path(__file__).parent.parent / "jobs"))

from builders import claim, enqueue, make_job

from memoryd.cli.common import lasted
from memoryd.cli.main import cli
from memoryd.cli.words import code_of, to_do
from memoryd.daemon import once
from memoryd.jobs.filters import Filter
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
        ("--session 2", "s2"),
        ("--session s", "s6 s5 s4 s3 s2 s1 s0"),
        ("--session %", ""),
        ("--project -code", "s0"),
        ("--reason notes.written", "s0"),
        ("--reason budget.spent", "s2"),
        ("--reason attempt.crashed", "s4"),
        ("--reason transcript.unreadable", ""),
        ("--session \udc80", ""),
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


def test_a_reason_is_a_code_or_its_words_and_no_other(home: Home, ledger: Ledger) -> None:
    """Every code that stands in a row is one; what looks like one is named."""
    page = (Path(__file__).parents[2] / "docs" / "jobs.md").read_text()
    heads = ("| code | what came of it", "| `wait_reason` | until", "| `error_code` | what")
    tables = [page[page.index(head) :].partition("\n\n")[0] for head in heads]
    first_cells = re.findall(r"^\| (`[^|]*`) \|", "\n".join(tables), re.M)
    codes = {code for cell in first_cells for code in re.findall(r"`([a-z]+\.[a-z-]+)`", cell)}
    fill(ledger)

    by_words = run(home, "list", "--reason", "notes written", "--json").output
    unknown = run(home, "retry", "--all-failed", "--reason", "notes.writen")

    assert len(codes) > 40 and {code for code in codes if code_of(code) != code} == set()
    assert [job["session"] for job in json.loads(by_words)["jobs"]] == ["s0"]
    assert unknown.exit_code == 2 and "the nearest: notes.written" in unknown.output


def test_a_span_in_which_nothing_can_be_is_refused(home: Home, ledger: Ledger) -> None:
    """It is a mistake, and not an empty list."""
    done = run(home, "list", "--since", "30m", "--until", "1h")

    assert done.exit_code == 2 and "--until is before --since" in done.output


def test_retry_says_what_it_wants_and_when_a_waiting_job_comes_back(
    home: Home, ledger: Ledger
) -> None:
    """Which job; one or all; and nothing needs to be done about what is tried again by itself."""
    make_job(ledger, "s1", failures=1, error_code="attempt.error")

    which = run(home, "retry").output
    waiting = run(home, "retry", ledger.records.matching(Filter(), 1)[0].id)

    assert "Which job?" in which
    assert isinstance(waiting.exception, UsageError)
    assert waiting.exception.hint.startswith("it is worked by itself, next 2")


def test_prune_says_no_number_that_is_none(home: Home, ledger: Ledger) -> None:
    """Nothing that would go, and fewer than are kept, are said in words."""
    make_job(ledger, "s1", status="completed", outcome_code="notes.written")

    assert run(home, "prune", "--status", "failed", "--dry-run").output == (
        "no job would go: there is none of those\n"
    )
    assert "no more are there than the 1000 that stay" in run(home, "prune").output
    assert run(home, "prune", "--keep", "0").output.startswith("1 job pruned (1 completed)")


def test_who_only_looks_writes_nothing(home: Home, ledger: Ledger) -> None:
    """Not even where the disk is full; then it is said that the inbox was left as it is."""
    fill(ledger)
    job = ledger.records.matching(Filter(), 1)[0].id
    ledger.close()
    before = home.ledger.read_bytes(), home.ledger.stat().st_mtime_ns

    seen = [run(home, *words.split()) for words in ("status", "list", f"show {job}")]
    after = home.ledger.read_bytes(), home.ledger.stat().st_mtime_ns
    (home.inbox / "1-x.json").write_text("nonsense")
    listed_then = run(home, "list")
    full = _with_a_full_disk(lambda: run(home, "list"))

    assert [done.exit_code for done in seen] == [0, 0, 0] and after == before
    assert (home.inbox / "1-x.json").exists() and "{" not in listed_then.output
    assert "exit 0" in full and "without the sessions that wait in the inbox" in full
    assert "notes written" in full


def _with_a_full_disk(do: Callable[[], Result]) -> str:
    """What ``do`` prints in a process that can make no file longer; forked, so that it ends."""
    reads, writes = os.pipe()
    if (child := os.fork()) == 0:
        try:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
            done = do()
            os.write(writes, f"exit {done.exit_code}\n{done.output}".encode())
        finally:
            os._exit(0)
    os.close(writes)
    os.waitpid(child, 0)
    with os.fdopen(reads, encoding="utf-8") as said:
        return said.read()


def test_status_calls_a_job_what_the_list_calls_it(home: Home, ledger: Ledger) -> None:
    """One that failed before is retrying in both."""
    make_job(ledger, "s1", failures=1, error_code="attempt.error")

    assert "oldest    retrying finalize" in run(home, "status").output
    assert "  retrying  " in run(home, "list").output


def test_what_is_interrupted_says_what_it_leaves(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job and that it stays; without a wait, that nobody is there to work it."""

    def interrupt(*arguments: object, **named: object) -> None:
        raise KeyboardInterrupt

    said = tmp_path / "s1.jsonl"
    message = {"role": "user", "content": "Always run the linter first."}
    said.write_text(json.dumps({"type": "user", "uuid": "u1", "message": message}) + "\n")
    words = ("enqueue", "finalize", "--agent", "claude-code", "--transcript", str(said))
    monkeypatch.setattr(once, "run_once", interrupt)

    unheard = run(home, *words)
    waited, worked = run(home, *words, "--wait"), run(home, "run", "--once")

    assert "pending\n  no daemon runs: `memoryd run --once`" in unheard.output
    assert (waited.exit_code, worked.exit_code) == (130, 130)
    short = unheard.output.split()[1]
    assert f"interrupted; job {short} stays in the queue" in waited.output
    assert "interrupted; what was not done stays in the queue" in worked.output


def test_a_list_says_that_there_are_older_ones(home: Home, ledger: Ledger) -> None:
    """As many as were asked for, and a line."""
    for number in range(3):
        make_job(ledger, f"s{number}")

    some, every = (run(home, "list", "--limit", limit).output for limit in ("2", "3"))

    assert some.splitlines()[-1] == "(older ones are not shown: --limit, now 2)"
    assert "older ones" not in every and len(every.splitlines()) == 4
