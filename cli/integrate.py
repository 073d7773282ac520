"""``memoryd integrate``: have the agents on this machine call the hook."""

from __future__ import annotations

import os
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from memoryd.cli.common import home_option, json_option, say
from memoryd.memory.home import Home

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memoryd.sessions.integration.integrating import Outcome

_WORDS = {
    "added": "added",
    "updated": "updated",
    "removed": "removed",
    "current": "as it should be",
    "refused": "NOT EDITED",
    "absent": "not here",
    "sweep": "without hooks",
}
_NOTHING_TO_REMOVE = "nothing of ours is in its settings"


@click.command(epilog="Example: memoryd integrate claude-code --dry-run")
@click.argument("agents", nargs=-1, metavar="[AGENT]...")
@click.option("--remove", is_flag=True, help="Take our entries out again.")
@click.option("--dry-run", is_flag=True, help="Show the change and write nothing.")
@home_option
@json_option
def integrate(
    home: Home, agents: tuple[str, ...], remove: bool, dry_run: bool, as_json: bool
) -> None:
    """Have every agent found here, or those named, tell memoryd of its sessions.

    Edits the agent's own settings: one entry an event, all else as it was. What was there is kept
    in backups/settings of the home, and `--remove` takes the entries out again. Exit code 1 where
    settings could not be edited or a named agent is not here.
    """
    from memoryd.sessions.integration import integrating

    chosen = integrating.named(agents)
    program = "" if remove else integrating.hook_program()
    wanted = integrating.Wanted(home, os.environ, program, remove, dry_run)
    outcomes = [integrating.integrate(wanted, agent) for agent in chosen]
    if not agents:
        outcomes = [each for each in outcomes if each.state != "absent"]
    note = "" if remove else elsewhere(home)
    values = {"dry_run": dry_run, "agents": [asdict(each) for each in outcomes], "note": note}
    lines = [line for each in outcomes for line in lines_of(each, dry_run=dry_run, remove=remove)]
    if not outcomes:
        lines.append("no agent that memoryd knows is here")
    lines += [note] if note else []
    lines += ["", "nothing was written"] if dry_run else []
    say(values, "\n".join(lines), as_json)
    failed = {"refused", "absent"} if agents else {"refused"}
    if any(each.state in failed for each in outcomes):
        sys.exit(1)


def elsewhere(home: Home) -> str:
    """What to know where hooks will write to another home than ``home``; empty where they do not.

    A hook's command holds no variables, so it finds its home as the agent's environment says.
    """
    usual = Home.locate(None, {name: os.environ[name] for name in ("HOME",) if name in os.environ})
    if home.root == usual.root:
        return ""
    return (
        f"start your agents with MEMORYD_HOME={home.root}: without it hooks write to {usual.root}"
    )


def lines_of(outcome: Outcome, *, dry_run: bool, remove: bool = False) -> Sequence[str]:
    """What a person reads about one agent."""
    word = _WORDS[outcome.state]
    if remove and outcome.state == "current":
        word = _NOTHING_TO_REMOVE
    if dry_run and outcome.diff:
        word = f"would be {word}"
    head = f"{outcome.title}: {word}"
    lines = [f"{head}  {outcome.path}" if outcome.path else head]
    lines += [f"  {outcome.problem}"] if outcome.problem else []
    lines += [f"  {line}" for line in outcome.diff.splitlines()]
    if outcome.by_hand:
        lines.append("  by hand:")
        lines += [f"  {line}" for line in outcome.by_hand.splitlines()]
    if outcome.state in {"added", "updated"}:
        lines += [f"  note: {note}" for note in outcome.notes]
    return lines
