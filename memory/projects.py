"""Projects: which code base a directory belongs to, and the key under which its memory is kept.

A project is the git work tree that encloses the directory, whatever worktree or link it is reached
by, else the directory itself. It is found by reading ``.git``, without running git: a daemon asks
for every message. ``project.json`` says what a key cannot (``memory/identities.py``).

| the directory                           | belongs to                                            |
|-----------------------------------------|-------------------------------------------------------|
| is inside a repository                  | that; under the settings a person keeps in a          |
|                                         | repository of their home directory, to itself         |
| is gone                                 | the recorded repository, worktree or directory that   |
|                                         | was there, else the repository it was inside of, else |
|                                         | itself, as before                                     |
| is a repository nobody knows            | the one recorded that is gone from its place and has  |
|                                         | the same root commit and remote, else to itself       |
| is new, and what was recorded is a link | the recorded one, where it can be that                |
| to it now                               |                                                       |
| is new where a project once was that    | itself, under a key of its own                        |
| lives elsewhere now                     |                                                       |
| is where another repository was that is | the one recorded that is gone from its place and has  |
| gone                                    | the same root commit and remote, else to the other    |
| was merged into another                 | the other                                             |
| is inside a project's folder in the     | that project                                          |
| home, among its notes                   |                                                       |
| is on a Windows drive that is mounted   | the mounted directory                                 |
| is of no absolute path here (remote)    | itself, by its text                                   |
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path
from typing import Literal

from memoryd.memory.exclusions import excluded
from memoryd.memory.home import Home
from memoryd.memory.identities import (
    Identity,
    as_text,
    fitting,
    followed,
    has_left,
    identify,
    identities,
    identity,
    is_gone,
    is_known,
    is_replaced,
    may_be_replaced,
    move,
    record,
    record_key,
    remember_worktrees,
)
from memoryd.memory.project_keys import NOWHERE, Project, keys_at, path_of, project_key
from memoryd.memory.repositories import is_as_seen
from memoryd.memory.spelling import as_on_disk, from_windows
from memoryd.memory.work_trees import enclosing, kind_of, trees_of

__all__ = [
    "NOWHERE",
    "Identity",
    "Project",
    "Resolver",
    "excluded",
    "identities",
    "identity",
    "move",
    "path_of",
    "project_key",
    "record",
    "record_key",
]

_CACHED = 10_000


class Resolver:
    """The one place that says which project a directory belongs to, for reads and writes alike.

    ``worktrees`` "together" gives every git worktree its main repository; "apart" keeps it a
    project of its own. Looking changes nothing; whoever writes a store calls ``remember``. Answers
    are cached for the resolver's life: one a job, or one a request. ``spelled`` gives an absolute
    path the spelling its volume has for it.
    """

    def __init__(
        self,
        home: Home,
        worktrees: Literal["together", "apart"] = "together",
        *,
        spelled: Callable[[str], str] = as_on_disk,
    ) -> None:
        self._home = home
        self._together = worktrees == "together"
        self._spelled = spelled
        self._not_below = Path(os.path.realpath(os.environ.get("HOME") or Path.home()))
        self._known: dict[str, Project] = {}
        self._merged: dict[str, str] = {}
        self._trees: dict[str, set[str]] = {}
        self._places: _Places | None = None
        self._folders: Path | None = None
        self._guard = threading.Lock()

    def resolve(self, cwd: str) -> Project:
        """The project of ``cwd``, which may be gone, relative, empty or another system's."""
        with self._guard:
            found = self._known.get(cwd)
            if found is None:
                found = self._resolve(cwd)
                if len(self._known) >= _CACHED:
                    self._known.clear()
                self._known[cwd] = found
            return found

    def now(self, key: str) -> str:
        """The key of the project that has the memory of ``key``: its own, or what it was merged
        into."""
        with self._guard:
            if key not in self._merged:
                known = identity(self._home, key)
                self._merged[key] = followed(self._home, known).key if known is not None else key
            return self._merged[key]

    def remember(self, keys: Iterable[str] = ()) -> None:
        """Record what was resolved: projects that moved, worktrees, and, of ``keys``, new ones.

        Raises ``StoreError`` where a ``project.json`` cannot be written.
        """
        with self._guard:
            found = dict.fromkeys(self._known.values())
            trees = dict(self._trees)
        wanted = set(keys)
        for project in found:
            if project.key in wanted or identity(self._home, project.key) is not None:
                record(self._home, project)
                remember_worktrees(self._home, project.key, sorted(trees.get(project.key, ())))

    def _resolve(self, cwd: str) -> Project:
        text = from_windows(cwd)
        if not text.startswith("/") or "\0" in text:
            return self._project(text)
        try:
            place = Path(self._spelled(os.path.realpath(text)))
            kept = self._kept_at(place)
            if kept is not None:
                return kept
            root, tree = self._root(place)
        except (OSError, ValueError):  # a name too long or unspeakable for this file system
            return self._project(os.path.normpath(text.replace("//", "/")))
        found = self._project(str(root))
        if tree != root:
            self._trees.setdefault(found.key, set()).add(str(tree))
        return found

    def _kept_at(self, place: Path) -> Project | None:
        """The project in whose folder of the home ``place`` lies; None where it lies in none."""
        if self._folders is None:
            self._folders = Path(self._spelled(os.path.realpath(self._home.projects)))
        if self._folders not in place.parents:
            return None
        key = place.relative_to(self._folders).parts[0]
        known = identity(self._home, key)
        if known is not None:
            return self._answer(known, known.path)
        path = path_of(key)
        return self._project(path) if path is not None else None

    def _root(self, place: Path) -> tuple[Path, Path]:
        """The project's folder and the work tree around ``place``; both itself where there is none.

        Of what is gone the nearest that is known counts, before what still encloses it.
        """
        here = place
        while here != here.parent and is_gone(str(here)):
            text = as_text(str(here))
            tree = self._found_places().trees.get(text) if self._together else None
            if tree is not None:
                return Path(tree.path), here
            if self._found_places().holds(text, exactly=here == place):
                return here, here
            here = here.parent
        found = enclosing(place, together=self._together, not_below=self._not_below)
        return found or (place, place)

    def _project(self, path: str) -> Project:
        """The project whose folder ``path`` is, or was."""
        first = identity(self._home, project_key(path))
        if first is not None and first.path == as_text(path):
            return self._answer(self._now_at(first, path), path)
        gone = is_gone(path) or not path.startswith("/")
        places = self._found_places()
        known = places.now.get(as_text(path)) or (places.then.get(as_text(path)) if gone else None)
        if known is not None:
            return self._answer(self._now_at(known, path), path)
        keys = keys_at(path)
        while (known := identity(self._home, key := next(keys))) is not None:
            if gone or self._is_back(known, path):
                return self._answer(known, path)
        return self._new(Project(key, path), gone=gone)

    def _answer(self, known: Identity, path: str) -> Project:
        """The project ``known``, or what it was merged into, with where that is now."""
        now = followed(self._home, known)
        there = now is known and path.startswith("/") and not is_gone(path)
        return Project(now.key, path if there else now.path)

    def _new(self, project: Project, *, gone: bool) -> Project:
        """A repository nobody knows may be one that moved here."""
        if gone or is_known(self._home, project.key):
            return project
        found = self._linked(project) or self._moved_to(project)
        return self._answer(found, project.path) if found is not None else project

    def _linked(self, project: Project) -> Identity | None:
        """The one project whose place is a link to the path of ``project`` by now, as a person
        leaves it who moved a directory; unless another repository is there."""
        leads = [known for known in self._found_places().every if _is_same(known.path, project)]
        return leads[0] if len(leads) == 1 and _is_it(leads[0], project.path) else None

    def _now_at(self, known: Identity, path: str) -> Identity:
        """``known``, which was last at ``path``, or the one that moved there since it is gone."""
        place, git_dir = Path(path), known.git_common_dir
        if not path.startswith("/") or (git_dir and not known.root_commit):
            return known
        if git_dir and is_as_seen(place, git_dir, known.seen):
            return known
        found = self._moved_to(Project(known.key, path), besides=known.root_commit)
        # Where no repository was one may have been begun or cloned: only the very same has moved.
        if found is None or not (git_dir or is_as_seen(place, "", found.seen)):
            return known
        return found

    def _moved_to(self, project: Project, besides: str = "") -> Identity | None:
        """The one project gone from its place that is the repository at the path of ``project``,
        unless that has the root commit ``besides``."""
        if kind_of(Path(project.path) / ".git") is None:
            return None
        every = [known for known in self._found_places().every if known.root_commit]
        every = [known for known in every if has_left(known) or may_be_replaced(known)]
        if not every:
            return None
        made = identify(project)
        found = fitting(made, every) if made.root_commit != besides else []
        left = [known for known in found if has_left(known) or is_replaced(known)]
        return left[0] if len(left) == 1 else None

    def _is_back(self, known: Identity, path: str) -> bool:
        """Whether what is at ``path`` is the project that once was there and is nowhere else."""
        return is_gone(known.path) and _is_it(known, path)

    def _found_places(self) -> _Places:
        if self._places is None:
            self._places = _Places(identities(self._home))
        return self._places


