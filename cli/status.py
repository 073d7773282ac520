"""``memoryd status``: how the queue and the daemon are."""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import Any

import click

from memoryd.cli.common import (
    home_option,
    json_option,
    look_into_queue,
    require_home,
    say,
    unanswered,
)
from memoryd.memory.errors import UsageError
from memoryd.memory.home import Home


@click.command(epilog="Example: memoryd status --watch")
@click.option("--watch", is_flag=True, help="Go on showing it, until Ctrl-C.")
@click.option("--metrics", is_flag=True, help="Print the daemon's metrics, as Prometheus reads.")
@home_option
@json_option
def status(watch: bool, metrics: bool, home: Home, as_json: bool) -> None:
    """Say how the queue and the daemon are; works with the daemon running or not.

    With --watch and --json each line is one object.
    """
    if metrics:
        _print_metrics(home, alone=not (watch or as_json))
    elif watch:
        from memoryd.cli.watch import watch_status

        watch_status(home, as_json=as_json)
    else:
        from memoryd.cli.status_text import lines_of

        values = look(home)
        say(values, "\n".join(lines_of(values)), as_json)


def look(home: Home) -> dict[str, Any]:
    """The report of the running daemon, else what the files say."""
    from memoryd.cli.status_beside import seen_beside
    from memoryd.daemon.client import Client

    require_home(home)
    values = Client(home.socket(os.environ)).status()
    if values is not None:
        # It has taken in what lay in the inbox.
        return values | seen_beside(home, alone=False)
    from memoryd.jobs.report import report

    ledger, config = look_into_queue(home)
    try:
        values = asdict(report(home, ledger, config, os.environ)) | {"daemon": None}
        return values | seen_beside(home, alone=True)
    finally:
        ledger.close()


def _print_metrics(home: Home, *, alone: bool) -> None:
    from memoryd.daemon.client import Client

    if not alone:
        raise UsageError("--metrics stands alone", hint="its format is that of Prometheus")
    text = Client(home.socket(os.environ)).metrics()
    if text is None:
        raise unanswered(home)
    click.echo(text, nl=False)
