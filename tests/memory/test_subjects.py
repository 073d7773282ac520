"""What a commit says of itself: its first line, so that the log reads as a diary."""

from __future__ import annotations

import pytest

from memoryd.memory.baseline import blob_id
from memoryd.memory.subjects import OURS, THEIRS, done

BEFORE = {
    "user/a.md": blob_id(b"a"),
    "user/b.md": blob_id(b"b"),
    "tombstones.jsonl": blob_id(b""),
}


@pytest.mark.parametrize(
    ("after", "told"),
    [
        ({"user/c.md": b""}, "remember c"),
        ({"user/a.md": b"x"}, "update a"),
        ({"user/a.md": None}, "remove a"),
        ({"project/a.md": b"", "user/a.md": None}, "move a"),
        ({"archive/user/a.md": b"", "user/a.md": None}, "archive a"),
        ({"user/better.md": b"a", "user/a.md": None}, "move a to better"),
        ({"user/A.md": b"a", "user/a.md": None}, "move a to A"),
        ({"archive/user/old.md": b""}, "archive old"),
        (
            {"user/c.md": b"", "archive/user/a.md": b"", "user/a.md": None, "user/b.md": b"x"},
            "remember c; update b; archive a",
        ),
        ({f"user/n{n}.md": b"" for n in range(5)}, "remember n0, n1, n2 and 2 more"),
        ({"tombstones.jsonl": b"{}"}, ""),
    ],
)
def test_a_commit_tells_what_became_of_which_notes(
    after: dict[str, bytes | None], told: str
) -> None:
    """Each note once, whatever paths it went through."""
    assert done(BEFORE, after, OURS) == told


def test_a_person_edits_adds_and_deletes() -> None:
    """Their commits have their verbs."""
    after = {"user/a.md": b"x", "user/c.md": b"", "user/b.md": None, "tombstones.jsonl": b""}

    assert done(BEFORE, after, THEIRS) == "add c; edit a; delete b"
