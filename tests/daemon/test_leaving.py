"""A stop ends in time, whatever a thread does."""

from __future__ import annotations

import os
import sys
import threading

import pytest
from processes import World

from memoryd.daemon import leaving
from memoryd.daemon.leaving import Leaving


def left_with(ends: bool, monkeypatch: pytest.MonkeyPatch) -> int:
    """With what a process leaves that stops, and whose main thread waits for ever unless ``ends``.

    What it says of it hangs as well.
    """
    monkeypatch.setattr(leaving, "LEAVE_SECONDS", 0.05)
    monkeypatch.setattr(leaving, "_SAYING_SECONDS", 0.05)
    monkeypatch.setattr(leaving, "_say", threading.Event().wait)
    child = os.fork()
    if child == 0:
        stop = Leaving(lambda: 3600, lambda: 7)
        stop.begin()
        stop.drained()
        if ends:
            stop.end()
            threading.Event().wait(0.2)
            os._exit(0)
        threading.Event().wait()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.parametrize(("ends", "code"), [(True, 0), (False, 7)])
def test_a_stop_that_something_holds_up_ends_all_the_same(
    ends: bool, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the code that was wanted; one that ends by itself is let."""
    assert left_with(ends, monkeypatch) == code


#: A daemon of which one service never ends.
HANGS = """
import sys, threading
from memoryd.cli import main
from memoryd.daemon import leaving, lifecycle
leaving.LEAVE_SECONDS = 0.1
lifecycle.StoreKeeper.stop = lambda self: threading.Event().wait()
sys.argv = ["memoryd", "run"]
main.main()
"""


@pytest.mark.slow
def test_a_daemon_whose_threads_hang_ends_all_the_same(world: World) -> None:
    """What hung is named in the log."""
    with world.daemon((sys.executable, "-c", HANGS)) as daemon:
        assert daemon.stop() == 0

        (left,) = [each for each in daemon.events() if each["event"] == "daemon.left"]
    assert "MainThread" in left["threads"]
