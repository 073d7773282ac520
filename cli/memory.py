"""``memoryd memory``: read what is remembered, add to it, take it back."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from memoryd.cli import history as history_commands
from memoryd.cli.common import (
    home_option,
    json_option,
    project_option,
    require_home,
    say,
    store_of,
    table,
)
from memoryd.cli.forget import forget
from memoryd.cli.memory_import import import_notes
from memoryd.cli.memory_restore import restore
from memoryd.cli.memory_review import apply, reject, review
from memoryd.cli.memory_save import rename, save
from memoryd.memory.errors import UsageError
from memoryd.memory.home import Home

if TYPE_CHECKING:
    from memoryd.jobs.ledger import Ledger
    from memoryd.memory.listing import Listed
    from memoryd.memory.notes import Note
    from memoryd.memory.store import Store


@click.group(epilog="Example: memoryd memory list --all")
def memory() -> None:
    """Read, save, review, delete and undo what is remembered."""


memory.add_command(history_commands.history)
memory.add_command(history_commands.diff)


memory.add_command(forget)


@memory.command("list", epilog="Example: memoryd memory list --all")
@click.option("--all", "everywhere", is_flag=True, help="The notes of every project.")
@click.option("--type", "type_", metavar="TYPE", help="The notes of one type.")
@project_option
@home_option
@json_option
def list_notes(
    everywhere: bool, type_: str | None, project: str | None, home: Home, as_json: bool
) -> None:
    """List a project's notes, with the day on which each was last said or changed."""
    from memoryd.memory.listing import list_notes as listed
    from memoryd.memory.store import Store

    require_home(home)
    stores = [store for store in Store.all(home) if not store.is_profile]
    if not everywhere:
        wanted = store_of(home, project).key
        stores = [store for store in stores if store.key == wanted]
    found = [(store, note) for store in stores for note in listed(store, type_)]
    rows = [
        (*((store.key,) if everywhere else ()), note.type, note.name, note.dated, note.description)
        for store, note in found
    ]
    heads = (*(("PROJECT",) if everywhere else ()), "TYPE", "NAME", "AS OF", "DESCRIPTION")
    text = (
        table(heads, rows)
        if rows
        else "no notes here; `memoryd memory list --all` looks everywhere"
    )
    say({"notes": [_values(store, note) for store, note in found]}, text, as_json)


@memory.command(epilog="Example: memoryd memory show run-tests-with-make")
@click.argument("name")
@project_option
@home_option
@json_option
def show(name: str, project: str | None, home: Home, as_json: bool) -> None:
    """Print the note NAME (or type/name) as it stands on disk."""
    store = store_of(home, project)
    note = _find(store, name)
    data = store.read(note.path) or b""
    text = f"{store.root / note.path}\n\n{data.decode('utf-8', 'replace')}"
    say(_values(store, note) | {"body": note.body}, text.rstrip(), as_json, theirs=True)


@memory.command(epilog="Example: memoryd memory delete run-tests-with-make")
@click.argument("name")
@click.option("--anyway", is_flag=True, help="Also an unsaved version with a secret, for good.")
@project_option
@home_option
@json_option
def delete(name: str, anyway: bool, project: str | None, home: Home, as_json: bool) -> None:
    """Delete the note NAME and do not learn it again from what was said until now.

    A file that cannot be read as a note goes by its path or file name. Older versions stay in the
    archive; `memory forget` takes those too. Exit code 1 where there is no such note.
    """
    from memoryd.cli.common import heard_ms, open_queue
    from memoryd.jobs.scrub import in_history, rewrite, scrub_notes
    from memoryd.memory.clock import SystemClock
    from memoryd.memory.forget import delete_note

    store = store_of(home, project)
    broken = _unreadable(store, name)
    note = None if broken else _find(store, name)
    path = broken or (note.path if note else "")
    ledger, _ = open_queue(home)
    spans = ledger.records.evidence(store.key, path)
    gone = delete_note(
        home,
        store,
        path,
        clock=SystemClock(),
        spans=spans,
        heard_ms=heard_ms(home, store.key),
        anyway=anyway,
    )
    if note is not None:
        ledger.usage.forget_usage(store.key, note.id)
    scrub_notes(ledger, store, [note] if note else [], paths=[path])
    left = [*in_history([store]), *rewrite(ledger)]
    back = f"`memoryd memory undo {gone.id[-8:]}` brings it back"
    back = "nothing brings it back" if gone.lost else back
    named = f"{note.type}/{note.name}" if note else path
    text = "\n".join((f"deleted {named}; {back}", *left))
    values = _values(store, note) if note else _values_of_file(store, path)
    say(
        {
            "deleted": values,
            "commit": gone.commit,
            "undo": None if gone.lost else gone.id,
            "left": left,
        },
        text,
        as_json,
    )


