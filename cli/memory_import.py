"""``memoryd memory import``: what other memories on the machine hold, previewed, then taken in."""

from __future__ import annotations

import os
import shlex
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memoryd.cli.common import absolute, home_option, json_option, say, table
from memoryd.memory.errors import ConfigError, UsageError
from memoryd.memory.home import Home

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from memoryd.memory.config import Config
    from memoryd.memory.importing.planning import ImportPlan, Item, Options, Target
    from memoryd.memory.importing.sources import Source
    from memoryd.memory.projects import Project

#: Rows of one project that are printed; ``--json`` has them all.
_ROWS = 200
#: What is counted and not listed.
_QUIET = {"imported", "same"}
_COUNTED = {
    "create": "new",
    "imported": "imported before",
    "same": "there already",
    "conflict": "in conflict (--rename)",
    "forgotten": "forgotten",
    "secret": "with a secret",
    "review": "suspicious (--include-flagged)",
    "unreadable": "unreadable",
    "empty": "empty",
    "too-large": "too large",
    "link": "links",
}


@click.command("import", epilog="Example: memoryd memory import --from claude-code --apply")
@click.argument("source", required=False, metavar="[SOURCE]")
@click.option(
    "--from",
    "kind",
    type=click.Choice(["freecode", "claude-code", "folder"]),
    help="Whose memory it is; else told by where it lies.",
)
@click.option("--project", metavar="DIR", help="The project that the one SOURCE belongs to.")
@click.option("--apply", "wanted", is_flag=True, help="Write it; else it is only shown.")
@click.option("--rename", is_flag=True, help="Give a free name to a note whose name is taken.")
@click.option("--include-flagged", is_flag=True, help="Take in what reads like instructions, too.")
@home_option
@json_option
def import_notes(
    source: str | None,
    kind: str | None,
    project: str | None,
    wanted: bool,
    rename: bool,
    include_flagged: bool,
    home: Home,
    as_json: bool,
) -> None:
    """Show what SOURCE (or every agent's memory) holds that is new; --apply writes it.

    SOURCE is a memory directory of FreeCode or Claude Code, their folder of projects, or any
    folder of markdown. A note that was imported once is never imported again.
    """
    from memoryd.memory.clock import SystemClock
    from memoryd.memory.importing.planning import Options, decide

    targets, left_out = _targets(home, source, kind, project)
    options = Options(rename=rename, include_flagged=include_flagged)
    if wanted:
        done = _applied(home, targets, options)
    else:
        now_ms = SystemClock().now_ms()
        plans = [decide(target, options, now_ms) for target in targets]
        done = {"plans": plans, "undo": None, "commits": {}}
    values = _values(done, left_out) | {"applied": wanted}
    say(values, "\n".join(_lines(done, left_out, wanted)), as_json)


def _targets(
    home: Home, given: str | None, kind: str | None, project: str | None
) -> tuple[list[Target], list[tuple[Source, str]]]:
    """What is to be imported, by project; and the sources that cannot be, with the reason."""
    from memoryd.memory.config import load
    from memoryd.memory.importing.planning import read
    from memoryd.memory.importing.sources import KINDS, find_sources

    chosen = next((each for each in KINDS if each == kind), None)
    place = absolute(given) if given else None
    sources = find_sources(chosen, place, os.environ, home)
    if not sources:
        raise UsageError(
            "no memory to import was found",
            hint="name a directory: `memoryd memory import ~/notes --from folder`",
        )
    if project and len(sources) > 1:
        raise UsageError(
            f"--project is for one source, and there are {len(sources)}",
            hint=f"name one of them, such as {sources[0].root}",
        )
    config = load(home.config_file)  # its exclusions must hold: no defaults stand in
    found: dict[Project, list[Source]] = {}
    left_out = []
    for source in sources:
        directory = project or _only(source)
        place_of = None if directory is None else _project(home, config, directory)
        reason = _excluded(config, place_of, source) if place_of else _unknown(source)
        if place_of is None or reason:
            left_out.append((source, reason))
        else:
            found.setdefault(place_of, []).append(source)
    return [_target(home, each, list(map(read, found[each]))) for each in found], left_out


def _unknown(source: Source) -> str:
    """Why nobody can tell the source's project."""
    if source.belongs_to:
        return f"its project could be {' or '.join(source.belongs_to)}"
    return "its project is unknown"


def _excluded(config: Config, project: Project, source: Source) -> str:
    """Why nothing may be kept of the project; empty where it may."""
    from memoryd.memory.config import load_project
    from memoryd.memory.own_calls import is_own_place
    from memoryd.memory.projects import excluded

    if any(map(is_own_place, source.belongs_to)):
        return "what an agent noted there answered questions of memoryd's"
    try:
        globs = load_project(Path(project.path), config).privacy.exclude
    except ConfigError as error:
        return error.message
    if excluded(project.path, globs) or (
        source.kind == "folder" and excluded(str(source.root), globs)
    ):
        return "[privacy] exclude keeps it out"
    return ""


