"""What changed since a commit is shown with the edits of this moment, and no secret."""

from __future__ import annotations

import pytest
from store_builders import git, make_store, write_bytes, write_note

from memoryd.memory.baseline import Baseline
from memoryd.memory.differences import MAX_BYTES, commit_of, differences, forgotten
from memoryd.memory.errors import StoreDetached, UsageError
from memoryd.memory.forget import forget
from memoryd.memory.home import Home
from memoryd.memory.testing import FakeClock

#: Looks like a key and is none; in pieces, so that no scanner trips on this file.
SECRET = "sk-" + "ant-api03-" + "Q7w9" * 12


def test_commits_and_edits_are_shown_together(home: Home) -> None:
    """Changed, added and removed, by path; what came back to what it was is not there."""
    store = make_store(home, a="One", b="Two", back="Same")
    first = Baseline(store).head()
    write_note(store, "user/a.md", "Changed")
    write_note(store, "user/back.md", "Other")
    Baseline(store).commit(["user/a.md", "user/back.md"], "Change")
    write_note(store, "user/back.md", "Same")
    write_note(store, "user/c.md", "New")
    (store.root / "user/b.md").unlink()

    found = differences(store, first)

    assert [(each.path, each.status) for each in found] == [
        ("user/a.md", "changed"),
        ("user/b.md", "removed"),
        ("user/c.md", "added"),
    ]
    assert "--- a/user/a.md\n+++ b/user/a.md\n@@" in found[0].diff
    assert "\n-One\n+Changed" in found[0].diff
    assert found[1].diff.startswith("--- a/user/b.md\n+++ /dev/null\n@@")
    assert [each.path for each in differences(store, None)] == [
        "user/b.md",
        "user/back.md",
        "user/c.md",
    ]


def test_what_was_forgotten_is_counted_and_its_hashes_are_not_shown(
    home: Home, clock: FakeClock
) -> None:
    """And what is forgotten no more."""
    store = make_store(home, a="One", b="Two", c="Three")
    first = Baseline(store).head()
    forget(store, ["user/a.md", "user/b.md"], clock=clock)
    second = Baseline(store).head()
    write_bytes(store, "tombstones.jsonl", b"")

    found = differences(store, first)

    assert [each.path for each in found] == ["user/a.md", "user/b.md"]
    assert forgotten(store, first) == (0, 0)
    assert forgotten(store, second) == (0, 2)
    git(store, "checkout", "-q", "tombstones.jsonl")
    assert forgotten(store, first) == (2, 0)


def test_a_secret_is_not_shown(home: Home) -> None:
    """Neither one that a person typed nor one that another took the place of."""
    store = make_store(home, a="One", b="Two")
    write_note(store, "user/a.md", f"The key is {SECRET}")
    write_note(store, "user/b.md", f"The key is {SECRET}")
    Baseline(store).commit(["user/b.md"], "By mistake", author="person")
    write_note(store, "user/b.md", f"The key is {SECRET}4Zz")

    shown = "\n".join(each.diff for each in differences(store, None))

    assert SECRET[:20] not in shown
    assert "+The key is [REDACTED:" in shown
    assert "differs only in what is not shown" in shown


def test_what_cannot_be_shown_is_said(home: Home) -> None:
    """A link and a huge file have changed, whatever is in them."""
    store = make_store(home, a="One", b="Two")
    (store.root / "user/a.md").unlink()
    (store.root / "user/a.md").symlink_to("/etc/hostname")
    write_bytes(store, "user/b.md", b"x" * (MAX_BYTES + 1))

    link, large = differences(store, None)

    assert "symbolic link" in link.diff
    assert "too large to show" in large.diff


def test_a_commit_or_a_job_is_named_by_what_a_person_types(home: Home) -> None:
    """The beginning of a commit, the ending of a job: its newest commit."""
    store = make_store(home, a="One")
    one = Baseline(store).commit([], "1", {"Memoryd-Job": "aaa-111"})
    two = Baseline(store).commit([], "2", {"Memoryd-Job": "aaa-111"})
    Baseline(store).commit([], "3", {"Memoryd-Job": "bbb-211"})

    assert commit_of(store, "a-111").id == two
    assert commit_of(store, one[:8]).id == one
    for unknown in ("11", "never", ""):
        with pytest.raises(UsageError):
            commit_of(store, unknown)


def test_nothing_is_compared_while_something_else_is_checked_out(home: Home) -> None:
    """The files are not those of the memory."""
    store = make_store(home, a="One")
    git(store, "checkout", "-q", "--detach")

    with pytest.raises(StoreDetached):
        differences(store, None)
