"""Which directories are excluded, by the configuration or their project's own, as it is now."""

from __future__ import annotations

from pathlib import Path

from memoryd.memory.config import Config, load_project
from memoryd.memory.errors import ConfigError
from memoryd.memory.home import Home
from memoryd.memory.own_calls import is_own_place
from memoryd.memory.projects import Resolver, excluded


class ExcludedPlaces:
    """Asked of a directory: whether nothing that was said in it may be told.

    Words that were kept before it was excluded are stripped only with the next pass: whoever shows
    any asks. A project whose file cannot be read is excluded. Each directory is looked at once.
    """

    def __init__(self, home: Home, config: Config) -> None:
        self._config = config
        self._resolver = Resolver(home, config.projects.worktrees)
        self._known: dict[str, bool] = {}

    def __call__(self, cwd: str) -> bool:
        """Whether ``cwd`` is excluded; one that is not known (empty) is, while anything is.

        Nobody can say that it is not from there.
        """
        if not cwd:
            return bool(self._config.privacy.exclude)
        if cwd not in self._known:
            self._known[cwd] = is_own_place(cwd) or self._is_excluded(cwd)
        return self._known[cwd]

    def _is_excluded(self, cwd: str) -> bool:
        project = self._resolver.resolve(cwd)
        try:
            globs = load_project(Path(project.path), self._config).privacy.exclude
        except ConfigError:
            return True
        return excluded(cwd, globs) or excluded(project.path, globs)
