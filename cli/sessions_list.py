"""``memoryd sessions list``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from memoryd.cli.common import age, agent_option, home_option, json_option, key_of, say, table
from memoryd.cli.sessions_common import SHORT, Opened, opened, place_of, state_of
from memoryd.memory.home import Home
from memoryd.memory.text import counted

if TYPE_CHECKING:
    from memoryd.sessions.stored import StoredSession


@click.command("list", epilog="Example: memoryd sessions list --project . --limit 5")
@click.option("--project", metavar="DIR", help="Only of this project: a directory in it, or a key.")
@agent_option("Only of this agent.")
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
        key = None if project is None else key_of(home, project)
        chosen = choose(place.history, Which(agent, key), limit)
        found = [_values(place, *name) for name in chosen]
        read = 0 if found else place.history.counts().sessions
    rows = [_row(home, each) for each in found]
    heads = ("SESSION", "AGENT", "ACTIVE", "PROJECT", "SAID", "STATE", "BEGINS WITH")
    none = (
        f"no session that was read fits ({counted(read, 'session')})"
        if read
        else "no session was read yet"
    )
    text = table(heads, rows) if rows else none
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


def _row(home: Home, one: dict[str, Any]) -> tuple[str, ...]:
    projects = one["projects"]
    more = f" +{len(projects) - 1}" if len(projects) > 1 else ""
    return (
        one["session"][-SHORT:],
        one["agent"],
        age(one["last_active_ms"]),
        (place_of(home, projects[0]) if projects else "-") + more,
        str(one["messages"]),
        one["state"],
        one["first"] or "-",
    )
