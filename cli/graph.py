"""``memoryd graph``: how the notes hang together, and how they are used."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from memoryd.cli.common import home_option, json_option, project_option, say, store_of, table
from memoryd.memory.home import Home

if TYPE_CHECKING:
    from memoryd.memory.decay import Use

_NONE = "no usage yet; a note counts once it was shown to an agent"


@click.group(epilog="Example: memoryd graph usage --all")
def graph() -> None:
    """See how notes are used."""


@graph.command(epilog="Example: memoryd graph usage --all")
@click.option("--all", "everywhere", is_flag=True, help="The notes of every project.")
@project_option
@home_option
@json_option
def usage(everywhere: bool, project: str | None, home: Home, as_json: bool) -> None:
    """Say how often each note was cited and shown, the most shown first."""
    from memoryd.cli.common import open_queue

    ledger, _ = open_queue(home)
    keys = ledger.usage.stores() if everywhere else [store_of(home, project).key]
    found = [(key, *item) for key in keys for item in ledger.usage.usage_of(key).items()]
    found.sort(key=lambda row: (-row[2].shown, -row[2].used, row[1], row[0]))
    heads = ("used/shown", "last used", "memory")
    rows = [_row(key if everywhere else "", note, use) for key, note, use in found]
    text = table((*heads, "project") if everywhere else heads, rows) if rows else _NONE
    values = [_values(*each) for each in found]
    say({"usage": values}, text, as_json)


def _values(project: str, note: str, use: Use) -> dict[str, object]:
    counters = {"shown": use.shown, "used": use.used, "last_used_at": use.last_used_at_ms}
    return {"project": project, "note": note, **counters}


def _row(project: str, note: str, use: Use) -> tuple[str, ...]:
    last = "never"
    if use.last_used_at_ms:
        last = time.strftime("%Y-%m-%d", time.localtime(use.last_used_at_ms / 1000))
    return (f"{use.used}/{use.shown}", last, note, *((project,) if project else ()))
