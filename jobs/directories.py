"""The directories that memoryd knows, for sessions that name theirs by a hash alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from memoryd.jobs.ledger import Ledger
from memoryd.memory.config import Config
from memoryd.memory.home import Home
from memoryd.memory.identities import identities
from memoryd.sessions.directories import Directories, listed_by_gemini, named_in


def directories(
    home: Home, ledger: Ledger | None, config: Config, environ: Mapping[str, str]
) -> Directories:
    """All there are: of sessions, of projects, those Gemini CLI lists, those that are excluded."""

    def known() -> Iterator[str]:
        yield from named_in(config.privacy.exclude)
        if ledger is not None:
            yield from ledger.archive.directories()
        for each in identities(home):
            yield from (each.path, *each.former_paths, *each.worktrees)
        yield from listed_by_gemini(environ)

    return Directories(known)


def started_in(
    agent: str, session: str, transcript: Path, ledger: Ledger, found: Directories
) -> str:
    """The directory of a session whose agent was not heard to say one; it is written down.

    Empty where nobody knows it.
    """
    cwd = found.of(transcript)
    if cwd:
        ledger.archive.place(agent, session, cwd)
    return cwd
