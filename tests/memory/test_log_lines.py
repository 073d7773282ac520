"""A line of the log is safe to be read, and not the same all day."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator

import pytest
import structlog

from memoryd.memory import log
from memoryd.memory.log import AGAIN_SECONDS, Seldom
from memoryd.memory.testing import FakeClock


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    """Where this process logs to meanwhile."""
    made = io.StringIO()
    log.configure(made)
    yield made
    log.forget()
    structlog.reset_defaults()


def test_nothing_in_a_line_drives_a_terminal(stream: io.StringIO) -> None:
    """Controls and marks of direction are escaped; what is read from the line is what was said."""
    reason = "a\x1b[31m\x7f\x9b\u202e\nb"

    log.logger().error("store.unusable", reason=reason)

    (line,) = stream.getvalue().splitlines()
    assert line.isascii() and line.isprintable()
    assert json.loads(line)["reason"] == reason


def test_the_same_complaint_is_logged_once_a_minute(clock: FakeClock) -> None:
    """With how often it was left out; another one, and what is no complaint, always."""
    seldom, said = Seldom(clock.monotonic), []

    def say(level: str, path: str) -> None:
        try:
            said.append(seldom(None, "", {"level": level, "path": path, "time": clock.now_ms()}))
        except structlog.DropEvent:
            said.append({})

    for _ in range(3):
        say("error", "a")
        clock.advance(1)
    say("error", "b")
    say("info", "a")
    say("info", "a")
    clock.advance(AGAIN_SECONDS)
    say("error", "a")

    assert [bool(each) for each in said] == [True, False, False, True, True, True, True]
    assert said[-1]["again"] == 2 and "again" not in said[0]
