"""What the commands on sessions share: a home's ledger and history, and a session's state."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memoryd.cli.common import open_queue
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


def place_of(home: Home, key: str) -> str:
    """How a person names the project, for ``--project``: its directory, in short, else its key."""
    from memoryd.memory.project_names import path_in

    path = path_in(home, key)
    if not path.startswith("/"):
        return key
    own = os.environ.get("HOME", "").rstrip("/")
    inside = own and (path == own or path.startswith(f"{own}/"))
    return f"~{path[len(own) :]}" if inside else path
