"""One spelling of a path: Windows drives as WSL mounts them, and names as the volume has them."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Callable, Iterable
from pathlib import Path

#: Where WSL mounts the drives of Windows, a folder a letter, unless it is told otherwise.
DRIVES = Path("/mnt")

_DRIVE = re.compile(r"([A-Za-z]):(?:[\\/]+|$)")

LookAt = Callable[[str], os.stat_result]
Names = Callable[[str], Iterable[str]]


def from_windows(path: str, drives: Path = DRIVES) -> str:
    """``path`` with a Windows drive in it as it is called here; any other path as it is.

    Where the drive is mounted (WSL) ``C:\\Users\\x`` and ``/mnt/c/Users/x`` are one directory, the
    latter. Elsewhere it is text in one spelling: a capital drive, backslashes, none at the end.
    """
    found = _DRIVE.match(path)
    if found is None:
        return path
    names = [name for name in re.split(r"[\\/]+", path[found.end() :]) if name not in {"", "."}]
    mounted = drives / found[1].lower()
    if mounted.is_dir():
        return os.path.normpath("/".join((str(mounted), *names)))
    return f"{found[1].upper()}:\\" + "\\".join(names)


def as_on_disk(path: str, look_at: LookAt = os.lstat, names: Names = os.listdir) -> str:
    """The absolute ``path``, free of links, with each name as its folder lists it.

    On a volume that ignores case (or how accents are composed) many spellings reach one file. A
    folder is listed only where another spelling was seen to reach the same; names that are not
    there keep theirs.
    """
    made = ""
    for name in filter(None, path.split("/")):
        full, other = f"{made}/{name}", f"{made}/{_respelled(name)}"
        if other != full and (seen := _seen(look_at, full)) and seen == _seen(look_at, other):
            name = _listed(made or "/", name, names)
        made = f"{made}/{name}"
    return made or "/"


def _listed(folder: str, name: str, names: Names) -> str:
    try:
        every = list(names(folder))
    except OSError:  # a folder that may be entered and not listed
        return name
    if name in every:
        return name
    return next((each for each in sorted(every) if _folded(each) == _folded(name)), name)


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", name).casefold())


def _respelled(name: str) -> str:
    """Another spelling of ``name``, the same where there is none (digits, CJK)."""
    if name.swapcase() != name:
        return name.swapcase()
    composed = unicodedata.normalize("NFC", name)
    return composed if composed != name else unicodedata.normalize("NFD", name)


def _seen(look_at: LookAt, path: str) -> tuple[int, int] | None:
    try:
        found = look_at(path)
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino
