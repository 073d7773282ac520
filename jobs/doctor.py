"""What is wrong with a home, and what to do about it: a list of small checks.

``CHECKS`` is the list. A check looks at one thing and yields what it found; nothing found is "ok".
Adding one is a function here, or in ``memory/health.py`` where it is about one store, and a line.
Looking changes nothing but what every look at the queue does: the inbox is taken in first.
"""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property, partial
from pathlib import Path

from memoryd.jobs import envelope as envelopes
from memoryd.jobs.intake import take_in
from memoryd.jobs.ledger import Ledger
from memoryd.jobs.projects import found_again
from memoryd.jobs.report import unheard
from memoryd.jobs.workplace import find_transcript, open_ledger
from memoryd.memory import health
from memoryd.memory.clock import Clock
from memoryd.memory.config import Config, load, load_project
from memoryd.memory.errors import BadEnvelope, ConfigError, MemorydError
from memoryd.memory.files import read_or_none
from memoryd.memory.gitprogram import require_git
from memoryd.memory.health import Finding, found_by, shortened
from memoryd.memory.home import Home
from memoryd.memory.identities import identities, is_known
from memoryd.memory.ids import short
from memoryd.memory.projects import Resolver
from memoryd.memory.store import Store
from memoryd.memory.text import clip

#: A provider that has not answered for so long is named.
AWAY_MS = 24 * 3600 * 1000
#: An envelope that lies in the inbox for so long, though it was just looked at, is named.
LEFT_MS = 10 * 60 * 1000
#: How far back failures of hooks are told.
RECENT_MS = 24 * 3600 * 1000
#: What hooks write down that is as it should be.
_NO_FAILURES = (" event.subagent", " event.background")
#: Consolidations in a row that changed nothing before the store is named.
EMPTY_RUNS = 3
#: Findings of one kind that are listed one by one.
LISTED = 20


@dataclass(frozen=True)
class Look:
    """A home while it is looked at: what the checks share, opened once."""

    home: Home
    clock: Clock
    environ: Mapping[str, str]

    @cached_property
    def config(self) -> Config:
        """The configuration, the defaults where it cannot be used (a check says so)."""
        try:
            return load(self.home.config_file)
        except ConfigError:
            return Config()

    @cached_property
    def _opened(self) -> Ledger | MemorydError:
        try:
            return open_ledger(self.home, self.config, self.clock, check=True)
        except MemorydError as error:
            return error

    @property
    def ledger(self) -> Ledger:
        """The ledger, checked when it is first opened. Raises what opening it raised."""
        if isinstance(self._opened, MemorydError):
            raise self._opened
        return self._opened

    @cached_property
    def stores(self) -> list[Store]:
        """Every store, those that have lost their baseline too."""
        every = (*Store.all(self.home), *Store.in_projects(self.home))
        found = {store.key: store for store in every}
        return sorted(found.values(), key=lambda store: store.root)

    def close(self) -> None:
        """Close what was opened."""
        if isinstance(opened := self.__dict__.get("_opened"), Ledger):
            opened.close()


CheckAll = Callable[[Look], Iterable[Finding]]


@dataclass(frozen=True)
class Check:
    """One check: the code of its answer when all is well, what that says, and the look itself."""

    code: str
    fine: str
    look: CheckAll


def examine(home: Home, clock: Clock, environ: Mapping[str, str]) -> list[Finding]:
    """Every finding, in the order of ``CHECKS``; an "ok" for each check that found nothing.

    A home that is not there is not made: the only finding says so.
    """
    if not home.is_made():
        what = f"there is no home at {home.root}"
        todo = "`memoryd setup` makes one, as does the first session; --home names another"
        return [Finding("home.missing", "problem", what, todo)]
    look = Look(home, clock, environ)
    findings: dict[Finding, None] = {}
    try:
        for check in CHECKS:
            found = list(shortened(found_by(partial(check.look, look)), LISTED))
            ok = Finding(check.code, "ok", check.fine)
            findings |= dict.fromkeys(found or [ok])
    finally:
        look.close()
    return list(findings)


def _configuration(look: Look) -> Iterator[Finding]:
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


def _git(look: Look) -> Iterator[Finding]:
    require_git()
    yield from ()