@memory.command(epilog="Example: memoryd memory undo 5f3a9c21")
@click.argument("reference", metavar="JOB|COMMIT")
@home_option
@json_option
def undo(reference: str, home: Home, as_json: bool) -> None:
    """Take back in one step all that JOB wrote, or one COMMIT; all of it or nothing."""
    from memoryd.cli.common import open_queue
    from memoryd.memory.clock import SystemClock
    from memoryd.memory.undo import undo as take_back

    ledger, _ = open_queue(home)
    _require_written(ledger, reference)
    undone = take_back(home, reference, clock=SystemClock(), evidence=ledger.records.evidence)
    lines = [
        f"{store}: {commit[:10]}"
        for store, commits in sorted(undone.commits.items())
        for commit in commits
    ]
    lines.append(f"`memoryd memory undo {undone.id[-8:]}` takes this back")
    say(asdict(undone), "\n".join(["undone, as new commits", *lines]), as_json)


def _require_written(ledger: Ledger, reference: str) -> None:
    """Say so where ``reference`` is a job that wrote nothing. Raises ``UsageError``."""
    nothing = {"completed": "nothing", "cancelled": "nothing", "failed": "nothing yet"}
    jobs = ledger.records.ending(reference)
    if len(jobs) == 1 and jobs[0].status in nothing and not ledger.records.wrote(jobs[0].id):
        what = nothing[jobs[0].status]
        raise UsageError(
            f"job {jobs[0].id[-8:]} wrote {what}",
            hint=f"`memoryd show {jobs[0].id[-8:]}` tells what it read",
        )


def _find(store: Store, name: str) -> Note:
    """The one note called ``name`` or ``type/name``. Raises ``UsageError``."""
    type_, _, bare = name.removesuffix(".md").rpartition("/")
    current = [note for note in store.notes() if not note.archived]
    found = [note for note in current if note.name == bare and type_ in {"", note.type}]
    if len(found) == 1:
        return found[0]
    if found:
        both = " and ".join(f"{note.type}/{note.name}" for note in found)
        raise UsageError(f"{bare!r} names {both}", hint="put the type before the name")
    raise UsageError(
        f"no note of this project is called {name[:80]!r}",
        hint="`memoryd memory list` shows the names; --project looks in another project",
    )


def _unreadable(store: Store, name: str) -> str | None:
    """The path of the one file called so that is no readable note; None where a note is.

    ``name`` is its path, with or without ``.md``, or its file name.
    """
    wanted = f"{name.removesuffix('.md')}.md"
    paths = [each.path for each in store.unreadable()]
    found = [path for path in paths if path == wanted]
    if not found and not any(note.name == wanted.removesuffix(".md") for note in store.notes()):
        found = [path for path in paths if path.endswith(f"/{wanted}")]
    if len(found) > 1:
        raise UsageError(f"{name[:80]!r} names {' and '.join(found)}", hint="give the whole path")
    return found[0] if found else None


def _values_of_file(store: Store, path: str) -> dict[str, object]:
    """The same keys of a file that is no readable note."""
    folder, _, file = path.rpartition("/")
    values: dict[str, object] = {"type": folder, "name": file.removesuffix(".md")}
    values |= dict.fromkeys(("source", "valid_from"))
    return values | {"project": store.key, "description": "", "path": str(store.root / path)}


def _values(store: Store, note: Note | Listed) -> dict[str, object]:
    return {
        "project": store.key,
        "type": note.type,
        "name": note.name,
        "description": note.description,
        "path": str(store.root / note.path),
        "source": note.source,
        "valid_from": note.valid_from,
    }


for _command in (import_notes, restore, save, rename, review, apply, reject):
    memory.add_command(_command)
