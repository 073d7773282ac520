"""Directories that a transcript names by a hash alone, found among those that are known.

Older Gemini CLI keeps a session in ``tmp/<sha256 of the directory it was started in>/chats`` and
says the directory nowhere. A hash cannot be undone, but whoever knows the directory from elsewhere
can tell that it is this one.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from memoryd.memory.exclusions import fixed_part
from memoryd.sessions.adapter import as_path
from memoryd.sessions.documents import read_head
from memoryd.sessions.loose import folder, names_in

#: What is read of a file that lists directories at most.
LIST_BYTES = 4 * 1024 * 1024
#: Folders looked at below one that an exclusion names with a wildcard.
BELOW_LIMIT = 2_000
#: Directories hashed at most, with those above them: about a tenth of a second.
HASHED_LIMIT = 100_000

_HASH = re.compile(r"[0-9a-f]{64}")


def hash_of(transcript: Path) -> str:
    """The hash that the directory of the session at ``transcript`` is named by; empty for none."""
    for chats in list(transcript.parents)[:2]:  # a sub-agent's lies one deeper
        if chats.name == "chats" and _HASH.fullmatch(chats.parent.name):
            return chats.parent.name
    return ""


class Directories:
    """Directories by their hash. ``known`` gives them when the first one is asked for."""

    def __init__(self, known: Callable[[], Iterable[str]]) -> None:
        self._known = known

    def of(self, transcript: Path) -> str:
        """Where the session at ``transcript`` was held; empty where no hash tells it.

        And where it holds a secret, as a directory that a transcript names (``as_path``).
        """
        wanted = hash_of(transcript)
        return as_path(self._by_hash.get(wanted, "")) if wanted else ""

    @cached_property
    def _by_hash(self) -> dict[str, str]:
        found: dict[str, str] = {}
        asked: set[str] = set()
        for path in self._known():
            for each in _with_those_above(path):
                if each in asked:
                    break  # and so were all above it
                asked.add(each)
                found[hashlib.sha256(each.encode("utf-8", "surrogateescape")).hexdigest()] = each
            if len(found) >= HASHED_LIMIT:
                break
        return found


def _with_those_above(path: str) -> Iterator[str]:
    if path.startswith("/") and "\0" not in path:
        place = Path(path)
        yield from map(str, (place, *place.parents))


def listed_by_gemini(environ: Mapping[str, str]) -> Iterator[str]:
    """The directories that Gemini CLI itself keeps a list of: its projects, and those trusted."""
    base = folder(environ, "", ".gemini")
    projects = _object(base / "projects.json").get("projects")
    yield from projects if isinstance(projects, dict) else ()
    yield from _object(base / "trustedFolders.json")


def named_in(globs: Iterable[str]) -> Iterator[str]:
    """The directories that exclusions name, and those in the folder before a wildcard."""
    for glob in globs:
        fixed, is_whole = fixed_part(glob)
        if not fixed.startswith("/"):
            continue
        yield fixed
        if not is_whole:
            yield from (
                f"{fixed.rstrip('/')}/{each}" for each in names_in(Path(fixed))[:BELOW_LIMIT]
            )


def _object(path: Path) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(read_head(path, LIST_BYTES))
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
