"""Git's tree objects: the folders of a commit, taken apart and put together with other files.

A tree is ``<mode> <name>\\0<20 bytes of id>`` for each entry, sorted by name as if a folder's ended
in ``/``. Changing one file of a commit changes the trees above it and no other, which is why a
commit in a store of ten thousand notes writes two trees and asks the index for nothing.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

FILE = b"100644"
TREE = b"40000"

_ENTRY = re.compile(rb"(\d{5,6}) ([^\0]+)\0(.{20})", re.DOTALL)

#: name -> (mode, id of 20 bytes)
Entries = dict[bytes, tuple[bytes, bytes]]
#: What is to change in a folder: a file's id, None to take it away, or what changes in a folder.
_Changes = dict[bytes, "bytes | _Changes | None"]


def object_id(kind: str, data: bytes) -> bytes:
    """The id (20 bytes) git gives to an object of this kind."""
    return hashlib.sha1(
        b"%s %d\0" % (kind.encode(), len(data)) + data, usedforsecurity=False
    ).digest()


def parse(data: bytes) -> Entries:
    """The entries of a tree. Raises ``ValueError`` when these bytes are none."""
    found = _ENTRY.findall(data)
    # Together as long as the whole: nothing is between them.
    if sum(len(mode) + len(name) + 22 for mode, name, _ in found) != len(data):
        raise ValueError("not a tree")
    return {name: (mode, made) for mode, name, made in found}


def serialise(entries: Entries) -> bytes:
    """The bytes of a tree with these entries."""
    order = sorted(entries, key=lambda name: name + (b"/" if entries[name][0] == TREE else b""))
    return b"".join(b"%s %s\0%s" % (entries[name][0], name, entries[name][1]) for name in order)


def folders_of(paths: Iterable[bytes]) -> list[bytes]:
    """Every folder above these paths, each after the one it is in; the root is ``b""``."""
    found = {b""}
    for path in paths:
        parts = path.split(b"/")[:-1]
        found |= {b"/".join(parts[: at + 1]) for at in range(len(parts))}
    return sorted(found)


@dataclass
class Change:
    """The trees of a commit with some files changed.

    ``old`` are the trees there were (folder: bytes); ``trees`` the new ones by id, ``root`` the id
    of the whole.
    """

    old: Mapping[bytes, bytes]
    trees: dict[bytes, bytes] = field(default_factory=dict)
    root: bytes = b""

    @classmethod
    def of(cls, old: Mapping[bytes, bytes], files: Mapping[bytes, bytes | None]) -> Change:
        """``files`` are ids of blobs by path, None for a file that goes; empty folders go too.

        Raises ``ValueError`` when an old tree is damaged.
        """
        made = cls(old)
        made.root = made._edit(b"", _nested(files.items())) or made._keep(b"")
        return made

    def _edit(self, folder: bytes, changes: _Changes) -> bytes | None:
        """The id of the folder with its changes; None when nothing is left in it."""
        entries = parse(self.old.get(folder, b""))
        for name, change in changes.items():
            if isinstance(change, dict):
                inner = self._edit(folder + b"/" + name if folder else name, change)
                _put(entries, name, TREE, inner)
            else:
                _put(entries, name, FILE, change)
        return self._keep(serialise(entries)) if entries else None

    def _keep(self, data: bytes) -> bytes:
        made = object_id("tree", data)
        if data not in self.old.values():
            self.trees[made] = data
        return made


def _put(entries: Entries, name: bytes, mode: bytes, made: bytes | None) -> None:
    if made is not None:
        entries[name] = (mode, made)
    elif (entries.get(name, (b"",))[0] == TREE) == (mode == TREE):
        entries.pop(name, None)


def _nested(files: Iterable[tuple[bytes, bytes | None]]) -> _Changes:
    root: _Changes = {}
    for path, made in files:
        *folders, name = path.split(b"/")
        place = root
        for folder in folders:
            inner = place.setdefault(folder, {})
            assert isinstance(inner, dict), "no path of memory is a folder of another"
            place = inner
        place[name] = made
    return root


def read_batch(out: bytes) -> Iterator[tuple[bytes, bytes] | None]:
    """What ``cat-file --batch`` answered: the id (hex) and the bytes of each, None for missing.

    Raises ``ValueError`` for anything else.
    """
    at = 0
    while at < len(out):
        end = out.index(b"\n", at)
        words = out[at:end].split(b" ")
        at = end + 1
        if words[-1] == b"missing":
            yield None
            continue
        size = int(words[-1])
        yield words[-3], out[at : at + size]
        at += size + 1
