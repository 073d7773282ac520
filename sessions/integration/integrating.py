"""Decide for each agent what its settings should say, and see to it.

``integrate`` looks at one agent after the other and answers with an ``Outcome`` each; one whose
settings cannot be edited is left as it was, with what to add by hand.
"""

from __future__ import annotations

import difflib
import json
import os
import sys
import tomllib
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from memoryd.memory.errors import IntegrationError, UsageError
from memoryd.memory.files import read_or_none
from memoryd.memory.health import Finding
from memoryd.memory.home import Home
from memoryd.sessions import agents
from memoryd.sessions.integration import files
from memoryd.sessions.integration.entries import (
    PROGRAM,
    Unfit,
    is_switched_off,
    ours,
    put_in,
    take_out,
    whole,
)
from memoryd.sessions.integration.table import AGENTS, SILENT, SWEEP, Agent, Silent

State = Literal["added", "updated", "removed", "current", "refused", "absent", "sweep"]

_SWEEP_LATER = "covered by the sweep once its transcripts can be read"
_SWITCHED_OFF = "its hooks are all switched off in this file: disableAllHooks"

#: How often an edit is tried again where the file changes under it.
TRIES = 3


@dataclass(frozen=True)
class Outcome:
    """What was done, or would be, about one agent."""

    agent: str
    title: str
    state: State
    #: The settings; empty where the agent has none that we edit.
    path: str = ""
    diff: str = ""
    #: Why it is refused, absent or left to the sweep.
    problem: str = ""
    #: What to add to the settings by hand, or take out, where we could not.
    by_hand: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Wanted:
    """What is to become of the settings of every agent looked at."""

    home: Home
    environ: Mapping[str, str]
    #: The ``memoryd-hook`` to call, absolute.
    program: str
    remove: bool = False
    dry_run: bool = False


def hook_program() -> str:
    """The ``memoryd-hook`` of this installation. Raises ``IntegrationError`` where it has none.

    The one beside the ``memoryd`` that was called comes first: where that is a link of pipx or uv,
    its folder outlives upgrades.
    """
    for beside in (sys.argv[0], sys.executable):
        program = Path(beside).absolute().with_name(PROGRAM)
        if program.is_file() and os.access(program, os.X_OK):
            return _speakable(os.fspath(program))
    raise IntegrationError(
        f"no {PROGRAM} belongs to this memoryd",
        hint="install memoryd with pip, pipx or uv and run that memoryd",
    )


def named(names: Sequence[str]) -> list[Agent | Silent]:
    """The agents of these names, every one where there are none. Raises ``UsageError``."""
    known: tuple[Agent | Silent, ...] = (*AGENTS, *SILENT)
    every = {each.name: each for each in known}
    for name in names:
        if name not in every:
            hint = f"the known ones are {', '.join(sorted(every))}"
            raise UsageError(f"no agent is called {name[:80]!r}", hint=hint)
    return [every[name] for name in dict.fromkeys(names)] if names else list(every.values())


def integrate(wanted: Wanted, agent: Agent | Silent) -> Outcome:
    """See to it that the settings of ``agent`` say what is ``wanted``."""
    if isinstance(agent, Silent):
        return _silent(wanted, agent)
    path = agent.settings(wanted.environ)
    outcome = Outcome(agent.name, agent.title, "absent", os.fspath(path))
    if not agent.directory(wanted.environ).is_dir():
        missing = f"there is no {agent.directory(wanted.environ)}: run {agent.title} once"
        return replace(outcome, problem=missing)
    if agent.name not in agents.known() and not wanted.remove:
        return replace(outcome, state="sweep", problem=_SWEEP_LATER)
    try:
        return _edit(wanted, agent, outcome)
    except (IntegrationError, Unfit) as error:
        reason = str(error) if str(path) in str(error) else f"{path}: {error}"
        return replace(outcome, state="refused", problem=reason, by_hand=_by_hand(wanted, agent))


