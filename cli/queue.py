"""The commands on jobs: ``list``, ``show``, ``retry``, ``cancel``."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import click

from memoryd.cli.common import (
    age,
    agent_option,
    home_option,
    json_option,
    look_into_queue,
    open_queue,
    ring,
    say,
    table,
    when,
)
from memoryd.cli.job_text import (
    WRITTEN,
    attempt_lines,
    came,
    candidate_lines,
    job_lines,
    transcript_lines,
)
from memoryd.cli.queue_filters import (
    STATUSES,
    filter_of,
    kind_option,
    reason_option,
    span_options,
)
from memoryd.cli.words import plain
from memoryd.memory.errors import PlanUnreadable, UsageError
from memoryd.memory.home import Home
from memoryd.memory.text import counted

if TYPE_CHECKING:
    from memoryd.jobs.filters import Filter
    from memoryd.jobs.job import Job
    from memoryd.jobs.ledger import Ledger
    from memoryd.jobs.records import KeptCandidate

#: A store is held for a commit or two.
_WRITER_WAIT_SECONDS = 5.0
#: More failed jobs than a ledger holds.
ALL = (1 << 63) - 1
_NO_JOBS = "no jobs; `memoryd enqueue` makes one"


@click.command("list", epilog="Example: memoryd list --status failed --since 2d")
@click.option("--status", type=click.Choice(STATUSES), help="Only jobs with this status.")
@kind_option
@agent_option("Only jobs about this agent's sessions.")
@click.option("--session", help="Only jobs about this session.")
@click.option("--project", metavar="DIR", help="Only jobs of this project, by directory or key.")
@span_options
@reason_option
@click.option("--limit", type=click.IntRange(1, 10_000), default=20, show_default=True)
@home_option
@json_option
def list_jobs(
    limit: int, home: Home, as_json: bool, project: str | None, **wanted: str | int | None
) -> None:
    """List the newest jobs, the newest first; only those that fit every option."""
    ledger, _ = look_into_queue(home)
    found = ledger.records.matching(filter_of(home, project, **wanted), limit + 1)
    jobs = found[:limit]
    rows = [
        (
            job.id[-8:],
            job.kind,
            job.shown_status,
            job.agent,
            (job.session or job.project or "")[-12:],
            age(job.created_at),
            plain(came(job)),
        )
        for job in jobs
    ]
    heads = ("JOB", "KIND", "STATUS", "AGENT", "SESSION", "AGE", "OUTCOME")
    none = "no such jobs" if project or any(wanted.values()) else _NO_JOBS
    more = f"\n(older ones are not shown: --limit, now {limit})" if len(found) > limit else ""
    text = table(heads, rows) + more if rows else none
    say({"jobs": [job._asdict() for job in jobs]}, text, as_json)


@click.command(epilog="Example: memoryd show 5f3a9c21")
@click.argument("job_id", metavar="JOB")
@home_option
@json_option
def show(job_id: str, home: Home, as_json: bool) -> None:
    """Tell all about JOB (any ending of its id that is unique): attempts, candidates, reasons."""
    ledger, _ = look_into_queue(home)
    job = ledger.records.job(job_id)
    attempts = ledger.records.attempts(job)
    candidates = ledger.records.candidates(job.id)
    transcript = _transcript(home, job)
    undone = _undone(home, job, candidates)
    values = {
        "job": job._asdict(),
        "undone": undone,
        "attempts": [asdict(attempt) for attempt in attempts],
        "candidates": [asdict(candidate) for candidate in candidates],
        "transcript": transcript,
    }
    text = "\n".join(
        (
            *job_lines(job),
            *(
                [f"undone    by {undone}; `memoryd memory undo` of that brings it back"]
                if undone
                else []
            ),
            *transcript_lines(transcript),
            *attempt_lines(attempts),
            *candidate_lines(candidates, undone),
        )
    )
    say(values, text, as_json)


@click.command(epilog="Example: memoryd retry --all-failed --reason attempt.crashed")
@click.argument("job_id", metavar="[JOB]", required=False)
@click.option("--skip", is_flag=True, help="First give up the part of the session it failed on.")
@click.option("--all-failed", is_flag=True, help="Every failed job instead of one.")
@kind_option
@reason_option
@home_option
@json_option
def retry(
    job_id: str | None,
    skip: bool,
    all_failed: bool,
    kind: str | None,
    reason: str | None,
    home: Home,
    as_json: bool,
) -> None:
    """Try the failed or cancelled JOB again, or all that failed, with the failures forgotten."""
    if job_id is None and not all_failed:
        raise click.UsageError("Which job? Name one, as `memoryd list` shows it, or --all-failed.")
    if all_failed and job_id is not None:
        raise click.UsageError("Either one JOB or --all-failed, not both.")
    if all_failed and skip:
        raise click.UsageError("--skip is for one JOB: name it in place of --all-failed.")
    if not all_failed and (kind or reason):
        raise click.UsageError("--kind and --reason choose among --all-failed.")
    ledger, _ = open_queue(home)
    if job_id is None:
        _retry_all(ledger, home, filter_of(home, None, kind=kind, reason=reason), as_json)
        return
    job = ledger.records.job(job_id)
    if skip:
        _take_back(ledger, home, job)
    if not ledger.retry(job, skip=skip):
        raise UsageError(
            f"job {job.id[-8:]} is {job.shown_status}",
            hint=_comes_back(job),
        )
    text = f"job {job.id[-8:]} pending{ring(home)}"
    say({"job": ledger.records.job(job.id)._asdict()}, text, as_json)


def _comes_back(job: Job) -> str:
    """Why a job that is not over needs no retry, or cannot have one."""
    only = "only a failed or cancelled job can be tried again"
    if job.status == "running":
        return "it is being worked on now"
    if job.status != "pending":
        return only
    why = plain(came(job))
    due = f"next {when(job.run_at)} ({age(job.run_at)})"
    return f"it is worked by itself, {due}" + (f": {why}" if why else "")


def _retry_all(ledger: Ledger, home: Home, wanted: Filter, as_json: bool) -> None:
    """Each by itself: one that is tried again or pruned meanwhile is simply not counted."""
    failed = ledger.records.matching(replace(wanted, status="failed"), ALL)
    again = [job.id for job in reversed(failed) if ledger.retry(job)]
    text = "no such job has failed"
    if again:
        verb = "is" if len(again) == 1 else "are"
        text = f"{counted(len(again), 'job')} {verb} to be tried again{ring(home)}"
    say({"retried": len(again), "jobs": again}, text, as_json)


def _take_back(ledger: Ledger, home: Home, job: Job) -> None:
    """What the plan that is given up left uncommitted must not become a person's edit."""
    from memoryd.memory.apply import take_back
    from memoryd.memory.clock import SystemClock

    ledger.require_unworked(job)
    try:
        plan = ledger.standing_plan(job)
    except PlanUnreadable:
        return  # nobody knows what it left: what is there stays
    if plan is not None and job.status in {"failed", "cancelled"}:
        take_back(home, plan, clock=SystemClock(), wait_seconds=_WRITER_WAIT_SECONDS)


