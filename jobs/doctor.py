"""What is wrong with a home, and what to do about it: a list of small checks.

``CHECKS`` is the list. A check looks at one thing and yields what it found; nothing found is "ok".
Adding one is a function in a module of its subject (``checks_*.py``; ``memory/health.py`` where it
is about one store), and a line here. Looking changes nothing but what every look at the queue does:
the inbox is taken in first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from memoryd.jobs import (
    checks_agents,
    checks_home,
    checks_queue,
    checks_rows,
    checks_stores,
    checks_waiting,
    checks_work,
)
from memoryd.jobs.checks_stores import in_each_store
from memoryd.jobs.looking import Check, Look
from memoryd.memory import health
from memoryd.memory.clock import Clock
from memoryd.memory.errors import HomeForeign
from memoryd.memory.health import Finding, found_by, shortened
from memoryd.memory.home import Home
from memoryd.memory.text import clip

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
    there is not made, one of another user is not looked into: the only finding says so.
    """
    if not home.is_made():
        what = f"there is no home at {home.root}"
        todo = "`memoryd setup` makes one, as does the first session; --home names another"
        return [Finding("home.missing", "problem", what, todo)]
    try:
        home.require_own()
    except HomeForeign as error:  # whatever else were found would be wrong for that reason
        what = f"{error.message}; nothing else was looked at"
        return [Finding(error.code, "problem", what, error.hint)]
    look = Look(home, clock, environ, daemon)
    findings: dict[Finding, None] = {}
    try:
        for check in (*CHECKS, *more):
            found = list(shortened(_looked(check, look), LISTED))
            ok = Finding(check.code, "ok", check.fine)
            findings |= dict.fromkeys(found or [ok])
    finally:
        look.close()
    return list(findings)


def _looked(check: Check, look: Look) -> Iterator[Finding]:
    """What the check finds; where it meets what it cannot look at, that is a finding."""
    try:
        yield from found_by(partial(check.look, look))
    except Exception as error:  # noqa: BLE001 - the top of a check: the others look all the same
        what = f"the check {check.code} could not look: {type(error).__name__}: {error}"
        todo = "`memoryd doctor --fix` may set aside what it met; else report it, with this line"
        yield Finding("check.failed", "problem", clip(what, 300), todo)


#: In the order in which they are reported.
CHECKS: tuple[Check, ...] = (
    Check("config.ok", "the configuration can be used", checks_queue.configuration),
    Check("git.ok", "git is there and new enough", checks_queue.git),
    Check("home.ok", "the home is its owner's alone", checks_home.modes),
    Check("disk.ok", "the disk has room", checks_home.disk),
    Check("place.ok", "the home is not known to have moved", checks_home.place),
    Check("ledger.ok", "the ledger can be read", checks_queue.ledger),
    Check("log.ok", "no log of the ledger is known to be lost", checks_home.log),
    Check("rows.ok", "no row of the ledger is what it must not be", checks_rows.rows),
    Check("clock.ok", "the clock says nothing impossible", checks_home.clock),
    Check("backups.ok", "the ledger has a copy of these days", checks_home.copied),
    Check("words.ok", "the session history can be read", checks_home.words),
    Check("inbox.ok", "no envelope is left or unreadable", checks_queue.envelopes),
    Check(
        "hooks.ok",
        "no agent calls a hook that is not there, and none failed in a day",
        checks_agents.hooks,
    ),
    Check("told.ok", "no agent's hooks have fallen silent", checks_agents.unheard),
    Check("archive.ok", "no old session is known to be lost unread", checks_agents.archive),
    Check("jobs.ok", "no job has failed", checks_queue.failed_jobs),
    Check(
        "kinds.ok",
        "no job is of a kind that only a newer version knows",
        checks_waiting.unknown_kinds,
    ),
    Check("rollouts.ok", "no session's row is unreadable", checks_waiting.rollouts),
    Check("plans.ok", "no plan is unreadable", checks_waiting.plans),
    Check("heard.ok", "no daemon is seen that does not answer", checks_work.heard),
    Check("workers.ok", "no job waits while a worker is free", checks_work.workers),
    Check("held.ok", "no lock is seen held for long", checks_work.held_locks),
    Check("writing.ok", "nobody is seen to keep others from the ledger", checks_work.write_lock),
    Check("budget.ok", "a day's budget holds a call", checks_waiting.budget),
    Check(
        "provider.ok",
        "nothing is known that keeps the provider from being asked",
        checks_queue.provider,
    ),
    Check("history.ok", "no store lacks its history", in_each_store(health.history)),
    Check("links.ok", "no store has lost the way to its history", in_each_store(health.unlinked)),
    Check("locks.ok", "no git left a lock behind", checks_stores.stale_locks),
    Check("stores.ok", "no store is held", in_each_store(health.held)),
    Check("index.ok", "no index is kept from being written", in_each_store(health.derived)),
    Check("notes.ok", "no note is unreadable", in_each_store(health.unreadable_notes)),
    Check(
        "scanner.ok",
        "the scanner finds nothing in the notes",
        in_each_store(health.suspicious_notes),
    ),
    Check(
        "tombstones.ok",
        "no line of what was forgotten is unreadable",
        in_each_store(health.tombstones),
    ),
    Check("projects.ok", "no project has moved away", checks_stores.moved_projects),
    Check(
        "transcripts.ok",
        "no agent's newest version is read worse than before",
        checks_agents.transcripts,
    ),
    Check(
        "consolidation.ok",
        "no consolidation ran in vain again and again",
        checks_queue.consolidation,
    ),
)
