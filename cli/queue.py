"""The commands on jobs: ``list``, ``show``, ``retry``, ``cancel``."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from memoryd.cli.common import (
    age,
    home_option,
    json_option,
    open_queue,
    say,
    table,
    when,
)
from memoryd.cli.words import MADE_BY, plain
from memoryd.memory.errors import UsageError
from memoryd.memory.home import Home

if TYPE_CHECKING:
    from memoryd.jobs.job import Job
    from memoryd.jobs.ledger import Ledger
    from memoryd.jobs.records import Attempt, KeptCandidate

_KINDS = ["finalize", "extract", "consolidate", "backfill"]
#: States of a candidate that changed a file.
_WRITTEN = {"applied", "appended"}
#: A store is held for a commit or two.
_WRITER_WAIT_SECONDS = 5.0
_STATUSES = ["pending", "running", "completed", "failed", "cancelled"]


@click.command("list", epilog="Example: memoryd list --status failed")
@click.option("--status", type=click.Choice(_STATUSES), help="Only jobs with this status.")
@click.option("--kind", type=click.Choice(_KINDS), help="Only jobs of this kind.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=20, show_default=True)
@home_option
@json_option
def list_jobs(status: str | None, kind: str | None, limit: int, home: Home, as_json: bool) -> None:
    """List the newest jobs, the newest first."""
    ledger, _ = open_queue(home)
    jobs = ledger.records.jobs(status=status, kind=kind, limit=limit)
    rows = [
        (
            job.id[-8:],
            job.kind,
            job.shown_status,
            job.agent,
            (job.session or job.project or "")[-12:],
            age(job.created_at),
            plain(_came(job)),
        )
        for job in jobs
    ]
    heads = ("JOB", "KIND", "STATUS", "AGENT", "SESSION", "AGE", "OUTCOME")
    text = table(heads, rows) if rows else "no jobs; `memoryd enqueue` makes one"
    say({"jobs": [asdict(job) for job in jobs]}, text, as_json)


@click.command(epilog="Example: memoryd show 5f3a9c21")
@click.argument("job_id", metavar="JOB")
@home_option
@json_option
def show(job_id: str, home: Home, as_json: bool) -> None:
    """Tell all about JOB (any ending of its id that is unique): attempts, candidates, reasons."""
    ledger, _ = open_queue(home)
    job = ledger.records.job(job_id)
    attempts = ledger.records.attempts(job)
    candidates = ledger.records.candidates(job.id)
    transcript = _transcript(home, job)
    undone = _undone(home, job, candidates)
    values = {
        "job": asdict(job),
        "undone": undone,
        "attempts": [asdict(attempt) for attempt in attempts],
        "candidates": [asdict(candidate) for candidate in candidates],
        "transcript": transcript,
    }
    text = "\n".join(
        (
            *_job_lines(job),
            *(
                [f"undone    by {undone}; `memoryd memory undo` of that brings it back"]
                if undone
                else []
            ),
            *_transcript_lines(transcript),
            *_attempt_lines(attempts),
            *_candidate_lines(candidates, undone),
        )
    )
    say(values, text, as_json)


@click.command(epilog="Example: memoryd retry 5f3a9c21 --skip")
@click.argument("job_id", metavar="JOB")
@click.option("--skip", is_flag=True, help="First give up the part of the session it failed on.")
@home_option
@json_option
def retry(job_id: str, skip: bool, home: Home, as_json: bool) -> None:
    """Try the failed or cancelled JOB again, with its failures forgotten."""
    import os

    from memoryd.daemon.client import Client

    ledger, _ = open_queue(home)
    job = ledger.records.job(job_id)
    if skip:
        _take_back(ledger, home, job)
    if not ledger.retry(job, skip=skip):
        raise UsageError(
            f"job {job.id[-8:]} is {job.shown_status}",
            hint="only a failed or cancelled job can be tried again",
        )
    Client(home.socket(os.environ)).ring()
    say({"job": asdict(ledger.records.job(job.id))}, f"job {job.id[-8:]} pending", as_json)


def _take_back(ledger: Ledger, home: Home, job: Job) -> None:
    """What the plan that is given up left uncommitted must not become a person's edit."""
    from memoryd.memory.apply import take_back
    from memoryd.memory.clock import SystemClock

    plan = ledger.standing_plan(job)
    if plan is not None and job.status in {"failed", "cancelled"}:
        take_back(home, plan, clock=SystemClock(), wait_seconds=_WRITER_WAIT_SECONDS)


