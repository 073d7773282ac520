"""Every test runs in a world of its own: no person's home, settings, keys or network."""

from __future__ import annotations

import gc
import os
import socket
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import in_memory
import pytest
import structlog

from memoryd.memory import log
from memoryd.memory.home import Home
from memoryd.memory.testing import FakeClock

_OURS = (
    *("MEMORYD_", "CLAUDE", "CODEX", "COPILOT", "ESTACODA", "HERMES", "OPENAI", "ANTHROPIC"),
    *("GIT_", "XDG_", "NOTIFY_SOCKET"),
)

# Where nothing may be kept of what was compiled, each of hundreds of processes compiles it again.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def pytest_configure(config: pytest.Config) -> None:
    """Have the tests' folders in memory, unless a person named a place for them."""
    if config.option.basetemp is None:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", in_memory.place())
    tempfile.tempdir = in_memory.place()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The slow tests come first: at the end no worker waits for the long one of another."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


def pytest_collection_finish() -> None:
    """What was collected stays to the end: neither the collector nor a fork need look at it."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def hermetic(tmp_path: Path) -> Iterator[None]:
    """Point HOME at the test's own folder, drop our variables and keys, forbid the network.

    Logging is as it begins: a command run in this process may have made it quiet. A test that
    undoes its own patches undoes none of these.
    """
    with pytest.MonkeyPatch.context() as patch:
        _shut_in(tmp_path, patch)
        yield


def _shut_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    structlog.reset_defaults()
    log.forget()
    person = tmp_path / "person"
    person.mkdir()
    for name in list(os.environ):
        if name.startswith(_OURS) or name.endswith(("_PROXY", "_proxy")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(person))
    monkeypatch.setenv("TZ", "UTC")
    connect = socket.socket.connect

    def only_here(self: socket.socket, address: Any) -> None:
        if self.family != socket.AF_UNIX and address[0] not in {"127.0.0.1", "::1"}:
            raise AssertionError(f"a test reached for the network: {address}")
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", only_here)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A prepared home in the test's own folder."""
    made = Home(tmp_path / "home")
    made.prepare()
    return made


@pytest.fixture
def clock() -> FakeClock:
    """A clock that only the test moves."""
    return FakeClock()
