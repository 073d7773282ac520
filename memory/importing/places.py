"""Which directory a foreign key stands for: both agents' schemes lose what the path was.

No key is decoded. The directories that exist are walked from the root, and those whose own key is
this one are the answer: none, one, or several, and then only a person can say which.
Schemes: FreeCode's ``formatSessionDirName`` and its older key by base name; Claude Code's folders.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

#: Folders listed to find one key; a search that needs more finds nothing.
MAX_LISTED = 500

_DROPPED = re.compile(r'[<>:"|?*]')
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")
_NOT_ALPHANUMERIC = re.compile(r"[^A-Za-z0-9]")
_CLAUDE_LONGEST = 200


@dataclass(frozen=True)
class Scheme:
    """How a path becomes a key: each segment by ``encode``, joined by ``joint``."""

    encode: Callable[[str], str]
    joint: str

    def key(self, path: str) -> str:
        """The key of an absolute path."""
        return self.joint.join(self.encode(each) for each in path.split("/") if each)


def _freecode_segment(segment: str) -> str:
    return _DROPPED.sub("", segment.replace("-", "_h_"))


def _claude_segment(segment: str) -> str:
    """One hyphen for each UTF-16 unit that is no letter or digit, as JavaScript counts them."""
    return _NOT_ALPHANUMERIC.sub(lambda found: "-" * (1 + (ord(found[0]) > 0xFFFF)), segment)


FREECODE = Scheme(_freecode_segment, "__")
CLAUDE_CODE = Scheme(_claude_segment, "-")


def freecode_legacy_key(path: str) -> str:
    """The key FreeCode gave a project before: its base name, the unsafe characters replaced."""
    return _UNSAFE.sub("_", path.rstrip("/").rpartition("/")[2])


def is_claude_key(key: str, path: str) -> bool:
    """Whether Claude Code keeps the project at ``path`` under ``key``; a long key holds a hash."""
    full = "-" + CLAUDE_CODE.key(path)
    if len(full) <= _CLAUDE_LONGEST:
        return key == full
    return key.startswith(full[:_CLAUDE_LONGEST] + "-")


def directories(key: str, scheme: Scheme) -> tuple[str, ...]:
    """The directories that exist and have this key, links resolved, sorted.

    Empty also where finding out would take more than ``MAX_LISTED`` listings.
    """
    if not key:
        return ()
    search = _Search(scheme)
    found = {os.path.realpath(path) for path in search.below(Path("/"), key)}
    return () if search.listed > MAX_LISTED else tuple(sorted(found))


class _Search:
    def __init__(self, scheme: Scheme) -> None:
        self.scheme = scheme
        self.listed = 0

    def below(self, folder: Path, rest: str) -> Iterator[Path]:
        """What lies below ``folder`` and has ``rest`` as the key of the way there."""
        self.listed += 1
        if self.listed > MAX_LISTED:
            return
        for name in self._names(folder, rest):
            encoded = self.scheme.encode(name)
            place = folder / name
            if not encoded or not _is_folder(place):
                continue
            if encoded == rest:
                yield place
            else:
                yield from self.below(place, rest[len(encoded) + len(self.scheme.joint) :])

    def _names(self, folder: Path, rest: str) -> list[str]:
        """Names in ``folder`` whose key begins ``rest``; one that may not be listed is guessed."""
        try:
            names = os.listdir(folder)  # noqa: PTH208 - names, not a Path for each
        except PermissionError:
            names = [rest.split(self.scheme.joint)[0].replace("_h_", "-")]
        except OSError:
            names = []
        return sorted(name for name in names if self._begins(self.scheme.encode(name), rest))

    def _begins(self, encoded: str, rest: str) -> bool:
        return encoded == rest or rest.startswith(encoded + self.scheme.joint)


def _is_folder(place: Path) -> bool:
    try:
        return place.is_dir()
    except (OSError, ValueError):
        return False
