"""Which directories are excluded, by the configuration or their project's own, as it is now."""

from __future__ import annotations

from pathlib import Path

from memoryd.memory.config import Config, load_project
from memoryd.memory.errors import ConfigError
from memoryd.memory.own_calls import is_own_place
from memoryd.memory.projects import Resolver, excluded


class ExcludedPlaces:
    """Asked of a directory: whether nothing that was said in it may be kept, read or told.

    The one place that decides it, for distilling, backfill, what is kept and what is told. What
    becomes of a project whose own file cannot be read is for who asks to say: ``is_excluded``
    raises, a call says yes. Each directory is looked at once.
    """

    def __init__(self, resolver: Resolver, config: Config) -> None:
        self._config = config
        self._resolver = resolver
        self._settings: dict[str, Config] = {}
        self._known: dict[str, bool] = {}

    def __call__(self, cwd: str) -> bool:
        """``is_excluded``, and yes where its project's file cannot be read."""
        try:
            return self.is_excluded(cwd)
        except ConfigError:
            return True

    def is_excluded(self, cwd: str) -> bool:
        """Whether ``cwd`` is excluded; one that is not known (empty) is, while anything is.

        Nobody can say that it is not from there. Raises ``ConfigError`` (``settings``).
        """
        if not cwd:
            return bool(self._config.privacy.exclude)
        if cwd not in self._known:
            self._known[cwd] = is_own_place(cwd) or self._meets(cwd)
        return self._known[cwd]

    def settings(self, cwd: str) -> Config:
        """The configuration under the project of ``cwd``, the whole one where that is not known.

        Raises ``ConfigError`` where the project's own file cannot be used.
        """
        if not cwd:
            return self._config
        if cwd not in self._settings:
            project = self._resolver.resolve(cwd)
            self._settings[cwd] = load_project(Path(project.path), self._config)
        return self._settings[cwd]

    def _meets(self, cwd: str) -> bool:
        globs = self.settings(cwd).privacy.exclude
        return excluded(cwd, globs) or excluded(self._resolver.resolve(cwd).path, globs)
