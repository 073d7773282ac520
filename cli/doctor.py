"""``memoryd doctor``: what is wrong, and what to do about it."""

from __future__ import annotations

import os
import sys
from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from memoryd.cli.common import home_option, json_option, say
from memoryd.memory.home import Home

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memoryd.jobs.repairing import Repair
    from memoryd.memory.health import Finding

_MARKS = {"ok": "ok     ", "warning": "warning", "problem": "PROBLEM"}


@click.command(epilog="Example: memoryd doctor --fix")
@click.option("--fix", is_flag=True, help="Repair what is safe first, and say what was done.")
@home_option
@json_option
def doctor(home: Home, fix: bool, as_json: bool) -> None:
    """Look everything over: what is wrong is named, with what to do; exit code 1 where it is.

    --fix deletes nothing that anybody could miss: what is damaged is kept under another name. What
    a running daemon is in the way of is left; stop it first.
    """
    from memoryd.daemon import service_health
    from memoryd.daemon.client import Client
    from memoryd.jobs.doctor import examine
    from memoryd.memory import log
    from memoryd.memory.clock import SystemClock

    log.configure(quiet=True)
    repairs: list[Repair] = []
    if fix:
        from memoryd.jobs.repairing import repair

        repairs = repair(home, SystemClock(), os.environ)
    told = Client(home.socket(os.environ)).status() or {}
    more, daemon = (service_health.CHECK,), told.get("daemon")
    findings = examine(home, SystemClock(), os.environ, more=more, daemon=daemon)
    counts = Counter(each.severity for each in findings)
    healthy = not counts["problem"]
    values: dict[str, object] = {"healthy": healthy}
    values["findings"] = [asdict(each) for each in findings]
    if fix:
        values["repairs"] = [asdict(each) for each in repairs]
    say(values, "\n".join([*_repaired(repairs), *_lines(findings)]), as_json)
    if not healthy:
        sys.exit(1)


def _repaired(repairs: Sequence[Repair]) -> list[str]:
    return [f"{'LEFT   ' if each.left else 'mended '}  {each.what}" for each in repairs]


def _lines(findings: Sequence[Finding]) -> list[str]:
    lines = []
    for each in findings:
        # A name with a line break in it must not look like a finding of its own.
        what, todo = (" ".join(text.split()) for text in (each.what, each.todo))
        fine = each.severity == "ok"
        # What is as it should be leaves nothing to do: what is to be known of it stands beside it.
        lines.append(f"{_MARKS[each.severity]}  {what}" + (f" ({todo})" if fine and todo else ""))
        if todo and not fine:
            lines.append(f"         -> {todo}")
    return lines
