"""The first line of a commit: what was done to which notes, so that the log reads as a diary."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

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


def done(before: Collection[str], after: Mapping[str, bytes | None], words: Words) -> str:
    """What ``after`` (path to bytes, None: removed) did to the notes that ``before`` had.

    "" where it touched no note: all that is left is tombstones.
    """
    made = {_stem(path) for path in after if after[path] is not None and path not in before}
    gone = {_stem(path) for path in after if after[path] is None}
    found: dict[str, list[str]] = {}
    for path in after:
        if path == TOMBSTONES:
            continue
        if after[path] is None:
            # A note that moved is told by its new place.
            verb = "" if _stem(path) in made else words.removed
        elif path in before:
            verb = words.changed
        elif path.startswith(f"{ARCHIVE}/"):
            verb = words.archived
        else:
            verb = words.moved if _stem(path) in gone else words.new
        found.setdefault(verb, []).append(_stem(path))
    order = (words.new, words.changed, words.moved, words.archived, words.removed)
    return "; ".join(f"{verb} {_names(found[verb])}" for verb in order if found.get(verb))


def _names(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(name[:_NAME_CHARACTERS] for name in names[:_NAMED]) + more


def _stem(path: str) -> str:
    return path.rpartition("/")[2].removesuffix(".md")
