"""``memoryd sessions doctor``."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from memoryd.cli.common import home_option, json_option, say
from memoryd.cli.sessions_common import opened
from memoryd.memory.home import Home
from memoryd.memory.text import counted

if TYPE_CHECKING:
    from memoryd.sessions.drift import Reading


@click.command(epilog="Example: memoryd sessions doctor --json")
@home_option
@json_option
def doctor(home: Home, as_json: bool) -> None:
    """Tell how well transcripts are read: what was skipped, by agent and version.

    Types of lines that memoryd does not know are counted and passed over; what else is skipped is
    tool output and the like, as it should be.
    """
    from memoryd.sessions.drift import read_worse, readings, unreadable

    with opened(home) as place:
        found = readings(place.history)
        agents = place.config.sessions.agents
    closed = unreadable(os.environ, agents)
    worse = {id(one) for one, _ in read_worse(found)}
    values: dict[str, Any] = {
        "agents": [asdict(one) | {"read_worse": id(one) in worse} for one in found],
        "unreadable": [{"agent": agent, "reason": why} for agent, why in closed],
    }
    lines = [line for one in found for line in _lines(one, id(one) in worse)]
    for agent, why in closed:
        lines.append(f"{agent}: {why}; close {agent} and look again, others are read all the same")
    say(values, "\n".join(lines) or "no session was read yet", as_json)


def _lines(one: Reading, worse: bool) -> Iterator[str]:
    version = f" {one.version}" if one.version else " (no version told)"
    read = f"{counted(one.sessions, 'session')}, {counted(one.messages, 'message')}"
    yield f"{one.agent}{version}: {read}"
    yield from _counts("passed over", one.known)
    yield from _counts("of unknown type", one.unknown)
    if one.bad_lines:
        yield f"  {counted(one.bad_lines, 'line')} not as {one.agent} writes them: cut or damaged"
    if one.too_long:
        yield f"  {counted(one.too_long, 'line')} too long to be held"
    if one.gone:
        yield f"  {one.gone} transcripts are gone; what was read of them is kept"
    if worse:
        yield f"  less is read of {one.agent}{version} than before: a newer memoryd may know it"


def _counts(what: str, counts: dict[str, int]) -> Iterator[str]:
    if counts:
        most = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
        yield f"  {what}: " + ", ".join(f"{count} {reason}" for reason, count in most)