def _only(source: Source) -> str | None:
    """The one directory the source can belong to; of a folder, where the person stands."""
    if source.kind == "folder":
        return os.fspath(Path.cwd())
    return source.belongs_to[0] if len(source.belongs_to) == 1 else None


def _project(home: Home, config: Config, directory: str) -> Project:
    from memoryd.memory.projects import Project, Resolver, identity

    known = identity(home, directory) if "/" not in directory else None
    if known is not None and directory not in {".", ".."}:
        return Project(known.key, known.path)
    place = absolute(directory)
    if not place.is_dir():
        raise UsageError(f"{place} is no directory", hint="name a directory of the project")
    resolver = Resolver(home, config.projects.worktrees)
    return resolver.resolve(os.fspath(place))


def _target(home: Home, project: Project, readings: Sequence[Any]) -> Target:
    from memoryd.memory.importing.planning import Target
    from memoryd.memory.store import Store

    return Target(project, Store.for_project(home, project.key), tuple(readings))


def _applied(home: Home, targets: Sequence[Target], options: Options) -> dict[str, Any]:
    from memoryd.cli.common import open_queue
    from memoryd.jobs.imported_usage import keep_counters
    from memoryd.memory.clock import SystemClock
    from memoryd.memory.importing.applying import apply_import
    from memoryd.memory.importing.counters import counted

    ledger, _ = open_queue(home, make=True)
    made = apply_import(targets, options, clock=SystemClock())
    keep_counters(ledger, [each for plan in made.plans for each in counted(plan)])
    undo = made.id if made.commits else None
    return {"plans": list(made.plans), "undo": undo, "commits": made.commits}


def _values(done: dict[str, Any], left_out: Iterable[tuple[Source, str]]) -> dict[str, object]:
    plans: list[ImportPlan] = done["plans"]
    return {
        "notes": [_row(plan, item) for plan in plans for item in plan.items],
        "counts": dict(_counts(plans)),
        "passed_over": sum(plan.passed_over for plan in plans),
        "left_out": [
            {
                "kind": source.kind,
                "key": source.key,
                "path": str(source.root),
                "belongs_to": list(source.belongs_to),
                "reason": reason,
            }
            for source, reason in left_out
        ],
        "undo": done["undo"],
        "commits": done["commits"],
    }


def _row(plan: ImportPlan, item: Item) -> dict[str, str]:
    return {
        "project": plan.target.store.key,
        "kind": item.source.kind,
        "source": str(item.source.root),
        "file": item.file,
        "verdict": item.verdict,
        "name": item.name,
        "path": item.path,
        "detail": item.detail,
        "warning": item.warning,
    }


def _counts(plans: Iterable[ImportPlan]) -> Counter[str]:
    return Counter(item.verdict for plan in plans for item in plan.items)


def _lines(done: dict[str, Any], left_out: Sequence[tuple[Source, str]], wanted: bool) -> list[str]:
    plans: list[ImportPlan] = done["plans"]
    lines = []
    for plan in plans:
        lines += [f"{plan.target.project.path} ({plan.target.store.key})", *_listed(plan), ""]
    for source, reason in left_out:
        lines.append(f"{source.root}: {reason}")
        if reason == _unknown(source):
            place = shlex.quote(str(source.root))
            lines.append(f"  `memoryd memory import {place} --project DIR` imports it")
        lines.append("")
    counts = _counts(plans)
    said = ", ".join(
        f"{counts[verdict]} {text}" for verdict, text in _COUNTED.items() if counts[verdict]
    )
    lines.append(said or "nothing found")
    if passed := sum(plan.passed_over for plan in plans):
        lines.append(f"{passed} more files were not looked at: import their folders one by one")
    lines.append(_ending(done["undo"], bool(counts["create"]), wanted))
    return lines


def _listed(plan: ImportPlan) -> list[str]:
    items = [item for item in plan.items if item.verdict not in _QUIET]
    if not items:
        return ["  nothing new"]
    rows = [
        (item.verdict, item.path or item.name, item.file, item.warning or item.detail)
        for item in items[:_ROWS]
    ]
    lines = [f"  {line}" for line in table(("", "NOTE", "FILE", ""), rows).splitlines()]
    more = len(items) - _ROWS
    return [*lines, f"  ... and {more} more; --json lists them"] if more > 0 else lines


def _ending(undo: str | None, is_new: bool, wanted: bool) -> str:
    if undo:
        return f"imported; `memoryd memory undo {undo[-8:]}` takes it back"
    if wanted or not is_new:
        return "nothing was written"
    return "nothing was written: add --apply to import what is new"
