"""Hooks, the sweep and backfill on one session; two processes on one archive: nothing twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from archives import RULE, TABS, Past
from world import DAY, answer, fact

from memoryd.jobs import backfill, sweep
from memoryd.memory.clock import SystemClock
from memoryd.memory.providers.base import Request
from memoryd.memory.providers.rules import RulesProvider
from memoryd.memory.testing import FakeClock

#: What the rules understand, each on its own.
PLAIN = (
    RULE,
    "I prefer tabs over spaces in every file.",
    "We use pnpm for packages in this repository, not npm.",
)


def honest(request: Request) -> str:
    """A fact for each thing that is said."""
    said = " ".join(message.text for message in request.messages)
    return answer(
        *[fact(each, category="technical-default") for each in (RULE, TABS) if each in said]
    )


@pytest.fixture
def past(tmp_path: Path, clock: FakeClock) -> Past:
    """A model that finds what is said."""
    return Past(tmp_path, clock, [honest])


def asked(past: Past) -> Counter[str]:
    """How often the model was asked about each thing a person said."""
    return Counter(
        message.text
        for each in past.model.requests
        for message in each.messages
        if message.role == "user"
    )


def test_a_late_end_event_finds_its_session_read(past: Past) -> None:
    """The agent tells of an end that backfill came before."""
    said = past.session("s1", RULE)
    past.mine()

    job = past.finalize(said)

    assert (job.status, job.outcome_code) == ("completed", "nothing.new")
    assert asked(past) == {RULE: 1}


def test_an_end_event_before_its_turn_leaves_backfill_nothing(past: Past) -> None:
    """The job was made and waited; the same words wait for both."""
    said = past.session("s1", RULE)
    past.discover()
    backfill.plan(past.place)
    past.enqueue(said)

    past.work()

    assert past.backfills()[0].outcome_code == "nothing.new"
    assert asked(past) == {RULE: 1}
    past.mine()
    assert len(past.backfills()) == 1


def test_a_lagging_transcript_is_read_on_by_whoever_comes(past: Past) -> None:
    """The hook told of an end before the last words were written; the sweep tells of them."""
    said = past.session("s1", RULE)
    past.mine()
    past.enqueue(said, cutoff=said.size)
    past.aged(said, TABS, days=31 / (24 * 60))
    past.work()

    past.discover()
    assert sweep.finalize_idle(past.place) == 1
    past.work()
    past.finalize(said)  # and, late, the hook once more

    assert asked(past) == {RULE: 1, TABS: 1}
    assert past.bodies() == sorted([RULE, TABS])


def test_an_old_session_that_a_person_resumes_is_read_on(past: Past) -> None:
    """Before backfill came to it: the finalize reads all of it, backfill nothing more."""
    said = past.session("s1", RULE, days=40)
    past.discover()
    backfill.plan(past.place)
    past.aged(said, TABS, days=31 / (24 * 60))
    past.discover()

    assert sweep.finalize_idle(past.place) == 1
    past.work()

    assert asked(past) == {RULE: 1, TABS: 1}
    assert past.backfills()[0].outcome_code == "nothing.new"
    past.clock.advance(DAY)
    past.mine()
    assert (len(past.backfills()), sweep.finalize_idle(past.place)) == (1, 0)


def test_an_old_session_that_a_hook_tells_of_is_fresh(past: Path) -> None:
    """Whoever is told of is no longer the archive's."""
    said = past.session("s1", RULE)
    past.enqueue(said, "extract", reason="stop")
    past.discover()

    assert backfill.plan(past.place) == 0
    assert sweep.finalize_idle(past.place) == 1


# -- processes -----------------------------------------------------------------------------------

#: Works the archive, and stands still the first time it reaches a point.
STANDING_STILL = """
import os, pathlib, signal, sys
from memoryd.jobs.keeper import LeaseKeeper
from memoryd.jobs.worker import Worker
from memoryd.jobs.workplace import open_workplace
from memoryd.memory import seams
from memoryd.memory.clock import SystemClock
from memoryd.memory.config import BackfillSettings, Config
from memoryd.memory.home import Home

home, point = Home(pathlib.Path(sys.argv[1])), sys.argv[2]
config = Config(backfill=BackfillSettings(enabled=True))
place = open_workplace(home, config, SystemClock(), dict(os.environ))
stood = []

def hook(reached):
    if reached == point and not stood:
        stood.append(reached)
        os.kill(os.getpid(), signal.SIGSTOP)

seams.hook = hook
keeper = LeaseKeeper(place.ledger, place.clock, 30)
keeper.start()
Worker(lambda: place, keeper).work_ready()
keeper.stop()
assert stood, "never came there"
"""


@pytest.mark.slow
@pytest.mark.parametrize("point", ["session.ingested", "slice.read", "plan.recorded"])
def test_a_worker_that_stood_still_and_one_that_took_over_mine_nothing_twice(
    tmp_path: Path, point: str
) -> None:
    """It wakes after its lease ran out and another has read everything: it records nothing."""
    clock = FakeClock(SystemClock().now_ms())
    past = Past(tmp_path, clock, provider=RulesProvider())
    for number, said in enumerate(PLAIN):
        past.session(f"s{number}", said, days=10 + number)
    past.discover()
    command = [sys.executable, "-c", STANDING_STILL, str(past.home.root), point]
    environ = {**os.environ, "HOME": str(tmp_path / "person")}
    with subprocess.Popen(command, env=environ, stderr=subprocess.PIPE) as child:
        try:
            _, status = os.waitpid(child.pid, os.WUNTRACED)
            assert os.WIFSTOPPED(status), child.communicate()[1].decode()[-2000:]
            clock.advance(3600)  # and its lease is over
            past.restart()
            past.mine()
            assert past.ledger.records.counts() == {"completed": 3}

            child.send_signal(signal.SIGCONT)
            _, errors = child.communicate(timeout=60)
            assert child.returncode == 0, errors.decode()[-2000:]
        finally:
            child.kill()

    assert past.ledger.records.counts() == {"completed": 3}
    assert len(past.backfills()) == 3
    assert len(past.commits()) == 3
    assert len(past.bodies()) == len(set(past.bodies())) == 3
    endings = Counter(
        each.ending for job in past.backfills() for each in past.ledger.records.attempts(job)
    )
    assert endings == {"completed": 3, "crashed": 1}
