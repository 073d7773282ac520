"""Many hooks at once, as ``bench/hooks.py`` starts them: none is lost, busy as the machine is."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "bench"))

import hooks as many

pytestmark = pytest.mark.slow


def test_hooks_at_once_each_leave_an_envelope_and_a_job(tmp_path: Path) -> None:
    """More than the machine has processors for, so that most wait longer than their deadline."""
    found = many.measure(tmp_path, 40)

    assert (found["exited_0"], found["envelopes"], found["unfinished_files"]) == (40, 40, 0)
    assert (found["taken_in"], found["jobs"]) == (40, 40)
