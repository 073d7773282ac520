"""The hook dies at each of its steps: an envelope is whole or it is not there."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from matrix import in_child

from memoryd.cli import hook
from memoryd.jobs import envelope

_SAID = {
    "version": 1,
    "agent": "claude-code",
    "event": "session-end",
    "session": "s-1",
    "transcript": "/t.jsonl",
    "cwd": "/code",
    "reason": None,
    "cutoff": 10,
    "time_ms": 1,
    "switches": [],
}


@pytest.mark.parametrize(
    ("call", "whole"), [("open", False), ("write", False), ("fsync", False), ("rename", True)]
)
def test_a_hook_that_dies_leaves_a_whole_envelope_or_none(
    tmp_path: Path, call: str, whole: bool
) -> None:
    """Killed right after the system call; what is half made has a name that intake passes over."""
    (tmp_path / "inbox").mkdir()

    def die() -> None:
        real = getattr(os, call)

        def calling(*arguments: object, **named: object) -> object:
            done = real(*arguments, **named)
            os.kill(os.getpid(), signal.SIGKILL)
            return done

        setattr(os, call, calling)
        hook.write(str(tmp_path), dict(_SAID))

    assert in_child(die) is None

    found = [path for path in (tmp_path / "inbox").iterdir() if path.name[0] != "."]
    assert [envelope.read(path).session for path in found] == ["s-1"] * whole


@pytest.mark.parametrize("call", ["write", "fsync", "rename"])
def test_a_hook_whose_system_refuses_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """The agent's end is not told then; the sweep finds the session by itself."""

    def refuse(*arguments: object, **named: object) -> object:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, call, refuse)
    with pytest.raises(OSError, match="space"):
        hook.write(str(tmp_path), dict(_SAID))

    assert [*(tmp_path / "inbox").iterdir()] == []
