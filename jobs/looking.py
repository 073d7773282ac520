"""A home while the doctor looks at it, and what a check is."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from memoryd.jobs.ledger import Ledger
from memoryd.jobs.workplace import open_ledger
from memoryd.memory.clock import Clock
from memoryd.memory.config import Config, load
from memoryd.memory.errors import ConfigError, MemorydError
from memoryd.memory.health import Finding
from memoryd.memory.home import Home
from memoryd.memory.store import Store

if TYPE_CHECKING:
    from memoryd.sessions.history import History


@dataclass(frozen=True)
class Look:
    """A home while it is looked at: what the checks share, opened once."""

    home: Home
    clock: Clock
    environ: Mapping[str, str]
    #: What the daemon says of itself (``status``); None where none answers.
    daemon: Mapping[str, Any] | None = None

    @cached_property
    def config(self) -> Config:
        """The configuration, the defaults where it cannot be used (a check says so)."""
        try:
            return load(self.home.config_file)
        except ConfigError:
            return Config()

    @cached_property
    def _opened(self) -> Ledger | MemorydError:
        try:
            return open_ledger(self.home, self.config, self.clock, check=True)
        except MemorydError as error:
            return error

    @property
    def ledger(self) -> Ledger:
        """The ledger, checked when it is first opened. Raises what opening it raised."""
        if isinstance(self._opened, MemorydError):
            raise self._opened
        return self._opened

    @cached_property
    def _history(self) -> History | MemorydError | None:
        path = self.home.session_history
        if not os.path.lexists(path):
            return None
        from memoryd.sessions.history import History

        history = History(path, self.clock)
        try:
            history.open()
            history.database.check()
        except MemorydError as error:
            history.close()
            return error
        return history

    @property
    def history(self) -> History | None:
        """The session history, checked when it is first asked for; None where there is none.

        Raises what checking it raised, each time the same.
        """
        if isinstance(self._history, MemorydError):
            raise self._history
        return self._history

    @cached_property
    def stores(self) -> list[Store]:
        """Every store, those that have lost their baseline too."""
        every = (*Store.all(self.home), *Store.in_projects(self.home))
        found = {store.key: store for store in every}
        return sorted(found.values(), key=lambda store: store.root)

    def close(self) -> None:
        """Close what was opened."""
        for opened in (self.__dict__.get("_opened"), self.__dict__.get("_history")):
            if opened is not None and not isinstance(opened, MemorydError):
                opened.close()


CheckAll = Callable[[Look], Iterable[Finding]]


@dataclass(frozen=True)
class Check:
    """One check: the code of its answer when all is well, what that says, and the look itself."""

    code: str
    fine: str
    look: CheckAll
