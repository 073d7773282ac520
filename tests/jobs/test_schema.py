"""Migrations: each once, after a copy; a ledger from the future is refused."""

from __future__ import annotations

import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from builders import enqueue, open_ledger

from memoryd.jobs import schema
from memoryd.memory.errors import LedgerError
from memoryd.memory.testing import FakeClock

SECOND = "alter table job add column mood text; create table dream (id text primary key)"


def version(path: Path) -> int:
    """The schema's number in a file."""
    with sqlite3.connect(path) as connection:
        return int(connection.execute("pragma user_version").fetchone()[0])


def test_a_new_ledger_has_the_newest_schema_and_needs_no_copy(
    tmp_path: Path, clock: FakeClock
) -> None:
    """There is nothing to lose yet."""
    open_ledger(tmp_path, clock)

    assert version(tmp_path / "memoryd.sqlite") == len(schema.MIGRATIONS)
    assert not (tmp_path / "backups").exists()


def test_opening_again_changes_nothing(tmp_path: Path, clock: FakeClock) -> None:
    """Each migration runs once."""
    job = enqueue(open_ledger(tmp_path, clock))

    assert open_ledger(tmp_path, clock).records.find(job.id) == job


def test_a_migration_runs_after_a_private_copy_was_made(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The copy is a whole ledger of the old schema, with every row, mode 0600."""
    first = open_ledger(tmp_path, clock)
    job = enqueue(first)
    first.close()
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, SECOND))

    migrated = open_ledger(tmp_path, clock)

    assert migrated.db.rows("select mood from job") == [(None,)]
    assert version(tmp_path / "memoryd.sqlite") == len(schema.MIGRATIONS)
    (copy,) = (tmp_path / "backups").iterdir()
    assert version(copy) == len(schema.MIGRATIONS) - 1
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    with sqlite3.connect(copy) as connection:
        assert connection.execute("select id from job").fetchall() == [(job.id,)]


def test_a_migration_that_fails_leaves_the_old_schema(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of it or none: the older version can still be started."""
    first = open_ledger(tmp_path, clock)
    job = enqueue(first)
    before = len(schema.MIGRATIONS)
    broken = "create table half (id text); insert into nowhere values (1)"
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, broken))

    with pytest.raises(LedgerError, match="nowhere"):
        open_ledger(tmp_path, clock)

    monkeypatch.undo()
    assert version(tmp_path / "memoryd.sqlite") == before
    reopened = open_ledger(tmp_path, clock)
    assert reopened.records.find(job.id) == job
    assert reopened.db.rows("select 1 from sqlite_master where name = 'half'") == []


def test_a_ledger_from_the_future_is_refused_and_untouched(
    tmp_path: Path, clock: FakeClock
) -> None:
    """An older memoryd must not write what a newer one laid out."""
    open_ledger(tmp_path, clock).close()
    path = tmp_path / "memoryd.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("pragma user_version = 99")

    with pytest.raises(LedgerError, match="schema 99") as raised:
        open_ledger(tmp_path, clock)

    assert "upgrade memoryd" in raised.value.hint
    assert version(path) == 99


@pytest.mark.slow
def test_processes_that_open_a_new_ledger_at_once_all_succeed(tmp_path: Path) -> None:
    """A hook, the CLI and the daemon may be the first together."""
    program = (
        "import sys, pathlib; from memoryd.jobs.ledger import Ledger;"
        "from memoryd.memory.clock import SystemClock;"
        "sys.stdin.read(1);"
        "Ledger(pathlib.Path(sys.argv[1]), 'home', SystemClock()).open(check=True)"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "memoryd.sqlite")]
    children = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(6)
    ]

    for child in children:
        assert child.stdin is not None
        child.stdin.write(b"x")
        child.stdin.flush()
    answers = [child.communicate(timeout=60)[1].decode() for child in children]

    assert answers == [""] * 6
    assert version(tmp_path / "memoryd.sqlite") == len(schema.MIGRATIONS)
