"""What a damaged ledger still says is not lost with it."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

import pytest
from builders import enqueue, open_ledger
from world import World

from memoryd.jobs.doctor import examine
from memoryd.jobs.ledger import Ledger
from memoryd.jobs.repairing import repair
from memoryd.jobs.salvaging import EXCLUDED, salvage
from memoryd.jobs.sifting import Sifted
from memoryd.memory.errors import LedgerMissing
from memoryd.memory.testing import FakeClock

PAGE = 4096


def change(path: Path, *statements: str) -> None:
    """What a program of somebody else's did to a database."""
    with contextlib.closing(sqlite3.connect(path)) as opened:
        for each in statements:
            opened.execute(each)
        opened.commit()
        opened.execute("pragma wal_checkpoint(truncate)")


def tear(path: Path, *pages: int) -> None:
    """Overwrite pages of a database, counted from 1."""
    with path.open("r+b") as file:
        for each in pages:
            file.seek((each - 1) * PAGE)
            file.write(b"\x99" * 200)


def root_of(path: Path, name: str) -> int:
    """The first page of a table or an index."""
    with contextlib.closing(sqlite3.connect(path)) as opened:
        said = "select rootpage from sqlite_schema where name = ?"
        return int(opened.execute(said, (name,)).fetchone()[0])


def leaves(path: Path, table: str) -> list[int]:
    """The pages of a table that have rows, in their order."""
    root = root_of(path, table)
    data = path.read_bytes()
    page = data[(root - 1) * PAGE : root * PAGE]
    assert page[0] in (2, 5), "one page holds it all"
    cells = int.from_bytes(page[3:5])
    starts = [int.from_bytes(page[12 + 2 * i : 14 + 2 * i]) for i in range(cells)]
    return [*(int.from_bytes(page[at : at + 4]) for at in starts), int.from_bytes(page[8:12])]


def ended(world: World) -> Path:
    """The process ends, with all it wrote in the ledger itself."""
    world.ledger.db.rows("pragma wal_checkpoint(truncate)")
    world.place.close()
    return world.home.ledger


def fixed(world: World) -> str:
    """What ``memoryd doctor --fix`` says of the ledger."""
    done = repair(world.home, world.clock, world.environ)
    assert [each for each in done if each.left] == []
    world.restart()
    return "\n".join(each.what for each in done)


def codes(world: World) -> set[str]:
    """The findings of the doctor."""
    found = examine(world.home, world.clock, world.environ)
    return {each.code for each in found if each.severity != "ok"}


@pytest.fixture
def world(tmp_path: Path, clock: FakeClock) -> World:
    """A home with a job that waits and an excluded session, of which there is no copy."""
    made = World(tmp_path, clock)
    enqueue(made.ledger, "s1", cutoff=10)
    made.ledger.exclude("claude-code", "private", "session.excluded")
    return made


def test_a_torn_index_costs_nothing(world: World) -> None:
    """The tables say all: what was answered waits still, and what was excluded is."""
    tear(ended(world), root_of(world.home.ledger, "injection_session"))

    said = fixed(world)

    assert "could be read whole" in said and "1 jobs" in said
    assert [job.status for job in world.ledger.records.jobs()] == ["pending"]
    rollout = world.ledger.records.rollout("claude-code", "private")
    assert rollout is not None and rollout.excluded == "session.excluded"
    assert "exclusions.lost" not in codes(world)


