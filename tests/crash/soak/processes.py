"""The processes of a soak: forked from a warm one, each with a process group of its own.

Nothing of the parent's is used in a child but what was imported; each opens its own files.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path

from scripted import Scripted

from memoryd.jobs import reading
from memoryd.jobs.keeper import LeaseKeeper
from memoryd.jobs.worker import Worker
from memoryd.jobs.workplace import Workplace, open_workplace
from memoryd.memory import seams
from memoryd.memory.config import ProviderSettings, load
from memoryd.memory.errors import MemorydError
from memoryd.memory.log import configure
from memoryd.memory.providers import registry
from soak.clock import SteppedClock
from soak.places import Places

#: How often a worker without anything to do looks again.
LOOK_SECONDS = 0.05


def fork(places: Places, run: Callable[[], None]) -> int:
    """The pid of a child that runs ``run`` and leaves; what it raises goes to the log."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        os.setsid()
        log = os.open(places.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        for number in (1, 2):
            os.dup2(log, number)
        environ = places.environ
        os.environ.clear()
        os.environ.update(environ)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        run()
        status = 0
    except BaseException:  # noqa: BLE001 - told in the log
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(status)


def daemon(places: Places, *, whole: bool) -> None:
    """The daemon, with the scripted model and the stepped clock; ``whole``: as its own program."""
    from memoryd.daemon.lifecycle import Daemon

    if whole:
        os.chdir(Path(__file__).parent.parent)
        program = [sys.executable, "-m", "soak.served", str(places.root)]
        os.execve(sys.executable, program, dict(places.environ))
    prepare(places)
    Daemon(places.home, places.environ, SteppedClock(places.clock)).run()


def worker(places: Places, trap: tuple[str, int] | None) -> None:
    """A worker beside the daemon, as the ledger is made for; it dies at its ``trap``."""
    prepare(places)
    if trap is not None:
        _set(*trap)
    place = opened(places)
    keeper = LeaseKeeper(place.ledger, place.clock, place.config.queue.heartbeat_seconds)
    keeper.start()
    idle = threading.Event()
    while True:
        try:
            Worker(lambda: place, keeper).work_ready()
        except MemorydError as error:  # the ledger is locked, the disk is full
            sys.stderr.write(f"worker: {error.code}: {error}\n")
        idle.wait(LOOK_SECONDS)


def prepare(places: Places) -> None:
    """What every process needs: the model, and slices of one chunk so that some have two."""
    configure()
    reading.SLICE_CHUNKS = 1

    def make(settings: ProviderSettings, environ: Mapping[str, str], own_calls: Path) -> Scripted:
        return Scripted(places.calls, count=False)

    registry.make = make


def opened(places: Places) -> Workplace:
    """The home, opened by this process."""
    clock = SteppedClock(places.clock)
    config = load(places.home.config_file)
    return open_workplace(places.home, config, clock, places.environ)


def _set(point: str, times: int) -> None:
    left = times

    def hook(reached: str) -> None:
        nonlocal left
        left -= reached == point
        if not left and reached == point:
            os.kill(os.getpid(), signal.SIGKILL)

    seams.hook = hook


def some_trap(rng: random.Random) -> tuple[str, int] | None:
    """Where a new worker is to die, most of them some jobs later; None: it is left to chance."""
    if rng.random() < 0.4:
        return None
    return rng.choice(seams.POINTS), rng.randint(1, 25)
