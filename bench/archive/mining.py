"""An archive mined to its end by the real daemon, killed on the way, and watched while it works."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path

MEMORYD = Path(sys.executable).with_name("memoryd")
#: Between two looks at the daemon and its ledger.
_LOOK_SECONDS = 0.2
#: With no session more in so long, it hangs.
_STUCK_SECONDS = 600.0

_CONFIG = """[backfill]
per_day = 1000000

[queue]
workers = {workers}
keep_finished = 1000000
"""


@dataclass
class Mined:
    """How it went: seconds, the daemon's peak resident memory in MiB, and its kills.

    ``curve`` is the seconds that each tenth of the sessions took.
    """

    seconds: float = 0.0
    peak_mib: float = 0.0
    git_mib: float = 0.0
    kills: int = 0
    sessions: int = 0
    curve: list[float] = field(default_factory=list)


def environment(person: Path, home: Path) -> dict[str, str]:
    """That of a person with this home directory, and nothing else that agents are found by."""
    path = os.environ.get("PATH", os.defpath)
    return {"PATH": path, "HOME": str(person), "MEMORYD_HOME": str(home), "TZ": "UTC"}


def prepare(home: Path, workers: int) -> None:
    """A home as ``memoryd`` would make it, that mines all of an archive on one day.

    Two sessions of the archive are mined at once by three workers: the last is kept for others.
    """
    home.mkdir(mode=0o700, parents=True)
    (home / "config.toml").write_text(_CONFIG.format(workers=workers), "utf-8")


class Daemon:
    """One daemon process after the other on one home."""

    def __init__(self, home: Path, environ: Mapping[str, str], log: Path) -> None:
        self._home, self._environ, self._log = home, dict(environ), log
        self._process: subprocess.Popen[bytes] | None = None
        self.peak_mib = self.git_mib = 0.0

    def start(self) -> None:
        """Start one."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [str(MEMORYD), "run"], env=self._environ, stdout=log, stderr=log, cwd="/"
            )

    def look(self) -> None:
        """Take its memory; raises ``SystemExit`` where it ended by itself."""
        assert self._process is not None
        if self._process.poll() is not None:
            raise SystemExit(f"the daemon ended with {self._process.returncode}: see {self._log}")
        self.peak_mib = max(self.peak_mib, _resident_mib(self._process.pid, "VmHWM"))
        children = map(_resident_git, _children(self._process.pid))
        self.git_mib = max(self.git_mib, sum(children))

    def kill(self) -> None:
        """SIGKILL: what it was at is left as it is."""
        self.look()
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """SIGTERM: it drains."""
        self.look()
        self._end(signal.SIGTERM)

    def abandon(self) -> None:
        """See that none is left, however this ends."""
        if self._process is not None and self._process.poll() is None:
            self._end(signal.SIGKILL)

    def _end(self, how: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(how)
        self._process.wait(timeout=120)


def mine(
    home: Path, environ: Mapping[str, str], sessions: int, *, kills: int, seed: int, log: Path
) -> Mined:
    """Have the daemon mine all ``sessions`` of the archive; kill it ``kills`` times on the way.

    The moments are drawn from ``seed``: after how many sessions, and how long after that.
    """
    chance = random.Random(f"kills of {seed}")
    moments = sorted(chance.uniform(0.02, 0.97) * sessions for _ in range(kills))
    daemon, mined = Daemon(home, environ, log), Mined(kills=kills, sessions=sessions)
    started = time.monotonic()
    try:
        daemon.start()
        _until_through(daemon, home, mined, moments, chance)
        mined.seconds = time.monotonic() - started
        daemon.stop()
    finally:
        daemon.abandon()
    mined.peak_mib, mined.git_mib = daemon.peak_mib, daemon.git_mib
    return mined


def _until_through(
    daemon: Daemon, home: Path, mined: Mined, moments: list[float], chance: random.Random
) -> None:
    started = moved = time.monotonic()
    through = 0
    while not _is_through(home, mined.sessions):
        time.sleep(_LOOK_SECONDS)
        daemon.look()
        before, through = through, _through(home)
        moved = time.monotonic() if through != before else moved
        while through >= (len(mined.curve) + 1) * mined.sessions / 10:
            mined.curve.append(round(time.monotonic() - started - sum(mined.curve), 1))
        if moments and through >= moments[0]:
            moments.pop(0)
            time.sleep(chance.random())
            daemon.kill()
            daemon.start()
        if time.monotonic() - moved > _STUCK_SECONDS:
            raise SystemExit(f"nothing was mined for {_STUCK_SECONDS:g} seconds: {through} so far")


def _through(home: Path) -> int:
    return _number(home, "SELECT count(*) FROM job WHERE kind = 'backfill' AND finished_at > 0")


def _is_through(home: Path, sessions: int) -> bool:
    """Whether every session has a job that ended, and nothing else is being done."""
    running = "SELECT count(*) FROM job WHERE status IN ('pending', 'running')"
    return _through(home) >= sessions and _number(home, running) == 0


def _number(home: Path, question: str) -> int:
    path = home / "memoryd.sqlite"
    if not path.is_file():
        return 0
    with (
        suppress(sqlite3.OperationalError),  # it is being made, or a writer is at it
        closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=5)) as database,
    ):
        return int(database.execute(question).fetchone()[0])
    return 0


def _resident_mib(pid: int, what: str) -> float:
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith(f"{what}:"):
                return int(line.split()[1]) / 1024
    return 0.0


def _children(pid: int) -> list[int]:
    found: list[int] = []
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            found += map(int, (task / "children").read_text().split())
    return found


def _resident_git(pid: int) -> float:
    """What a child has resident once it is another program; before that it shares its parent's."""
    with suppress(OSError):
        if Path(f"/proc/{pid}/comm").read_text().strip() == "git":
            return _resident_mib(pid, "VmRSS")
    return 0.0
