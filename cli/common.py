"""What the commands share: the home, the configuration, JSON, times, tables."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from memoryd.memory.errors import ConfigError
from memoryd.memory.home import Home

if TYPE_CHECKING:
    from memoryd.jobs.ledger import Ledger
    from memoryd.memory.config import Config

_Command = TypeVar("_Command", bound=Callable[..., Any])


def _take_home(context: click.Context, parameter: click.Parameter, value: str | None) -> Home:
    return Home.locate(value or context.find_root().obj, os.environ)


def home_option(command: _Command) -> _Command:
    """``--home`` on the command itself, besides the one before it; the ``Home`` is passed on."""
    return click.option("--home", metavar="DIR", callback=_take_home, help="The home to use.")(
        command
    )


def json_option(command: _Command) -> _Command:
    """``--json``: one JSON object instead of text."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")(command)


def say(values: dict[str, Any], text: str, as_json: bool) -> None:
    """Print ``values`` as JSON, or ``text``."""
    click.echo(json.dumps(values, ensure_ascii=False, indent=2) if as_json else text)


def configuration(home: Home) -> Config:
    """The configuration; where it cannot be used, that is said and the defaults stand in."""
    from memoryd.memory.config import Config, load

    try:
        return load(home.config_file)
    except ConfigError as error:
        click.echo(f"memoryd: {error.message}; the defaults are used", err=True)
        return Config()


def open_queue(home: Home) -> tuple[Ledger, Config]:
    """The ledger, with what lies in the inbox taken in first, and the configuration."""
    from memoryd.jobs.intake import take_in
    from memoryd.jobs.workplace import find_transcript, open_ledger
    from memoryd.memory.clock import SystemClock

    config = configuration(home)
    ledger = open_ledger(home, config, SystemClock())
    take_in(home, ledger, lambda agent, session: find_transcript(os.environ, agent, session))
    return ledger, config


def age(then_ms: int | None) -> str:
    """How long ago (or ahead) ``then_ms`` is, in one unit: ``12s``, ``3m``, ``in 2h``."""
    if then_ms is None:
        return "-"
    seconds = int(time.time() - then_ms / 1000)
    prefix, seconds = ("in ", -seconds) if seconds < 0 else ("", seconds)
    for unit, length in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= length:
            return f"{prefix}{seconds // length}{unit}"
    return f"{prefix}{seconds}s"


def when(then_ms: int | None) -> str:
    """``then_ms`` in local time, to the second."""
    if then_ms is None:
        return "-"
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(then_ms / 1000))


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """``rows`` under ``heads`` in columns as wide as they need to be."""
    widths = [max(len(row[column]) for row in (heads, *rows)) for column in range(len(heads))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (heads, *rows)
    ]
    return "\n".join(lines)


def printable(text: str) -> str:
    """``text`` without control characters: what agents and files say must not drive a terminal."""
    return "".join(
        letter if letter.isprintable() or letter in "\n\t" else "\N{REPLACEMENT CHARACTER}"
        for letter in text
    )
