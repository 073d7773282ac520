"""A few seconds of the soak; `make soak` goes on for as long as it is told."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
@pytest.mark.timeout(90)
def test_a_short_soak_ends_with_every_invariant_held() -> None:
    """Its output names the seed first, and what it did."""
    done = subprocess.run(
        [sys.executable, "-m", "soak", "0.03", "1"],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("soak of 0.03 minutes, SEED=1\n")
    assert "every invariant held" in done.stdout
