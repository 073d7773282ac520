"""The file under the ledger: its mode, its durability, and what is refused."""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
from pathlib import Path

import pytest
from builders import MadeCandidate, claim, enqueue, open_ledger, record, request

from memoryd.jobs import database
from memoryd.jobs.database import Database
from memoryd.jobs.ledger import Ledger
from memoryd.memory.errors import LedgerDamaged, LedgerError
from memoryd.memory.testing import FakeClock

FULL = 2
NORMAL = 1


@pytest.fixture
def ledger(tmp_path: Path, clock: FakeClock) -> Ledger:
    """An empty ledger."""
    return open_ledger(tmp_path, clock)


def watch_synchronous(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Fills with ``pragma synchronous`` as it stands at each table's changes."""
    seen: dict[str, int] = {}
    run = ledger.db._execute

    def spy(text: str, values: dict[str, object]) -> sqlite3.Cursor:
        words = text.split()
        if words[0] in ("insert", "update", "delete"):
            level = run("pragma synchronous", {}).fetchone()[0]
            seen[words[2] if words[0] != "update" else words[1]] = level
        return run(text, values)

    monkeypatch.setattr(ledger.db, "_execute", spy)
    return seen


def test_an_enqueue_is_on_disk_when_it_returns(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The promise of enqueue is a commit with synchronous=FULL."""
    levels = watch_synchronous(ledger, monkeypatch)

    enqueue(ledger)

    assert levels == {"rollout": FULL, "job": FULL}


def test_a_plan_is_on_disk_when_it_is_recorded(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before any file is touched."""
    enqueue(ledger)
    job = claim(ledger)
    levels = watch_synchronous(ledger, monkeypatch)

    record(ledger, job, [MadeCandidate()])

    assert levels == {"plan": FULL, "candidate": FULL}


def test_a_disk_that_fails_between_two_rows_is_named(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one that fails at once."""

    class Broken:
        def fetchall(self) -> list[object]:
            raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(ledger.db, "_execute", lambda text, values: Broken())

    with pytest.raises(LedgerError, match="disk I/O error") as raised:
        ledger.db.rows("select 1")
    assert "room" in raised.value.hint


def test_other_writes_do_not_wait_for_the_disk(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A claim or an end lost in a power cut is a repeat, also right after an enqueue."""
    enqueue(ledger)
    levels = watch_synchronous(ledger, monkeypatch)

    ledger.complete(claim(ledger), "nothing.durable")

    assert levels == {"job": NORMAL, "attempt_log": NORMAL}


def test_a_failed_durable_write_leaves_nothing_and_goes_back_to_normal(ledger: Ledger) -> None:
    """The setting must not stick to the connection."""
    with pytest.raises(RuntimeError), ledger.db.writing(durable=True):
        ledger.db.change("delete from cursor")
        enqueue(ledger)
        raise RuntimeError

    assert ledger.records.jobs() == []
    with ledger.db.writing():
        assert ledger.db.rows("pragma synchronous") == [(NORMAL,)]
    with ledger.db.writing(durable=True):
        assert ledger.db.rows("pragma synchronous") == [(FULL,)]


def test_many_requests_in_one_durable_transaction_stand_or_fall_together(ledger: Ledger) -> None:
    """What intake does with an inbox."""
    with ledger.db.writing(durable=True):
        for number in range(3):
            request(ledger, f"s{number}")

    assert len(ledger.records.jobs()) == 3


def test_the_file_and_its_log_are_for_the_owner_only(tmp_path: Path, clock: FakeClock) -> None:
    """Whatever the umask says."""
    old = os.umask(0)
    try:
        enqueue(open_ledger(tmp_path, clock))
    finally:
        os.umask(old)

    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.glob("memoryd*")}
    assert modes == dict.fromkeys(
        ["memoryd.sqlite", "memoryd.sqlite-wal", "memoryd.sqlite-shm"], 0o600
    )


def test_the_log_is_cut_back_to_its_limit(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long reader lets it grow; once that is gone it shrinks again."""
    monkeypatch.setattr(database, "WAL_BYTES", 1 << 20)
    ledger, reader = open_ledger(tmp_path, clock), open_ledger(tmp_path, clock)
    log = tmp_path / "memoryd.sqlite-wal"
    with reader.db._connection.atomic():
        reader.records.jobs()
        for number in range(8):
            with ledger.db.writing():
                ledger.db.change(
                    "insert into plan (serial_key, job_id, attempt, agent, session, first, last,"
                    " plan, recorded_at) values (:key, '', 1, '', '', 1, 1, :plan, 0)",
                    key=str(number),
                    plan="x" * (1 << 19),
                )
        assert log.stat().st_size > 1 << 21

    for number in range(3):
        request(ledger, f"s{number}")

    assert log.stat().st_size <= 1 << 20


def test_a_write_waits_for_another_writer(ledger: Ledger, tmp_path: Path, clock: FakeClock) -> None:
    """One that is done within the time-out is not even noticed."""
    entered, leave = threading.Event(), threading.Event()

    def hold() -> None:
        other = open_ledger(tmp_path, clock)
        with other.db.writing():
            entered.set()
            assert leave.wait(60)
        other.close()

    holder = threading.Thread(target=hold)
    holder.start()
    assert entered.wait(60)
    threading.Timer(0.2, leave.set).start()

    job = enqueue(ledger)

    holder.join()
    assert ledger.records.find(job.id) == job


def test_a_writer_that_does_not_let_go_is_named_as_that(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not as damage: the hint is to try again, never to restore a copy."""
    monkeypatch.setattr(database, "BUSY_TIMEOUT_SECONDS", 0.05)
    ledger, other = open_ledger(tmp_path, clock), open_ledger(tmp_path, clock)

    with other.db.writing(), pytest.raises(LedgerError, match="locked") as raised:
        enqueue(ledger)

    assert "try again" in raised.value.hint
    assert enqueue(ledger)


def damage(path: Path) -> None:
    """Overwrite the middle of a database file."""
    data = bytearray(path.read_bytes())
    data[4096 : len(data)] = b"\x5a" * (len(data) - 4096)
    path.write_bytes(data)


def test_a_damaged_file_is_refused_with_what_to_do(tmp_path: Path, clock: FakeClock) -> None:
    """``quick_check`` finds it at start, before anything is written."""
    ledger = open_ledger(tmp_path, clock)
    enqueue(ledger)
    ledger.db.rows("pragma wal_checkpoint(truncate)")
    ledger.close()
    damage(tmp_path / "memoryd.sqlite")

    broken = Database(tmp_path / "memoryd.sqlite")
    with pytest.raises(LedgerDamaged, match="cannot be used") as raised:
        broken.open(0, check=True)

    assert "`memoryd doctor --fix`" in raised.value.hint


def test_a_file_that_is_no_database_is_refused(tmp_path: Path, clock: FakeClock) -> None:
    """And kept as it is."""
    path = tmp_path / "memoryd.sqlite"
    path.write_bytes(b"my holiday pictures" * 1000)

    with pytest.raises(LedgerDamaged, match="not a database") as raised:
        open_ledger(tmp_path, clock)

    assert "`memoryd doctor --fix`" in raised.value.hint
    assert path.read_bytes().startswith(b"my holiday")


@pytest.mark.parametrize("name", ["memoryd.sqlite", "memoryd.sqlite-wal", "memoryd.sqlite-shm"])
@pytest.mark.parametrize("kind", ["folder", "pipe", "link that leads nowhere"])
def test_what_is_no_file_in_its_place_is_refused(
    tmp_path: Path, clock: FakeClock, name: str, kind: str
) -> None:
    """By name, at once, and it is left as it is."""
    open_ledger(tmp_path, clock).close()
    path = tmp_path / name
    path.unlink(missing_ok=True)
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(tmp_path / "nowhere" / "x")
    before = path.lstat().st_mode

    with pytest.raises(LedgerDamaged, match=name) as raised:
        open_ledger(tmp_path, clock)

    assert "`memoryd doctor --fix`" in raised.value.hint
    assert path.lstat().st_mode == before


def test_a_link_to_a_ledger_is_as_good_as_the_ledger(tmp_path: Path, clock: FakeClock) -> None:
    """A person may have put it on another disk."""
    (tmp_path / "disk").mkdir()
    (tmp_path / "memoryd.sqlite").symlink_to(tmp_path / "disk" / "ledger")

    with pytest.raises(LedgerDamaged, match="leads nowhere"):
        open_ledger(tmp_path, clock)
    (tmp_path / "disk" / "ledger").touch()

    assert enqueue(open_ledger(tmp_path, clock))


@pytest.mark.parametrize("left", [0.0, 0.5, 0.9])
def test_a_ledger_that_was_cut_short_is_refused(
    tmp_path: Path, clock: FakeClock, left: float
) -> None:
    """To half, or within a page; with nothing left of it, where there is a backup."""
    ledger = open_ledger(tmp_path, clock)
    enqueue(ledger)
    (tmp_path / "backups").mkdir()
    ledger.db.rows("vacuum into :to", to=str(tmp_path / "backups" / "memoryd-2026-01-05.sqlite"))
    ledger.db.rows("pragma wal_checkpoint(truncate)")
    ledger.close()
    path = tmp_path / "memoryd.sqlite"
    os.truncate(path, int(path.stat().st_size * left))

    with pytest.raises(LedgerError) as raised:
        Database(path).open(0, check=True)

    assert raised.value.code == ("ledger.damaged" if left else "ledger.missing")
    assert "`memoryd doctor --fix`" in raised.value.hint


def test_a_connection_makes_no_file_where_the_ledger_was(ledger: Ledger, tmp_path: Path) -> None:
    """A thread that comes late finds nothing, and nobody an empty ledger afterwards."""
    path = tmp_path / "memoryd.sqlite"
    path.rename(tmp_path / "elsewhere")

    def late() -> None:
        with pytest.raises(LedgerError, match="unable to open"):
            ledger.db.rows("select 1")

    thread = threading.Thread(target=late)
    thread.start()
    thread.join()

    assert not path.exists()


def test_damage_found_later_is_an_error_of_ours(ledger: Ledger) -> None:
    """No caller needs to know the library's errors."""
    with pytest.raises(LedgerError, match="no such table"):
        ledger.db.rows("select * from nowhere")


@pytest.mark.parametrize("use", ["read", "write"])
def test_a_folder_that_is_gone_is_an_error_of_ours(
    ledger: Ledger, tmp_path: Path, use: str
) -> None:
    """A thread that opens its connection after the home was removed is told what to look at."""
    ledger.close()
    tmp_path.rename(tmp_path.with_name(f"{tmp_path.name}-gone"))

    with pytest.raises(LedgerError, match="unable to open") as raised:
        if use == "read":
            ledger.db.rows("select 1")
        else:
            with ledger.db.writing():
                pass

    assert "No such file or directory" in raised.value.hint


def test_a_ledger_that_is_not_open_says_so(tmp_path: Path) -> None:
    """Instead of an error about None."""
    with pytest.raises(LedgerError, match="not open"):
        Database(tmp_path / "memoryd.sqlite").rows("select 1")


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "fuse.sshfs"])
def test_a_network_file_system_is_refused(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """SQLite's log needs shared memory; it would be damaged there sooner or later."""
    monkeypatch.setattr(database, "_file_system", lambda folder: kind)

    with pytest.raises(LedgerError, match="network file system") as raised:
        open_ledger(tmp_path, clock)

    assert "local disk" in raised.value.hint
    assert not (tmp_path / "memoryd.sqlite").exists()


def test_each_thread_has_a_connection_of_its_own(ledger: Ledger) -> None:
    """Closing one leaves the others open."""
    enqueue(ledger)
    counts = []

    def read() -> None:
        counts.append(ledger.records.counts())
        ledger.close()
        ledger.close()

    thread = threading.Thread(target=read)
    thread.start()
    thread.join()

    assert counts == [ledger.records.counts()] == [{"pending": 1}]
