"""``[privacy] exclude``: which directories are never read.

| an entry | excludes |
|---|---|
| ``/work/secret``, ``~/secret``, ``$HOME/secret`` | that directory and all below it |
| ``~/clients/*/private``, ``~/clients/**`` | the same with wildcards; ``*`` crosses slashes too |
| ``secret``, ``*-private`` | every directory of that name, wherever it is, and all below it |
| ``**/code/secret`` | every directory whose path ends so, and all below it |
| ``.``, ``./drafts``, ``notes/drafts`` | in a project's own file: that project, or that part |

An entry that could never meet anything is refused: it would protect nothing and nobody would know.
"""

from __future__ import annotations

import fnmatch
import glob
import os
import re
from collections.abc import Iterable
from pathlib import Path

_WILD = re.compile(r"[*?\[]")
_HOME = re.compile(r"\$(?:HOME|\{HOME\})(?=/|\Z)")
_VARIABLE = re.compile(r"\$(?:\w|\{)")
_WINDOWS = re.compile(r"[A-Za-z]:[\\/]|\\\\")


def usable(entry: str, directory: Path | None = None) -> str:
    """``entry`` as ``excluded`` takes it; ``directory`` is whose own file says it, None for nobody.

    Raises ``ValueError`` that says what to write instead.
    """
    text = _HOME.sub("~", entry, count=1) if _HOME.match(entry) else entry
    wrong = _wrong(text)
    if wrong:
        raise ValueError(wrong)
    if text.startswith(("/", "~", "*")):
        return text
    is_relative = "/" in text or text == "."
    if not is_relative:
        return text
    if directory is None:
        raise ValueError(_absolute_instead(text))
    return os.path.normpath(f"{glob.escape(str(directory))}/{text}")


def _wrong(text: str) -> str:
    """Why the entry can mean no directory, whoever says it; empty where it may."""
    if not text.strip():
        return "is empty: remove it, or write a directory"
    if _VARIABLE.match(text):
        return "holds a variable, which nobody fills in: write the path itself"
    if _WINDOWS.match(text):
        return "is a path of Windows: write it as it is mounted here, /mnt/c/..."
    if text.startswith("~") and text != "~" and not text.startswith("~/"):
        return "names another person's home: write its path, /home/..."
    if ".." in text.split("/"):
        return 'holds "..": write the whole path'
    return ""


def _absolute_instead(text: str) -> str:
    rest = os.path.normpath(text)
    if rest == ".":
        return (
            "means no directory here: write a whole path; in a project's own .memoryd.toml it"
            " means that project"
        )
    return (
        f'means no directory here: write "~/{rest}" or another whole path, or "**/{rest}" for'
        " every directory whose path ends so"
    )


def excluded(path: str, globs: Iterable[str]) -> bool:
    """Whether ``path`` or a folder above it meets one of the globs (``[privacy] exclude``).

    A glob with a slash is held against the whole path (``~`` is the home directory, ``*`` and
    ``**`` match across slashes too), one without against each name in it. Links count on both
    sides: a directory is excluded by whatever name it is reached. No directory is in none.
    """
    if not path:
        return False
    places = dict.fromkeys((os.path.normpath(path), os.path.realpath(path)))
    wanted = [each for glob in globs for each in dict.fromkeys((glob, _resolved(glob)))]
    return any(_meets(Path(place), wanted) for place in places)


def fixed_part(entry: str) -> tuple[str, bool]:
    """The directory before an entry's first wildcard, and whether that is all of it."""
    absolute = _absolute(entry)
    fixed = _WILD.split(absolute, maxsplit=1)[0]
    if fixed == absolute:
        return absolute.rstrip("/") or absolute, True
    return fixed.rpartition("/")[0] or fixed[:1], False


def _meets(place: Path, globs: Iterable[str]) -> bool:
    whole = [str(place), *map(str, place.parents)]
    for each in globs:
        pattern = _absolute(each).rstrip("/") if each.strip("/") else each
        against: Iterable[str] = whole if "/" in pattern else place.parts
        if any(fnmatch.fnmatchcase(name, pattern) for name in against):
            return True
        if pattern.endswith("/**") and pattern.removesuffix("/**") in whole:
            return True
    return False


def _resolved(entry: str) -> str:
    """``entry`` with the links in the part before its first wildcard followed."""
    absolute = _absolute(entry)
    if not absolute.startswith("/"):
        return entry
    fixed = _WILD.split(absolute, maxsplit=1)[0]
    folder = fixed if fixed == absolute else fixed.rpartition("/")[0] + "/"
    rest = absolute[len(folder) :]
    real = os.path.realpath(folder)
    return real if not rest else f"{real.rstrip('/')}/{rest}"


def _absolute(entry: str) -> str:
    return f"{Path.home()}{entry[1:]}" if entry == "~" or entry.startswith("~/") else entry
