"""What the doctor looks at in the jobs that wait for a person, or for another version."""

from __future__ import annotations

from collections.abc import Iterator

from memoryd.jobs.backfill import SMALLEST_CALL_TOKENS
from memoryd.jobs.calls import never_fits
from memoryd.jobs.job import KINDS
from memoryd.jobs.looking import Look
from memoryd.memory.health import Finding
from memoryd.memory.ids import short
from memoryd.memory.text import clip

_TOO_LARGE = """
select id, error_detail from job where status = 'pending' and wait_reason = 'budget.too-small'
order by id limit 20
"""
_OPEN = "select id, kind from job where status in ('pending', 'running') order by id"


def unknown_kinds(look: Look) -> Iterator[Finding]:
    """Jobs of a kind that only a newer version knows: they wait for it."""
    for job, kind in look.ledger.db.rows(_OPEN):
        if kind not in KINDS:
            what = f"job {short(str(job))} is of the kind {clip(str(kind), 40)!a}, unknown here"
            todo = f"install the newer version again, or `memoryd cancel {short(str(job))}`"
            yield Finding("job.unknown-kind", "warning", what, todo)


def rollouts(look: Look) -> Iterator[Finding]:
    """Rows of sessions that are left out because they hold what memoryd does not write."""
    left = look.ledger.archive.unreadable()
    if left:
        what = f"what the ledger knows of {left} sessions cannot be read: they are left out"
        todo = "`memoryd run --once` looks at all transcripts and writes anew what it finds"
        yield Finding("rollout.unreadable", "warning", what, todo)


def plans(look: Look) -> Iterator[Finding]:
    """Plans that cannot be read: each keeps only the jobs of its own session or store."""
    for job in look.ledger.records.unreadable_plans():
        what = f"what job {short(job)} decided on cannot be read"
        todo = f"`memoryd retry {short(job)}` where it failed: its words are read again"
        yield Finding("plan.unreadable", "warning", what, todo)


def budget(look: Look) -> Iterator[Finding]:
    """A budget into which no call fits, on any day; and calls that were larger than it."""
    config, todo = look.config, "change it in config.toml, then restart memoryd or send it SIGHUP"
    if config.provider.name == "rules":
        return
    call = f"a call takes {SMALLEST_CALL_TOKENS} tokens or more"
    share = 1.0 if config.backfill.enabled is False else config.backfill.share
    if wrong := never_fits(config.provider, SMALLEST_CALL_TOKENS):
        yield Finding("budget.too-small", "problem", f"{call}: {wrong}", todo)
    elif wrong := never_fits(config.provider, SMALLEST_CALL_TOKENS, share=share):
        yield Finding("budget.too-small", "warning", f"{call}: {wrong}", todo)
    for job, detail in look.ledger.db.rows(_TOO_LARGE):
        what = f"job {short(str(job))} waits: {clip(str(detail), 200)}"
        yield Finding("budget.too-small", "problem", what, todo)
