"""Processes that write one store at the same time lose nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from store_builders import KEY, git

from memoryd.memory.baseline import Baseline
from memoryd.memory.home import Home
from memoryd.memory.store import Store

SAVER = Path(__file__).parent / "saver.py"
EACH = 15


@pytest.mark.slow
def test_two_processes_that_save_into_one_project_lose_no_note(home: Home) -> None:
    """Every note is a file, in the index and in a commit of its own; ``bench`` saves 500 each."""
    processes = [
        subprocess.Popen([sys.executable, str(SAVER), str(home.root), KEY, prefix, str(EACH)])
        for prefix in ("one", "two")
    ]
    codes = [process.wait() for process in processes]

    store = Store.for_project(home, KEY)
    names = {f"{prefix}-{number:04d}" for prefix in ("one", "two") for number in range(EACH)}
    assert codes == [0, 0]
    assert {note.name for note in store.notes()} == names
    assert {path.partition("/")[2] for path in Baseline(store).files()} == {
        f"{name}.md" for name in names
    }
    assert len(Baseline(store).log()) == len(names)
    assert Baseline(store).changed_paths() == []
    assert git(store, "status", "--porcelain") == ""
    git(store, "fsck", "--strict")
