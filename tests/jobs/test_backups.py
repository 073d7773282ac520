"""The ledger is copied daily, and good copies are not lost to bad ones."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections import namedtuple

import pytest
from builders import enqueue
from structlog.testing import capture_logs
from test_database import damage

from memoryd.jobs import backups
from memoryd.jobs.backups import back_up, back_up_daily, copies
from memoryd.jobs.ledger import Ledger
from memoryd.jobs.scrub import rewrite
from memoryd.jobs.workplace import open_ledger
from memoryd.memory.config import Config
from memoryd.memory.errors import DiskFull, LedgerDamaged, LedgerError
from memoryd.memory.home import Home
from memoryd.memory.testing import FakeClock

DAY = 24 * 3600


@pytest.fixture
def ledger(home: Home, clock: FakeClock) -> Ledger:
    """The ledger of a home, with one job in it."""
    made = open_ledger(home, Config(), clock)
    enqueue(made)
    return made


def days(home: Home, ledger: Ledger, clock: FakeClock, count: int) -> list[str]:
    """Copy the ledger on so many days; what is there then."""
    for _ in range(count):
        made = back_up(ledger, home.backups)
        os.utime(made, ns=(clock.now_ms() * 1_000_000,) * 2)
        clock.advance(DAY)
    return sorted(path.name for path in home.backups.glob("memoryd-*.sqlite"))


def test_a_copy_is_whole_and_the_owners(home: Home, ledger: Ledger) -> None:
    """Under its day's name; nothing else stays beside it."""
    made = back_up(ledger, home.backups)

    assert made.name == "memoryd-2026-01-05.sqlite"
    assert stat.S_IMODE(made.stat().st_mode) == 0o600
    with sqlite3.connect(made) as copy:
        assert copy.execute("select count(*) from job").fetchone() == (1,)
    assert [path.name for path in home.backups.glob(".*")] == []


def test_a_copy_is_made_once_a_date_and_a_failed_one_is_tried_again(
    home: Home, ledger: Ledger, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is logged, and raises nothing."""
    with monkeypatch.context() as full, capture_logs() as logs:
        full.setattr(backups, "ROOM_BYTES", 1 << 60)
        assert "not copied" in back_up_daily(ledger, home.backups)
    assert [entry["event"] for entry in logs] == ["ledger.uncopied"]
    assert copies(home.backups, clock.now_ms()) == []

    for hours in (0, 1, 24):
        clock.advance(hours * 3600)
        assert back_up_daily(ledger, home.backups) == ""

    names = [path.name for path in home.backups.glob("memoryd-*")]
    assert sorted(names) == ["memoryd-2026-01-05.sqlite", "memoryd-2026-01-06.sqlite"]
    assert [(run.name, run.day) for run in ledger.daily_runs.all()] == [("backup", "2026-01-06")]


def test_seven_days_and_the_last_migrations_are_kept(
    home: Home, ledger: Ledger, clock: FakeClock
) -> None:
    """What a person put there under another name is theirs."""
    for number in range(5):
        path = home.backups / f"memoryd-schema{number}-1-2.sqlite"
        path.write_bytes(b"x")
        os.utime(path, (number, number))
    (home.backups / "mine.sqlite").write_bytes(b"x")

    kept = days(home, ledger, clock, 9)

    assert kept[:7] == [f"memoryd-2026-01-{day:02d}.sqlite" for day in range(7, 14)]
    assert kept[7:] == [f"memoryd-schema{number}-1-2.sqlite" for number in (2, 3, 4)]
    assert (home.backups / "mine.sqlite").exists()


def test_copies_of_a_clock_that_was_ahead_push_out_none_of_the_right_ones(
    home: Home, ledger: Ledger, clock: FakeClock
) -> None:
    """They count as the oldest."""
    clock.step(74 * 365 * DAY)
    ahead = days(home, ledger, clock, 2)
    clock.step(-74 * 365 * DAY)

    days(home, ledger, clock, 6)

    newest = [path.name for path in copies(home.backups, clock.now_ms())]
    assert newest[0] == "memoryd-2026-01-12.sqlite" and newest[-1] in ahead
    assert len(newest) == 7


def test_the_copies_together_are_bounded(
    home: Home, ledger: Ledger, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The oldest go; the newest never."""
    size = back_up(ledger, home.backups).stat().st_size
    monkeypatch.setattr(backups, "KEPT_BYTES", 2 * size + 1)
    assert len(days(home, ledger, clock, 4)) == 2
    monkeypatch.setattr(backups, "KEPT_BYTES", 1)
    assert len(days(home, ledger, clock, 1)) == 1


def test_a_damaged_ledger_pushes_no_good_copy_out(
    home: Home, ledger: Ledger, clock: FakeClock
) -> None:
    """It is not copied."""
    before = days(home, ledger, clock, 7)
    ledger.db.rows("pragma wal_checkpoint(truncate)")
    ledger.close()
    damage(home.ledger)

    with pytest.raises(LedgerDamaged):
        back_up(ledger, home.backups)

    assert sorted(path.name for path in home.backups.iterdir()) == ["home.json", *before]


def test_no_copy_is_made_over_a_nearly_full_disk(
    home: Home, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The room is for the ledger itself."""
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr("shutil.disk_usage", lambda path: usage(1 << 30, 1 << 30, 100 << 20))

    with pytest.raises(DiskFull, match="100 MB left") as raised:
        back_up(ledger, home.backups)

    assert "make room" in raised.value.hint
    assert copies(home.backups, 0) == []


def test_a_copy_that_takes_too_long_is_given_up(
    home: Home, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the connection works as before."""
    with ledger.db.writing():
        ledger.db.rows(
            "with recursive n(i) as (select 1 union all select i + 1 from n where i < 50000)"
            " insert into event (at, kind, body) select i, 'x', 'y' from n"
        )
    monkeypatch.setattr(backups, "LIMIT_SECONDS", -1.0)

    with pytest.raises(LedgerError, match="too long"):
        back_up(ledger, home.backups)

    assert ledger.records.counts() == {"pending": 1}
    assert [path.name for path in home.backups.iterdir()] == ["home.json"]


def test_no_daily_copy_keeps_what_was_forgotten(
    home: Home, ledger: Ledger, clock: FakeClock
) -> None:
    """A new one takes their place; one of another kind is the person's, and is named."""
    days(home, ledger, clock, 3)
    assert list(rewrite(ledger)) == []
    (left,) = copies(home.backups, clock.now_ms())
    assert left.name == "memoryd-2026-01-08.sqlite"
    other = home.backups / "memoryd-schema1-1-1.sqlite"
    other.write_bytes(b"old")

    assert list(rewrite(ledger)) == [
        f"{other} is a copy from before; delete it if it must not stay"
    ]


def test_a_copy_that_could_not_be_made_anew_after_forgetting_is_named(
    home: Home, ledger: Ledger, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old ones stay, each named: one of them is better than none."""
    days(home, ledger, clock, 2)
    monkeypatch.setattr(backups, "ROOM_BYTES", 1 << 60)

    first, *named = rewrite(ledger)

    assert first.startswith("no new copy of the ledger could be made: the disk of")
    assert len(named) == len(copies(home.backups, clock.now_ms())) == 2
