"""Trees put together here are those git would make."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoryd.memory.trees import Change, folders_of, object_id, parse, read_batch, serialise

NAMES = st.binary(min_size=1, max_size=6).filter(
    lambda name: not {0, 47} & set(name) and name not in {b".", b".."}
)
PATHS = st.builds(
    lambda folder, name: b"/".join((*folder, name)),
    st.sampled_from([(b"user",), (b"archive", b"user"), (b"user-x",), (b"user.x",)]),
    NAMES,
)
FILES = st.dictionaries(PATHS, st.binary(min_size=20, max_size=20), max_size=12)


def all_trees(change: Change) -> dict[bytes, bytes]:
    """Every tree below the root, by folder."""
    by_id = change.trees | {object_id("tree", data): data for data in change.old.values()}
    found: dict[bytes, bytes] = {}

    def walk(folder: bytes, made: bytes) -> None:
        found[folder] = by_id[made]
        for name, (mode, inner) in parse(by_id[made]).items():
            if mode == b"40000":
                walk(folder + b"/" + name if folder else name, inner)

    walk(b"", change.root)
    return found


@given(FILES, FILES, st.sets(st.integers(0, 11)))
@settings(max_examples=60, deadline=None)
def test_changing_a_tree_comes_to_the_same_as_making_it_whole(
    first: dict[bytes, bytes], more: dict[bytes, bytes], gone: set[int]
) -> None:
    """Whatever was added, replaced and taken away."""
    taken = {path for at, path in enumerate(first) if at in gone and path not in more}
    made = Change.of({}, dict(first))
    trees = all_trees(made)
    changes: dict[bytes, bytes | None] = {**more, **dict.fromkeys(taken)}
    needed = {folder: trees[folder] for folder in folders_of(changes) if folder in trees}

    changed = Change.of(needed, changes)

    whole = {path: made for path, made in (first | more).items() if path not in taken}
    assert changed.root == Change.of({}, dict(whole)).root
    assert all(object_id("tree", data) == made for made, data in changed.trees.items())


def test_git_takes_a_tree_of_ours_for_its_own(tmp_path: Path) -> None:
    """The order of names with a folder among them is the one git insists on."""
    files = [b"a", b"a-b/x", b"a.b", b"a0", b"b/y"]
    blob = object_id("blob", b"")
    change = Change.of({}, {b"a/z" if path == b"a" else path: blob for path in files})
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    for made, data in change.trees.items():
        done = subprocess.run(
            ["git", "hash-object", "-t", "tree", "-w", "--stdin"],
            cwd=tmp_path, input=data, capture_output=True, check=True,
        )  # fmt: skip
        assert done.stdout.decode().strip() == made.hex()

    listed = subprocess.run(
        ["git", "ls-tree", "-r", "--name-only", change.root.hex()],
        cwd=tmp_path, capture_output=True, check=True,
    )  # fmt: skip

    assert listed.stdout.split() == [b"a-b/x", b"a.b", b"a/z", b"a0", b"b/y"]


@pytest.mark.parametrize(
    "data", [b"x", b"100644 a\0" + b"i" * 19, b"100644 a\0" + b"i" * 20 + b"?", b"abc a\0"]
)
def test_bytes_that_are_no_tree_are_refused(data: bytes) -> None:
    """A damaged object is never taken for an empty folder."""
    with pytest.raises(ValueError, match="not a tree"):
        parse(data)


def test_an_empty_tree_and_gits_answers_are_read(tmp_path: Path) -> None:
    """Including contents that look like answers."""
    assert serialise(parse(b"")) == b""
    odd = b"1111 blob 3\nabc\n x missing\n"
    out = b"aa blob %d\n%s\nbb missing\ncc tree 0\n\n" % (len(odd), odd)

    assert list(read_batch(out)) == [(b"aa", odd), None, (b"cc", b"")]
