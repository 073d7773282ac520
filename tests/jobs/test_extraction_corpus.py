"""The corpus of ``bench/extraction``: what extraction keeps, misses, invents and doubles."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

BENCH = Path(__file__).parents[2] / "bench" / "extraction"
# Before the other folders of bench, which have a ``run`` too.
sys.path.insert(0, str(BENCH))

import cases as corpus  # noqa: E402
import run  # noqa: E402

if TYPE_CHECKING:
    from cases import Case

PARTS = 6


def part(number: int) -> list[Case]:
    """A sixth of the corpus, so that no test is long; every part has cases of every kind."""
    return corpus.load()[number::PARTS]


def count(number: int, provider: str) -> tuple[dict[str, int], list[str]]:
    """The counts of one part, and its faults by name."""
    found: dict[str, Any] = run.measure(part(number), provider)
    return {"missed": 0, "invented": 0, "doubled": 0, "stale": 0, **found["all"]}, found["faults"]


def test_the_corpus_is_as_large_as_it_says() -> None:
    """At least 60 sessions; a third is held out; a third of the cases must give nothing."""
    cases = corpus.load()

    assert len({case.id for case in cases}) == len(cases) >= 60
    assert sum(case.held_out for case in cases) == len(cases) // 3
    assert sum(not case.keep + case.model for case in cases) >= 20
    assert sum(len(case.keep) for case in cases) >= 60


@pytest.mark.slow
@pytest.mark.parametrize("number", range(PARTS))
def test_the_rules_keep_nine_of_ten_explicit_statements_and_invent_none(number: int) -> None:
    """In every part, on what they were tuned on and on what was held out alike."""
    found, faults = count(number, "rules")

    assert found["kept"] >= 0.9 * found["facts"], faults
    assert (found["invented"], found["doubled"], found["stale"]) == (0, 0, 0), faults


@pytest.mark.slow
@pytest.mark.parametrize("number", range(PARTS))
def test_of_a_models_answers_all_is_kept_and_nothing_doubled_or_invented(number: int) -> None:
    """Whatever noise, invented spans, repeats and renamed duplicates it answers with."""
    found, faults = count(number, "scripted")

    assert found["kept"] == found["facts"], faults
    assert (found["invented"], found["doubled"], found["stale"]) == (0, 0, 0), faults
