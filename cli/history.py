"""``memoryd memory history`` and ``diff``: what was done to a memory, and what changed since."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from memoryd.cli.common import home_option, json_option, project_option, say, store_of, table
from memoryd.memory.errors import UsageError
from memoryd.memory.home import Home

if TYPE_CHECKING:
    from memoryd.memory.history import Entry
    from memoryd.memory.store import Store


@click.command(epilog="Example: memoryd memory history run-tests-with-make")
@click.argument("name", required=False)
@click.option("--limit", type=click.IntRange(1, 100_000), default=20, show_default=True)
@project_option
@home_option
@json_option
def history(name: str | None, limit: int, project: str | None, home: Home, as_json: bool) -> None:
    """Tell what was done to a project's memory, the newest first; with NAME, to that note."""
    from memoryd.memory.history import history as read

    store = store_of(home, project)
    found = read(store, name, limit)
    rows = [
        (
            time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.at_ms / 1000)),
            entry.author,
            entry.commit[:8],
            (entry.job or "-")[-8:],
            entry.subject + (" (undone)" if entry.undone else ""),
            _shown(entry),
        )
        for entry in found
    ]
    heads = ("DATE", "WHO", "COMMIT", "JOB", "WHAT", "FILES")
    text = table(heads, rows) if rows else "nothing was ever written here"
    say({"project": store.key, "commits": [asdict(entry) for entry in found]}, text, as_json)


@click.command(epilog="Example: memoryd memory diff 5f3a9c21")
@click.argument("reference", metavar="[JOB|COMMIT]", required=False)
@click.option("--since-consolidation", is_flag=True, help="Since what consolidation has seen.")
@project_option
@home_option
@json_option
def diff(
    reference: str | None,
    since_consolidation: bool,
    project: str | None,
    home: Home,
    as_json: bool,
) -> None:
    """Show what changed in a project's memory after JOB or COMMIT, edits of this moment included.

    Without either: the edits that are in no commit yet.
    """
    from memoryd.memory.differences import differences, forgotten

    if reference and since_consolidation:
        raise UsageError("two beginnings are named", hint="leave out --since-consolidation or it")
    store = store_of(home, project)
    since = _since(store, reference, since_consolidation)
    found = differences(store, since)
    gone, back = forgotten(store, since)
    lines = [each.diff for each in found]
    lines += [f"{_things(gone)} forgotten"] * bool(gone)
    lines += [f"{_things(back)} forgotten no more"] * bool(back)
    values = {
        "project": store.key,
        "since": since,
        "files": [asdict(each) for each in found],
        "forgotten": gone,
        "forgotten_no_more": back,
    }
    say(values, "\n".join(lines) or "nothing changed", as_json)


def _things(count: int) -> str:
    return "1 thing" if count == 1 else f"{count} things"


def _since(store: Store, reference: str | None, since_consolidation: bool) -> str | None:
    """The commit to compare with. Raises ``UsageError`` where there is none."""
    from memoryd.memory.baseline import Baseline
    from memoryd.memory.differences import commit_of

    baseline = Baseline(store)
    if baseline.head() is None:
        raise UsageError(
            f"nothing was ever written in the memory of {store.key}",
            hint="`memoryd memory list --all` shows where there are notes",
        )
    if reference:
        return commit_of(store, reference).id
    if not since_consolidation:
        return baseline.head()
    snapshot = baseline.snapshot()
    if snapshot is None:
        raise UsageError(
            "this memory was never consolidated",
            hint="`memoryd memory history` shows commits to compare with",
        )
    return snapshot


def _shown(entry: Entry) -> str:
    more = len(entry.paths) - 3
    return ", ".join(entry.paths[:3]) + (f" and {more} more" if more > 0 else "")
