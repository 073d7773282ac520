"""``memoryd events``: what was remembered, as it happens."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from memoryd.cli.common import (
    home_option,
    json_option,
    open_queue,
    printable,
    say,
    unanswered,
    when,
)
from memoryd.memory.home import Home

if TYPE_CHECKING:
    from memoryd.jobs.events import Event

_SHOWN = 20
_WAIT_SECONDS = 300.0


@click.command(epilog="Example: memoryd events --follow")
@click.option("--after", type=click.IntRange(0), help="Only events later than this id.")
@click.option("--follow", is_flag=True, help="Go on, a line for each event, until interrupted.")
@home_option
@json_option
def events(after: int | None, follow: bool, home: Home, as_json: bool) -> None:
    """Tell what was remembered: the newest events, each with the id to go on from.

    With --follow and --json each line is one object. Following needs a running daemon.
    """
    ledger, _ = open_queue(home)
    since = max(0, ledger.events.last_id() - _SHOWN) if after is None else after
    if follow:
        _follow(home, since if after is not None else ledger.events.last_id(), as_json)
        return
    found = ledger.events.after(since)
    values = {"events": [asdict(each) for each in found], "last": ledger.events.last_id()}
    say(values, "\n".join(map(_line, found)) or "nothing was remembered yet", as_json)


def _follow(home: Home, after: int, as_json: bool) -> None:
    import json

    from memoryd.daemon.client import Client
    from memoryd.jobs.events import Event

    client = Client(home.socket(os.environ))
    while True:
        found = client.events(after, _WAIT_SECONDS)
        if found is None:
            raise unanswered(home)
        for values in found:
            event = Event(values["id"], values["at"], values["kind"], values["body"])
            after = event.id
            click.echo(json.dumps(values) if as_json else printable(_line(event)))


def _line(event: Event) -> str:
    notes: Iterable[dict[str, str]] = event.body.get("notes", ())
    names = ", ".join(f"{each['note']} ({each['project']})" for each in notes)
    return f"{event.id:>6}  {when(event.at)}  {event.kind}  {names}"
