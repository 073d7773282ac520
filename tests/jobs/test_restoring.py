"""A ledger or a session history that is damaged or gone is put back by one command."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest
from archives import RULE, TABS
from test_database import damage
from world import World, answer, fact

from memoryd.jobs.backups import back_up
from memoryd.jobs.doctor import examine
from memoryd.jobs.forgetting import Forgetter
from memoryd.jobs.repairing import Repair, repair
from memoryd.memory.errors import LedgerError
from memoryd.memory.health import Finding
from memoryd.memory.home import Home
from memoryd.memory.locks import FileLock
from memoryd.memory.testing import FakeClock

SPACES = "Never use trailing spaces in a line."


def close(world: World) -> None:
    """The process ends, with all it wrote in the files themselves."""
    world.ledger.db.rows("pragma wal_checkpoint(truncate)")
    world.place.close()


def fix(world: World) -> list[Repair]:
    """``memoryd doctor --fix``."""
    return repair(world.home, world.clock, world.environ)


def problems(world: World) -> list[Finding]:
    """What the doctor still finds to be wrong."""
    found = examine(world.home, world.clock, world.environ)
    return [each for each in found if each.severity == "problem"]


def shown(world: World, after: int) -> str:
    """The words of sessions that a model saw since it had been asked so often."""
    asked = world.model.requests[after:]
    return " ".join(message.text for each in asked for message in each.messages)


def cut(share: float) -> Callable[[Path], None]:
    """Truncate a file to this share of it."""
    return lambda path: os.truncate(path, int(path.stat().st_size * share))


def folder(path: Path) -> None:
    """A folder in its place."""
    path.unlink()
    path.mkdir()


def pipe(path: Path) -> None:
    """A pipe in its place."""
    path.unlink()
    os.mkfifo(path)


def nowhere(path: Path) -> None:
    """A link that leads nowhere in its place."""
    path.unlink()
    path.symlink_to("/nowhere/at/all")


def nonsense(path: Path) -> None:
    """Not a database."""
    path.write_bytes(b"my holiday pictures" * 1000)


DAMAGES = {
    "pages overwritten": damage,
    "cut to nothing": cut(0),
    "cut to half": cut(0.5),
    "cut within a page": lambda path: os.truncate(path, path.stat().st_size - 5000),
    "cut to a few bytes": lambda path: os.truncate(path, 100),
    "no database": nonsense,
    "gone": Path.unlink,
    "a folder": folder,
    "a pipe": pipe,
    "a link": nowhere,
}


@pytest.fixture(scope="module")
def lived_in(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a home, made once, in which a session was distilled, the ledger copied, and
    another distilled; beside it how it then was."""
    live = tmp_path_factory.mktemp("lived") / "in"
    live.mkdir()
    made = World(live, FakeClock(), [answer(fact(RULE)), answer(fact(TABS))])
    made.finalize(made.transcript("s1").user(RULE))
    back_up(made.ledger, made.home.backups)
    made.finalize(made.transcript("s2").user(TABS))
    close(made)
    shutil.copytree(live, live.with_name("then"), symlinks=True)
    return live


@pytest.fixture
def world(lived_in: Path, clock: FakeClock) -> World:
    """That home as it then was, and its process ended."""
    # A connection that nobody holds any more may take its log away meanwhile.
    shutil.rmtree(lived_in, ignore_errors=True)
    assert not lived_in.exists()
    shutil.copytree(lived_in.with_name("then"), lived_in, symlinks=True)
    clock.advance(1)
    made = World(lived_in, clock)
    close(made)
    return made


@pytest.mark.parametrize("name", DAMAGES)
def test_the_newest_copy_takes_the_place_of_a_damaged_ledger(world: World, name: str) -> None:
    """It is named, nothing is lost of the old file, and what was done since is not done again."""
    before = world.home.ledger.read_bytes()
    DAMAGES[name](world.home.ledger)
    with pytest.raises(LedgerError, match=r"memoryd\.sqlite") as raised:
        world.restart()
        world.ledger.db.require_whole()
    assert "`memoryd doctor --fix`" in raised.value.hint

    done = fix(world)

    assert [each for each in done if each.left] == []
    assert problems(world) == []
    kept = [
        path.name
        for path in world.home.root.glob("memoryd.sqlite.damaged-*")
        if not path.name.endswith("-lost")
    ]
    assert len(kept) == (0 if name == "gone" else 1)
    assert (name == "gone") == (not any("is kept as" in each.what for each in done))
    assert stat.S_IMODE(world.home.ledger.stat().st_mode) == 0o600
    assert before[:16] == world.home.ledger.read_bytes()[:16]
    world.restart()
    assert (world.ledger.cursor("claude-code", "s1"), world.ledger.cursor("claude-code", "s2")) == (
        1,
        1,
    )
    assert fix(world) == []


