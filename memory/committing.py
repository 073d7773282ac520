"""The objects of a commit: exactly the files it is given, over the trees of the one before."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from memoryd.memory import trees
from memoryd.memory.repository import Repository


def write_blobs(
    repository: Repository, scratch: Path, files: Mapping[str, bytes | None]
) -> dict[str, str | None]:
    """Store the contents; their ids come back, None for a file that is to go."""
    kept = {path: data for path, data in files.items() if data is not None}
    ids = repository.write("blob", scratch, list(kept.values()))
    made = dict(zip(kept, ids, strict=True))
    return {path: made.get(path) for path in files}


def write_trees(
    repository: Repository, scratch: Path, old: str | None, blobs: Mapping[str, str | None]
) -> str:
    """Store the trees that ``old`` has with these files; the id of the whole comes back."""
    files = {
        os.fsencode(path): None if blob is None else bytes.fromhex(blob)
        for path, blob in blobs.items()
    }
    try:
        change = trees.Change.of(_trees_of(repository, old, trees.folders_of(files)), files)
    except ValueError as error:
        raise repository.damaged("a tree in it cannot be read") from error
    made = repository.write("tree", scratch, list(change.trees.values()))
    if made != [each.hex() for each in change.trees]:
        raise repository.damaged("git gave a tree another id than it has")
    return change.root.hex()


def _trees_of(
    repository: Repository, commit: str | None, folders: Sequence[bytes]
) -> dict[bytes, bytes]:
    """The trees of these folders in ``commit``, by folder; the ones that are missing left out.

    That a folder is missing is known from the one above it, not from git's silence.
    """
    if commit is None:
        return {}
    names = [commit.encode() + (b":" + each if each else b"^{tree}") for each in folders]
    found: dict[bytes, bytes] = {}
    for folder, each in zip(folders, repository.objects(names), strict=True):
        above, _, name = folder.rpartition(b"/")
        known = trees.parse(found.get(above, b"")).get(name) if folder else (trees.TREE, b"")
        if known is None or known[0] != trees.TREE:
            continue
        if each is None or (folder and each[0] != known[1].hex().encode()):
            raise ValueError(f"the tree of {folder!r} is missing")
        found[folder] = each[1]
    return found
