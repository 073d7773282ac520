"""What consolidation is told of the time since the last one: its window on the history."""

from __future__ import annotations

from store_builders import age, git, make_store, write_bytes, write_note

from memoryd.memory.baseline import Baseline
from memoryd.memory.edits import EditsOutcome, commit_person_edits
from memoryd.memory.home import Home
from memoryd.memory.store import Store
from memoryd.memory.testing import FakeClock
from memoryd.memory.trouble import Trouble


def seen(store: Store) -> str:
    """Consolidation has seen the newest commit, which comes back."""
    baseline = Baseline(store)
    head = baseline.head()
    assert head is not None
    baseline.move_snapshot(head, found=baseline.snapshot())
    return head


def since(store: Store) -> dict[str, str]:
    """What changed since then: path to ``A``, ``M`` or ``D``."""
    baseline = Baseline(store)
    snapshot, head = baseline.snapshot(), baseline.head()
    assert snapshot is not None and head is not None
    return baseline.changed_between(snapshot, head)


def test_before_the_first_consolidation_there_is_no_window(home: Home) -> None:
    """None, which is not "nothing changed"."""
    assert Baseline(make_store(home, a="One")).snapshot() is None
    assert Baseline(Store.for_project(home, "nothing")).snapshot() is None


def test_edits_and_new_files_and_deletions_are_in_the_window(home: Home, clock: FakeClock) -> None:
    """A person's as well as ours, once they are committed."""
    store = make_store(home, a="One", b="Two", c="Three")
    seen(store)
    write_note(store, "user/a.md", "Changed")
    write_note(store, "user/new.md", "New")
    (store.root / "user/b.md").unlink()
    age(store, "user", clock, 61)

    commit_person_edits(store, now_ms=clock.now_ms())

    assert since(store) == {
        "tombstones.jsonl": "A",
        "user/a.md": "M",
        "user/b.md": "D",
        "user/new.md": "A",
    }


def test_a_window_in_which_nothing_was_done_is_empty(home: Home) -> None:
    """An empty commit is nothing too."""
    store = make_store(home, a="One")
    head = seen(store)

    Baseline(store).commit([], "Nothing")

    assert since(store) == {}
    assert Baseline(store).diff(head, "HEAD") == b""


def test_the_window_of_a_consolidation_that_failed_is_in_the_next(home: Home) -> None:
    """The tag stays, so that both are told of together."""
    store = make_store(home, a="One")
    seen(store)
    Baseline(store).commit([write_note(store, "user/first.md", "1")], "First window")
    # A consolidation looks here, fails, and leaves the tag.
    Baseline(store).commit([write_note(store, "user/second.md", "2")], "Second window")

    assert since(store) == {"user/first.md": "A", "user/second.md": "A"}
    seen(store)
    assert since(store) == {}


def test_what_is_derived_is_never_in_the_history(home: Home, clock: FakeClock) -> None:
    """Neither the index nor the graph, whoever adds everything."""
    store = make_store(home, a="One")
    store.write_index()
    (store.root / ".graph").mkdir()
    write_bytes(store, ".graph/vectors.bin", b"x")

    git(store, "add", "-A")

    assert git(store, "status", "--porcelain") == ""
    assert Baseline(store).changed_paths() == []


def test_a_store_that_is_not_there_is_safe_to_ask(home: Home, clock: FakeClock) -> None:
    """Nothing is made by asking."""
    store = Store.for_project(home, "nothing")
    baseline = Baseline(store)
    nothing: list[Trouble] = []

    assert (baseline.head(), baseline.log(), baseline.files()) == (None, [], {})
    assert baseline.trouble() == nothing
    assert baseline.changed_paths() == []
    assert commit_person_edits(store, now_ms=clock.now_ms()) == EditsOutcome()
    assert not store.root.exists() and not baseline.exists()
