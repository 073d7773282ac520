"""What is wrong with a home, and what to do about it: a list of small checks.

``CHECKS`` is the list. A check looks at one thing and yields what it found; nothing found is "ok".
Adding one is a function in a module of its subject (``checks_*.py``; ``memory/health.py`` where it
is about one store), and a line here. Looking changes nothing but what every look at the queue does:
the inbox is taken in first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from memoryd.jobs import checks_agents, checks_home, checks_queue, checks_stores, checks_work
from memoryd.jobs.checks_stores import in_each_store
from memoryd.jobs.looking import Check, Look
from memoryd.memory import health
from memoryd.memory.clock import Clock
from memoryd.memory.health import Finding, found_by, shortened
from memoryd.memory.home import Home

__all__ = ["CHECKS", "LISTED", "Check", "Look", "examine"]

#: Findings of one kind that are listed one by one.
LISTED = 20


def examine(
    home: Home,
    clock: Clock,
    environ: Mapping[str, str],
    more: Iterable[Check] = (),
    daemon: Mapping[str, Any] | None = None,
) -> list[Finding]:
    """Every finding, in the order of ``CHECKS`` and ``more``; "ok" for a check that found nothing.

    ``daemon`` is what the home's daemon says of itself, None where none answers. A home that is not
    there is not made: the only finding says so.
    """
    if not home.is_made():
        what = f"there is no home at {home.root}"
        todo = "`memoryd setup` makes one, as does the first session; --home names another"
        return [Finding("home.missing", "problem", what, todo)]
    look = Look(home, clock, environ, daemon)
    findings: dict[Finding, None] = {}
    try:
        for check in (*CHECKS, *more):
            found = list(shortened(found_by(partial(check.look, look)), LISTED))
            ok = Finding(check.code, "ok", check.fine)
            findings |= dict.fromkeys(found or [ok])
    finally:
        look.close()
    return list(findings)


#: In the order in which they are reported.
CHECKS: tuple[Check, ...] = (
    Check("config.ok", "the configuration can be used", checks_queue.configuration),
    Check("git.ok", "git is there and new enough", checks_queue.git),
    Check("home.ok", "the home is its owner's alone", checks_home.modes),
    Check("disk.ok", "the disk has room", checks_home.disk),
    Check("place.ok", "the home is where it was", checks_home.place),
    Check("ledger.ok", "the ledger can be read", checks_queue.ledger),
    Check("clock.ok", "the clock can be right", checks_home.clock),
    Check("backups.ok", "the ledger has a copy", checks_home.copied),
    Check("words.ok", "the session history can be read", checks_home.words),
    Check("inbox.ok", "every envelope could be read", checks_queue.envelopes),
    Check("hooks.ok", "the agents' hooks can run and did", checks_agents.hooks),
    Check("told.ok", "the hooks are heard", checks_agents.unheard),
    Check("archive.ok", "every old session is read in time", checks_agents.archive),
    Check("jobs.ok", "no job has failed", checks_queue.failed_jobs),
    Check("workers.ok", "what is ready is taken", checks_work.workers),
    Check("held.ok", "no lock is held for long", checks_work.held_locks),
    Check("writing.ok", "nobody keeps others from the ledger", checks_work.write_lock),
    Check("provider.ok", "the provider answers", checks_queue.provider),
    Check("history.ok", "every store has its history", in_each_store(health.history)),
    Check("links.ok", "every store leads to its history", in_each_store(health.unlinked)),
    Check("locks.ok", "no git left a lock behind", checks_stores.stale_locks),
    Check("stores.ok", "no store is held", in_each_store(health.held)),
    Check("index.ok", "every index can be written", in_each_store(health.derived)),
    Check("notes.ok", "every note can be read", in_each_store(health.unreadable_notes)),
    Check("scanner.ok", "no note holds a secret", in_each_store(health.suspicious_notes)),
    Check("tombstones.ok", "what was forgotten is known", in_each_store(health.tombstones)),
    Check("projects.ok", "no project has moved away", checks_stores.moved_projects),
    Check("transcripts.ok", "what the agents write is known", checks_agents.transcripts),
    Check("consolidation.ok", "consolidation finds what to do", checks_queue.consolidation),
)
