"""What the doctor looks at in the configuration and the queue."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from memoryd.jobs import envelope
from memoryd.jobs.intake import COMMAND_WAIT_SECONDS, take_in
from memoryd.jobs.looking import Look
from memoryd.jobs.workplace import find_transcript
from memoryd.memory.clock import iso
from memoryd.memory.config import load, load_project
from memoryd.memory.errors import BadEnvelope, ConfigError, ProviderLimited
from memoryd.memory.gitprogram import require_git
from memoryd.memory.health import Finding, found_by
from memoryd.memory.identities import identities
from memoryd.memory.ids import short
from memoryd.memory.text import clip

#: A provider that has not answered for so long is named.
AWAY_MS = 24 * 3600 * 1000
#: An envelope that lies in the inbox for so long, though it was just looked at, is named.
LEFT_MS = 10 * 60 * 1000
#: Consolidations in a row that changed nothing before the store is named.
EMPTY_RUNS = 3


def configuration(look: Look) -> Iterator[Finding]:
    """What cannot be used of ``config.toml``, and of each project's own file."""
    try:
        load(look.home.config_file)
    except ConfigError as error:
        for problem in error.problems or (error.message,):
            yield Finding("config.unusable", "problem", problem, error.hint)
    for known in identities(look.home):
        if known.path.startswith("/"):
            yield from found_by(partial(_project_file, look, known.path))


def _project_file(look: Look, path: str) -> Iterator[Finding]:
    load_project(Path(path), look.config)
    yield from ()


def git(look: Look) -> Iterator[Finding]:
    """Nothing where git is there and new enough. Raises ``BaselineUnusable``."""
    require_git()
    yield from ()


def ledger(look: Look) -> Iterator[Finding]:
    """Nothing where it can be opened and the inbox be taken in. Raises what that raises."""
    ledger = look.ledger
    take_in(
        look.home,
        ledger,
        lambda agent, session: find_transcript(look.environ, agent, session),
        wait_seconds=COMMAND_WAIT_SECONDS,
    )
    yield from ()


def envelopes(look: Look) -> Iterator[Finding]:
    """Envelopes that are not taken in, and those in ``inbox/bad``, with why."""
    inbox = look.home.inbox
    for path in sorted(inbox.glob("*.json")):
        if look.clock.now_ms() - path.lstat().st_mtime_ns // 1_000_000 > LEFT_MS:
            what = f"{path} has not been taken in"
            yield Finding("envelope.left", "problem", what, "check its owner and mode")
    for path in sorted((inbox / "bad").iterdir()) if (inbox / "bad").is_dir() else []:
        todo = "mend it and move it into the inbox, or delete it: a session may be unread"
        yield Finding("envelope.unreadable", "problem", f"{path}: {_why(path)}", todo)


def _why(path: Path) -> str:
    try:
        found = envelope.read(path)
    except BadEnvelope as error:
        return error.message
    except OSError as error:
        return f"it cannot be read: {error.strerror}"
    return f"no session of the agent {clip(found.agent, 60)!a} can be read here"


def failed_jobs(look: Look) -> Iterator[Finding]:
    """Each job that gave up, with how it is looked at and tried again."""
    for job in look.ledger.records.jobs(status="failed", limit=1000):
        if job.kind == "backfill":
            continue  # a session that is set aside: ``checks_agents.archive`` says it
        why = ": ".join(text for text in (job.error_code, job.error_detail) if text)
        what = f"{job.kind} {short(job.id)} failed: {clip(why, 200)}"
        todo = f"`memoryd show {short(job.id)}` tells more; then `memoryd retry {short(job.id)}`"
        yield Finding("job.failed", "problem", what, todo)


def provider(look: Look) -> Iterator[Finding]:
    """Why the provider is not asked, where a breaker says so."""
    breaker = look.ledger.breakers.of(look.config.provider.name)
    if breaker is None:
        return  # it answered when it was last asked, or was not asked since a daemon started
    hours = (look.clock.now_ms() - breaker.since) // 3_600_000
    said = f"{breaker.reason}, {clip(breaker.detail, 200)}"
    if breaker.state == "stopped":
        what = f"the provider {breaker.provider} is not asked any more: {said}"
        todo = "mend what it says; a restart or SIGHUP of the daemon asks again"
        yield Finding("provider.stopped", "problem", what, todo)
    elif look.clock.now_ms() - breaker.since > AWAY_MS:
        what = f"the provider {breaker.provider} has not answered for {hours} hours: {said}"
        yield Finding("provider.away", "problem", what, "check the network and its settings")
    else:
        did = "limits us" if breaker.reason == ProviderLimited.code else "has not answered"
        what = f"the provider {breaker.provider} {did} since {iso(breaker.since)}: {said}"
        todo = "jobs wait for it and it is asked again by itself; `memoryd status` says when"
        yield Finding("provider.away", "warning", what, todo)


def consolidation(look: Look) -> Iterator[Finding]:
    """Stores whose last consolidations in a row changed nothing."""
    for ran in look.ledger.consolidations.all():
        if ran.empty_runs < EMPTY_RUNS:
            continue
        times = f"{ran.empty_runs} times in a row"
        what = f"consolidation of {ran.store} changed nothing {times} ({ran.outcome or '-'})"
        yield Finding("consolidation.empty", "warning", what, "`memoryd list` shows the jobs")
