"""A store becomes smaller and says no less; what a model proposes is held against rules."""

from __future__ import annotations

from consolidation_builders import (
    a_merge,
    applied,
    decided,
    gathered,
    proposed,
    reasons,
    store_with,
)

from memoryd.memory.home import Home

_PNPM = {
    "feedback/use-pnpm": "Use pnpm 9 in `web/`, never npm.",
    "feedback/package-manager": "The package manager is pnpm, with frozen lockfiles.",
}
_MERGED = "The package manager is pnpm 9 in `web/`, never npm; use frozen lockfiles."


def test_a_merge_archives_what_it_takes_in_and_links_both_ends(home: Home) -> None:
    """The survivor keeps its name and type; nothing is deleted."""
    store = store_with(home, _PNPM)
    plan = proposed(merges=[a_merge("use-pnpm", "package-manager", content=_MERGED)])

    done = decided(gathered(store), plan)
    after = applied(home, store, done)

    assert done.subject == "Consolidate: 1 merged, 0 promoted, 0 episodes, 1 archived"
    assert reasons(done) == ["policy.passed"]
    assert sorted(after) == ["archive/feedback/package-manager", "feedback/use-pnpm"]
    survivor, old = after["feedback/use-pnpm"], after["archive/feedback/package-manager"]
    assert (survivor.body, survivor.supersedes) == (_MERGED, ("package-manager",))
    assert (old.superseded_by, old.valid_until) == ("use-pnpm", "2026-01-05T09:00:00Z")
    assert old.body == "The package manager is pnpm, with frozen lockfiles."