def _ledger(look: Look) -> Iterator[Finding]:
    ledger = look.ledger
    take_in(look.home, ledger, lambda agent, session: find_transcript(look.environ, agent, session))
    yield from ()


def _envelopes(look: Look) -> Iterator[Finding]:
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
        envelope = envelopes.read(path)
    except BadEnvelope as error:
        return error.message
    except OSError as error:
        return f"it cannot be read: {error.strerror}"
    return f"no session of the agent {clip(envelope.agent, 60)!a} can be read here"


def _failed_jobs(look: Look) -> Iterator[Finding]:
    for job in look.ledger.records.jobs(status="failed", limit=1000):
        if job.kind == "backfill":
            continue  # a session that is set aside: _archive says it
        why = ": ".join(text for text in (job.error_code, job.error_detail) if text)
        what = f"{job.kind} {short(job.id)} failed: {clip(why, 200)}"
        todo = f"`memoryd show {short(job.id)}` tells more; then `memoryd retry {short(job.id)}`"
        yield Finding("job.failed", "problem", what, todo)


def _provider(look: Look) -> Iterator[Finding]:
    breaker = look.ledger.breakers.of(look.config.provider.name)
    if breaker is None:
        return
    hours = (look.clock.now_ms() - breaker.since) // 3_600_000
    said = f"{breaker.reason}, {clip(breaker.detail, 200)}"
    if breaker.state == "stopped":
        what = f"the provider {breaker.provider} is not asked any more: {said}"
        todo = "mend what it says; a restart or SIGHUP of the daemon asks again"
        yield Finding("provider.stopped", "problem", what, todo)
    elif look.clock.now_ms() - breaker.since > AWAY_MS:
        what = f"the provider {breaker.provider} has not answered for {hours} hours: {said}"
        yield Finding("provider.away", "problem", what, "check the network and its settings")


def _consolidation(look: Look) -> Iterator[Finding]:
    for ran in look.ledger.consolidations.all():
        if ran.empty_runs < EMPTY_RUNS:
            continue
        times = f"{ran.empty_runs} times in a row"
        what = f"consolidation of {ran.store} changed nothing {times} ({ran.outcome or '-'})"
        yield Finding("consolidation.empty", "warning", what, "`memoryd list` shows the jobs")


def _hooks(look: Look) -> Iterator[Finding]:
    """Agents that call a hook that is not there, and what hooks could not do of late."""
    from memoryd.sessions.integration.integrating import dead_entries

    yield from dead_entries(look.environ)
    since = look.clock.now_ms() - RECENT_MS
    failed = Counter(_failures(look.home.logs / "hook-errors.log", since))
    for said, times in failed.most_common():
        of_a_prompt = said.split(" ")[1:2] == ["prompt"]
        missed = "a prompt was not answered" if of_a_prompt else "a hook left no envelope"
        what = f"{missed}, {times} times in the last day: {clip(said, 120)}"
        lost = "nothing was lost" if of_a_prompt else "the sweep finds those sessions"
        todo = f"{lost}; docs/agents.md says what the code means"
        yield Finding("hook.failed", "warning", what, todo)


def _unheard(look: Look) -> Iterator[Finding]:
    for agent in unheard(look.ledger.archive.told(), look.environ):
        what = f"the hooks of {agent} are installed and told of nothing in seven days"
        todo = f"the sweep finds its sessions; `memoryd integrate {agent}` shows what it calls"
        yield Finding("hook.unheard", "warning", what, todo)


def _archive(look: Look) -> Iterator[Finding]:
    """Sessions that are deleted before they are read, and those that could not be read."""
    from memoryd.jobs.forecast import deletes_when, forecast

    found = forecast(look.home, look.ledger, look.config, look.environ)
    todo = "`memoryd backfill status` tells more; raise per_day or share under [backfill], "
    if found.standing.state != "on":
        todo = "`memoryd backfill preview`, then `memoryd backfill start`, "
    for each in found.at_risk:
        first = deletes_when(each.first_at, look.ledger.clock.now_ms())
        what = (
            f"{each.agent} deletes {each.sessions} sessions before they are read, the first {first}"
        )
        yield Finding("backfill.at-risk", "warning", what, f"{todo}or {each.setting}")
    if found.aside:
        what = f"{len(found.aside)} old sessions are set aside: they could not be read"
        todo = "`memoryd backfill status` names them, `memoryd backfill reset` tries them again"
        yield Finding("backfill.set-aside", "warning", what, todo)


