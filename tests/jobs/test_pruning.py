"""What goes from the ledger, what stays, and that its files give back what they do not need."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from builders import MadeCandidate, claim, enqueue, make_job, open_ledger, part_of, record

from memoryd.jobs import database, retention
from memoryd.jobs.ledger import Ledger
from memoryd.jobs.retention import Which
from memoryd.memory.testing import FakeClock
from memoryd.sessions import database as session_database

FAILED = frozenset({"failed"})


@pytest.fixture
def ledger(tmp_path: Path, clock: FakeClock) -> Ledger:
    """An empty ledger."""
    return open_ledger(tmp_path, clock)


def sessions(ledger: Ledger) -> str:
    """Of every job that is left, the oldest first, as letters."""
    return "".join(sorted(job.session for job in ledger.records.jobs()))


@pytest.mark.parametrize(
    ("which", "left", "gone"),
    [
        (Which(keep=2), "PRcfgh", {"completed": 2, "cancelled": 2}),
        (Which(keep=5), "PRbcdefgh", {"completed": 1}),
        (Which(keep=7), "PRabcdefgh", {}),
        (Which(), "PRcf", {"completed": 3, "cancelled": 3}),
        (Which(before_ms=4), "PRcdefgh", {"completed": 1, "cancelled": 1}),
        (Which(keep=5, before_ms=4), "PRbcdefgh", {"completed": 1}),
        (Which(FAILED), "PRabdegh", {"failed": 2}),
        (Which(FAILED, keep=1), "PRabdefgh", {"failed": 1}),
        (Which(frozenset({"completed"}), keep=1), "PRbcefgh", {"completed": 2}),
    ],
)
def test_what_goes_is_the_oldest_of_what_was_asked(
    ledger: Ledger,
    monkeypatch: pytest.MonkeyPatch,
    which: Which,
    left: str,
    gone: dict[str, int],
) -> None:
    """By number, age and status, in small batches; a look beforehand says the same and deletes
    nothing; what is pending or running always stays."""
    monkeypatch.setattr(retention, "BATCH", 2)
    for number, session in enumerate("abcdefgh"):
        status = ("completed", "cancelled", "failed")[number % 3]
        make_job(ledger, session, status=status, finished_at=number * 2)
    make_job(ledger, "P")
    make_job(ledger, "R", status="running")

    assert ledger.retention.would_go(which) == gone
    assert len(ledger.records.jobs()) == 10
    assert ledger.retention.prune(which) == gone

    assert sessions(ledger) == "".join(sorted(left))
    assert ledger.retention.prune(which) == {}


def test_a_job_whose_plan_stands_stays_until_it_is_settled(ledger: Ledger) -> None:
    """Whoever settles it says what became of the job's words."""
    gone = make_job(ledger, "a", status="failed")
    planned = make_job(ledger, "b", status="failed")
    ledger.db.change(
        "insert into plan (serial_key, job_id, attempt, agent, session, first, last, plan,"
        " recorded_at) values (:key, :id, 1, 'claude-code', 'b', 1, 1, '', 0)",
        key=planned.serial_key,
        id=planned.id,
    )

    assert ledger.retention.would_go(Which(FAILED)) == {"failed": 1}
    assert ledger.retention.prune(Which(FAILED)) == {"failed": 1}
    assert ledger.records.find(gone.id) is None
    assert ledger.records.find(planned.id) is not None


def test_the_attempts_go_with_the_job_and_all_that_outlives_it_stays(ledger: Ledger) -> None:
    """What a later sweep, a review and an undo must know."""
    enqueue(ledger, cutoff=700)
    job = claim(ledger)
    record(ledger, job, [MadeCandidate()])
    ledger.advance(job, part_of(job), outcome="session.distilled")

    assert ledger.prune(keep=0) == 1

    assert ledger.db.rows("select count(*) from attempt_log") == [(0,)]
    assert [each.state for each in ledger.records.candidates(job.id)] == ["applied"]
    assert ledger.cursor(job.agent, job.session) == 10
    rollout = ledger.records.rollout(job.agent, job.session)
    assert rollout is not None and rollout.last_cutoff == 700


# -- the files -----------------------------------------------------------------------------------


def fill(ledger: Ledger, rows: int) -> None:
    """``rows`` finished jobs of a kilobyte each."""
    with ledger.db.writing():
        for number in range(rows):
            make_job(ledger, f"s{number}", status="completed", error_detail="x" * 1000)
    ledger.db.rows("pragma wal_checkpoint(truncate)")