@click.command(epilog="Example: memoryd cancel 5f3a9c21")
@click.argument("job_id", metavar="JOB")
@home_option
@json_option
def cancel(job_id: str, home: Home, as_json: bool) -> None:
    """Call JOB off, before anything of it is written."""
    ledger, _ = open_queue(home)
    job = ledger.records.job(job_id)
    if not ledger.cancel(job):
        now = ledger.records.job(job.id)
        if now.status in {"pending", "running"}:
            raise UsageError(
                f"too late: job {job.id[-8:]} is being written",
                hint=f"take it back afterwards with `memoryd memory undo {job.id[-8:]}`",
            )
        wrote = now.outcome_code == "notes.written"
        back = f"what it wrote is taken back with `memoryd memory undo {job.id[-8:]}`"
        raise UsageError(
            f"job {job.id[-8:]} is {now.shown_status}",
            hint=back if wrote else "it is over and wrote nothing; there is nothing to call off",
        )
    say({"job": asdict(ledger.records.job(job.id))}, f"job {job.id[-8:]} cancelled", as_json)


def _came(job: Job) -> str | None:
    """The code that says how the job stands."""
    return job.outcome_code or job.wait_reason or job.error_code


def _job_lines(job: Job) -> list[str]:
    came = plain(_came(job))
    # A hook's reason is its agent's own word for how the session ended.
    said = f" ({job.reason})" if job.reason and job.trigger == "hook" else ""
    lines = [
        f"job       {job.id}",
        f"kind      {job.kind}: {MADE_BY.get(job.trigger, job.trigger)}{said}",
        f"status    {job.shown_status}" + (f": {came}" if came else ""),
        f"session   {job.agent} {job.session}, up to position {job.cutoff}"
        if job.session
        else f"project   {job.project}",
        f"made      {when(job.created_at)}   finished {when(job.finished_at)}",
        f"attempts  {job.attempt}, failures {job.failures} of {job.max_failures}",
    ]
    if job.status == "pending":
        lines.append(f"next      {when(job.run_at)}")
    if job.error_detail:
        lines.append(f"detail    {job.error_detail}")
    return lines


def _transcript(home: Home, job: Job) -> dict[str, Any] | None:
    """What ingestion counted in the session's transcript so far; None before it was read."""
    from memoryd.memory.clock import SystemClock
    from memoryd.sessions.history import History

    if not home.session_history.exists():
        return None
    with History(home.session_history, SystemClock()) as history:
        session = history.session(job.agent, job.session)
    if session is None:
        return None
    return {
        "position": session.position,
        "messages": session.messages,
        "user_messages": session.user_messages,
        "bad_lines": session.bad_lines,
        "skipped": session.skipped,
    }


def _transcript_lines(found: dict[str, Any] | None) -> list[str]:
    if found is None:
        return []
    kept = f"{found['messages']} messages kept, {found['user_messages']} of a person"
    lines = [
        f"read      {kept}; {found['bad_lines']} bad lines, up to position {found['position']}"
    ]
    skipped = sorted(found["skipped"].items())
    if skipped:
        lines.append("skipped   " + ", ".join(f"{count} {reason}" for reason, count in skipped))
    return lines


def _attempt_lines(attempts: list[Attempt]) -> list[str]:
    if not attempts:
        return []
    lines = ["", "attempts"]
    for attempt in attempts:
        how = attempt.ending or "running"
        why = f" {plain(attempt.detail)}" if attempt.detail else ""
        calls = f", {attempt.calls} calls" if attempt.calls else ""
        lines.append(f"  {attempt.attempt}. {when(attempt.started_at)} {how}{why}{calls}")
    return lines


def _undone(home: Home, job: Job, candidates: list[KeptCandidate]) -> str | None:
    """The undo that took back what the job wrote; None while any of it stands."""
    from memoryd.memory.store import Store
    from memoryd.memory.undo import undo_of

    written = {each.store for each in candidates if each.state in _WRITTEN and each.store}
    if not written and job.kind == "consolidate" and job.project:
        # What moves for its age belongs to no candidate.
        written = {job.project}
    if job.status != "completed" or not written:
        return None
    return undo_of([Store.open(home, key) for key in sorted(written)], job.id)


def _candidate_lines(candidates: list[KeptCandidate], undone: str | None) -> list[str]:
    lines = ["", f"candidates ({len(candidates)})"] if candidates else []
    for candidate in candidates:
        lines.append(f"  {candidate.decision:<6} {candidate.statement or '(unreadable)'}")
        lines.append(f"         {candidate.detail or candidate.reason}")
        if candidate.path:
            state = "undone" if undone and candidate.state in _WRITTEN else candidate.state
            lines.append(f"         {state}: {candidate.path}")
        lines += [f"         said: {span}" for _, _, span in candidate.evidence]
    return lines
