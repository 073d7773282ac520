"""``memoryd sessions recall``: what an agent would be told of earlier sessions, or why nothing."""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from memoryd.cli.common import configuration, home_option, json_option, key_of, resolver_of, say
from memoryd.memory.home import Home

if TYPE_CHECKING:
    from memoryd.sessions.recall import Recall

#: An agent waits for this: what is not indexed by then is not looked at, which is said.
_INDEX_SECONDS = 2.0
_NONE = {
    "no-trigger": "nothing is recalled: this does not ask back to an earlier session",
    "no-project": "nothing is recalled: the directory belongs to no project",
    "no-history": "nothing is recalled: no session was read yet",
    "nothing-found": "nothing is recalled: no earlier session of this project says anything of it",
    "switched-off": "nothing is recalled: recall is switched off",
}


@click.command(epilog='Example: memoryd sessions recall "what did we decide about the lease?"')
@click.argument("prompt", metavar="PROMPT", nargs=-1, required=True)
@click.option("--cwd", metavar="DIR", default=".", help="Where the agent works; else here.")
@click.option("--session", metavar="ID", help="The session that asks: it is left out.")
@home_option
@json_option
def recall(
    prompt: tuple[str, ...], cwd: str, session: str | None, home: Home, as_json: bool
) -> None:
    """Print what earlier sessions of a project say about what PROMPT asks back to.

    PROMPT is what a person typed. Only one that asks back ("what did we decide about ...", "do you
    remember ...", "last time", in English or Arabic) is answered.
    """
    found = _recall(home, " ".join(prompt), cwd, session)
    warned = [f"({warning})" for warning in found.warnings]
    lines = [found.block] if found.included else [_NONE[found.reason], *warned]
    say(asdict(found), "\n".join(lines), as_json)


def _recall(home: Home, prompt: str, cwd: str, session: str | None) -> Recall:
    from memoryd.cli.sessions_search import open_search
    from memoryd.memory.clock import SystemClock
    from memoryd.memory.config import switched_off
    from memoryd.memory.excluded_places import ExcludedPlaces
    from memoryd.sessions.recall import Recall, recall

    if switched_off(os.environ, "RECALL"):
        return Recall(False, "switched-off")
    if not home.session_history.exists():
        return Recall(False, "no-history")
    clock = SystemClock()
    until = clock.monotonic() + _INDEX_SECONDS
    with open_search(home) as opened:
        return recall(
            opened,
            prompt,
            project=key_of(home, cwd),
            active=session,
            stop=lambda: clock.monotonic() >= until,
            hidden=ExcludedPlaces(resolver_of(home), configuration(home)),
        )
