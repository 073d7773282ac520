"""``memoryd consolidate``: merge a project's notes now, or show what that would do."""

from __future__ import annotations

import difflib
import os
import sys
import uuid
from typing import TYPE_CHECKING, Any

import click

from memoryd.cli.common import home_option, json_option, open_queue, project_option, say, store_of
from memoryd.memory.errors import UsageError
from memoryd.memory.home import Home

if TYPE_CHECKING:
    from collections.abc import Iterator

    from memoryd.jobs.job import Job
    from memoryd.jobs.workplace import Workplace
    from memoryd.memory.consolidation import Consolidated
    from memoryd.memory.store import Store

#: Why a store is not due, by the code of the gate.
REASONS = {
    "consolidation.switched-off": "MEMORYD_DISABLE_CONSOLIDATION is set",
    "consolidation.off": "auto_consolidate is false",
    "consolidation.too-soon": "the last one was less than consolidate_min_hours ago",
    "consolidation.too-few-sessions": "fewer than consolidate_min_sessions ended since the last",
    "project.config-unusable": "the project's .memoryd.toml cannot be used",
}


@click.command(epilog="Example: memoryd consolidate --dry-run")
@click.option("--now", is_flag=True, help="Whether it is due or not.")
@click.option(
    "--dry-run", is_flag=True, help="Show what would change as a diff, due or not; write nothing."
)
@project_option
@home_option
@json_option
def consolidate(now: bool, dry_run: bool, project: str | None, home: Home, as_json: bool) -> None:
    """Merge what a project's notes say twice, keep what happened, archive what is over.

    By itself it happens at most once a day, after enough sessions. Nothing is deleted: what is
    merged away is in archive/, and `memoryd memory undo JOB` takes all of it back.
    """
    store = store_of(home, project)
    if not store.git_dir.is_dir():
        raise UsageError(
            "this project has no notes yet", hint="`memoryd memory list --all` shows which have"
        )
    place = _open(home)
    try:
        refusal = "" if now else _refusal(place, store) or ""
        if dry_run:
            _preview(place, store, refusal, as_json)
        elif refusal:
            say(_values(refusal), _not_due(refusal), as_json)
        else:
            _work(home, place, store, as_json)
    finally:
        place.close()


def _open(home: Home) -> Workplace:
    from memoryd.jobs.workplace import open_workplace
    from memoryd.memory.clock import SystemClock

    _, config = open_queue(home)
    return open_workplace(home, config, SystemClock(), os.environ)


def _refusal(place: Workplace, store: Store) -> str | None:
    from memoryd.jobs.daily import Check

    return Check(place).refusal(store.key)


def _values(refusal: str, **more: Any) -> dict[str, Any]:
    """What ``--json`` prints; ``refusal`` is the code of the gate that says no, else empty."""
    return {
        "due": not refusal,
        "reason": refusal,
        "job": None,
        "changes": [],
        "candidates": [],
        **more,
    }


def _not_due(refusal: str) -> str:
    return f"not due: {REASONS.get(refusal, refusal)}; --now does it all the same"


def _preview(place: Workplace, store: Store, refusal: str, as_json: bool) -> None:
    from memoryd.jobs.consolidating import propose

    _, found = propose(place, store, None)
    changes = [_change(store, path, content) for path, content in _after(found)]
    lines = [line for change in changes for line in change["diff"].splitlines()]
    lines += [
        f"{one.decision:<6} {one.statement} ({one.reason}: {one.detail})"
        for one in found.candidates
    ]
    lines = lines or ["nothing would change"]
    lines += [_not_due(refusal)] if refusal else []
    told = ("decision", "reason", "detail", "statement")
    candidates = [{key: getattr(one, key) for key in told} for one in found.candidates]
    values = _values(refusal, changes=changes, candidates=candidates)
    say(values, "\n".join(lines), as_json)


def _after(found: Consolidated) -> Iterator[tuple[str, str | None]]:
    for operation in found.operations:
        yield operation.path, operation.content


def _change(store: Store, path: str, content: str | None) -> dict[str, Any]:
    """One file's change as a unified diff, without the secrets a person may have in it."""
    from memoryd.memory.scanner import redact

    before = (store.read(path) or b"").decode("utf-8", "replace")
    diff = difflib.unified_diff(
        before.splitlines(), (content or "").splitlines(), f"a/{path}", f"b/{path}", lineterm=""
    )
    return {"path": path, "diff": redact("\n".join(diff))[0]}


def _work(home: Home, place: Workplace, store: Store, as_json: bool) -> None:
    from memoryd.daemon.once import run_once

    made = place.ledger.enqueue_store(
        "consolidate", store.key, key=str(uuid.uuid4()), trigger="cli", reason="asked"
    ).job
    assert made is not None
    run_once(home, place.config, os.environ, only=made.id)
    job = place.ledger.records.job(made.id)
    say(_values("", job=job._asdict()), _line(job), as_json)
    if job.status != "completed":
        sys.exit(1)


def _line(job: Job) -> str:
    came = job.outcome_code or job.wait_reason or job.error_code
    more = f"\n  {job.error_detail}" if job.error_detail else ""
    return f"job {job.id[-8:]} {job.shown_status} ({came}){more}"
