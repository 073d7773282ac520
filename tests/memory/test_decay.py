"""Episodes fade with age and hold on by use; nothing else fades."""

from __future__ import annotations

import pytest

from memoryd.memory.decay import Use, age_days, decay, factor, overflow
from memoryd.memory.notes import Note, new_note, parse

_DAY_MS = 86_400_000
_NOW = 1_767_603_600_000  # 2026-01-05 09:00 UTC


def _episode(name: str, happened_at: str | None = None, created: str | None = None) -> Note:
    data = new_note(
        name=name, description=name, type="episode", body=name, happened_at=happened_at,
        created=created,
    )  # fmt: skip
    return parse(data, f"episode/{name}.md")


@pytest.mark.parametrize(
    ("uses", "floor"), [(0, 0.25), (1, 0.354), (3, 0.458), (10, 0.610), (76, 0.90), (10_000, 0.90)]
)
def test_use_lifts_the_floor(uses: int, floor: float) -> None:
    """However old, an episode keeps this much of its score."""
    assert decay(4_000, uses) == pytest.approx(floor, abs=0.001)


@pytest.mark.parametrize(
    ("age", "left"), [(0, 1.0), (30, 0.5), (60, 0.25), (90, 0.25), (15, 0.7071)]
)
def test_an_unused_episode_halves_every_thirty_days(age: float, left: float) -> None:
    """Down to a quarter, reached after sixty days."""
    assert decay(age, 0) == pytest.approx(left, abs=0.0001)


def test_a_future_date_counts_as_today() -> None:
    """A wrong clock or a planned event is not worth more than the present."""
    assert decay(-400, 0) == 1.0
    assert age_days(_episode("x", "2030-01-01"), _NOW) == 0.0


def test_an_old_episode_that_is_used_beats_a_recent_one_that_is_not() -> None:
    """200 citations over 400 days count for more than 20 days without one."""
    assert decay(400, 200) > decay(20, 0)
    assert decay(400, 0) < decay(3, 0)


def test_an_episode_is_as_old_as_what_it_tells_of() -> None:
    """``happened_at`` first, then ``created``, then the commit that brought it, else new."""
    both = _episode("x", "2026-01-01", "2026-01-04T09:00:00Z")
    created = _episode("x", None, "2026-01-04T09:00:00Z")

    assert age_days(both, _NOW) == pytest.approx(4.375)
    assert age_days(created, _NOW, _NOW - 9 * _DAY_MS) == pytest.approx(1.0)
    assert age_days(_episode("x"), _NOW, _NOW - 9 * _DAY_MS) == pytest.approx(9.0)
    assert age_days(_episode("x"), _NOW) == 0.0


def test_only_episodes_fade() -> None:
    """A decision of two years ago holds as it did."""
    note = parse(
        new_note(name="x", description="x", type="project", body="x", created="2024-01-01"),
        "project/x.md",
    )

    assert factor(note, Use(), _NOW) == 1.0
    assert factor(_episode("x", "2024-01-01"), Use(), _NOW) == 0.25
    assert factor(_episode("x", "2024-01-01"), Use(shown=2, used=1), _NOW) > 0.35


def test_the_least_used_then_the_oldest_episodes_are_over_the_cap() -> None:
    """Use comes before age; what has no date counts as oldest."""
    episodes = [
        _episode("used", "2020-01-01"),
        _episode("old", "2021-01-01"),
        _episode("new", "2026-01-01"),
        _episode("undated"),
    ]

    over = overflow(episodes, {"episode/used": Use(3, 1)}, keep=1)

    assert [note.name for note in over] == ["undated", "old", "new"]
    assert overflow(episodes, {}) == ()
