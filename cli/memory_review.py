"""``memoryd memory review``, ``apply`` and ``reject``: a person's word on what waits for it."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from memoryd.cli.common import (
    home_option,
    json_option,
    open_queue,
    printable,
    project_option,
    say,
    store_of,
)
from memoryd.memory.errors import MemorydError, UsageError
from memoryd.memory.home import Home

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from memoryd.jobs.ledger import Ledger
    from memoryd.jobs.reviewing import Decided, Waiting

_SPAN_CHARACTERS = 160


@click.command(epilog="Example: memoryd memory review --all")
@click.option("--all", "everywhere", is_flag=True, help="What waits in every project.")
@project_option
@home_option
@json_option
def review(everywhere: bool, project: str | None, home: Home, as_json: bool) -> None:
    """List what waits for your word: the statement, why it waits, where it would go."""
    from memoryd.jobs.reviewing import waiting

    ledger, _ = open_queue(home)
    found = waiting(ledger, None if everywhere else store_of(home, project).key)
    text = "\n\n".join(_lines(one) for one in found)
    if found:
        text += "\n\n`memoryd memory apply ID` writes one, `memoryd memory reject ID` forgets it"
    say({"candidates": [_values(one) for one in found]}, text or _nothing(ledger), as_json)


@click.command(epilog="Example: memoryd memory apply 5f3a9c21")
@click.argument("ids", nargs=-1, metavar="ID...")
@click.option("--all", "whole", is_flag=True, help="All that waits in the project.")
@project_option
@home_option
@json_option
@click.pass_context
def apply(
    context: click.Context,
    ids: tuple[str, ...],
    whole: bool,
    project: str | None,
    home: Home,
    as_json: bool,
) -> None:
    """Write the candidates ID... (any ending of an id), as they fit the notes of now."""
    from memoryd.jobs.reviewing import apply_candidate

    _decide(context, apply_candidate, home, ids, whole, project, as_json)


@click.command(epilog="Example: memoryd memory reject 5f3a9c21")
@click.argument("ids", nargs=-1, metavar="ID...")
@click.option("--all", "whole", is_flag=True, help="All that waits in the project.")
@project_option
@home_option
@json_option
@click.pass_context
def reject(
    context: click.Context,
    ids: tuple[str, ...],
    whole: bool,
    project: str | None,
    home: Home,
    as_json: bool,
) -> None:
    """Drop the candidates ID... and do not learn them again from what was said until now."""
    from memoryd.jobs.reviewing import reject_candidate

    _decide(context, reject_candidate, home, ids, whole, project, as_json)


def _decide(
    context: click.Context,
    carry_out: Callable[..., Decided],
    home: Home,
    ids: tuple[str, ...],
    whole: bool,
    project: str | None,
    as_json: bool,
) -> None:
    """Carry out a person's word on each candidate; one that fails does not stop the others."""
    from memoryd.memory.clock import SystemClock

    ledger, _ = open_queue(home)
    decided: list[Decided] = []
    failed: list[dict[str, str]] = []
    for one in _chosen(ledger, home, ids, whole, project):
        try:
            decided.append(carry_out(home, ledger, one, SystemClock()))
        except MemorydError as error:
            failed.append({"id": one.id, "error": error.message, "hint": error.hint})
    lines = [_told(one) for one in decided] or ["nothing waits here"] * (not failed)
    say({"decided": [asdict(one) for one in decided], "failed": failed}, "\n".join(lines), as_json)
    for each in failed:
        line = f"memoryd: {each['id'][-8:]}: {each['error']} ({each['hint']})"
        click.echo(printable(line), err=True)
    if failed:
        context.exit(1)


def _chosen(
    ledger: Ledger, home: Home, ids: tuple[str, ...], whole: bool, project: str | None
) -> list[Waiting]:
    from memoryd.jobs.reviewing import find, waiting

    if whole == bool(ids):
        raise UsageError(
            "name the candidates, or take --all of a project",
            hint="`memoryd memory review` shows them with their ids",
        )
    if whole:
        return waiting(ledger, store_of(home, project).key)
    found = [find(ledger, ending) for ending in ids]
    return [one for at, one in enumerate(found) if one not in found[:at]]


def _told(one: Decided) -> str:
    back = f"; `memoryd memory undo {one.undo[-8:]}` takes this back" if one.undo else ""
    what = {
        "applied": f"written to {one.path}",
        "rejected": "forgotten",
        "ignored": "dropped: a note says the same already",
    }[one.state]
    return f"{one.id[-8:]} {what}{back}"


def _nothing(ledger: Ledger) -> str:
    count = ledger.records.count_in_review()
    elsewhere = f"; {count} elsewhere: `memoryd memory review --all`" if count else ""
    return f"nothing waits here{elsewhere}"


def _lines(one: Waiting) -> str:
    goes = _goes(one)
    said = [f'  said    "{span[:_SPAN_CHARACTERS]}"' for span in _words(one)]
    where = f"  goes to {goes['type']}/{goes['name']} ({goes['relation']}) in {one.store}"
    why = f"  waits   {one.reason}: {one.detail}"
    return "\n".join([f"{one.id[-8:]}  {one.statement}", where, why, *said])


def _goes(one: Waiting) -> dict[str, str]:
    from memoryd.memory.reviewing import described

    return dict(described(one.proposed))


def _words(one: Waiting) -> list[str]:
    return [" ".join(span.span.split()) for span in one.proposed.evidence]


def _values(one: Waiting) -> dict[str, Any]:
    return {
        "id": one.id,
        "project": one.store,
        "statement": one.statement,
        "category": one.category,
        "reason": one.reason,
        "detail": one.detail,
        **_goes(one),
        "evidence": _words(one),
        "since": one.proposed.since_ms,
    }