def _failures(log: Path, since_ms: int) -> Iterator[str]:
    """Agent, event and code of each line of the hook's log that is not older."""
    for path in (log.with_name(f"{log.name}.1"), log):
        for line in (read_or_none(path) or b"").decode("utf-8", "replace").splitlines():
            at, _, said = line.partition(" ")
            try:
                at_ms = datetime.fromisoformat(at).timestamp() * 1000
            except (ValueError, OverflowError):
                continue  # two hooks wrote at once, or a person did
            if at_ms >= since_ms and not said.endswith(_NO_FAILURES):
                yield said


def _transcripts(look: Look) -> Iterator[Finding]:
    """Agents whose newest version is read worse than those before it."""
    from memoryd.sessions.drift import read_worse, readings
    from memoryd.sessions.history import History

    if not look.home.session_history.exists():
        return
    with History(look.home.session_history, look.clock) as history:
        worse = read_worse(readings(history))
    for one, share in worse:
        version = f"{one.agent} {one.version}".strip()
        lines = f"{share:.0%} of its lines are of no known type"
        what = f"history reads less of {version} than before: {lines}"
        todo = "`memoryd sessions doctor` names the types; a newer memoryd may know them"
        yield Finding("transcripts.unknown", "warning", what, todo)


def _moved_projects(look: Look) -> Iterator[Finding]:
    resolver = Resolver(look.home, look.config.projects.worktrees)
    for known, place in found_again(look.home):
        there = resolver.resolve(place)
        if there.key == known.key:  # the next session there says so by itself
            continue
        what = f"the project {known.key} is gone from {known.path}; {place} is the same repository"
        todo = f"`memoryd project mv {known.key} {shlex.quote(place)}` if it moved there"
        if is_known(look.home, there.key):
            todo = f"`memoryd project merge {known.key} {there.key}` if they are one"
        yield Finding("project.gone", "warning", what, todo)


def _stale_locks(look: Look) -> Iterator[Finding]:
    return _each(partial(health.stale_locks, now_ms=look.clock.now_ms()), look)


def _each(check: Callable[[Store], Iterable[Finding]], look: Look) -> Iterator[Finding]:
    """``check`` in every store; one that cannot be looked at does not hide the others."""
    for store in look.stores:
        for each in found_by(partial(check, store)):
            named = store.key in each.what or os.fspath(store.root) in each.what
            yield each if named else replace(each, what=f"{store.root}: {each.what}")


def _in_each_store(check: Callable[[Store], Iterable[Finding]]) -> CheckAll:
    return partial(_each, check)


#: In the order in which they are reported.
CHECKS: tuple[Check, ...] = (
    Check("config.ok", "the configuration can be used", _configuration),
    Check("git.ok", "git is there and new enough", _git),
    Check("ledger.ok", "the ledger can be read", _ledger),
    Check("inbox.ok", "every envelope could be read", _envelopes),
    Check("hooks.ok", "the agents' hooks can run and did", _hooks),
    Check("told.ok", "the hooks are heard", _unheard),
    Check("archive.ok", "every old session is read in time", _archive),
    Check("jobs.ok", "no job has failed", _failed_jobs),
    Check("provider.ok", "the provider answers", _provider),
    Check("history.ok", "every store has its history", _in_each_store(health.history)),
    Check("locks.ok", "no git left a lock behind", _stale_locks),
    Check("stores.ok", "no store is held", _in_each_store(health.held)),
    Check("index.ok", "every index can be written", _in_each_store(health.derived)),
    Check("notes.ok", "every note can be read", _in_each_store(health.unreadable_notes)),
    Check("scanner.ok", "no note holds a secret", _in_each_store(health.suspicious_notes)),
    Check("tombstones.ok", "what was forgotten is known", _in_each_store(health.tombstones)),
    Check("projects.ok", "no project has moved away", _moved_projects),
    Check("transcripts.ok", "what the agents write is known", _transcripts),
    Check("consolidation.ok", "consolidation finds what to do", _consolidation),
)
