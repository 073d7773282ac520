"""A builder for the archive: a home that is younger than the sessions on the disk."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from world import DAY, NOTHING, Transcript, World

from memoryd.jobs.discovery import Discovered, discover
from memoryd.jobs.job import Job
from memoryd.memory.config import BackfillSettings, Config
from memoryd.memory.providers.base import Provider, Request
from memoryd.memory.testing import FakeClock

HOUR = 3600
RULE = "Always run the linter before you commit."
TABS = "Please use tabs for the indentation of this repository."


def touch(path: Path, at_ms: int) -> None:
    """Set when ``path`` was last changed."""
    os.utime(path, ns=(at_ms * 1_000_000, at_ms * 1_000_000))


class Past(World):
    """A world whose home was made an hour ago; its provider costs, and a person said yes."""

    def __init__(
        self,
        folder: Path,
        clock: FakeClock,
        script: Iterable[str | Exception | Callable[[Request], str]] = (NOTHING,),
        *,
        config: Config | None = None,
        provider: Provider | None = None,
        **settings: object,
    ) -> None:
        asked = BackfillSettings(enabled=True)
        config = replace(config or Config(), backfill=replace(asked, **settings))  # type: ignore[arg-type]
        super().__init__(folder, clock, script, config=config, provider=provider)
        self.model.name = self.config.provider.name  # under which its budget is kept
        touch(self.home.identity, clock.now_ms() - HOUR * 1000)

    def session(
        self, name: str, *said: str, days: float = 10, agent: str = "claude-code"
    ) -> Transcript:
        """A session that was last active so many days ago."""
        return self.aged(self.transcript(name, agent=agent), *said or (RULE,), days=days)

    def aged(self, made: Transcript, *said: str, days: float) -> Transcript:
        """``made`` goes on with ``said``, and is then so old."""
        made.at_ms = self.clock.now_ms() - int((days + 1) * DAY * 1000)
        for sentence in said:
            made.user(sentence).assistant("Understood.")
        touch(made.path, self.clock.now_ms() - int(days * DAY * 1000))
        return made

    def discover(self) -> Discovered:
        """One discovery."""
        return discover(self.home, self.ledger, self.config, self.environ)

    def mine(self) -> list[Job]:
        """Discover, then work until nothing is ready; the backfill jobs there are, oldest first."""
        self.clock.advance(1)
        self.discover()
        self.work()
        return self.backfills()

    def backfills(self) -> list[Job]:
        """The backfill jobs in the ledger, the oldest first."""
        return self.ledger.records.jobs(kind="backfill", limit=1000)[::-1]

    def mined(self) -> list[str]:
        """The sessions that were mined, in order."""
        return [job.session for job in self.backfills() if job.status == "completed"]