def _is_it(known: Identity, path: str) -> bool:
    """Whether what is at ``path`` can be the project ``known``: it is no other repository."""
    wanted = {"", known.root_commit}
    return not known.root_commit or identify(Project(known.key, path)).root_commit in wanted


def _is_same(path: str, project: Project) -> bool:
    """Whether ``path``, where a project was, is another way to the directory of ``project``."""
    if not path.startswith("/") or path == as_text(project.path):
        return False
    try:
        return Path(path).samefile(project.path)
    except (OSError, ValueError):
        return False


class _Places:
    """Where every recorded project is, and where it was."""

    def __init__(self, every: list[Identity]) -> None:
        self.every = every
        self.now = {known.path: known for known in every if known.path}
        self.then: dict[str, Identity] = {}
        for known in sorted(every, key=lambda each: not each.path):  # who is elsewhere, before
            for path in known.former_paths:
                self.then.setdefault(path, known)

    @cached_property
    def trees(self) -> dict[str, Identity]:
        """Where their worktrees are and were, as they were reached or as git knows them."""
        found: dict[str, Identity] = {}
        for known in self.every:
            own = trees_of(Path(known.git_common_dir)) if known.git_common_dir else ()
            for path in (*known.worktrees, *map(as_text, own)):
                found.setdefault(path, known)
        return found

    def holds(self, path: str, *, exactly: bool) -> bool:
        """Whether ``path`` is or was a project's; a folder above the directory only if that is a
        repository."""
        known = self.now.get(path) or self.then.get(path)
        return known is not None and (exactly or bool(known.git_common_dir))
