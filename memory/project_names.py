"""The project that a person names: by its key, or by a directory in it.

Only one that is known is meant. A name that fits none is refused with the nearest, so that a slip
of the hand never becomes a project.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Collection
from pathlib import Path

from memoryd.memory.errors import UsageError
from memoryd.memory.home import Home
from memoryd.memory.identities import identities, identity, is_known
from memoryd.memory.project_keys import NOWHERE, Project, path_of
from memoryd.memory.text import clip

#: Names that are offered for one that fits none, and how alike they must be.
_OFFERED = 3
_ALIKE = 0.5
#: Characters of a name that are looked at.
_COMPARED = 300


def is_key(home: Home, name: str) -> bool:
    """Whether ``name`` is the key of a project of the home rather than a directory."""
    if name == NOWHERE:
        return True
    return "/" not in name and name not in {"", ".", ".."} and _is_folder(home.projects / name)


def path_in(home: Home, key: str) -> str:
    """Where the project is; empty where nobody knows it."""
    said = identity(home, key)
    return said.path if said is not None else path_of(key) or ""


def named_project(
    home: Home,
    name: str,
    directory: Path,
    resolve: Callable[[str], Project],
    used: Callable[[], Collection[str]],
    *,
    new: bool = False,
) -> Project:
    """The project with the key ``name``, or that of ``directory``, which ``resolve`` answers.

    ``used`` gives the keys in the session history; it is asked only where the home itself knows
    nothing. ``new``: a directory that is there is a project, known or not. Raises ``UsageError``
    that names the nearest known ones.
    """
    if is_key(home, name):
        return Project(name, path_in(home, name))
    there = resolve(os.fspath(directory))
    if is_known(home, there.key) or (new and _is_folder(directory)):
        return there
    keys = set(used())
    if there.key in keys:
        return there
    if name in keys:
        return Project(name, path_in(home, name))
    raise UsageError(f"no project is known by {clip(name, 120)!r}", hint=_hint(home, name, keys))


def _hint(home: Home, name: str, used: Collection[str]) -> str:
    """The known names that are most like what was typed: a key, or as much of a path."""
    every = {each.key: each.path for each in identities(home)}
    every |= {key: path_in(home, key) for key in used if key not in every}
    typed = Path(name).parts
    alike = {
        key: max(
            _alike(name, key), _alike("/".join(typed), "/".join(Path(path).parts[-len(typed) :]))
        )
        for key, path in every.items()
    }
    nearest = sorted((key for key in every if alike[key] >= _ALIKE), key=lambda key: -alike[key])
    shown = [every[key] if every[key].startswith("/") else key for key in nearest[:_OFFERED]]
    more = "`memoryd project list` shows all"
    return f"the nearest: {', '.join(shown)}; {more}" if shown else more


def _is_folder(place: Path) -> bool:
    try:
        return place.is_dir()
    except OSError:  # a name too long, or a folder that may not be looked into
        return False


def _alike(one: str, other: str) -> float:
    return difflib.SequenceMatcher(None, one[:_COMPARED], other[:_COMPARED]).ratio()
