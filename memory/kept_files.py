"""What the newest commits hold, kept in this process: a save asks five times for the same tree."""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Mapping

#: Files kept in all, of whatever commits: some 200 bytes each.
FILES = 40_000

_ID = re.compile(r"[0-9a-f]{40}")

_guard = threading.Lock()
_kept: OrderedDict[tuple[str, str], Mapping[str, str]] = OrderedDict()


def kept_files(place: str, commit: str) -> Mapping[str, str] | None:
    """What ``keep_files`` was told of this commit, an id, of the repository at ``place``.

    What a commit holds never changes; whether it can still be read is for whoever reads it.
    """
    with _guard:
        return _kept.get((place, commit))


def keep_files(place: str, commit: str, files: Mapping[str, str]) -> None:
    """Keep what a commit holds, path to blob, in the place of what was kept of the repository."""
    if not _ID.fullmatch(commit):
        return  # a name, that may come to mean another
    with _guard:
        for old in [each for each in _kept if each[0] == place]:
            del _kept[old]
        _kept[(place, commit)] = files
        while _kept and sum(map(len, _kept.values())) > FILES:
            _kept.popitem(last=False)
