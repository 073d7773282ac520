"""What a history holds is asked of git once, then of what was added, and is never out of date."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from store_builders import git, make_store, write_note

from memoryd.memory import gitprogram
from memoryd.memory.baseline import Baseline
from memoryd.memory.home import Home
from memoryd.memory.store import Store

SLICE, VALUE = "Memoryd-Slice", "codex/s1 1..9"
SECOND_MS = 1_000


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[str, ...]]]:
    """The git commands that are run, as they are."""
    commands: list[tuple[str, ...]] = []
    run = gitprogram.Git.run

    def told(self: gitprogram.Git, *arguments: str, **named: object) -> gitprogram.Output:
        commands.append(arguments)
        return run(self, *arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(gitprogram.Git, "run", told)
    yield commands


def _commit(store: Store, value: str = "", *, at_ms: int | None = None) -> str:
    trailers = [(SLICE, value)] if value else []
    return Baseline(store).commit({}, "Save", trailers, now_ms=at_ms)


def _found(store: Store, value: str = VALUE) -> list[str]:
    return [made.id for made in Baseline(store).committed_as(SLICE, value)]


def test_a_slice_is_found_however_long_ago_it_was_committed(home: Home) -> None:
    """By its whole value, the newest first; what was committed since is known too."""
    store = make_store(home, a="One")
    first = _commit(store, VALUE)
    _commit(store, f"{VALUE}9")

    assert _found(store) == [first]
    again = _commit(store, VALUE)
    assert _found(store) == [again, first]
    assert _found(store, "codex/s1 1..") == []


def test_a_history_is_walked_once_and_then_only_what_was_added(
    home: Home, asked: list[tuple[str, ...]]
) -> None:
    """However many saves ask, each walk is as long as what is new."""
    store = make_store(home, a="One")
    _found(store)
    known = Baseline(store).head()
    made = _commit(store)
    asked.clear()

    _found(store)
    _found(store)

    walks = [each[-1] for each in asked if each[0] == "log"]
    assert walks == [f"{known}..{made}"]


@pytest.mark.parametrize("seen", [True, False])
def test_what_was_taken_out_of_the_history_is_not_found(home: Home, seen: bool) -> None:
    """A person put the branch back, and went on from there, before it was asked again or after."""
    store = make_store(home, a="One")
    start = Baseline(store).head()
    _commit(store, VALUE)
    assert len(_found(store)) == 1

    git(store, "reset", "--quiet", "--soft", str(start))
    if seen:
        assert _found(store) == []
    _commit(store)
    assert _found(store) == []


def test_a_merge_by_hand_hides_nothing(home: Home) -> None:
    """Commits of either side are found, before it and after it."""
    store = make_store(home, a="One")
    _found(store)
    git(store, "config", "user.name", "Ada")
    git(store, "config", "user.email", "ada@example.org")
    git(store, "checkout", "--quiet", "-b", "side")
    git(store, "commit", "--quiet", "--allow-empty", "-m", f"Mine\n\n{SLICE}: {VALUE}")
    side = git(store, "rev-parse", "HEAD")
    git(store, "checkout", "--quiet", "main")
    main = _commit(store, VALUE)
    git(store, "merge", "--quiet", "--no-edit", "side")

    assert sorted(_found(store)) == sorted([side, main])
    last = _commit(store, VALUE)
    assert _found(store)[0] == last
    assert len(_found(store)) == 3


def test_a_history_that_was_begun_anew_is_not_the_old_one(home: Home) -> None:
    """What another repository held in its place is not believed."""
    store = make_store(home, a="One")
    _commit(store, VALUE)
    assert len(_found(store)) == 1

    store.git_dir.rename(f"{store.git_dir}.damaged")
    Baseline(store).ensure()

    assert _found(store) == []
    assert Baseline(store).files() == {}


@pytest.mark.parametrize("behind_ms", [0, 3_600 * SECOND_MS])
def test_whether_a_file_was_touched_since_does_not_hang_on_the_order_of_the_clock(
    home: Home, behind_ms: int
) -> None:
    """Also where the clock was set back after the commit that touched it."""
    store = make_store(home)
    base_ms = 1_800_000_000 * SECOND_MS
    baseline = Baseline(store)
    write_note(store, "user/a.md", "One")
    baseline.commit(["user/a.md"], "A", now_ms=base_ms)
    for number in range(3):
        _commit(store, at_ms=base_ms + number * SECOND_MS - behind_ms)

    assert baseline.touched_since("user/a.md", base_ms + 500)
    assert not baseline.touched_since("user/a.md", base_ms + SECOND_MS)
    assert not baseline.touched_since("user/b.md", base_ms)


def test_what_a_commit_holds_is_asked_once(home: Home, asked: list[tuple[str, ...]]) -> None:
    """All of it answers for each file; a commit made since is another."""
    store = make_store(home, a="One", b="Two")
    baseline = Baseline(store)
    every = baseline.files()
    asked.clear()

    assert baseline.files(None, "user/a.md", "user/none.md") == {"user/a.md": every["user/a.md"]}
    assert baseline.files() == every
    assert [each[0] for each in asked] == []

    write_note(store, "user/c.md", "Three")
    baseline.commit(["user/c.md"], "C")
    assert baseline.files().keys() == {*every, "user/c.md"}


def test_what_a_caller_does_to_its_answer_is_its_own(home: Home) -> None:
    """The next one is told what the commit holds."""
    store = make_store(home, a="One")
    Baseline(store).files().clear()

    Baseline(store).files().clear()

    assert Baseline(store).files().keys() == {"user/a.md"}
