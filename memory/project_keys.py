"""The key of a project: its path as one safe name of a folder, and back again."""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass

_KEEP = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._+@")
_LONGEST_KEY = 180
_KEPT_OF_LONG = 150
_RELATIVE = "%-"
#: The key of what was said in no directory that is known.
NOWHERE = _RELATIVE


@dataclass(frozen=True)
class Project:
    """One code base: the key of its store and the directory it is in."""

    key: str
    path: str


def project_key(path: str) -> str:
    """The key of the project at ``path``: injective always, one safe name of a folder.

    Segments of the absolute path, each byte outside ``A-Za-z0-9._+@`` as %XX, joined by ``-``; the
    root is ``%2F``. Over 180 characters: the first 150, ``%~`` and 16 hex of the path's sha256. A
    path that is not absolute here (empty, relative, of Windows) starts with ``%-``. Keys that
    would meet the names of the home's own files (``daemon``, ``profile-...``) have their first
    letter written as %XX.
    """
    raw = _bytes(path)
    absolute = raw.startswith(b"/")
    segments = [segment for segment in raw.split(b"/") if segment] if absolute else raw.split(b"/")
    key = "-".join(map(_segment, segments))
    if not absolute:
        key = _RELATIVE + key
    elif not segments:
        key = "%2F"
    elif key == "daemon" or key.startswith("profile-"):
        key = f"%{ord(key[0]):02X}{key[1:]}"
    if len(key) > _LONGEST_KEY:
        return f"{key[:_KEPT_OF_LONG]}%~{hashlib.sha256(raw).hexdigest()[:16]}"
    return key


def path_of(key: str) -> str | None:
    """The path whose key this is; None for a long key, which does not hold it, and for no key."""
    if not re.fullmatch(r"(?:%-)?(?:[A-Za-z0-9._+@-]|%[0-9A-F]{2})*", key):
        return None
    rest = key.removeprefix(_RELATIVE)
    raw = b"/".join(map(_decoded, rest.split("-")))
    if key == "%2F":
        raw = b"/"
    elif rest == key:
        raw = b"/" + raw
    path = raw.decode("utf-8", "surrogateescape")
    return path if project_key(path) == key else None


def keys_at(path: str) -> Iterator[str]:
    """The keys that projects at ``path`` can have: its own, then those of later ones.

    A later one is needed when the project whose key it is lives elsewhere by now: the path's first
    150 characters, ``%~`` and 16 hex of a sha256 of path and number, like the key of a long path.
    """
    key = project_key(path)
    yield key
    for number in itertools.count(2):
        digest = hashlib.sha256(b"%d\0" % number + _bytes(path)).hexdigest()
        yield f"{key[:_KEPT_OF_LONG]}%~{digest[:16]}"


def _bytes(path: str) -> bytes:
    try:
        return path.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return path.encode("utf-8", "surrogatepass")


def _segment(segment: bytes) -> str:
    return "".join(chr(byte) if byte in _KEEP else f"%{byte:02X}" for byte in segment)


def _decoded(segment: str) -> bytes:
    return re.sub(rb"%(..)", lambda found: bytes([int(found[1], 16)]), segment.encode())
