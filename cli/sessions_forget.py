"""``memoryd sessions forget``."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from memoryd.cli.common import agent_option, home_option, json_option, key_of, say, when
from memoryd.cli.sessions_common import Opened, opened
from memoryd.memory.errors import StoreBusy
from memoryd.memory.home import Home
from memoryd.memory.text import counted

if TYPE_CHECKING:
    from memoryd.jobs.sessions import Written

_DAY_MS = 24 * 3600 * 1000
#: Sessions of a preview that are listed one by one.
_LISTED = 50

#: What a preview leaves empty.
_RESULTS = ("forgotten", "notes", "notes_forgotten", "forks", "origins", "left")

Name = tuple[str, str]


@click.command(epilog="Example: memoryd sessions forget 5f3a9c21")
@click.argument("named", metavar="[SESSION]...", nargs=-1)
@click.option("--project", metavar="DIR", help="All that worked in this project (or its key).")
@agent_option("All of this agent.")
@click.option(
    "--before", type=click.DateTime(["%Y-%m-%d"]), help="All that were last active before that day."
)
@click.option("--older-than", type=click.IntRange(0), metavar="DAYS", help="All not active since.")
@click.option("--notes", is_flag=True, help="The notes that came of them too.")
@click.option("--yes", is_flag=True, help="Forget without asking, and what the options find.")
@home_option
@json_option
def forget(
    named: tuple[str, ...],
    project: str | None,
    agent: str | None,
    before: datetime | None,
    older_than: int | None,
    notes: bool,
    yes: bool,
    home: Home,
    as_json: bool,
) -> None:
    """Forget each SESSION for good: its words go, and it is never distilled again.

    Also not where another session repeats it. Notes that came of it are named and stay, but with
    --notes. The agent's own transcript is not touched. In a terminal you are asked first; scripts,
    --json and --yes are not. What --project and the like find is only shown without --yes.
    """
    asked = (project, agent, before, older_than)
    if bool(named) == any(each is not None for each in asked):
        raise click.UsageError("say which: SESSION, or --project, --agent, --before, --older-than")
    with opened(home) as place:
        if named:
            chosen = list(dict.fromkeys(_find(place, each) for each in named))
        else:
            chosen = _choose(place, project, agent, _before_ms(before, older_than))
        if not named and not yes:
            _preview(place, chosen, as_json)
            return
        if named and not (yes or as_json) and sys.stdin.isatty():
            _ask(place, chosen)
        _forget(place, chosen, notes, as_json)


def _before_ms(before: datetime | None, older_than: int | None) -> int | None:
    limits = []
    if before is not None:
        limits.append(int(before.timestamp() * 1000))
    if older_than is not None:
        limits.append(int(time.time() * 1000) - older_than * _DAY_MS)
    return min(limits, default=None)


def _find(place: Opened, named: str) -> Name:
    """A session of the history, else one that only the ledger or its agent knows."""
    from memoryd.sessions.agents import adapter_for, known
    from memoryd.sessions.listing import find

    others = [(each.agent, each.session) for each in place.ledger.records.rollouts()]
    agent, slash, session = named.partition("/")
    if slash and agent in known():
        discovered = adapter_for(agent).discover(os.environ)
        others += [(agent, each.session) for each in discovered if each.session == session]
    return find(place.history, named, list(dict.fromkeys(others)))


def _choose(
    place: Opened, project: str | None, agent: str | None, before_ms: int | None
) -> list[Name]:
    """What the options mean and is not forgotten yet."""
    from memoryd.sessions.listing import CHOSEN_LIMIT, Which, choose

    key = None if project is None else key_of(place.home, project)
    which = Which(agent, key, before_ms, forgotten=False)
    return choose(place.history, which, CHOSEN_LIMIT)


def _ask(place: Opened, chosen: Sequence[Name]) -> None:
    """Have a person say yes: nothing brings the words back. Ends the command where they do not."""
    say({}, "\n".join(_listed(place, chosen)), as_json=False)
    if not click.confirm("Forget it for good? Nothing brings its words back"):
        click.echo("nothing was forgotten")
        sys.exit(1)


def _listed(place: Opened, chosen: Sequence[Name]) -> Iterator[str]:
    for agent, session in chosen[:_LISTED]:
        stored = place.history.session(agent, session)
        if stored is None:
            yield f"{agent}/{session}: not read yet"
            continue
        projects = ", ".join(stored.projects) or "-"
        said = f"{when(stored.last_active_ms)}, {counted(stored.messages, 'message')}, {projects}"
        yield f"{agent}/{session}: {said}"
    if len(chosen) > _LISTED:
        yield f"and {len(chosen) - _LISTED} more"


def _preview(place: Opened, chosen: Sequence[Name], as_json: bool) -> None:
    lines = list(_listed(place, chosen))
    those = "this session" if len(chosen) == 1 else f"these {counted(len(chosen), 'session')}"
    told = f"nothing was forgotten; --yes forgets {those}"
    lines.append(told if chosen else "no session is meant")
    values: dict[str, Any] = {
        "sessions": [{"agent": agent, "session": session} for agent, session in chosen],
        **{key: [] for key in _RESULTS},
        "done": False,
    }
    say(values, "\n".join(lines), as_json)


def _forget(place: Opened, chosen: Sequence[Name], with_notes: bool, as_json: bool) -> None:
    from memoryd.jobs.forgetting import Forgetter
    from memoryd.jobs.sessions import notes_of
    from memoryd.sessions.listing import forks_of, origins_of

    forgetter = Forgetter(place.home, place.config, os.environ, place.ledger, place.history)
    busy: list[StoreBusy] = []
    done: list[dict[str, Any]] = []
    written: dict[Written, None] = {}
    undo: dict[str, str] = {}
    forks: dict[Name, None] = {}
    origins: dict[Name, None] = {}
    for name in chosen:
        found = notes_of(place.ledger, *name)
        forks |= dict.fromkeys(forks_of(place.history, *name))
        try:
            if with_notes:
                forgetter.exclude(*name)  # a plan yet to be written would bring a note back
                undo |= _forget_notes(place, found)
            done.append(asdict(forgetter.forget(*name)))
        except StoreBusy as error:
            busy.append(error)
            continue
        written |= dict.fromkeys(found)
        origins |= dict.fromkeys(origins_of(place.history, *name))
    there = _there(place, written)
    values: dict[str, Any] = {
        "sessions": [{"agent": agent, "session": session} for agent, session in chosen],
        "forgotten": done,
        "notes": [{"project": note.store, "path": note.path} for note in there],
        "notes_forgotten": [
            {"project": note.store, "path": note.path, "undo": undo[note.store]}
            for note in written
            if note not in there and note.store in undo
        ],
        "forks": [{"agent": agent, "session": session} for agent, session in forks],
        "origins": [{"agent": agent, "session": session} for agent, session in origins],
        "left": [*_in_history(place, undo), *(forgetter.finish() if done else [])],
        "done": bool(done),
    }
    say(values, "\n".join(_lines(values)), as_json)
    if busy:
        raise busy[0]


def _forget_notes(place: Opened, found: Sequence[Written]) -> dict[str, str]:
    """Forget them with tombstones, while the ledger still knows what they stood on.

    By store, what undoes it.
    """
    from memoryd.cli.forget import forget_at
    from memoryd.memory.store import Store

    undo = {}
    for key in dict.fromkeys(note.store for note in found):
        store = Store.open(place.home, key)
        paths = [note.path for note in _there(place, found) if note.store == key]
        if paths:
            undo[key] = forget_at(place.ledger, store, paths).id
    return undo


def _in_history(place: Opened, stores: Iterable[str]) -> list[str]:
    from memoryd.jobs.scrub import in_history
    from memoryd.memory.store import Store

    return in_history(Store.open(place.home, key) for key in stores)


def _there(place: Opened, notes: Sequence[Written] | dict[Written, None]) -> list[Written]:
    """Those of the notes that are in their stores now."""
    from memoryd.memory.store import Store

    paths = {
        key: {note.path for note in Store.open(place.home, key).notes()}
        for key in dict.fromkeys(note.store for note in notes)
    }
    return [note for note in notes if note.path in paths[note.store]]


def _gone(one: dict[str, Any]) -> str:
    """What forgetting took: words, jobs, or nothing but the chance to be read."""
    called_off = f", {counted(one['cancelled'], 'job')} called off" if one["cancelled"] else ""
    if not one["messages"]:
        return f"no word of it was kept, and none will be{called_off}"
    return f"the words of {counted(one['messages'], 'message')} are gone{called_off}"


def _lines(values: dict[str, Any]) -> Iterator[str]:
    for one in values["forgotten"]:
        yield f"{one['agent']}/{one['session']} is forgotten: {_gone(one)}"
        if not one["read"]:
            yield "  its transcript cannot be read now: what is copied of it may not be known"
    for note in values["notes_forgotten"]:
        back = f"`memoryd memory undo {note['undo'][-8:]}` brings it back"
        yield f"{note['path']} is forgotten; {back}"
    for note in values["notes"]:
        forget_it = f"memoryd memory forget {note['path'].removesuffix('.md')}"
        yield f"{note['path']} came of it and stays: `{forget_it} --project {note['project']}`"
    for fork in values["forks"]:
        yield f"{fork['agent']}/{fork['session']} goes on from it; what it adds stays"
    for origin in values["origins"]:
        said_first = f"{origin['agent']}/{origin['session']}"
        yield f"{said_first} said part of it first and keeps that; forget it too if it must go"
    yield from values["left"]
