"""Which jobs a command is about: the options of ``memoryd list`` and what they mean."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

import click

from memoryd.cli.common import key_of
from memoryd.memory.home import Home

if TYPE_CHECKING:
    from memoryd.jobs.filters import Filter

KINDS = ["finalize", "extract", "consolidate", "backfill"]
#: Those of a row, and the two kinds of pending.
STATUSES = [
    "pending",
    "waiting",
    "retrying",
    "running",
    "completed",
    "failed",
    "cancelled",
]
_AGO = re.compile(r"([0-9]{1,6})([smhdw])")
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}

_Command = TypeVar("_Command", bound=Callable[..., Any])


class Moment(click.ParamType):  # type: ignore[type-arg]  # not generic at run time
    """A time of the past: ``2d`` (s, m, h, d, w ago) or a local date, with or without a time."""

    name = "time"

    def convert(
        self, value: Any, parameter: click.Parameter | None, context: click.Context | None
    ) -> int:
        """Wall milliseconds."""
        if isinstance(value, int):
            return value
        ago = _AGO.fullmatch(value.strip())
        try:
            if ago is not None:
                return int((time.time() - int(ago[1]) * _UNITS[ago[2]]) * 1000)
            return int(datetime.fromisoformat(value.strip()).timestamp() * 1000)
        except (ValueError, OverflowError, OSError):
            self.fail(
                f"{value[:40]!r} is no time; write 2d, 12h, 2026-01-31 or 2026-01-31T18:00",
                parameter,
                context,
            )


def kind_option(command: _Command) -> _Command:
    """``--kind``."""
    return click.option("--kind", type=click.Choice(KINDS), help="Only jobs of this kind.")(command)


def reason_option(command: _Command) -> _Command:
    """``--reason``, a code."""
    return click.option(
        "--reason",
        metavar="CODE",
        callback=_take_reason,
        help="Only those with this code of their outcome, last failure or wait, or what a list says"
        " in its place.",
    )(command)


def _take_reason(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> str | None:
    """A code, as ``--json`` gives it or as a list says it in words; an unknown one is refused."""
    if value is None:
        return None
    from memoryd.cli.words import code_of, near_codes

    if (code := code_of(value)) is not None:
        return code
    near = "; the nearest: " + ", ".join(found) if (found := near_codes(value)) else ""
    raise click.BadParameter(f"no job has the reason {value[:60]!r}{near}", context, parameter)


def span_options(command: _Command) -> _Command:
    """``--since`` and ``--until``, of when a job was made."""
    until = click.option(
        "--until", type=Moment(), metavar="TIME", help="Only jobs made before then."
    )
    since = click.option(
        "--since",
        type=Moment(),
        metavar="TIME",
        help="Only jobs made since then: 12h, 2d or a date.",
    )
    return since(until(command))


def filter_of(home: Home, project: str | None, **wanted: Any) -> Filter:
    """The filter that the options describe. Raises ``UsageError`` for an unknown project."""
    from memoryd.jobs.filters import Filter

    since, until = wanted.get("since"), wanted.get("until")
    if since is not None and until is not None and since >= until:
        raise click.UsageError("--until is before --since: no job is made between them.")
    return Filter(project=key_of(home, project) if project else None, **wanted)
