"""What nobody may be told of, by the directory it was said in, as the settings are now."""

from __future__ import annotations

from pathlib import Path

from memoryd.memory.config import Config, load_project
from memoryd.memory.errors import ConfigError
from memoryd.memory.home import Home
from memoryd.memory.projects import Resolver, excluded


class Exclusion:
    """Asked of a directory: whether it is excluded, by the configuration or its project's own.

    Words that were kept before it was are stripped only with the next pass: whoever shows any asks.
    A project whose file cannot be read is excluded. Each directory is looked at once.
    """

    def __init__(self, home: Home, config: Config) -> None:
        self._config = config
        self._resolver = Resolver(home, config.projects.worktrees)
        self._known: dict[str, bool] = {}

    def __call__(self, cwd: str) -> bool:
        """Whether nothing said in ``cwd`` may be told; an empty one is excluded by nothing."""
        if cwd not in self._known:
            self._known[cwd] = bool(cwd) and self._is_excluded(cwd)
        return self._known[cwd]

    def _is_excluded(self, cwd: str) -> bool:
        project = self._resolver.resolve(cwd)
        try:
            globs = load_project(Path(project.path), self._config).privacy.exclude
        except ConfigError:
            return True
        return excluded(cwd, globs) or excluded(project.path, globs)