def dead_entries(environ: Mapping[str, str]) -> Iterator[Finding]:
    """Entries of ours that no agent can run, and settings of agents that cannot be looked at."""
    for agent in AGENTS if environ.get("HOME") else ():
        path = agent.settings(environ)
        if not path.parent.is_dir():
            continue
        try:
            found = ours(files.text_of(files.read(path).data), agent)
        except (IntegrationError, Unfit) as error:
            what = f"the hooks of {agent.title} are not known, {path} cannot be used: {error}"
            yield Finding("hook.settings", "warning", what, f"mend {path}")
            continue
        for program in dict.fromkeys(each.program for each in found):
            if not (Path(program).is_absolute() and os.access(program, os.X_OK)):
                what = f"{path} calls {program}, which is not there or no program"
                yield Finding("hook.missing", "problem", what, f"`memoryd integrate {agent.name}`")


def hooked(environ: Mapping[str, str]) -> set[str]:
    """The agents in whose settings hooks of ours stand; those that cannot be looked at not."""
    found: set[str] = set()
    for agent in AGENTS if environ.get("HOME") else ():
        try:
            if ours(files.text_of(files.read(agent.settings(environ)).data), agent):
                found.add(agent.name)
        except (IntegrationError, Unfit):
            continue
    return found


def _edit(wanted: Wanted, agent: Agent, outcome: Outcome) -> Outcome:
    for _ in range(TRIES):
        settings = files.read(Path(outcome.path))
        before = files.text_of(settings.data)
        after, state = _decide(wanted, agent, settings, before)
        done = replace(outcome, state=state, notes=_notes(wanted, agent, before))
        if state == "current":
            return done
        done = replace(done, diff=_diff(outcome.path, before, after or ""))
        data = None if after is None else after.encode("utf-8")
        if wanted.dry_run or files.replace(wanted.home, agent.name, settings, data):
            return done
    raise IntegrationError(f"{outcome.path} is being edited: nothing was written")


def _decide(
    wanted: Wanted, agent: Agent, settings: files.Settings, before: str
) -> tuple[str | None, State]:
    """What the file is to be (None: no file), and what that makes of it."""
    standing = ours(before, agent)
    if not wanted.remove:
        after = put_in(before, agent, wanted.program)
        return after, "current" if after == before else "updated" if standing else "added"
    if not standing:
        return before, "current"
    first = files.original(wanted.home, agent.name, settings)
    if first is None:
        return take_out(before, agent), "removed"
    text = None if first.data is None else files.text_of(first.data)
    return (text if not text else take_out(text, agent)), "removed"


def _silent(wanted: Wanted, agent: Silent) -> Outcome:
    home = Path(wanted.environ.get("HOME") or "~")
    outcome = Outcome(agent.name, agent.title, "absent")
    if not any((home / folder).is_dir() for folder in agent.folders):
        return replace(outcome, problem=f"no folder of {agent.title} is here")
    covered = SWEEP if agent.name in agents.known() else _SWEEP_LATER
    return replace(outcome, state="sweep", problem=f"{agent.why}; {covered}")


def _notes(wanted: Wanted, agent: Agent, before: str) -> tuple[str, ...]:
    if wanted.remove:
        return ()
    off = [_SWITCHED_OFF] if is_switched_off(before) else []
    return (*off, *agent.notes, *_beside(agent.directory(wanted.environ)))


def _beside(directory: Path) -> Iterator[str]:
    """What Codex's own ``config.toml`` says about hooks; nobody else has one. It is not edited."""
    path = directory / "config.toml"
    try:
        said = tomllib.loads((read_or_none(path) or b"").decode("utf-8", "replace"))
    except (OSError, tomllib.TOMLDecodeError, RecursionError):
        return  # the agent itself complains about it
    features = said.get("features")
    if isinstance(features, dict) and features.get("hooks") is False:
        yield f"hooks are switched off in {path}: features.hooks"
    if PROGRAM in str(said.get("hooks", "")):
        yield f"{path} calls {PROGRAM} too: take that out, once is enough"


def _by_hand(wanted: Wanted, agent: Agent) -> str:
    if wanted.remove:
        return f"take out every hook that calls {PROGRAM}"
    return json.dumps(whole(agent, wanted.program), ensure_ascii=False, indent=2)


def _diff(path: str, before: str, after: str) -> str:
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), path, path, lineterm="")
    return "\n".join(lines)


def _speakable(program: str) -> str:
    if any(unicodedata.category(letter) in {"Cc", "Cs", "Zl", "Zp"} for letter in program):
        raise IntegrationError(
            f"no settings file can name {program!r}", hint="install memoryd at a plainer path"
        )
    return program
