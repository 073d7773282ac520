"""``memoryd memory restore``: what a person says to notes that vanished at once."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from memoryd.cli.common import home_option, json_option, project_option, say, store_of
from memoryd.memory.home import Home

if TYPE_CHECKING:
    from memoryd.memory.store import Store


@click.command(epilog="Example: memoryd memory restore --project ~/code/app")
@project_option
@click.option("--let-go", is_flag=True, help="Forget them instead: they were meant to go.")
@home_option
@json_option
def restore(project: str | None, let_go: bool, home: Home, as_json: bool) -> None:
    """Put back every note whose file vanished, as it was last committed.

    Where many vanish at once memoryd waits for this word: until then nothing is written there.
    """
    store = store_of(home, project)
    _require_history(store)
    back = () if let_go else _put_back(store)
    gone = _forget(home, store) if let_go else ()
    verb = "forgotten" if let_go else "put back"
    text = f"{verb}: {', '.join((*back, *gone))}" if back or gone else "no note is missing"
    say({"project": store.key, "restored": list(back), "forgotten": list(gone)}, text, as_json)


def _require_history(store: Store) -> None:
    from memoryd.memory.baseline import Baseline
    from memoryd.memory.errors import UsageError

    if not Baseline(store).exists():
        raise UsageError(
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
