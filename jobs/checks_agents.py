"""What the doctor looks at between the agents and memoryd: hooks, transcripts, the archive."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from memoryd.jobs.looking import Look
from memoryd.jobs.report import unheard as unheard_agents
from memoryd.memory.files import read_or_none
from memoryd.memory.health import Finding
from memoryd.memory.text import clip, counted

#: How far back failures of hooks are told.
RECENT_MS = 24 * 3600 * 1000
#: What hooks write down that is as it should be.
_NO_FAILURES = (" event.subagent", " event.background", " deadline.unsynced")


def hooks(look: Look) -> Iterator[Finding]:
    """Agents that call a hook that is not there, and what hooks could not do of late."""
    from memoryd.sessions.integration.hook_codes import meaning
    from memoryd.sessions.integration.integrating import dead_entries

    yield from dead_entries(look.environ)
    since = look.clock.now_ms() - RECENT_MS
    failed = Counter(_failures(look.home.logs / "hook-errors.log", since))
    for said, times in failed.most_common():
        of_a_prompt = said.split(" ")[1:2] == ["prompt"]
        missed = "a prompt was not answered" if of_a_prompt else "a hook left no envelope"
        what = f"{missed}, {counted(times, 'time')} in the last day: {_named(said)}"
        lost = "nothing was lost" if of_a_prompt else "the sweep finds those sessions"
        todo = f"{meaning(said.rpartition(' ')[2])}; {lost}"
        yield Finding("hook.failed", "warning", what, todo)


def _named(said: str) -> str:
    """``AGENT EVENT CODE`` as the hook wrote it; it names neither where it was told neither."""
    return clip(said.replace("- - ", "agent and event unknown: ", 1), 120)


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


def unheard(look: Look) -> Iterator[Finding]:
    """Agents whose hooks are installed and were not heard for a week."""
    for agent in unheard_agents(look.ledger.archive.told(), look.environ):
        what = f"the hooks of {agent} are installed and told of nothing in seven days"
        todo = f"the sweep finds its sessions; `memoryd integrate {agent}` shows what it calls"
        yield Finding("hook.unheard", "warning", what, todo)


def archive(look: Look) -> Iterator[Finding]:
    """Sessions that are deleted before they are read, and those that could not be read."""
    from memoryd.jobs.forecast import deletes_when, forecast

    found = forecast(look.home, look.ledger, look.config, look.environ)
    todo = "`memoryd backfill status` tells more; raise per_day or share under [backfill], "
    if found.standing.state != "on":
        todo = "`memoryd backfill preview`, then `memoryd backfill start`, "
    for each in found.at_risk:
        first = deletes_when(each.first_at, look.ledger.clock.now_ms())
        those = counted(each.sessions, "session")
        what = f"{each.agent} deletes {those} before they are read, the first {first}"
        yield Finding("backfill.at-risk", "warning", what, f"{todo}or {each.setting}")
    if found.aside:
        what = f"{len(found.aside)} old sessions are set aside: they could not be read"
        todo = "`memoryd backfill status` names them, `memoryd backfill reset` tries them again"
        yield Finding("backfill.set-aside", "warning", what, todo)


def transcripts(look: Look) -> Iterator[Finding]:
    """Agents whose newest version is read worse than those before it."""
    from memoryd.sessions.drift import read_worse, readings

    if look.history is None:
        return
    for one, share in read_worse(readings(look.history)):
        version = f"{one.agent} {one.version}".strip()
        lines = f"{share:.0%} of its lines are of no known type"
        what = f"history reads less of {version} than before: {lines}"
        todo = "`memoryd sessions doctor` names the types; a newer memoryd may know them"
        yield Finding("transcripts.unknown", "warning", what, todo)
