"""Where other memories are on this machine, and which project each one belongs to.

FreeCode keeps ``<root>/projects/<key>/memory``, Claude Code
``<root>/projects/<encoded git root>/memory``; any folder of markdown is a source too.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from memoryd.memory.errors import UsageError
from memoryd.memory.home import Home
from memoryd.memory.importing import places
from memoryd.memory.projects import identities

Kind = Literal["freecode", "claude-code", "folder"]

KINDS: tuple[Kind, ...] = get_args(Kind)

_NAMES: dict[Kind, str] = {"freecode": ".freecode", "claude-code": ".claude"}
_MEMORY = "memory"
#: Transcripts of a project that are asked for its directory, and how much of each (bytes).
_ASKED = 5
_ASKED_BYTES = 64 << 10


@dataclass(frozen=True)
class Source:
    """One memory to import: where it lies, and the directories its project may be in.

    ``key`` is what it is called where it comes from; of a folder the path, ``~`` for the person's
    own directory. Exactly one of ``belongs_to`` places it; else a person must say.
    """

    kind: Kind
    key: str
    root: Path
    belongs_to: tuple[str, ...] = ()


def find_sources(
    kind: Kind | None, given: Path | None, environ: Mapping[str, str], home: Home
) -> list[Source]:
    """The memories in ``given``, or without it those of every agent of ``kind`` on the machine.

    ``given`` may be a memory directory, a project's folder, the folder of all projects or the
    agent's own. Raises ``UsageError`` where it is no directory, and for a folder that is not named.
    """
    if given is None:
        if kind == "folder":
            raise UsageError(
                "a folder must be named",
                hint="`memoryd memory import ~/notes --from folder --project DIR`",
            )
        wanted = [kind] if kind else list(_NAMES)
        return [found for each in wanted for found in _all_of(each, environ, home)]
    if not given.is_dir():
        raise UsageError(f"{given} is no directory", hint="name the directory to import")
    place = Path(os.path.realpath(given))
    whose = kind or _kind_of(place, environ)
    if whose == "folder":
        return [Source(whose, _short(place), place)]
    found = _below(whose, place, home)
    # A memory directory that was moved or copied is still one, if the person says so.
    return found or ([Source(whose, _short(place), place)] if kind else [])


def root_of(kind: Kind, environ: Mapping[str, str]) -> Path:
    """The directory in which the agent keeps its things."""
    person = Path(environ.get("HOME") or "/")
    if kind == "freecode":
        return person / ".freecode"
    return Path(environ.get("CLAUDE_CONFIG_DIR") or person / ".claude")


def _all_of(kind: Kind, environ: Mapping[str, str], home: Home) -> list[Source]:
    root = root_of(kind, environ)
    return _below(kind, Path(os.path.realpath(root)), home) if root.is_dir() else []


def _kind_of(place: Path, environ: Mapping[str, str]) -> Kind:
    """Whose memory lies there, by the name of a folder above it or the agent's own directory."""
    for kind, name in _NAMES.items():
        root = os.path.realpath(root_of(kind, environ))
        if name in place.parts or place.is_relative_to(root):
            return kind
    return "folder"


def _short(place: Path) -> str:
    person = os.path.realpath(Path.home())
    if place.is_relative_to(person):
        return str(Path("~") / place.relative_to(person))
    return str(place)


def _below(kind: Kind, place: Path, home: Home) -> list[Source]:
    """The memories of ``kind`` that lie in ``place``, which is any of the four directories."""
    if place.name == _MEMORY:
        key = "" if place.parent.name == "projects" else place.parent.name
        return [_placed(kind, key, place, home)]
    if place.name != "projects" and (place / _MEMORY).is_dir():
        return [_placed(kind, place.name, place / _MEMORY, home)]
    projects = place / "projects" if place.name != "projects" else place
    found = [(path.name, path / _MEMORY) for path in _folders(projects) if path.name != _MEMORY]
    if kind == "freecode" and projects / _MEMORY in _folders(projects):
        found.append(("", projects / _MEMORY))  # the key of the root directory is empty
    return [_placed(kind, key, root, home) for key, root in found if os.path.lexists(root)]


def _folders(place: Path) -> list[Path]:
    try:
        with os.scandir(place) as entries:
            names = [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []
    return sorted(map(Path, names))


def _placed(kind: Kind, key: str, root: Path, home: Home) -> Source:
    find = _freecode_places if kind == "freecode" else _claude_places
    return Source(kind, key, root, find(key, root, [each.path for each in identities(home)]))


def _freecode_places(key: str, root: Path, known: Iterable[str]) -> tuple[str, ...]:
    """By the current scheme whatever exists; by the older one only projects that are known."""
    older = (path for path in known if places.freecode_legacy_key(path) == key)
    return tuple(sorted({*places.directories(key, places.FREECODE), *older}))


def _claude_places(key: str, root: Path, known: Iterable[str]) -> tuple[str, ...]:
    """What the transcripts beside the memory say; else what exists or is known."""
    said = {path for path in _said_in(root.parent) if places.is_claude_key(key, path)}
    if len(said) == 1:
        return tuple(said)
    fitting = {path for path in known if places.is_claude_key(key, path)}
    found = places.directories(key.removeprefix("-"), places.CLAUDE_CODE)
    return tuple(sorted(said | fitting | set(found)))


def _said_in(folder: Path) -> set[str]:
    """The directories that the newest transcripts in ``folder`` name, where they still exist."""
    try:
        with os.scandir(folder) as entries:
            found = [
                (entry.stat(follow_symlinks=False).st_mtime_ns, entry.path)
                for entry in entries
                if entry.name.endswith(".jsonl") and entry.is_file(follow_symlinks=False)
            ]
    except OSError:
        return set()
    newest = [Path(path) for _, path in sorted(found, reverse=True)[:_ASKED]]
    return {cwd for path in newest for cwd in _directories_in(path) if Path(cwd).is_dir()}


def _directories_in(transcript: Path) -> set[str]:
    found = set()
    try:
        with transcript.open("rb") as file:
            lines = file.read(_ASKED_BYTES).split(b"\n")[:-1]
    except OSError:
        return set()
    for line in lines:
        try:
            values = json.loads(line)
        except (ValueError, RecursionError):  # a line that is none says nothing
            continue
        cwd = values.get("cwd") if isinstance(values, dict) else None
        if isinstance(cwd, str) and cwd.startswith("/") and "\0" not in cwd:
            found.add(os.path.realpath(cwd))
    return found