def test_a_session_that_was_distilled_since_the_copy_is_not_distilled_into_other_notes(
    world: World,
) -> None:
    """Also when it has grown: only the new words are read, and no model sees the old ones."""
    notes, commits, asked = world.bodies(), world.commits(), len(world.model.requests)
    damage(world.home.ledger)
    fix(world)
    world.restart()
    said = world.transcript("s2")
    said.lines = 1

    world.finalize(said.user(SPACES))

    assert (world.bodies(), world.commits()) == (notes, commits)
    assert len(world.model.requests) == asked + 1
    assert TABS not in shown(world, asked)
    assert world.cursor(said) == 2


@pytest.mark.parametrize("history", ["there", "lost as well"])
def test_without_a_copy_a_new_ledger_is_begun_and_nothing_is_doubled(
    world: World, history: str
) -> None:
    """The stores' histories say what was done; the messages get the numbers they had."""
    notes, commits, asked = world.bodies(), world.commits(), len(world.model.requests)
    for path in world.home.backups.glob("memoryd-*"):
        path.unlink()
    nonsense(world.home.ledger)
    if history == "lost as well":
        damage(world.home.session_history)

    done = fix(world)

    assert any("a new ledger is begun" in each.what for each in done)
    world.restart()
    for name in ("s1", "s2"):
        said = world.transcript(name)
        said.lines = 1
        world.finalize(said.user(SPACES))
        assert world.cursor(said) == 2
    assert (world.bodies(), world.commits()) == (notes, commits)
    assert len(world.model.requests) == asked + 2
    told = shown(world, asked)
    assert SPACES in told and TABS not in told and RULE not in told


def test_a_ledger_that_was_deleted_where_there_is_no_copy_is_begun_anew_by_itself(
    world: World,
) -> None:
    """It knows what was done all the same."""
    shutil.rmtree(world.home.backups)
    world.home.ledger.unlink()

    world.restart()

    assert world.ledger.cursor("claude-code", "s2") == 1


