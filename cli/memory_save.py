"""``memoryd memory save`` and ``rename``: what a person or their agent writes into the memory."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from memoryd.cli.common import (
    home_option,
    json_option,
    open_queue,
    project_option,
    record_project,
    say,
    store_of,
)
from memoryd.memory.errors import UsageError
from memoryd.memory.home import Home

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from memoryd.memory.saving import Saved
    from memoryd.memory.store import Store

#: The longest content that is read from standard input, in characters; no note can hold more.
_MOST_CHARACTERS = 1 << 20


@click.command(
    epilog="Example: memoryd memory save use-tabs --type feedback"
    ' --description "Indents with tabs" --content "Use tabs, not spaces."'
)
@click.argument("name")
@click.option("--type", "type_", required=True, metavar="TYPE", help="What kind of note it is.")
@click.option("--description", metavar="TEXT", help="One line; kept if not given.")
@click.option("--content", metavar="TEXT", help="The body; - reads it from standard input.")
@click.option("--tags", metavar="A,B", help="Its tags; an empty text takes them away.")
@click.option("--supersedes", metavar="A,B", help="Notes it replaces: they go to the archive.")
@click.option("--mine", is_flag=True, help="Your own words: from now on only you change it.")
@click.option("--anyway", is_flag=True, help="Also where another note says it, or is a person's.")
@project_option
@home_option
@json_option
@click.pass_context
def save(
    context: click.Context,
    name: str,
    type_: str,
    description: str | None,
    content: str | None,
    tags: str | None,
    supersedes: str | None,
    mine: bool,
    anyway: bool,
    project: str | None,
    home: Home,
    as_json: bool,
) -> None:
    """Save the note NAME, or change what is given of it; nothing is written twice."""
    from memoryd.memory.clock import SystemClock
    from memoryd.memory.saving import save_note, told

    home.prepare()
    store = store_of(home, project)
    saved = save_note(
        store,
        type=type_,
        name=name,
        description=description,
        content=_standard_input() if content == "-" else content,
        tags=tags,
        supersedes=supersedes,
        mine=mine,
        anyway=anyway,
        clock=SystemClock(),
        planned=_planned(home),
    )
    if saved.written:
        record_project(home, project)
    text = told(saved)
    if saved.id:
        text += f" `memoryd memory undo {saved.id[-8:]}` takes it back."
    elif saved.outcome != "unchanged":
        text += " --anyway saves it all the same."
    say(_values(store, saved), text, as_json)
    if not saved.written and saved.outcome != "unchanged":
        context.exit(1)


@click.command(epilog="Example: memoryd memory rename use-tabs indent-with-tabs")
@click.argument("name")
@click.argument("new_name")
@project_option
@home_option
@json_option
def rename(name: str, new_name: str, project: str | None, home: Home, as_json: bool) -> None:
    """Call the note NAME (or type/name) NEW_NAME; links to it follow."""
    from memoryd.jobs import candidates
    from memoryd.memory.clock import SystemClock
    from memoryd.memory.renaming import rename_note

    store = store_of(home, project)
    done = rename_note(store, name, new_name, clock=SystemClock(), planned=_planned(home))
    ledger, _ = open_queue(home)
    former, now = (f"{done.type}/{each}" for each in (done.former_name, done.name))
    ledger.usage.rename_usage(store.key, former, now)
    candidates.follow(ledger.db, store.key, done.former_path, done.path)
    lines = [f"renamed {done.type}/{done.former_name} to {done.type}/{done.name}"]
    if done.relinked:
        lines.append(f"links followed in {', '.join(done.relinked)}")
    if done.left:
        lines.append(f"left as they are: {', '.join(done.left)}")
    lines.append(f"`memoryd memory undo {done.id[-8:]}` takes this back")
    values = asdict(done) | {"project": store.key, "path": str(store.root / done.path)}
    values["undo"] = values.pop("id")
    say(values, "\n".join(lines), as_json)


def _planned(home: Home) -> Callable[[], Collection[str]]:
    """What standing plans leave; the ledger is opened only when that is asked."""

    def planned() -> Collection[str]:
        return open_queue(home)[0].records.planned_contents()

    return planned


def _standard_input() -> str:
    read = sys.stdin.buffer.read(_MOST_CHARACTERS + 1)
    if len(read) > _MOST_CHARACTERS:
        raise UsageError("the content is larger than a note can be", hint="split it")
    return read.decode("utf-8", "replace")


def _values(store: Store, saved: Saved) -> dict[str, object]:
    resembles = [
        {"type": each.type, "name": each.name, "description": each.description}
        for each in saved.resembles
    ]
    values = asdict(saved) | {"project": store.key, "path": str(store.root / saved.path)}
    values["undo"] = values.pop("id")
    return values | {"resembles": resembles}
