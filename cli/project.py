"""``memoryd project``: which projects there are, where they live, and how two become one."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from memoryd.cli.common import absolute, age, home_option, json_option, open_queue, say, table, when
from memoryd.memory.errors import UsageError
from memoryd.memory.home import Home
from memoryd.memory.text import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from memoryd.jobs.ledger import Ledger
    from memoryd.jobs.merging import Merged
    from memoryd.jobs.projects import Known, Projects
    from memoryd.memory.config import Config


@click.group(epilog="Example: memoryd project list")
def project() -> None:
    """See the projects, say where one has moved, join two."""


@contextmanager
def _opened(home: Home) -> Iterator[tuple[Projects, Ledger, Config]]:
    from memoryd.jobs.projects import Projects
    from memoryd.memory.clock import SystemClock
    from memoryd.sessions.history import History

    ledger, config = open_queue(home)
    try:
        with History(home.session_history, SystemClock()) as history:
            yield Projects(home, config, history), ledger, config
    finally:
        ledger.close()


@project.command("list", epilog="Example: memoryd project list")
@home_option
@json_option
def list_projects(home: Home, as_json: bool) -> None:
    """List every project of which anything is kept, the last active first."""
    with _opened(home) as (projects, _, _):
        found = projects.all()
    rows = [_row(each) for each in found]
    text = table(("PROJECT", "NOTES", "SESSIONS", "ACTIVE", "DIRECTORY"), rows)
    say({"projects": [asdict(each) for each in found]}, text if rows else "no projects", as_json)


def _row(each: Known) -> tuple[str, ...]:
    where = f"merged into {each.merged_into}" if each.merged_into else _where(each)
    return each.key, str(each.notes), str(each.sessions), age(each.last_active_ms), where


def _where(known: Known) -> str:
    """Where a project is, in words."""
    from memoryd.memory.projects import NOWHERE

    if known.key == NOWHERE:
        return "no directory known: sessions whose agent did not say where they were held"
    return f"{known.path or '?'}{'' if known.exists else ' (gone)'}"


@project.command(epilog="Example: memoryd project show .")
@click.argument("name", metavar="KEY|DIR", default=".")
@home_option
@json_option
def show(name: str, home: Home, as_json: bool) -> None:
    """Tell what a project is known by, where it was, and how much is kept of it."""
    from memoryd.memory.identities import Identity, identity

    with _opened(home) as (projects, _, _):
        found = projects.named(name, absolute(name))
        known = projects.known(found.key, projects.history.project_use())
        types = projects.counts(found.key)
    said = identity(home, found.key) or Identity(found.key, found.path)
    told = {**asdict(known), "seen": None}  # how the repository looked to git says nothing
    more = {key: value for key, value in asdict(said).items() if key not in told}
    notes = ", ".join(f"{count} {type_}" for type_, count in types.items()) or "none"
    lines = [
        known.key,
        f"directory: {_where(known)}",
        *([f"merged into: {known.merged_into}"] if known.merged_into else []),
        *(f"was in: {path}" for path in said.former_paths),
        *(f"worktree: {path}" for path in said.worktrees),
        f"remote: {said.remote or '-'}",
        f"root commit: {said.root_commit or '-'}",
        f"notes: {notes}",
        f"sessions: {known.sessions}, last active {when(known.last_active_ms)}",
    ]
    say(asdict(known) | more | {"by_type": types}, "\n".join(lines), as_json)


@project.command(epilog="Example: memoryd project mv ~/old/app ~/new/app")
@click.argument("name", metavar="KEY|DIR")
@click.argument("new", metavar="NEWDIR")
@home_option
@json_option
def mv(name: str, new: str, home: Home, as_json: bool) -> None:
    """Say that a project is in NEWDIR now; its memory follows, its key stays."""
    with _opened(home) as (projects, _, _):
        moved = projects.move(projects.named(name, absolute(name)), absolute(new))
    lines = [f"{moved.key} is in {moved.path} now"]
    if moved.messages:
        lines.append(
            f"of what was said there {counted(moved.messages, 'message')} now belong to it"
        )
    lines.append(f"`memoryd project mv {moved.key} DIR` moves it on, or back")
    say(asdict(moved), "\n".join(lines), as_json)


@project.command(epilog="Example: memoryd project merge ~/clone ~/app --dry-run")
@click.argument("name", metavar="FROM")
@click.argument("into", metavar="INTO")
@click.option("--dry-run", is_flag=True, help="Say what would be done; write nothing.")
@click.option("--undo", "undone", is_flag=True, help="Make two projects of them again.")
@home_option
@json_option
def merge(name: str, into: str, dry_run: bool, undone: bool, home: Home, as_json: bool) -> None:
    """Put all that is kept of FROM into INTO (keys or directories); both are one project then.

    Refused while a job works on either. The ledger and both project.json are copied to backups/
    first, and each store's history stays where it is. --undo wants FROM as a key or its directory.
    """
    from memoryd.jobs.merging import Merger
    from memoryd.memory.clock import SystemClock

    if dry_run and undone:
        raise UsageError("--dry-run and --undo do not go together", hint="choose one")
    with _opened(home) as (projects, ledger, config):
        merger = Merger(home, config, SystemClock(), ledger, projects.history)
        target = projects.named(into, absolute(into))
        source = projects.named(name, absolute(name), as_first=undone)
        if undone:
            back = merger.undo(source, target)
            _say(asdict(back), f"{back.key} is a project of its own again", as_json)
            return
        if projects.known(target.key, {}).merged_into:
            raise UsageError(
                f"{target.key} was merged itself", hint="`memoryd project list` shows into what"
            )
        merged = merger.merge(source, target, dry_run=dry_run)
    _say(asdict(merged) | {"dry_run": dry_run}, "\n".join(_lines(merged, dry_run)), as_json)


def _say(values: dict[str, Any], text: str, as_json: bool) -> None:
    values["undo"] = values.pop("id")
    say(values, text, as_json)


def _lines(merged: Merged, dry_run: bool) -> Iterator[str]:
    would = "would move" if dry_run else "moved"
    yield f"{would} {counted(len(merged.moved), 'note')} of {merged.key} into {merged.into}"
    for old, new in merged.renamed.items():
        yield f"  {old} as {new}: the name was taken"
    for path, why in merged.left.items():
        yield f"  {path} stays: {why}"
    yield f"tombstones: {merged.tombstones}"
    yield f"messages of the session history: {merged.messages}"
    if not dry_run:
        yield f"`memoryd project merge {merged.key} {merged.into} --undo` takes it back"
        yield f"copies of what was there before: {merged.backup}"
