"""Discovery: every session of every agent, written into the ledger; cheap where nothing changed.

A transcript is looked at (when it changed, how long it is), and only where that is not what the
ledger has is its beginning read, a bounded part of it. What was seen is written in small
transactions, so that discovery holds nobody up, may die at any point, and may run twice at once.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from memoryd.jobs.archived import Known, Seen
from memoryd.jobs.directories import directories
from memoryd.jobs.envelope import path_is_secret, session_is_secret
from memoryd.jobs.gates import all_off
from memoryd.jobs.job import is_keepable
from memoryd.jobs.ledger import Ledger
from memoryd.memory import seams
from memoryd.memory.config import Config
from memoryd.memory.home import Home
from memoryd.memory.log import logger
from memoryd.memory.own_calls import is_own_transcript
from memoryd.memory.projects import Resolver
from memoryd.sessions.places import once_each

if TYPE_CHECKING:
    from memoryd.sessions.adapter import Adapter, Found
    from memoryd.sessions.directories import Directories
    from memoryd.sessions.source import Look

#: Sessions written in one transaction at most.
BATCH = 100


@dataclass
class Discovered:
    """What a discovery came to: sessions there are, and those it wrote down, new or changed.

    ``refused`` are those that no row can hold, or whose name or path holds a secret.
    """

    sessions: int = 0
    written: int = 0
    lost: int = 0
    refused: int = 0


@dataclass(frozen=True)
class _Places:
    """What is known of directories: their projects, and those that are named by a hash alone."""

    resolver: Resolver
    directories: Directories


def discover(
    home: Home,
    ledger: Ledger,
    config: Config,
    environ: Mapping[str, str],
    *,
    stopping: Callable[[], bool] = lambda: False,
) -> Discovered:
    """Bring the ledger's sessions up to what is on the disk; ``stopping`` ends it early.

    Nothing is looked at while ``MEMORYD_DISABLE`` is set.
    """
    done = Discovered()
    if all_off(environ):
        return done
    places = _Places(
        Resolver(home, config.projects.worktrees), directories(home, ledger, config, environ)
    )
    for adapter in adapters(config):
        known = ledger.archive.known(adapter.name)
        there: set[str] = set()
        batch: list[Seen] = []
        for found in once_each(adapter, environ):
            if stopping():
                return done
            there.add(found.session)
            if _is_refused(found, known.get(found.session)):
                done.refused += 1
                continue
            seen = _seen(adapter, found, known.get(found.session), places)
            batch += [seen] if seen else []
            if len(batch) >= BATCH:
                _write(ledger, batch, done)
        _write(ledger, batch, done)
        done.sessions += len(there)
        gone = _gone(known, there)
        ledger.archive.lost(adapter.name, gone)
        done.lost += len(gone)
    if done.refused:
        logger().warning("sessions.refused", sessions=done.refused)
    return done


def survey(home: Home, config: Config, environ: Mapping[str, str]) -> Iterator[Seen]:
    """Every session there is, for a home that has no ledger yet; nothing is written."""
    places = _Places(
        Resolver(home, config.projects.worktrees), directories(home, None, config, environ)
    )
    for adapter in adapters(config):
        for found in once_each(adapter, environ):
            refused = _is_refused(found, None)
            seen = None if refused else _seen(adapter, found, None, places)
            if seen is not None:
                yield seen


def adapters(config: Config) -> list[Adapter]:
    """The readers of the agents whose sessions are read."""
    from memoryd.sessions.agents import adapter_for, known

    return [adapter_for(name) for name in config.sessions.agents or known()]


def _gone(known: Mapping[str, Known], there: set[str]) -> list[str]:
    """The sessions that are not there any more.

    Where not one is listed the agent may just hold its database: then the files are asked.
    """
    missing = [name for name, row in known.items() if row.fingerprint and name not in there]
    if there:
        return missing
    return [name for name in missing if not os.path.lexists(known[name].transcript)]


def _write(ledger: Ledger, batch: list[Seen], done: Discovered) -> None:
    if batch:
        seams.before("sessions.found")
        ledger.archive.saw(batch)
        seams.reach("sessions.found")
        done.written += len(batch)
        batch.clear()


def _is_refused(found: Found, known: Known | None) -> bool:
    """Whether no row may hold the session. What the ledger has was looked at before."""
    path = str(found.path)
    if known is not None and known.transcript == path:
        return False
    if not is_keepable(found.session, path):
        return True
    return session_is_secret(found.session) or path_is_secret(path)


def _seen(adapter: Adapter, found: Found, known: Known | None, places: _Places) -> Seen | None:
    """What is to be written of a session; None where the ledger has it already, or cannot.

    Answers to our own questions are no session, where their folder tells.
    """
    if is_own_transcript(found.path) and not (known and known.seen_at):
        return None
    if known is not None and _listed_before(found, known):
        return None
    path, look = _where(adapter, found, known)
    if look is None:
        return None  # gone meanwhile, or nothing we may look at
    active_at = look.active_ms if found.active_ms is None else found.active_ms
    fingerprint = f"{look.at_most}-{active_at}"
    same = known and (known.fingerprint, known.transcript) == (fingerprint, str(path))
    if known and same and (known.cwd or not places.directories.of(path)):
        return None
    return _described(adapter, found, path, look, fingerprint, places)


def _listed_before(found: Found, known: Known) -> bool:
    """Whether the listing alone tells that nothing happened: no database is opened for it."""
    same_place = known.transcript == str(found.path) and known.fingerprint is not None
    return same_place and found.active_ms is not None and found.active_ms == known.active_at


def _where(adapter: Adapter, found: Found, known: Known | None) -> tuple[Path, Look | None]:
    """Where a session is: as it was told, or where its agent goes on with it now."""
    look = adapter.look(found.path, found.session)
    told = known.transcript if known and known.seen_at else ""
    if not told or told == str(found.path):
        return found.path, look
    other = adapter.look(Path(told), found.session)
    if other is None or (look is not None and look.active_ms > other.active_ms):
        return found.path, look
    return Path(told), other


def _described(
    adapter: Adapter, found: Found, path: Path, look: Look, fingerprint: str, places: _Places
) -> Seen:
    from memoryd.sessions.heads import head_of
    from memoryd.sessions.lines import stat_file

    head = head_of(adapter, path, found.session)
    cwd = head.cwd or places.directories.of(path)
    own = stat_file(path) if found.active_ms is None else None  # else one file holds many
    return Seen(
        agent=adapter.name,
        session=found.session,
        transcript=str(path),
        cwd=cwd if is_keepable(cwd) else "",
        project=places.resolver.resolve(cwd).key if cwd else None,
        kind=head.kind,
        fingerprint=fingerprint,
        size=own.st_size if own else 0,
        at_most=look.at_most,
        active_at=look.active_ms if found.active_ms is None else found.active_ms,
    )
