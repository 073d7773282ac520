"""Several processes on one ledger: each job claimed once, one running a session, nothing lost."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from builders import claim, enqueue, open_ledger

from memoryd.memory.clock import SystemClock
from memoryd.memory.testing import FakeClock

SESSIONS = 60
JOBS_A_SESSION = 5

#: Claims until nothing is left; prints what it claimed. A session's job is one slice: where two
#: ran at once, or one ran twice, the cursor would refuse the second.
WORKER = """
import json, pathlib, sys
from memoryd.jobs.ledger import Ledger
from memoryd.memory.clock import SystemClock
from memoryd.memory.plan import SliceRange

ledger = Ledger(pathlib.Path(sys.argv[1]), "home", SystemClock()).open()
sys.stdin.read(1)
claimed = []
while not ledger.idle():
    job = ledger.claim(sys.argv[2])
    if job is None:
        continue
    claimed.append(job.id)
    seq = ledger.cursor(job.agent, job.session)
    part = SliceRange(job.agent, job.session, seq + 1, seq + 1)
    running = ledger.db.rows(
        "select count(*) from job where status = 'running' and serial_key = :key",
        key=job.serial_key,
    )
    assert running == [(1,)], running
    ledger.advance(job, part, outcome="session.distilled")
print(json.dumps(claimed))
"""

DYING = """
import os, pathlib, signal, sys
from memoryd.jobs.ledger import Ledger
from memoryd.memory.clock import SystemClock

ledger = Ledger(pathlib.Path(sys.argv[1]), "home", SystemClock()).open()
if sys.argv[2] == "claim":
    ledger.claim("dying")
else:
    ledger.enqueue("finalize", "claude-code", "s2", cutoff=5, transcript="", cwd="", trigger="cli")
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
def test_four_processes_claim_each_of_hundreds_of_jobs_once(tmp_path: Path) -> None:
    """And never two of one session at a time; every slice is accounted for."""
    ledger = open_ledger(tmp_path, SystemClock())
    with ledger.db.writing(durable=True):
        for number in range(SESSIONS * JOBS_A_SESSION):
            enqueue(ledger, f"s{number % SESSIONS}", cutoff=number)
    children = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, str(tmp_path / "memoryd.sqlite"), f"worker-{number}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for number in range(4)
    ]

    answers = [child.communicate(b"x", timeout=18)[0] for child in children]

    claimed = Counter(job for answer in answers for job in json.loads(answer))
    assert len(claimed) == SESSIONS * JOBS_A_SESSION
    assert set(claimed.values()) == {1}
    assert ledger.records.counts() == {"completed": SESSIONS * JOBS_A_SESSION}
    assert ledger.db.rows("select distinct seq from cursor") == [(JOBS_A_SESSION,)]
    assert ledger.db.rows("select distinct attempt, ending from attempt_log") == [(1, "completed")]


def killed(tmp_path: Path, doing: str) -> None:
    """A process that is killed right after ``doing``."""
    command = [sys.executable, "-c", DYING, str(tmp_path / "memoryd.sqlite"), doing]
    assert subprocess.run(command, timeout=15, check=False).returncode == -signal.SIGKILL


def test_a_job_of_a_killed_process_is_rescued_with_its_cutoff(tmp_path: Path) -> None:
    """The daemon that starts next knows that nobody else works."""
    ledger = open_ledger(tmp_path, SystemClock())
    enqueue(ledger, cutoff=77)
    killed(tmp_path, "claim")

    assert ledger.rescue(everything=True) == 1

    job = claim(ledger)
    assert (job.cutoff, job.attempt, job.failures) == (77, 2, 1)


def test_a_job_enqueued_before_the_kill_is_there(tmp_path: Path) -> None:
    """The promise is given when the call returns."""
    ledger = open_ledger(tmp_path, FakeClock())
    killed(tmp_path, "enqueue")

    (job,) = ledger.records.jobs()
    assert (job.session, job.cutoff) == ("s2", 5)
