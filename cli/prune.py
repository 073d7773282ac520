"""``memoryd prune``: delete finished jobs, and give their room back to the disk."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from memoryd.cli.common import home_option, json_option, open_queue, say
from memoryd.memory.home import Home
from memoryd.memory.text import counted

if TYPE_CHECKING:
    from memoryd.jobs.ledger import Ledger
    from memoryd.jobs.retention import Which

_FINISHED = ["cancelled", "completed", "failed"]
_UNITS_MS = {"m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}


def _take_age(context: click.Context, parameter: click.Parameter, value: str | None) -> int | None:
    """``30d`` as milliseconds. Raises ``click.BadParameter`` for what is no age."""
    found = re.fullmatch(r"([1-9][0-9]{0,5})([mhdw])", value or "")
    if found is not None:
        return int(found[1]) * _UNITS_MS[found[2]]
    if value is not None:
        raise click.BadParameter("an age is a number with m, h, d or w: 90m, 12h, 30d, 8w")
    return None


@click.command(epilog="Example: memoryd prune --older-than 30d --dry-run")
@click.option(
    "--keep",
    type=click.IntRange(0, 1_000_000),
    help="Of those, keep the newest so many; as configured where nothing else is said, else 0.",
)
@click.option(
    "--older-than", callback=_take_age, help="Only jobs that ended so long ago: 30d, 12h, 8w."
)
@click.option(
    "--status",
    "statuses",
    type=click.Choice(_FINISHED),
    multiple=True,
    help="Only jobs that ended so; may be given again. Completed and cancelled if left out.",
)
@click.option(
    "--failed", is_flag=True, help="Delete every failed job too, whatever is kept of the others."
)
@click.option("--dry-run", is_flag=True, help="Say what would go; delete nothing.")
@home_option
@json_option
def prune(
    keep: int | None,
    older_than: int | None,
    statuses: tuple[str, ...],
    failed: bool,
    dry_run: bool,
    home: Home,
    as_json: bool,
) -> None:
    """Delete finished jobs. What they left stays: notes, candidates, how far a session was read."""
    from memoryd.jobs.retention import Which

    ledger, config = open_queue(home)
    if keep is None:
        keep = 0 if older_than or statuses else config.queue.keep_finished
    asked = Which(keep=keep)
    if statuses:
        asked = replace(asked, statuses=frozenset(statuses))
    if older_than:
        asked = replace(asked, before_ms=ledger.clock.now_ms() - older_than)
    wanted = [asked, *([Which(frozenset({"failed"}))] if failed else [])]
    gone, freed = _prune(ledger, wanted, dry_run=dry_run)
    values = {
        "pruned": sum(gone.values()),
        "by_status": gone,
        "kept": keep,
        "freed_bytes": freed,
        "dry_run": dry_run,
    }
    say(values, _pruned(gone, keep, freed, dry_run=dry_run), as_json)


def _prune(ledger: Ledger, wanted: Iterable[Which], *, dry_run: bool) -> tuple[dict[str, int], int]:
    """How many of each status went, or would; and how many bytes smaller the file became."""
    gone: dict[str, int] = {}
    for which in wanted:
        do = ledger.retention.would_go if dry_run else ledger.retention.prune
        for status, count in do(which).items():
            # The same ones may have been asked for twice: a dry run counts them once.
            gone[status] = (
                max(gone.get(status, 0), count) if dry_run else gone.get(status, 0) + count
            )
    return gone, 0 if dry_run else ledger.retention.shrink()


def _pruned(gone: dict[str, int], keep: int, freed: int, *, dry_run: bool) -> str:
    smaller = f"; the ledger is {freed / (1 << 20):.1f} MiB smaller" if freed else ""
    if not gone:
        why = (
            f": no more are there than the {keep} that stay" if keep else ": there is none of those"
        )
        return f"no job {'would go' if dry_run else 'pruned'}{why}{smaller}"
    went = f"{counted(sum(gone.values()), 'job')} {'would go' if dry_run else 'pruned'}"
    each = ", ".join(f"{count} {status}" for status, count in sorted(gone.items()))
    kept = f"; the newest {keep} stay" if keep else ""
    return f"{went} ({each}){kept}{smaller}"