def test_a_plan_of_the_copy_that_was_applied_since_is_settled(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else its job would meet a cursor that is past it for ever."""
    world = World(tmp_path, clock, [answer(fact(RULE)), answer(fact(TABS))])
    said = world.transcript("s1").user(RULE)
    world.enqueue(said)
    world.die_at("plan.recorded", monkeypatch)
    back_up(world.ledger, world.home.backups)
    clock.advance(3600)
    world.work()
    world.finalize(said.user(TABS))
    notes, asked = world.bodies(), len(world.model.requests)
    assert world.cursor(said) == 2
    close(world)
    damage(world.home.ledger)

    fix(world)

    world.restart()
    world.ledger.rescue(everything=True)
    assert world.ledger.db.rows("select * from plan") == []
    clock.advance(3600)
    world.work()
    assert {job.status for job in world.ledger.records.jobs()} == {"completed"}
    assert (world.bodies(), world.cursor(said)) == (notes, 2)
    assert len(world.model.requests) == asked
    assert {row[0] for row in world.ledger.db.rows("select state from candidate")} == {"applied"}


def test_what_was_forgotten_since_the_copy_stays_forgotten(world: World) -> None:
    """The session history knows it."""
    world.restart()
    place = world.place
    Forgetter(place.home, place.config, place.environ, place.ledger, place.history).forget(
        "claude-code", "s1"
    )
    close(world)
    copy = next(world.home.backups.glob("memoryd-*"))
    with sqlite3.connect(copy) as opened:
        opened.execute("update rollout set excluded = null")
    damage(world.home.ledger)

    fix(world)

    world.restart()
    rollout = world.ledger.records.rollout("claude-code", "s1")
    assert rollout is not None and rollout.excluded == "session.forgotten"


def test_a_copy_that_is_damaged_too_or_newer_is_passed_over(world: World) -> None:
    """The newest that can be used is used; the others stay, named."""
    good = next(world.home.backups.glob("memoryd-*"))
    for day, wrong in (("06", damage), ("07", cut(0.5)), ("08", nonsense)):
        copy = good.with_name(f"memoryd-2026-01-{day}.sqlite")
        shutil.copyfile(good, copy)
        wrong(copy)
    newer = good.with_name("memoryd-2026-01-09.sqlite")
    shutil.copyfile(good, newer)
    with sqlite3.connect(newer) as opened:
        opened.execute("pragma user_version = 99")
    for at, path in enumerate(sorted(world.home.backups.glob("memoryd-*"))):
        os.utime(path, (at, at))
    world.home.ledger.unlink()

    lines = [each.what for each in fix(world) if each.code == "ledger.damaged"]

    assert sum("cannot be used" in line for line in lines) == 4
    assert any(f"{good.name} is the ledger now" in line for line in lines)
    assert len(list(world.home.backups.glob("memoryd-*"))) == 5


@pytest.mark.parametrize("kind", ["folder", "pipe"])
def test_what_stands_where_the_log_should_be_is_moved_aside_and_the_ledger_stays(
    world: World, kind: str
) -> None:
    """It may be whole."""
    log = world.home.ledger.with_name("memoryd.sqlite-wal")
    log.mkdir() if kind == "folder" else os.mkfifo(log)

    lines = [each.what for each in fix(world)]

    assert any("was no file and is kept as" in line for line in lines)
    assert not any("is the ledger now" in line for line in lines)
    world.restart()
    assert len(world.ledger.records.jobs()) == 2


@pytest.mark.parametrize(
    "name", [name for name in DAMAGES if name not in ("gone", "cut to nothing")]
)
def test_a_damaged_session_history_is_begun_anew(world: World, name: str) -> None:
    """The old file is kept; what the transcripts say is read again without a model."""
    DAMAGES[name](world.home.session_history)
    (trouble,) = problems(world)
    assert trouble.code == "history.damaged" and "`memoryd doctor --fix`" in trouble.todo

    done = fix(world)

    assert [each for each in done if each.left] == []
    assert problems(world) == []
    assert len(list(world.home.root.glob("sessions.sqlite.damaged-*"))) == 1


@pytest.mark.parametrize("name", ["sessions.sqlite", "memoryd.sqlite"])
def test_damage_within_is_one_finding_in_one_line(world: World, name: str) -> None:
    """SQLite says several lines of it, and different ones at each look."""
    path = world.home.root / name
    data = bytearray(path.read_bytes())
    data[8192:12288] = bytes(each * 7 % 251 for each in range(4096))
    path.write_bytes(data)

    (found,) = problems(world)

    assert found.code.endswith(".damaged") and "***" not in found.what
    assert "\n" not in found.what and "page 3" in found.what.lower()


def test_what_belonged_to_a_database_that_is_gone_is_named_once_put_aside(world: World) -> None:
    """Its log and its shared memory, of which nobody else tells."""
    for end in ("-shm", "-wal"):
        (world.home.root / f"memoryd.sqlite.damaged-7{end}").touch()
    (world.home.root / "sessions.sqlite.damaged-7").touch()

    found = examine(world.home, world.clock, world.environ)

    log, words = (each.what for each in found if each.code == "database.aside")
    assert "damaged-7-shm and memoryd.sqlite.damaged-7-wal" in log and words.endswith(": put aside")


def test_a_running_daemon_is_in_the_way(world: World) -> None:
    """Its pid is said, and nothing of the databases is touched; modes are mended all the same."""
    damage(world.home.ledger)
    before = world.home.ledger.read_bytes()
    world.home.root.chmod(0o755)
    lock = FileLock(world.home.daemon_lock)
    assert lock.acquire()

    with lock:
        done = fix(world)

    (left,) = [each for each in done if each.left]
    assert left.code == "ledger.damaged" and f"pid {os.getpid()}" in left.what
    assert world.home.ledger.read_bytes() == before
    assert stat.S_IMODE(world.home.root.stat().st_mode) == 0o700


def test_a_newer_ledger_is_left(world: World) -> None:
    """No copy mends that: the version that last ran is named."""
    with sqlite3.connect(world.home.ledger) as opened:
        opened.execute("pragma user_version = 99")
    note = world.home.root / "run" / "last.json"
    note.write_text('{"version": "9.8.7", "home": "/elsewhere"}')

    (left,) = [each for each in fix(world) if each.left]

    assert left.code == "ledger.newer" and "9.8.7 or newer" in left.what
    note.write_text(f'{{"version": "{version("memoryd")}", "home": "/elsewhere"}}')
    (left,) = [each for each in fix(world) if each.left]
    assert f"newer than this {version('memoryd')};" in left.what and " or newer" not in left.what


def test_no_home_is_repaired_into_being(tmp_path: Path, clock: FakeClock) -> None:
    """Where there is none, none is made."""
    assert repair(Home(tmp_path / "none"), clock, {}) == []
    assert not (tmp_path / "none").exists()