def test_the_file_is_smaller_after_a_prune(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A few pages at a time, but for what the next rows need; what is left can be read."""
    monkeypatch.setattr(retention, "SPARE_BYTES", 64 << 10)
    monkeypatch.setattr(retention, "STEP_PAGES", 20)
    fill(ledger, 400)
    before = (tmp_path / "memoryd.sqlite").stat().st_size
    ledger.prune(keep=10)

    given = ledger.retention.shrink()

    after = (tmp_path / "memoryd.sqlite").stat().st_size
    assert after == before - given
    assert after < before / 2
    assert ledger.db.rows("pragma quick_check") == [("ok",)]
    assert ledger.records.counts() == {"completed": 10}
    assert ledger.retention.shrink() == 0


@pytest.mark.parametrize(
    ("running", "most", "shrinks"),
    [(False, 1 << 28, True), (True, 1 << 28, False), (False, 0, False)],
)
def test_a_file_of_an_older_memoryd_is_written_anew_once(
    tmp_path: Path,
    clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
    running: bool,
    most: int,
    shrinks: bool,
) -> None:
    """Only while no job runs and little is left; from then on it gives back as others do."""
    monkeypatch.setattr(retention, "REWRITE_FREE_BYTES", 64 << 10)
    monkeypatch.setattr(retention, "REWRITE_MOST_BYTES", most)
    path = tmp_path / "memoryd.sqlite"
    with closing(sqlite3.connect(path)) as older:
        older.executescript("pragma journal_mode = wal; create table t (a); drop table t")
    ledger = open_ledger(tmp_path, clock)
    fill(ledger, 400)
    before = path.stat().st_size
    if running:
        enqueue(ledger)
        claim(ledger)
    ledger.prune(keep=10)

    given = ledger.retention.shrink()

    ledger.db.rows("pragma wal_checkpoint(truncate)")
    assert (given > before / 2, path.stat().st_size < before / 2) == (shrinks, shrinks)
    assert ledger.db.rows("pragma auto_vacuum") == [(2 if shrinks else 0,)]
    assert ledger.db.rows("pragma quick_check") == [("ok",)]


def test_the_daily_work_leaves_to_another_day_what_would_take_long(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two batches, and between two steps of the file."""
    monkeypatch.setattr(retention, "SPARE_BYTES", 0)
    monkeypatch.setattr(retention, "STEP_PAGES", 5)
    monkeypatch.setattr(retention, "BATCH", 100)
    fill(ledger, 250)
    left = iter([False, True, False, True])

    assert ledger.retention.prune(Which(), lambda: next(left)) == {"completed": 100}
    assert ledger.retention.shrink(lambda: next(left)) == 5 * 4096
    assert ledger.retention.prune(Which()) == {"completed": 150}


def test_little_that_is_free_is_left_alone(ledger: Ledger) -> None:
    """The file does not shrink and grow all day."""
    fill(ledger, 50)
    ledger.prune(keep=10)

    assert ledger.retention.shrink() == 0


def writer_of_the_ledger(ledger: Ledger) -> Callable[[int], None]:
    """Writes a row of so many bytes."""

    def write(size: int) -> None:
        with ledger.db.writing():
            text = "insert into event (at, kind, body) values (1, 'x', :body)"
            ledger.db.change(text, body="x" * size)

    return write


def writer_of_the_history(path: Path) -> Callable[[int], None]:
    """The same in the session history."""
    history = session_database.Database(path)
    history.open()
    with history.transaction() as cursor:
        cursor.execute("create table written (body)")

    def write(size: int) -> None:
        with history.transaction() as cursor:
            cursor.execute("insert into written values (?)", ("x" * size,))

    return write


@pytest.mark.parametrize("which", ["ledger", "history"])
def test_the_log_is_cut_once_a_long_reader_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: FakeClock, which: str
) -> None:
    """While somebody holds a snapshot it grows, and nobody waits; afterwards two writes cut it."""
    monkeypatch.setattr(database, "WAL_BYTES", 256 << 10)
    pragmas = [each for each in session_database._PRAGMAS if each[0] != "journal_size_limit"]
    limits = (*pragmas, ("journal_size_limit", 256 << 10), ("wal_autocheckpoint", 50))
    monkeypatch.setattr(session_database, "_PRAGMAS", limits)
    path = tmp_path / "memoryd.sqlite"
    if which == "ledger":
        write = writer_of_the_ledger(open_ledger(tmp_path, clock))
    else:
        write = writer_of_the_history(path)
    log = Path(f"{path}-wal")
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("begin")
        reader.execute("select count(*) from sqlite_master").fetchall()
        for _ in range(5):
            write(1 << 20)
        assert log.stat().st_size > 5 << 20
        reader.execute("rollback")

    write(10)
    write(10)

    assert log.stat().st_size <= 256 << 10