def test_where_exclusions_were_torn_the_rest_stays_and_a_finding_says_so(world: World) -> None:
    """The pages before and behind the torn one are read, and the sweep looks at each session."""
    for at in range(300):
        world.ledger.exclude("claude-code", f"{at:03d}", "session.excluded")
    ledger = ended(world)
    torn = leaves(ledger, "rollout")
    tear(ledger, torn[len(torn) // 2])

    said = fixed(world)

    assert "could not be read at all: sessions" in said
    kept = {each.session for each in world.ledger.records.rollouts() if each.excluded}
    assert {"000", "299", "private"} < kept and len(kept) > 150
    assert len(world.ledger.records.jobs()) == 1
    assert "exclusions.lost" in codes(world)


def test_rows_between_two_torn_pages_are_read(tmp_path: Path) -> None:
    """Of a table of numbered rows all that is readable is."""
    path = tmp_path / "any.sqlite"
    rows = ", ".join(f"({at}, '{'x' * 400}')" for at in range(1, 201))
    change(path, "create table t (id integer primary key, a text)", f"insert into t values {rows}")
    pages = leaves(path, "t")
    tear(path, pages[3], pages[8])
    sifted = Sifted(path)

    found = [row["id"] for row in sifted.rows("t", ["id", "a"])]

    assert len(found) == len(set(found)) and 170 < len(found) < 200
    assert sifted.torn == {"t"} and set(range(60, 70)) < set(found)


def test_a_file_that_was_cut_short_gives_what_is_before_the_cut_and_once(world: World) -> None:
    """What is behind the end is read as rows of nothing: those are none."""
    for at in range(100):
        enqueue(world.ledger, f"{at:03d}", cutoff=10)
        world.clock.advance(1)
    ledger = ended(world)
    last = max(leaves(ledger, "job"))
    with ledger.open("r+b") as file:
        file.truncate((last - 1) * PAGE)
    sifted = Sifted(ledger)

    found = [row["session"] for row in sifted.rows("job", ["session"])]

    assert len(found) == len(set(found)) > 80 and None not in found
    assert "job" in sifted.torn


#: A statement that spoils a row, and whether the job, the exclusion and the cursor are taken.
HOSTILE = {
    "update job set kind = x'ff'": (0, EXCLUDED, 1),
    "update job set id = x'00ff'": (0, EXCLUDED, 1),
    "update job set payload = '['": (0, EXCLUDED, 1),
    "update job set cutoff = 'far'": (0, EXCLUDED, 1),
    "update job set home = 'another'": (0, EXCLUDED, 1),
    "update cursor set seq = 99": (1, EXCLUDED, 0),
    "update cursor set seq = 'abc'": (1, EXCLUDED, 0),
    "update rollout set excluded = x'00', transcript = x'ff' where excluded is not null": (
        1,
        EXCLUDED,
        1,
    ),
}


@pytest.mark.parametrize("statement", HOSTILE)
def test_what_is_not_what_it_must_be_is_left(
    tmp_path: Path, clock: FakeClock, statement: str
) -> None:
    """A row is looked at before it is believed; an exclusion stays one whatever else is wrong."""
    old = open_ledger(tmp_path, clock)
    enqueue(old, "s1", cutoff=10)
    old.exclude("claude-code", "private", "session.excluded")
    old.db.change("insert into cursor values ('claude-code', 's1', 3, 5)")
    old.close()
    change(old.db.path, statement)
    new = Ledger(tmp_path / "new.sqlite", old.home, clock).open()

    done = salvage(old.db.path, new, {("claude-code", "s1"): 3})

    jobs, excluded, cursor = HOSTILE[statement]
    assert len(new.records.jobs()) == jobs
    rollout = new.records.rollout("claude-code", "private")
    assert rollout is not None and rollout.excluded == excluded
    assert new.cursor("claude-code", "s1") == (3 if cursor else 0)
    assert not done.torn


def test_what_is_written_into_a_ledger_that_was_put_aside_is_not_promised(
    tmp_path: Path, clock: FakeClock
) -> None:
    """Who had it open is told, and asks again: nobody looks into that file any more."""
    ledger = open_ledger(tmp_path, clock)
    ledger.db.path.rename(tmp_path / "memoryd.sqlite.damaged-1")

    with pytest.raises(LedgerMissing, match="replaced"):
        enqueue(ledger, "s1", cutoff=10)


def test_a_repair_that_was_killed_is_finished_by_the_next(world: World) -> None:
    """What it had put aside is read; and meanwhile nobody begins an empty ledger."""
    ledger = ended(world)
    ledger.rename(ledger.with_name(f"{ledger.name}.damaged-{world.clock.now_ms()}"))
    with pytest.raises(LedgerMissing):
        world.restart()

    fixed(world)

    assert len(world.ledger.records.jobs()) == 1
