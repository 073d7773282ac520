"""What the session tests share: a history and readers of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from said import Reader

from memoryd.memory.testing import FakeClock
from memoryd.sessions import documents, lines, opencode, rows, tables
from memoryd.sessions.history import History


@pytest.fixture
def history(tmp_path: Path, clock: FakeClock) -> Iterator[History]:
    """An open session history in the test's own folder."""
    with History(tmp_path / "sessions.sqlite", clock) as opened:
        yield opened


@pytest.fixture
def reader(history: History, tmp_path: Path) -> Reader:
    """Reads Claude Code's transcripts."""
    return Reader(history, tmp_path)


@pytest.fixture
def rollouts(history: History, tmp_path: Path) -> Reader:
    """Reads Codex's transcripts."""
    return Reader(history, tmp_path, "codex")


@pytest.fixture
def small_lines(monkeypatch: pytest.MonkeyPatch) -> int:
    """Makes 64 KiB the longest item that may be held."""
    for module in (lines, documents, rows, tables, opencode):
        monkeypatch.setattr(module, "LINE_LIMIT_BYTES", 64 * 1024)
    return 64 * 1024
