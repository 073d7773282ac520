"""What the commands on sessions share: a home's ledger and history, and a session's state."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memoryd.cli.common import open_queue, store_of
from memoryd.memory.home import Home

if TYPE_CHECKING:
    from memoryd.jobs.ledger import Ledger
    from memoryd.memory.config import Config
    from memoryd.sessions.history import History
    from memoryd.sessions.stored import StoredSession

#: How a session is named where there is little room.
SHORT = 8


@dataclass(frozen=True)
class Opened:
    """A home, opened for the commands on sessions."""

    home: Home
    config: Config
    ledger: Ledger
    history: History


@contextmanager
def opened(home: Home) -> Iterator[Opened]:
    """The ledger and the session history of ``home``, closed afterwards."""
    from memoryd.memory.clock import SystemClock
    from memoryd.sessions.history import History

    ledger, config = open_queue(home)
    try:
        with History(home.session_history, SystemClock()) as history:
            yield Opened(home, config, ledger, history)
    finally:
        ledger.close()


def state_of(place: Opened, session: StoredSession) -> str:
    """``forgotten``, ``excluded`` or ``discarded``; else ``waiting`` while words wait, ``empty``
    where no person said anything, ``distilled``.
    """
    from memoryd.sessions.listing import words_wait

    name = (session.agent, session.session)
    rollout = place.ledger.records.rollout(*name)
    if session.forgotten or (rollout is not None and rollout.excluded is not None):
        code = rollout.excluded if rollout is not None and rollout.excluded else "forgotten"
        return code.rpartition(".")[2]
    if words_wait(place.history, *name, place.ledger.cursor(*name)):
        return "waiting"
    return "distilled" if session.user_messages else "empty"


def key_of(place: Opened, project: str | None) -> str | None:
    """The key of a project that a directory or a key names; None where none is named."""
    if project is None or project in place.history.project_use():
        return project
    return store_of(place.home, project).key
