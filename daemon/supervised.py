"""What the daemon does differently because a service manager started it.

The service files say which one in ``MEMORYD_SUPERVISOR``; without it a person did, in a terminal.
Whoever has another supervisor sets it to that one's name: it starts the daemon again after a 75.

launchd knows only whether an exit code is 0, and starts again whatever ended otherwise, for ever.
So under launchd the daemon itself does what systemd's unit says: it ends with 0, for good, where
its configuration cannot be used, and after five bad starts in ten minutes.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from memoryd.memory.clock import Clock
from memoryd.memory.files import make_directory, read_or_none, write_atomic
from memoryd.memory.home import Home
from memoryd.memory.log import logger

VARIABLE = "MEMORYD_SUPERVISOR"
_UNUSABLE_CONFIGURATION = 78
#: Bad starts within that time, before it stays down: as in the unit.
START_LIMIT = 5
START_LIMIT_MS = 10 * 60 * 1000


def supervisor(environ: Mapping[str, str]) -> str:
    """Who starts the daemon again; empty where nobody does."""
    return environ.get(VARIABLE, "")


def exit_code(code: int, environ: Mapping[str, str]) -> int:
    """``code`` as the supervisor understands it: 78 must not be started again."""
    by_launchd = supervisor(environ) == "launchd"
    return 0 if by_launchd and code == _UNUSABLE_CONFIGURATION else code


def may_start(home: Home, environ: Mapping[str, str], clock: Clock) -> bool:
    """Count this start; False where launchd started too often, which is logged.

    A home in which nothing can be written is none that starts are counted in.
    """
    if supervisor(environ) != "launchd":
        return True
    now = clock.now_ms()
    try:
        recent = [at for at in _starts(home) if 0 <= now - at < START_LIMIT_MS]
        if len(recent) >= START_LIMIT:
            logger().error("daemon.given_up", starts=len(recent), todo="memoryd service start")
            return False
        make_directory(_file(home).parent)
        write_atomic(_file(home), " ".join(map(str, [*recent, now])).encode())
    except OSError as error:
        logger().warning("starts.uncounted", reason=error.strerror)
    return True


def ended_well(home: Home, environ: Mapping[str, str]) -> None:
    """An orderly end is no bad start."""
    if supervisor(environ) == "launchd":
        forgive(home)


def forgive(home: Home | None) -> None:
    """Forget earlier starts: a person starts it now."""
    if home is not None:
        # A home that is no folder is for the start itself to complain of.
        with suppress(FileNotFoundError, NotADirectoryError):
            _file(home).unlink()


def _starts(home: Home) -> list[int]:
    words = (read_or_none(_file(home)) or b"").split()
    return [int(word) for word in words if word.isdigit() and len(word) < 20]


def _file(home: Home) -> Path:
    return home.root / "run" / "starts"
