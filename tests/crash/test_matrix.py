"""The crash matrix: every point of a job's way, stopped at in three ways, for every kind of job.

The suite stops the first kind of each handler at every other point each way, and the others at
every eighth; ``make matrix`` stops all everywhere.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from matrix import Case, Trap, warm

from memoryd.jobs.worker import HANDLERS
from memoryd.memory import seams

ROOT = Path(__file__).parent.parent.parent
TABLE = Path(__file__).with_name("README.md")
ALL = os.environ.get("MEMORYD_MATRIX") == "all"
#: What the envelope's writer goes by, which knows nothing of seams: it may not import them.
HOOK = ("hook.made", "hook.synced", "hook.renamed")


@dataclass
class Kind:
    """A kind's two worlds, and how often each reaches each point undisturbed."""

    smooth: Case
    troubled: Case
    before: dict[Case, Counter[str]]
    after: dict[Case, Counter[str]]

    @classmethod
    def made(cls, kind: str, folder: Path) -> Kind:
        """The worlds of ``kind``, run once to count."""
        cases = Case(kind, folder / "smooth"), Case(kind, folder / "troubled", troubled=True)
        counts = {case: case.reached() for case in cases}
        return cls(
            *cases,
            {case: each[0] for case, each in counts.items()},
            {case: each[1] for case, each in counts.items()},
        )

    def reached(self) -> set[str]:
        """All that is reached."""
        sides = (*self.before.values(), *self.after.values())
        return {point for counts in sides for point in counts}

    def traps(self, *, killed: bool) -> list[tuple[Case, Trap]]:
        """Those of each point: in the troubled world only what the other does not reach.

        Raised at for the first time it is reached, killed at for the last. Where much goes wrong
        already two more faults would be one too many for some kinds: there it is one at a time.
        """
        found = []
        for point in seams.POINTS:
            case = next((c for c in (self.smooth, self.troubled) if self.after[c][point]), None)
            if case is None:
                continue
            if killed:
                last = self.after[case][point]
                times = range(1, last + 1) if ALL else (last,)
                found += [(case, Trap(point, time, "killed")) for time in times]
            elif case is self.smooth:
                found.append((case, Trap(point, 1, "raised")))
            else:
                found += [(case, Trap(point, 1, "before")), (case, Trap(point, 1, "after"))]
        return found


@pytest.fixture(scope="module")
def kinds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Kind]]:
    """The worlds that were made so far, in memory where the machine has a place for that."""
    warm()
    shared = Path("/dev/shm")
    folder = tmp_path_factory.mktemp("matrix")
    if os.access(shared, os.W_OK):
        folder = shared / f"memoryd-matrix-{os.getpid()}"
        folder.mkdir()
    made = _Kinds(folder)
    yield made
    shutil.rmtree(folder, ignore_errors=True)


class _Kinds(dict[str, Kind]):
    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder

    def __missing__(self, kind: str) -> Kind:
        self[kind] = Kind.made(kind, self._folder / kind)
        return self[kind]


def _own_turn(kind: str, at: int, *, killed: bool) -> bool:
    """Whether the suite stops this kind at the point with this number."""
    first = next(name for name, handler in HANDLERS.items() if handler is HANDLERS[kind])
    if ALL:
        return True
    return at % 2 == int(killed) if kind == first else at % 8 == 4 * int(killed)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("killed", [False, True], ids=["raised", "killed"])
@pytest.mark.parametrize("kind", HANDLERS)
def test_nothing_is_lost_or_doubled_wherever_a_job_stops(
    kinds: dict[str, Kind], kind: str, killed: bool
) -> None:
    """The ledger, the history, the files and git afterwards say that every promise was kept."""
    problems = {}

    for at, (case, trap) in enumerate(kinds[kind].traps(killed=killed)):
        if _own_turn(kind, at, killed=killed):
            found = case.fall_into(trap, fsck=at % 10 == 0)
            if found:
                problems[str(trap)] = found

    assert not problems, "\n".join(f"{trap}: {found}" for trap, found in problems.items())


@pytest.mark.slow
def test_every_point_is_reached_by_some_kind_and_no_other_is(kinds: dict[str, Kind]) -> None:
    """A point that nobody goes by tests nothing; one that is not listed is not in the matrix."""
    reached = set().union(*(kinds[kind].reached() for kind in HANDLERS))

    assert reached - set(seams.ASIDE) == set(seams.POINTS)


def test_every_point_in_the_code_is_listed_once() -> None:
    """And both of its sides are there."""
    named: dict[str, set[str]] = {"before": set(), "reach": set()}
    for folder in ("memory", "sessions", "jobs", "daemon", "cli"):
        for path in (ROOT / folder).rglob("*.py"):
            for call in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(call, ast.Call) and call.args:
                    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
                    point = call.args[0]
                    if name in named and isinstance(point, ast.Constant):
                        named[name].add(str(point.value))
    listed = (*seams.POINTS, *seams.ASIDE)

    assert len(set(listed)) == len(listed)
    assert named["reach"] == set(listed)
    assert named["before"] == set(seams.POINTS)


def test_the_table_tells_what_each_point_leaves_behind() -> None:
    """One row for each, in the same order, and no other."""
    rows = re.findall(r"^\| `([a-z.-]+)` \|", TABLE.read_text("utf-8"), re.MULTILINE)

    assert rows == [*HOOK, *seams.POINTS, *seams.ASIDE]
