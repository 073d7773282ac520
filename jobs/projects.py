"""Projects as a person sees them: listed, shown, said to be in another directory.

What is kept of a project is spread: ``project.json``, a store, rows of the ledger, messages of the
session history. None of it moves with a project's directory: its key stays.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from memoryd.memory.baseline import Baseline
from memoryd.memory.config import Config
from memoryd.memory.errors import UsageError
from memoryd.memory.home import Home
from memoryd.memory.identities import (
    Identity,
    fitting,
    has_left,
    identify,
    identities,
    identity,
    is_known,
    last_place,
    move,
    record,
)
from memoryd.memory.project_names import is_key, named_project
from memoryd.memory.projects import Project, Resolver, path_of
from memoryd.memory.store import TOMBSTONES, Store
from memoryd.sessions.history import History

#: Repositories that are asked who they are when some project is gone from its place.
_LOOKED_AT = 200


#: How long a person is kept waiting for a writer lock.
WAIT_SECONDS = 5.0


@dataclass(frozen=True)
class Known:
    """One project, with how much is kept of it. ``path`` is empty where nobody knows it.

    ``last_active_ms`` is when something was last said in it, None for never.
    """

    key: str
    path: str
    exists: bool
    notes: int
    sessions: int
    last_active_ms: int | None
    merged_into: str


@dataclass(frozen=True)
class Moved:
    """Where a project was and is. ``messages`` were said in the new place before."""

    key: str
    former_path: str
    path: str
    messages: int


class Projects:
    """The projects of one home. Methods raise the errors of stores, ledger and session history."""

    def __init__(self, home: Home, config: Config, history: History) -> None:
        self.home = home
        self.history = history
        self._worktrees = config.projects.worktrees

    def all(self) -> list[Known]:
        """Every project of which anything is kept, the last active first, then by key.

        Not one that is but a name: no directory, no repository, nothing said, nothing ever noted.
        """
        use = self.history.project_use()
        keys = {each.key for each in identities(self.home)} | set(use)
        keys |= {store.key for store in Store.all(self.home) if not store.is_profile}
        found = [each for key in keys if not self._is_but_a_name(each := self.known(key, use))]
        return sorted(found, key=lambda each: (-(each.last_active_ms or 0), each.key))

    def known(self, key: str, use: Mapping[str, tuple[int, int | None]]) -> Known:
        """One project; ``use`` is what the session history says of all."""
        said = identity(self.home, key)
        path = said.path if said is not None else path_of(key) or ""
        sessions, last = use.get(key, (0, None))
        notes = sum(not note.archived for note in Store.for_project(self.home, key).notes())
        into = said.merged_into if said is not None else ""
        exists = path.startswith("/") and Path(path).is_dir()
        return Known(key, path, exists, notes, sessions, last, into)

    def _is_but_a_name(self, known: Known) -> bool:
        if known.exists or known.notes or known.sessions or known.merged_into:
            return False
        said = identity(self.home, known.key)
        store = Store.for_project(self.home, known.key)
        of_a_repository = said is not None and (said.root_commit or said.git_common_dir)
        return not of_a_repository and not store.notes() and not store.read(TOMBSTONES)

    def counts(self, key: str) -> dict[str, int]:
        """How many notes of each type the project has; ``archive`` counts what was superseded."""
        found = Store.for_project(self.home, key).notes()
        kinds = Counter("archive" if note.archived else note.type for note in found)
        return dict(sorted(kinds.items()))

    def named(self, name: str, directory: Path, *, as_first: bool = False) -> Project:
        """The project with the key ``name``, or that of ``directory``.

        ``as_first``: the one recorded there, though it was merged into another. Raises
        ``UsageError`` where nothing is known of either.
        """
        if as_first and not is_key(self.home, name):
            place = os.path.realpath(directory)
            for said in identities(self.home):
                if said.path == place and said.merged_into:
                    return Project(said.key, said.path)
        used = self.history.project_use
        return named_project(self.home, name, directory, self._resolver().resolve, used)

    def move(self, project: Project, directory: Path) -> Moved:
        """Have the project live in ``directory`` from now on; its key and all under it stay.

        Raises ``UsageError`` where that is no directory or another project has a memory there.
        """
        if not directory.is_dir():
            raise UsageError(f"there is no directory {directory}", hint="name the new one")
        there = self._resolve(directory)
        said = identity(self.home, project.key) or Identity(project.key, project.path)
        if there.key != project.key:
            if is_known(self.home, there.key):
                raise UsageError(
                    f"{there.path} is the project {there.key} already",
                    hint=f"`memoryd project merge {project.key} {there.key}` joins the two",
                )
        elif there.path == said.path:
            raise UsageError(f"{project.key} is in {there.path} already")
        self._require_record(project)
        move(self.home, project.key, there.path)
        messages = 0
        if there.key != project.key:
            messages = self.history.repoint_project(there.key, project.key)
        return Moved(project.key, said.path, there.path, messages)

    def _require_record(self, project: Project) -> None:
        """Who a project is comes only with a history: one that has none gets one."""
        if identity(self.home, project.key) is not None:
            return
        store = Store.for_project(self.home, project.key)
        with store.writer_lock(WAIT_SECONDS):
            Baseline(store).ensure()
        record(self.home, project)

    def _resolve(self, directory: Path) -> Project:
        return self._resolver().resolve(str(directory))

    def _resolver(self) -> Resolver:
        return Resolver(self.home, self._worktrees)


def found_again(home: Home) -> Iterator[tuple[Identity, str]]:
    """Each repository that is gone from its place, with a directory that fits it.

    Looked for where people move things: beside its old place, one folder further out, and beside
    other projects. What fits has the same root commit and remote.
    """
    every = identities(home)
    left = [known for known in every if known.root_commit and has_left(known)]
    left = [known for known in left if not known.merged_into]
    if not left:
        return
    beside = {Path(known.path).parent for known in every if known.path.startswith("/")}
    beside |= {out for known in left for out in list(Path(last_place(known)).parents)[:2]}
    for place in list(_repositories(beside))[:_LOOKED_AT]:
        made = identify(Project("", str(place)))
        for known in fitting(made, left):
            yield known, str(place)


def _repositories(folders: Iterable[Path]) -> Iterator[Path]:
    for folder in sorted(folders):
        try:
            found = sorted(folder.iterdir())
        except OSError:  # gone with what was in it
            continue
        yield from (each for each in found if (each / ".git").exists())
