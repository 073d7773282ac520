"""sd_notify: what systemd is told, when it listens (sd_notify(3))."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping

#: The watchdog is fed no more often than this.
FEEDING_SECONDS = 1.0
#: A number of more digits is no time (and in the end none that Python reads).
_DIGITS = 15


class Notifier:
    """Sends state lines to ``$NOTIFY_SOCKET``; does nothing where there is none."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        address = environ.get("NOTIFY_SOCKET", "")
        # A leading @ stands for the NUL of Linux's abstract namespace.
        self._address = "\0" + address[1:] if address.startswith("@") else address
        self._watchdog = _watchdog_seconds(environ)

    @property
    def watchdog_seconds(self) -> float | None:
        """How often to say ``WATCHDOG=1``: half of what systemd allows; None when it wants none.

        Never more often than ``FEEDING_SECONDS``, whatever is asked: feeding is no work.
        """
        return max(self._watchdog / 2, FEEDING_SECONDS) if self._watchdog else None

    def send(self, **state: str) -> None:
        """Send ``READY="1"``, ``STATUS="..."`` and the like, one line each."""
        if not self._address:
            return
        lines = "\n".join(f"{name}={value}" for name, value in state.items())
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
                sender.sendto(lines.encode(), self._address)
        except OSError:
            # Whoever listened is gone. systemd notices a missed watchdog itself, and nothing we
            # keep depends on being heard.
            return


def _watchdog_seconds(environ: Mapping[str, str]) -> float | None:
    wanted = environ.get("WATCHDOG_USEC", "")
    addressed = environ.get("WATCHDOG_PID", "") in {"", str(os.getpid())}
    is_time = wanted.isascii() and wanted.isdigit() and len(wanted) <= _DIGITS
    return int(wanted) / 1_000_000 or None if is_time and addressed else None
