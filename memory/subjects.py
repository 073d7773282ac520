"""The first line of a commit: what was done to which notes, so that the log reads as a diary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from memoryd.memory.baseline import blob_id
from memoryd.memory.notes import ARCHIVE
from memoryd.memory.store import TOMBSTONES

#: Notes named, of each thing that was done to some.
_NAMED = 3
_NAME_CHARACTERS = 60


@dataclass(frozen=True)
class Words:
    """The verbs of one author; a moved or archived note is named once, for both its paths."""

    new: str
    changed: str
    moved: str
    archived: str
    removed: str


OURS = Words("remember", "update", "move", "archive", "remove")
THEIRS = Words("add", "edit", "move", "archive", "delete")


def done(before: Mapping[str, str], after: Mapping[str, bytes | None], words: Words) -> str:
    """What ``after`` (path to bytes, None: removed) did to the notes that ``before`` (path to blob
    id) had.

    "" where it touched no note: all that is left is tombstones.
    """
    made = {path: data for path, data in after.items() if data is not None and path not in before}
    stems = {_stem(path) for path in made}
    blobs = {blob_id(data): path for path, data in made.items()}
    gone = {path for path in after if after[path] is None}
    moved = {blobs[blob]: path for path in gone if (blob := before.get(path)) in blobs}
    left = {_stem(path) for path in gone}
    found: dict[str, list[str]] = {}
    for path in after:
        if path == TOMBSTONES:
            continue
        name = _stem(path)
        if path in gone:
            # A note that moved is told by its new place.
            told = name in stems or path in moved.values()
            verb = "" if told else words.removed
        elif path in before:
            verb = words.changed
        elif path.startswith(f"{ARCHIVE}/"):
            verb = words.archived
        elif path in moved and _stem(moved[path]) != name:
            verb, name = words.moved, f"{_stem(moved[path])} to {name}"
        else:
            verb = words.moved if path in moved or name in left else words.new
        found.setdefault(verb, []).append(name)
    order = (words.new, words.changed, words.moved, words.archived, words.removed)
    return "; ".join(f"{verb} {_names(found[verb])}" for verb in order if found.get(verb))


def _names(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(name[:_NAME_CHARACTERS] for name in names[:_NAMED]) + more


def _stem(path: str) -> str:
    return path.rpartition("/")[2].removesuffix(".md")
