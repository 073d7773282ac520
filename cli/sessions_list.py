"""``memoryd sessions list``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from memoryd.cli.common import age, home_option, json_option, say, table
from memoryd.cli.sessions_common import SHORT, Opened, key_of, opened, state_of
from memoryd.memory.home import Home

if TYPE_CHECKING:
    from memoryd.sessions.stored import StoredSession

_PROJECT_CHARACTERS = 32


@click.command("list", epilog="Example: memoryd sessions list --project . --limit 5")
@click.option("--project", metavar="DIR", help="Only of this project: a directory in it, or a key.")
@click.option("--agent", metavar="AGENT", help="Only of this agent.")
@click.option("--limit", type=click.IntRange(1, 100_000), default=20, show_default=True)
@home_option
@json_option
def list_sessions(
    project: str | None, agent: str | None, limit: int, home: Home, as_json: bool
) -> None:
    """List the sessions that were read, the last active first.

    STATE says what became of the words: distilled, waiting to be, or never to be (forgotten,
    excluded).
    """
    from memoryd.sessions.listing import Which, choose

    with opened(home) as place:
        chosen = choose(place.history, Which(agent, key_of(place, project)), limit)
        found = [_values(place, *name) for name in chosen]
    rows = [_row(each) for each in found]
    heads = ("SESSION", "AGENT", "ACTIVE", "PROJECT", "SAID", "STATE", "BEGINS WITH")
    text = table(heads, rows) if rows else "no session was read yet"
    say({"sessions": found}, text, as_json)


def _values(place: Opened, agent: str, session: str) -> dict[str, Any]:
    from memoryd.sessions.listing import first_words

    stored = place.history.session(agent, session)
    assert stored is not None, "a session's row is never removed"
    return summary(place, stored) | {"first": first_words(place.history, agent, session)}


def summary(place: Opened, stored: StoredSession) -> dict[str, Any]:
    """What a list and a page tell of a session alike."""
    return {
        "agent": stored.agent,
        "session": stored.session,
        "last_active_ms": stored.last_active_ms,
        "projects": list(stored.projects),
        "messages": stored.messages,
        "user_messages": stored.user_messages,
        "version": stored.version,
        "state": state_of(place, stored),
    }


def _row(one: dict[str, Any]) -> tuple[str, ...]:
    projects = [key[-_PROJECT_CHARACTERS:] for key in one["projects"]]
    more = f" +{len(projects) - 1}" if len(projects) > 1 else ""
    return (
        one["session"][-SHORT:],
        one["agent"],
        age(one["last_active_ms"]),
        (projects[0] if projects else "-") + more,
        str(one["messages"]),
        one["state"],
        one["first"] or "-",
    )
