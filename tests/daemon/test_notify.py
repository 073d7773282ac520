"""What systemd is told, and when nobody listens."""

from __future__ import annotations

import os
import secrets
import socket
import sys
from pathlib import Path

import pytest

from memoryd.daemon.notify import Notifier


def _listen(address: str) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    listener.bind(address)
    listener.settimeout(60)
    return listener


def test_each_word_is_a_line(tmp_path: Path) -> None:
    """As sd_notify(3) has it."""
    with _listen(str(tmp_path / "n")) as listener:
        Notifier({"NOTIFY_SOCKET": str(tmp_path / "n")}).send(READY="1", STATUS="working")

        assert listener.recv(100) == b"READY=1\nSTATUS=working"


@pytest.mark.skipif(sys.platform != "linux", reason="abstract names are Linux's")
def test_an_abstract_name_begins_with_an_at_sign() -> None:
    """The @ stands for the NUL byte."""
    name = f"memoryd-test-{secrets.token_hex(8)}"
    with _listen("\0" + name) as listener:
        Notifier({"NOTIFY_SOCKET": "@" + name}).send(WATCHDOG="1")

        assert listener.recv(100) == b"WATCHDOG=1"


@pytest.mark.parametrize("environ", [{}, {"NOTIFY_SOCKET": "/nobody/listens/here"}])
def test_nobody_listening_does_no_harm(environ: dict[str, str]) -> None:
    """Nothing that is kept depends on being heard."""
    Notifier(environ).send(READY="1")


@pytest.mark.parametrize(
    ("environ", "seconds"),
    [
        ({}, None),
        ({"WATCHDOG_USEC": "0"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
        ({"WATCHDOG_USEC": "\u00b2"}, None),
        ({"WATCHDOG_USEC": "9" * 5000}, None),
        ({"WATCHDOG_USEC": "1"}, 1.0),
        ({"WATCHDOG_USEC": "120000000"}, 60.0),
        ({"WATCHDOG_USEC": "120000000", "WATCHDOG_PID": str(os.getpid())}, 60.0),
        ({"WATCHDOG_USEC": "120000000", "WATCHDOG_PID": "1"}, None),
    ],
)
def test_the_watchdog_is_fed_twice_as_often_as_asked(
    environ: dict[str, str], seconds: float | None
) -> None:
    """And only where it was meant for this process."""
    assert Notifier(environ).watchdog_seconds == seconds
