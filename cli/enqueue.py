"""``memoryd enqueue``: have a session distilled, now or when the daemon comes to it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from memoryd.cli.common import (
    absolute,
    home_option,
    interruptible,
    json_option,
    open_queue,
    ring,
    say,
)
from memoryd.cli.words import plain
from memoryd.memory.errors import UsageError
from memoryd.memory.home import Home

if TYPE_CHECKING:
    from memoryd.jobs.job import Job
    from memoryd.jobs.ledger import Enqueued, Ledger


@click.command(
    epilog="Example: memoryd enqueue finalize --agent codex --transcript rollout.jsonl --wait"
)
@click.argument("kind", type=click.Choice(["finalize", "extract"]))
@click.option("--agent", required=True, help="Whose session it is, such as claude-code or codex.")
@click.option("--session", help="The session's id; found from the transcript when left out.")
@click.option(
    "--transcript",
    type=click.Path(path_type=Path),
    help="The agent's record; found from the session when left out.",
)
@click.option("--wait", is_flag=True, help="Wait for the outcome; works without a daemon too.")
@home_option
@json_option
def enqueue(
    kind: str,
    agent: str,
    session: str | None,
    transcript: Path | None,
    wait: bool,
    home: Home,
    as_json: bool,
) -> None:
    """Have a session distilled, up to the last whole line or row its transcript has now."""
    from memoryd.sessions.agents import adapter_for
    from memoryd.sessions.recognising import require_own

    session, transcript = _find(agent, session, transcript)
    require_own(agent, transcript, session)
    ledger, _ = open_queue(home, make=True)
    made = ledger.enqueue(
        kind,
        agent,
        session,
        cutoff=adapter_for(agent).end(transcript, session),
        transcript=str(transcript),
        cwd="",
        trigger="cli",
        reason="asked",
    )
    if made.job is None:
        raise UsageError(
            f"session {session} is never distilled ({made.excluded})",
            hint="a kill switch was set while it ran, or it was forgotten",
        )
    if not wait:
        waits = "" if made.job.at_rest else ring(home)
        say(_values(made.job, made.created), _line(made.job, made.created) + waits, as_json)
        return
    short = made.job.id[-8:]
    with interruptible(f"job {short} stays in the queue; `memoryd show {short}` tells of it"):
        job = _wait(home, ledger, made)
    say(_values(job, made.created), _line(job, made.created), as_json)
    if job.status != "completed":
        sys.exit(1)


def _find(agent: str, session: str | None, transcript: Path | None) -> tuple[str, Path]:
    """Both, from either. Raises ``UsageError`` where that is not possible."""
    from memoryd.jobs.workplace import find_transcript
    from memoryd.sessions.agents import adapter_for

    adapter = adapter_for(agent)
    if transcript is None:
        if session is None:
            raise click.UsageError("Name the session with --session, --transcript or both.")
        transcript = find_transcript(os.environ, agent, session)
        if transcript is None:
            raise UsageError(
                f"{agent} has no transcript of session {session[:80]}",
                hint="name the file with --transcript",
            )
    transcript = absolute(transcript)
    if not transcript.is_file():
        raise UsageError(
            f"there is no transcript {transcript}", hint="check the path given to --transcript"
        )
    session = session or adapter.session_of(transcript)
    if not session:
        raise click.UsageError("This file holds many sessions: name one with --session.")
    return session, transcript


def _wait(home: Home, ledger: Ledger, made: Enqueued) -> Job:
    """The job when it has come to rest, worked by the daemon or, without one, here.

    Never with the defaults in place of a configuration that cannot be used: they exclude nothing.
    """
    from memoryd.daemon.once import run_once
    from memoryd.memory.config import load

    assert made.job is not None
    if not made.job.at_rest:
        run_once(home, load(home.config_file), os.environ, only=made.job.id)
    return ledger.records.job(made.job.id)


def _values(job: Job, created: bool) -> dict[str, object]:
    return {"created": created, "job": job._asdict()}


def _line(job: Job, created: bool) -> str:
    state = job.shown_status
    came = plain(job.outcome_code or job.wait_reason or job.error_code)
    about = f" ({came})" if came else ""
    known = "" if created else ", asked for before"
    more = f"\n  {job.error_detail}" if job.error_detail else ""
    return f"job {job.id[-8:]} {state}{about}{known}{more}"
