"""Which files of a store differ from its memory: what git's index cannot vouch for is read.

The index saves reading ten thousand files to find the one that changed; it is never believed
against the bytes. Whatever makes it look away (a file it was told to assume unchanged, a sparse
checkout, a half merge, damage) has it made anew first.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from memoryd.memory.gitprogram import Output
from memoryd.memory.repository import NOTHING, Repository
from memoryd.memory.store import Store
from memoryd.memory.trees import object_id

#: Path -> the blob the memory has there, None where it has none.
_Suspects = dict[str, str | None]

_LISTING = ("ls-files", "-z", "-v", "--cached", "--others")
_COMPARING = ("diff-index", "-z", "--no-renames", "--abbrev=40")


def changed_paths(
    repository: Repository, commit: str, files: Callable[[], Mapping[str, str]]
) -> list[str]:
    """The files of memory whose bytes differ from ``commit``: new, changed or gone; sorted.

    A file that cannot be read counts as changed. ``files`` gives all of ``commit``'s, path to blob;
    it is asked only where git cannot look, as into a folder that holds another repository.
    """
    store = repository.store
    others, found = _suspects(repository, commit)
    changed = _differing(store, found)
    if stale := {path: blob for path, blob in found.items() if path not in changed}:
        # A commit that died before its index was in place: it must not look like staged work.
        repository.put_into_index(stale)
    if any(name.endswith(b"/") for name in others):
        known = files()
        every = {path: known.get(path) for path in {*known, *store.paths()} if path not in found}
        changed |= _differing(store, every)
    return sorted(changed)


def _suspects(repository: Repository, commit: str) -> tuple[list[bytes], _Suspects]:
    """What lies beside the index (names as git gives them), and every path that may differ."""
    # Refreshing only saves reading: it may fail, as under a lock that a dead git left.
    repository.git.run("update-index", "-q", "--refresh")
    listed = _listed(repository, commit)
    looked = _asked(repository, commit, *_COMPARING, commit)
    others = [name for tag, name in listed if tag == b"?"]
    found: _Suspects = {os.fsdecode(name): None for name in others}
    fields = looked.out.split(b"\0")
    for facts, name in zip(fields[0::2], fields[1::2], strict=False):
        blob = facts.split()[2].decode()
        found[os.fsdecode(name)] = None if blob == NOTHING else blob
    return others, {path: blob for path, blob in found.items() if repository.store.holds(path)}


def _listed(repository: Repository, commit: str) -> list[tuple[bytes, bytes]]:
    """Every file in and beside the index, with git's letter for how it is known.

    ``H`` and ``?`` are what is looked at; any other letter is a file git would not look at.
    """
    for _ in range(2):
        done = _asked(repository, commit, *_LISTING)
        listed = [(line[:1], line[2:]) for line in done.out.split(b"\0") if line]
        if all(tag in {b"H", b"?"} for tag, _ in listed):
            return listed
        repository.rebuild_index(commit)
        repository.git.run("update-index", "-q", "--refresh")
    raise repository.damaged("its index cannot be made anew")


def _asked(repository: Repository, commit: str, *command: str) -> Output:
    """What git says, asked again with a new index where the index is damaged."""
    done = repository.git.run(*command)
    if done.status != 0:
        repository.rebuild_index(commit)
        done = repository.git.run(*command)
    if done.status != 0:
        raise repository.git.failure(command[0], done)
    return done


def _differing(store: Store, suspects: Mapping[str, str | None]) -> set[str]:
    return {path for path, blob in suspects.items() if _differs(store, path, blob)}


def _differs(store: Store, path: str, blob: str | None) -> bool:
    place = store.root / path
    if not os.path.lexists(place):
        return blob is not None
    if blob is None or place.is_symlink() or not place.is_file():
        return True
    try:
        data = place.read_bytes()
    except OSError:  # not readable is not unchanged
        return True
    return object_id("blob", data).hex() != blob