@click.command(epilog="Example: memoryd cancel 5f3a9c21")
@click.argument("job_id", metavar="JOB")
@home_option
@json_option
def cancel(job_id: str, home: Home, as_json: bool) -> None:
    """Call JOB off, before anything of it is written; its call to the provider is stopped."""
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
    ring(home)  # whoever works on it stops its call
    say({"job": ledger.records.job(job.id)._asdict()}, f"job {job.id[-8:]} cancelled", as_json)


def _transcript(home: Home, job: Job) -> dict[str, Any] | None:
    """What ingestion counted in the session's transcript so far; None before it was read."""
    from memoryd.memory.clock import SystemClock
    from memoryd.sessions.history import History

    if not home.session_history.exists():
        return None
    with History(home.session_history, SystemClock()).looking() as history:
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


def _undone(home: Home, job: Job, candidates: list[KeptCandidate]) -> str | None:
    """The undo that took back what the job wrote; None while any of it stands."""
    from memoryd.memory.store import Store
    from memoryd.memory.undo import undo_of

    written = {each.store for each in candidates if each.state in WRITTEN and each.store}
    if not written and job.kind == "consolidate" and job.project:
        # What moves for its age belongs to no candidate.
        written = {job.project}
    if job.status != "completed" or not written:
        return None
    return undo_of([Store.open(home, key) for key in sorted(written)], job.id)
