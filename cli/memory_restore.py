"""``memoryd memory restore``: what a person says to notes that vanished at once."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from memoryd.cli.common import home_option, json_option, project_option, say, store_of
from memoryd.memory.errors import UsageError
from memoryd.memory.home import Home

if TYPE_CHECKING:
    from memoryd.memory.store import Store


@click.command(epilog="Example: memoryd memory restore --project ~/code/app")
@project_option
@click.option("--let-go", is_flag=True, help="Forget them instead: they were meant to go.")
@click.option("--begin-anew", is_flag=True, help="The history is lost for good: begin another.")
@home_option
@json_option
def restore(project: str | None, let_go: bool, begin_anew: bool, home: Home, as_json: bool) -> None:
    """Put back every note whose file vanished, as it was last committed.

    Where many vanish at once, or the history itself, memoryd waits for this word: until then
    nothing is written there.
    """
    if let_go and begin_anew:
        raise click.UsageError("--let-go forgets notes, --begin-anew keeps them: choose one")
    store = store_of(home, project)
    if begin_anew:
        begun = _begin_anew(store)
        text = "a new history was begun" if begun else "nothing was done: its history is there"
        values = {"project": store.key, "restored": [], "forgotten": [], "begun": begun}
        return say(values, text, as_json)
    _require_history(store)
    back = () if let_go else _put_back(store)
    gone = _forget(home, store) if let_go else ()
    verb = "forgotten" if let_go else "put back"
    text = f"{verb}: {', '.join((*back, *gone))}" if back or gone else "no note is missing"
    values = {"project": store.key, "restored": list(back), "forgotten": list(gone)}
    return say(values | {"begun": False}, text, as_json)


def _begin_anew(store: Store) -> bool:
    from memoryd.memory.baseline import Baseline

    if not store.root.parent.is_dir():
        raise _no_memory()
    with store.writer_lock(5.0):
        return Baseline(store).begin_anew()


def _require_history(store: Store) -> None:
    from memoryd.memory.baseline import Baseline

    baseline = Baseline(store)
    baseline.require_history()
    if not baseline.exists():
        raise _no_memory()


def _no_memory() -> UsageError:
    return UsageError(
        "this project has no memory",
        hint="`memoryd memory list --all` shows those that have; name one with --project",
    )


def _put_back(store: Store) -> tuple[str, ...]:
    from memoryd.memory.edits import put_back

    return put_back(store)


def _forget(home: Home, store: Store) -> tuple[str, ...]:
    from memoryd.cli.common import open_queue
    from memoryd.jobs.usage import follow_edits
    from memoryd.memory.clock import SystemClock
    from memoryd.memory.edits import commit_person_edits

    ledger, _ = open_queue(home)
    outcome = commit_person_edits(
        store,
        now_ms=SystemClock().now_ms(),
        planned=ledger.records.planned_contents(),
        spans=partial(ledger.records.evidence, store.key),
        accept_vanished=True,
        wait_seconds=5.0,
    )
    follow_edits(ledger.usage, store.key, outcome)
    return outcome.forgotten
