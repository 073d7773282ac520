"""``memoryd sessions show``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from memoryd.cli.common import home_option, json_option, say, when
from memoryd.cli.sessions_common import Opened, opened
from memoryd.cli.sessions_list import summary
from memoryd.cli.words import plain
from memoryd.memory.home import Home
from memoryd.memory.text import counted

if TYPE_CHECKING:
    from memoryd.sessions.listing import Line

#: Characters of one message in a page of text; JSON has all of them.
_SHOWN_CHARACTERS = 2000
_JOBS = 20


@click.command(epilog="Example: memoryd sessions show 5f3a9c21 --tail 10")
@click.argument("session", metavar="SESSION")
@click.option("--limit", type=click.IntRange(0, 100_000), default=20, show_default=True)
@click.option("--after", type=click.IntRange(0), default=0, help="Only messages after this number.")
@click.option("--tail", type=click.IntRange(0, 100_000), help="The last so many messages instead.")
@home_option
@json_option
def show(session: str, limit: int, after: int, tail: int | None, home: Home, as_json: bool) -> None:
    """Tell all about SESSION and page through what was said in it.

    SESSION is its id, any beginning or ending of it that is unique, or agent/id.
    """
    from memoryd.sessions.listing import find, page

    with opened(home) as place:
        agent, name = find(place.history, session)
        values = _values(place, agent, name)
        count = limit if tail is None else tail
        lines = page(place.history, agent, name, count, after=after, tail=tail is not None)
    values["said"] = [asdict(line) for line in lines]
    last = lines[-1].seq if lines else after
    more = bool(lines) and tail is None and last < values["last_seq"]
    values["next_after"] = last if more else None
    say(values, "\n".join((*_lines(values), *_said(lines), *_more(values))), as_json)


def _values(place: Opened, agent: str, name: str) -> dict[str, Any]:
    from memoryd.jobs.sessions import jobs_of, notes_of
    from memoryd.sessions.listing import messages_kept

    stored = place.history.session(agent, name)
    assert stored is not None, "a session's row is never removed"
    rollout = place.ledger.records.rollout(agent, name)
    return summary(place, stored) | {
        "kind": stored.kind,
        "parent": stored.parent,
        "forked_from": stored.forked_from,
        "transcript": stored.transcript,
        "position": stored.position,
        "cwd": rollout.cwd if rollout is not None else "",
        "last_seq": stored.last_seq,
        "messages_kept": messages_kept(place.history, agent, name),
        "bad_lines": stored.bad_lines,
        "skipped": stored.skipped,
        "tools": stored.tools,
        "jobs": [
            {"id": job.id, "kind": job.kind, "status": job.status, "outcome": job.outcome_code}
            for job in jobs_of(place.ledger, agent, name, _JOBS)
        ],
        "notes": [
            {"project": note.store, "path": note.path}
            for note in notes_of(place.ledger, agent, name)
        ],
    }


def _lines(one: dict[str, Any]) -> Iterator[str]:
    version = f" {one['version']}" if one["version"] else ""
    yield f"session    {one['agent']}{version} {one['session']}"
    yield f"active     {when(one['last_active_ms'])}   state {one['state']}"
    yield f"transcript {one['transcript'] or '-'}, read up to position {one['position']}"
    if one["forked_from"] or one["parent"]:
        yield f"from       {one['forked_from'] or one['parent']}"
    for key in one["projects"]:
        yield f"project    {key}"
    kept = one["messages_kept"]
    gone = f", the words of {kept or 'none'} are kept" if kept < one["messages"] else ""
    said = counted(one["messages"], "message")
    yield f"said       {said}, {one['user_messages']} of a person{gone}"
    if one["tools"]:
        yield "tools      " + ", ".join(_tool(*each) for each in sorted(one["tools"].items()))
    if one["skipped"] or one["bad_lines"]:
        counts = [f"{count} {reason}" for reason, count in sorted(one["skipped"].items())]
        yield "skipped    " + ", ".join([*counts, f"{one['bad_lines']} bad lines"])
    for job in one["jobs"]:
        yield f"job        {job['id'][-8:]} {job['kind']} {plain(job['outcome']) or job['status']}"
    for note in one["notes"]:
        yield f"note       {note['path']} in {note['project']}"


def _tool(name: str, ends: dict[str, int]) -> str:
    total = sum(ends.values())
    return f"{name} {total}" + (f" ({ends['failed']} failed)" if ends.get("failed") else "")


def _said(lines: list[Line]) -> Iterator[str]:
    from memoryd.memory.text import clip

    for line in lines:
        text = clip(line.text, _SHOWN_CHARACTERS) if line.kept else "(not kept any more)"
        yield f"\n{line.seq}. {line.role}, {when(line.at_ms)}\n{text}"


def _more(one: dict[str, Any]) -> Iterator[str]:
    if one["next_after"] is not None:
        yield f"\nmore with --after {one['next_after']}"
