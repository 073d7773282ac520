"""The world of processes, for the tests of this folder."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent.parent / "daemon"))

from processes import World, make_world


@pytest.fixture
def world() -> Iterator[World]:
    """A home, a project and an environment of its own; no process of it survives the test."""
    with make_world() as made:
        yield made
