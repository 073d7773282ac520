"""``memoryd backfill``: the sessions from before memoryd, read a few at a time."""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from memoryd.cli.backfill_shown import (
    WHY,
    preview_lines,
    preview_values,
    status_lines,
    status_values,
)
from memoryd.cli.common import home_option, json_option, open_queue, say
from memoryd.memory.errors import UsageError
from memoryd.memory.home import Home
from memoryd.memory.text import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from memoryd.jobs.forecast import Forecast
    from memoryd.jobs.ledger import Ledger
    from memoryd.memory.config import Config


@click.group(epilog="Example: memoryd backfill preview")
def backfill() -> None:
    """Read the sessions from before memoryd, a few at a time."""


@contextmanager
def _opened(home: Home) -> Iterator[tuple[Ledger, Config]]:
    ledger, config = open_queue(home)
    try:
        yield ledger, config
    finally:
        ledger.close()


def _discover(home: Home, ledger: Ledger, config: Config) -> int:
    from memoryd.jobs.discovery import discover

    return discover(home, ledger, config, os.environ).sessions


def _forecast(home: Home, ledger: Ledger, config: Config) -> Forecast:
    from memoryd.jobs.forecast import forecast

    return forecast(home, ledger, config, os.environ)


@backfill.command(epilog="Example: memoryd backfill status --json")
@home_option
@json_option
def status(home: Home, as_json: bool) -> None:
    """Say how far it has come, what today allows, and whose sessions are deleted too soon."""
    with _opened(home) as (ledger, config):
        _discover(home, ledger, config)
        found = _forecast(home, ledger, config)
        values = status_values(found, ledger, config)
    say(values, "\n".join(status_lines(values)), as_json)


@backfill.command(epilog="Example: memoryd backfill preview --limit 50")
@click.option("--limit", default=20, type=click.IntRange(1, 10_000), help="Sessions listed.")
@home_option
@json_option
def preview(home: Home, limit: int, as_json: bool) -> None:
    """Say what it would read next and what that would take; nothing is read or asked for it."""
    with _opened(home) as (ledger, config):
        _discover(home, ledger, config)
        values = preview_values(_forecast(home, ledger, config), config, limit)
    say(values, "\n".join(preview_lines(values)), as_json)


@backfill.command(epilog="Example: memoryd backfill start")
@home_option
@json_option
def start(home: Home, as_json: bool) -> None:
    """Begin, or go on after a pause; kept past restarts."""
    with _opened(home) as (ledger, config):
        values = begin(home, ledger, config)
    why = WHY.get(values["reason"], "")
    said = "backfill goes on by itself" if values["state"] == "on" else "backfill is allowed"
    say(
        values, f"{said}{f', but {why}' if why else ''}; stop it: `memoryd backfill pause`", as_json
    )


def begin(home: Home, ledger: Ledger, config: Config) -> dict[str, Any]:
    """Start it; how it stands then. Raises ``UsageError`` where the configuration says no."""
    from memoryd.daemon.client import Client
    from memoryd.jobs.backfill import standing

    if config.backfill.enabled is False:
        raise UsageError(
            "backfill is switched off in the configuration",
            hint=f'take "enabled = false" under [backfill] out of {home.config_file}',
        )
    ledger.archive.say("started")
    ledger.wake("backfill.share-spent", "budget.too-small")
    Client(home.socket(os.environ)).ring()
    costs = config.provider.name != "rules"
    return asdict(standing(ledger, config, os.environ, costs=costs))


@backfill.command(epilog="Example: memoryd backfill pause")
@home_option
@json_option
def pause(home: Home, as_json: bool) -> None:
    """Stop after the part that is being read; what waits goes on waiting, past restarts."""
    with _opened(home) as (ledger, _):
        ledger.archive.say("paused")
        jobs = ledger.archive.open_jobs()
        values = {"state": "paused", "reason": "backfill.paused", "since": ledger.clock.now_ms()}
    text = f"paused; {counted(jobs, 'job')} will wait until `memoryd backfill start`"
    say(values | {"jobs": jobs}, text, as_json)


@backfill.command(epilog="Example: memoryd backfill reset")
@home_option
@json_option
def reset(home: Home, as_json: bool) -> None:
    """Look at every session anew and try again what was set aside; nothing is read twice."""
    from memoryd.daemon.client import Client

    with _opened(home) as (ledger, config):
        aside, _ = ledger.archive.reset()
        sessions = _discover(home, ledger, config)
    Client(home.socket(os.environ)).ring()
    text = f"set aside before, waiting again: {counted(aside, 'session')}; looked at: {sessions}"
    say({"set_aside": aside, "sessions": sessions}, text, as_json)
