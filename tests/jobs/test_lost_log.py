"""A ledger whose log was deleted after a crash: it is noticed, told, and nothing is done twice."""

from __future__ import annotations

import os
import signal
import sqlite3
import warnings
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from test_intake import drop, left
from world import World, answer, fact

from memoryd.jobs.doctor import examine
from memoryd.jobs.intake import Taken
from memoryd.jobs.sweep import take_in_envelopes
from memoryd.jobs.tidying import tidy
from memoryd.jobs.workplace import look_into_ledger, needs_recovery, open_ledger
from memoryd.memory.database_files import companions, is_log_lost
from memoryd.memory.health import Finding
from memoryd.memory.testing import FakeClock

RULE = "Always run the linter before you commit."


@pytest.fixture
def world(tmp_path: Path, clock: FakeClock) -> World:
    """A home whose process has ended in order."""
    made = World(tmp_path, clock, [answer(fact(RULE))])
    made.place.close()
    return made


def killed(work: Callable[[], object]) -> None:
    """A process of its own does ``work`` and is killed with what it holds open."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # 3.12: threads of others are not used
        pid = os.fork()
    if not pid:
        try:
            work()
            os.kill(os.getpid(), signal.SIGKILL)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL


def lose_log(world: World, work: Callable[[], object]) -> None:
    """A process is killed after its ``work``, then somebody deletes the log."""
    killed(work)
    log, shared = companions(world.home.ledger)
    assert shared.exists()
    log.unlink()


def distil(world: World) -> None:
    """A process opens the home and distils a session."""
    world.restart()
    world.finalize(world.transcript().user(RULE))
    assert world.bodies() == [RULE]


def lost(world: World) -> list[Finding]:
    """What the doctor says of the log."""
    found = examine(world.home, world.clock, world.environ)
    return [each for each in found if each.code == "log.lost"]


def test_a_log_that_was_deleted_after_a_kill_is_named_until_a_person_has_looked(
    world: World, capfd: pytest.CaptureFixture[str]
) -> None:
    """One line for who meets it; then a finding that names the time and the commands."""
    lose_log(world, lambda: distil(world))
    world.restart()
    world.place.close()

    said = capfd.readouterr()
    (finding,) = lost(world)

    assert (said.out + said.err).count("ledger.log-lost") == 1
    assert "memoryd doctor" in said.out + said.err
    note = world.home.ledger.with_name("memoryd.sqlite.log-lost")
    assert note.read_text().strip() in finding.what
    assert "memoryd enqueue" in finding.todo and str(note) in finding.todo
    assert len(lost(world)) == 1
    note.unlink()
    assert lost(world) == []


def test_what_the_histories_know_is_told_to_a_ledger_without_its_log(world: World) -> None:
    """The cursor is past what was written: no model is asked again, and no note doubled."""
    lose_log(world, lambda: distil(world))

    world.restart()
    world.finalize(world.transcript())

    assert world.ledger.db.rows("select count(*) from cursor") == [(1,)]
    assert world.model.requests == []
    assert world.bodies() == [RULE]


def test_what_was_taken_in_since_the_last_checkpoint_is_taken_in_again(world: World) -> None:
    """A transcript that no sweep finds is not lost, what was excluded stays so, nothing doubles."""
    elsewhere = world.folder / "elsewhere.jsonl"
    elsewhere.write_bytes(world.transcript("far").user(RULE).path.read_bytes())
    drop(world, "far", transcript=str(elsewhere), cutoff=elsewhere.stat().st_size)
    drop(world, "shut", switches=["MEMORYD_DISABLE"])

    def take_in() -> None:
        world.restart()
        assert take_in_envelopes(world.place).envelopes == 2
        assert left(world) == []

    lose_log(world, take_in)
    world.restart()

    assert take_in_envelopes(world.place) == Taken(2, 1, 0, 1)
    (job,) = world.ledger.records.jobs()
    assert job.session == "far"
    shut = world.ledger.records.rollout("claude-code", "shut")
    assert shut is not None and shut.excluded == "session.excluded"
    assert left(world) == []


def test_envelopes_are_kept_until_the_ledger_itself_has_what_they_said(world: World) -> None:
    """Not while a reader holds the log; then the daily tidying lets them go."""
    world.restart()
    drop(world, "s1")
    reader = sqlite3.connect(world.home.ledger, isolation_level=None)
    reader.execute("begin")
    reader.execute("select count(*) from job").fetchone()
    assert take_in_envelopes(world.place).created == 1
    kept = world.home.inbox / "taken"

    tidy(world.place)
    assert len(list(kept.iterdir())) == 1
    reader.close()
    tidy(world.place)

    assert list(kept.iterdir()) == []
    with closing(sqlite3.connect(f"file:{world.home.ledger}?immutable=1", uri=True)) as itself:
        assert itself.execute("select count(*) from job").fetchone() == (1,)


def test_who_dies_at_noticing_leaves_the_rest_to_the_next(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Written down before the ledger is opened, which makes a new log."""
    lose_log(world, world.restart)

    def die(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    with monkeypatch.context() as patched:
        patched.setattr("memoryd.jobs.schema.migrate", die)
        killed(world.restart)
    for path in companions(world.home.ledger):
        path.unlink(missing_ok=True)
    assert look_into_ledger(world.home, world.config, world.clock) is None
    told: list[object] = []
    monkeypatch.setattr("memoryd.jobs.recovering.recover", lambda *_: told.append("told"))

    ledger = open_ledger(world.home, world.config, world.clock)

    assert told == ["told"] and needs_recovery(ledger)
    ledger.close()
    assert len(lost(world)) == 1


def test_a_kill_alone_or_an_end_in_order_is_no_lost_log(world: World) -> None:
    """Nor is a home whose files a person put away together."""
    path = world.home.ledger
    assert not is_log_lost(path)
    world.restart()
    assert not is_log_lost(path)
    world.place.close()
    assert not is_log_lost(path)
    killed(world.restart)
    assert not is_log_lost(path)
    for each in companions(path):
        each.unlink()
    assert not is_log_lost(path)
    assert lost(world) == []


@pytest.mark.parametrize("closes", [False, True])
def test_who_opens_and_closes_meanwhile_is_not_taken_for_a_lost_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, closes: bool
) -> None:
    """Another process opens after the first look at the log, and perhaps closes before the next."""
    path = tmp_path / "a.sqlite"
    with closing(sqlite3.connect(path)) as made:
        made.execute("pragma journal_mode = wal")
        made.execute("create table t (x)")
    other = sqlite3.connect(path)
    looked: list[bool] = []
    really = os.path.lexists

    def between(each: Path) -> bool:
        if looked and closes:
            other.close()
        looked.append(really(each))
        if len(looked) == 1:
            other.execute("select * from t").fetchall()
        return looked[-1]

    monkeypatch.setattr(os.path, "lexists", between)

    assert not is_log_lost(path)

    assert looked == [False, not closes]
    other.close()
