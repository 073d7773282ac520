"""The power is cut right after each point: only what was synced is there, and that is enough."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from matrix import Case, Trap, warm
from power import Disk, NoDisk
from test_matrix import ALL

from memoryd.memory import seams


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Disk]:
    """A disk whose power can be cut, where one can be made."""
    try:
        made = Disk(tmp_path_factory.mktemp("power"))
    except NoDisk as error:
        pytest.skip(f"no disk whose power can be cut: {error}")
    yield made
    made.remove()


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", ["finalize", "consolidate"])
def test_what_was_synced_is_enough(
    disk: Disk, tmp_path_factory: pytest.TempPathFactory, kind: str
) -> None:
    """Nothing is lost or doubled; the suite cuts at every fourth point, `make matrix` at each."""
    warm()
    case = Case(kind, tmp_path_factory.mktemp(kind), disk=disk)
    after = case.reached()[1]
    reached = [point for point in seams.POINTS if after[point]]
    problems = {}

    for point in reached if ALL else reached[::4]:
        trap = Trap(point, after[point], "cut")
        found = case.fall_into(trap, fsck=True)
        if found:
            problems[str(trap)] = found

    assert not problems, "\n".join(f"{trap}: {found}" for trap, found in problems.items())
