"""What ``memoryd show`` says of a job, its attempts and its candidates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from memoryd.cli.common import age, lasted, table, when
from memoryd.cli.words import MADE_BY, plain, to_do
from memoryd.memory.text import counted

if TYPE_CHECKING:
    from memoryd.jobs.job import Job
    from memoryd.jobs.records import Attempt, KeptCandidate

#: States of a candidate that changed a file.
WRITTEN = {"applied", "appended"}


def came(job: Job) -> str | None:
    """The code that says how the job stands."""
    return job.outcome_code or job.wait_reason or job.error_code


def job_lines(job: Job) -> list[str]:
    """Where it comes from, how it stands, and what can be done about it."""
    why = plain(came(job))
    # A hook's reason is its agent's own word for how the session ended.
    said = f" ({job.reason})" if job.reason and job.trigger == "hook" else ""
    lines = [
        f"job       {job.id}",
        f"kind      {job.kind}: {MADE_BY.get(job.trigger, job.trigger)}{said}",
        f"status    {job.shown_status}" + (f": {why}" if why else ""),
        f"session   {job.agent} {job.session}, up to position {job.cutoff}"
        if job.session
        else f"project   {job.project}",
        f"made      {when(job.created_at)}   finished {when(job.finished_at)}",
        f"attempts  {job.attempt}, failures {job.failures} of {job.max_failures}",
    ]
    if job.status == "pending":
        lines.append(f"next      {when(job.run_at)} ({age(job.run_at)})")
    if job.status == "pending" and (todo := to_do(job.wait_reason)):
        lines.append(f"to do     {todo}")
    if job.error_detail:
        lines.append(f"detail    {job.error_detail}")
    return lines


def transcript_lines(found: dict[str, Any] | None) -> list[str]:
    """What ingestion counted in the session's transcript."""
    if found is None:
        return []
    kept = f"{counted(found['messages'], 'message')} kept, {found['user_messages']} of a person"
    lines = [
        f"read      {kept}; {found['bad_lines']} bad lines, up to position {found['position']}"
    ]
    skipped = sorted(found["skipped"].items())
    if skipped:
        lines.append("skipped   " + ", ".join(f"{count} {reason}" for reason, count in skipped))
    return lines


def attempt_lines(attempts: list[Attempt]) -> list[str]:
    """Each attempt: when it began, how long it took, how it ended, what it asked for, by whom."""
    if not attempts:
        return []
    rows = []
    for attempt in attempts:
        took = None if attempt.ended_at is None else attempt.ended_at - attempt.started_at
        tokens = attempt.input_tokens + attempt.output_tokens
        calls = (
            f"{counted(attempt.calls, 'call')}, {counted(tokens, 'token')}" if attempt.calls else ""
        )
        rows.append(
            (
                f"{attempt.attempt}.",
                when(attempt.started_at),
                "" if took is None else lasted(took),
                attempt.ending or "running",
                plain(attempt.detail),
                calls,
                attempt.owner,
            )
        )
    heads = ("", "BEGAN", "TOOK", "ENDED", "WHY", "ASKED", "WORKER")
    # A column in which nothing stands is left out.
    shown = [at for at, head in enumerate(heads) if not head or any(row[at] for row in rows)]
    kept = [[row[at] for at in shown] for row in rows]
    lines = table([heads[at] for at in shown], kept).splitlines()
    return ["", "attempts", *(f"  {line}" for line in lines)]


def candidate_lines(candidates: list[KeptCandidate], undone: str | None) -> list[str]:
    """Each fact, what was decided on it and why, and what became of it."""
    lines = ["", f"candidates ({len(candidates)})"] if candidates else []
    for candidate in candidates:
        lines.append(f"  {candidate.decision:<6} {candidate.statement or '(unreadable)'}")
        lines.append(f"         {candidate.detail or candidate.reason}")
        if candidate.path:
            state = "undone" if undone and candidate.state in WRITTEN else candidate.state
            lines.append(f"         {state}: {candidate.path}")
        lines += [f"         said: {span}" for _, _, span in candidate.evidence]
    return lines
