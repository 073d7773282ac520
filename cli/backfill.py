"""``memoryd backfill``: the sessions from before memoryd, read a few at a time."""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from memoryd.cli.common import age, home_option, json_option, open_queue, say, table, when
from memoryd.memory.errors import UsageError
from memoryd.memory.home import Home

if TYPE_CHECKING:
    from collections.abc import Iterator

    from memoryd.jobs.forecast import Forecast, Price, Turn
    from memoryd.jobs.ledger import Ledger
    from memoryd.memory.config import Config

#: What the reasons say to a person.
WHY = {
    "backfill.disabled": "enabled = false under [backfill]",
    "backfill.not-started": "calls cost money: `memoryd backfill start` once you have seen the"
    " preview",
    "backfill.paused": "you paused it; `memoryd backfill start` goes on",
    "backfill.day-full": "today's sessions are read; it goes on tomorrow",
    "backfill.share-spent": "today's share of the budget is spent; it goes on tomorrow",
    "extraction.switched-off": "MEMORYD_DISABLE or MEMORYD_DISABLE_EXTRACTION is set",
    "extraction.off": "auto_extract = false under [memory]",
    "curation.manual": 'mode = "manual" under [curation]',
}


@click.group(epilog="Example: memoryd backfill preview")
def backfill() -> None:
    """Read the sessions from before memoryd, a few at a time."""


@contextmanager
def _opened(home: Home) -> Iterator[tuple[Ledger, Config]]:
    ledger, config = open_queue(home)
    try:
        yield ledger, config
    finally:
        ledger.close()


def _discover(home: Home, ledger: Ledger, config: Config) -> int:
    from memoryd.jobs.discovery import discover

    return discover(home, ledger, config, os.environ).sessions


def _forecast(home: Home, ledger: Ledger, config: Config) -> Forecast:
    from memoryd.jobs.forecast import forecast

    return forecast(home, ledger, config, os.environ)


@backfill.command(epilog="Example: memoryd backfill status --json")
@home_option
@json_option
def status(home: Home, as_json: bool) -> None:
    """Say how far it has come, what today allows, and whose sessions are deleted too soon."""
    with _opened(home) as (ledger, config):
        _discover(home, ledger, config)
        found = _forecast(home, ledger, config)
        today = _today(ledger, config)
    agents = [
        {"agent": agent, "fresh": found.fresh.get(agent, 0)} | _underscored(found.counts.get(agent))
        for agent in sorted({*found.counts, *found.fresh})
    ]
    values = asdict(found.standing) | {
        "agents": agents,
        "today": today,
        "waiting": _price(found.turns, config),
        "through_at": found.through_at,
        "at_risk": [asdict(each) for each in found.at_risk],
        "set_aside": [
            {"agent": row.agent, "session": row.session, "job": row.job_id, "code": row.job_code}
            for row in found.aside
        ],
    }
    say(values, "\n".join(_status_lines(values)), as_json)


def _underscored(counts: Any) -> dict[str, int]:
    from memoryd.jobs.archive import STAGES

    return {name.replace("-", "_"): (counts or {}).get(name, 0) for name in STAGES}


def _today(ledger: Ledger, config: Config) -> dict[str, Any]:
    """What backfill took of today, and what it may take at most; None where nothing bounds it."""
    spent, provider = ledger.budget.today(config.provider.name), config.provider
    costs, share = provider.name != "rules", config.backfill.share
    return {
        "sessions": ledger.archive.made_today(),
        "per_day": config.backfill.per_day,
        "calls": spent.backfill_calls,
        "max_calls": _part(share, provider.daily_calls, spent.calls - spent.backfill_calls, costs),
        "tokens": spent.backfill_tokens,
        "max_tokens": _part(
            share, provider.daily_tokens, spent.tokens - spent.backfill_tokens, costs
        ),
        "cost": spent.backfill_cost / 1_000_000,
    }


def _part(share: float, daily: int, others: int, costs: bool) -> int | None:
    return max(0, int(share * (daily - others))) if costs else None


def _price(turns: list[Turn], config: Config) -> dict[str, Any]:
    from memoryd.jobs.forecast import total

    return _shown_price(total(turns), config)


def _shown_price(takes: Price, config: Config) -> dict[str, Any]:
    priced = config.provider.price_input or config.provider.price_output
    return asdict(takes) | {"cost": takes.cost / 1_000_000 if priced else None}


def _status_lines(values: dict[str, Any]) -> list[str]:
    why = WHY.get(values["reason"], "")
    lines = [f"backfill  {values['state']}{f': {why}' if why else ''}"]
    waiting, today = values["waiting"], values["today"]
    lines.append(f"waiting   {_takes(waiting)}")
    lines.append(f"today     {_used(today)}")
    if values["through_at"] is not None:
        lines.append(f"through   {when(values['through_at'])[:10]} at this pace")
    lines += _warnings(values["at_risk"])
    for each in values["set_aside"][:10]:
        lines.append(f"set aside {each['agent']}/{each['session']}: {each['code'] or 'called off'}")
    if len(values["set_aside"]) > 10:
        lines.append(f"set aside {len(values['set_aside']) - 10} more; --json lists them all")
    return [*lines, *_table(values["agents"])]


def _takes(takes: dict[str, Any]) -> str:
    said = f"{takes['sessions']} sessions"
    if takes["calls"]:
        said += f", about {takes['calls']} calls and {takes['tokens']} tokens"
    return said if takes["cost"] is None else f"{said}, {takes['cost']:.2f} of money"


def _used(today: dict[str, Any]) -> str:
    said = f"{today['sessions']} of {today['per_day']} sessions"
    if today["max_calls"] is None:
        return said
    calls = f"{today['calls']} of {today['max_calls']} calls"
    return f"{said}, {calls}, {today['tokens']} of {today['max_tokens']} tokens"


def _warnings(at_risk: list[dict[str, Any]]) -> list[str]:
    return [
        f"at risk   {each['agent']} deletes {each['sessions']} sessions before their turn, the"
        f" first {when(each['first_at'])[:10]} ({each['setting']})"
        for each in at_risk
    ]


def _table(agents: list[dict[str, Any]]) -> list[str]:
    if not agents:
        return ["no sessions of any agent are here"]
    heads = [name for name in agents[0] if name == "agent" or any(each[name] for each in agents)]
    rows = [[str(each[name]) for name in heads] for each in agents]
    return ["", table([name.replace("_", " ").upper() for name in heads], rows)]


@backfill.command(epilog="Example: memoryd backfill preview --limit 50")
@click.option("--limit", default=20, type=click.IntRange(1, 10_000), help="Sessions listed.")
@home_option
@json_option
def preview(home: Home, limit: int, as_json: bool) -> None:
    """Say what it would read next and what that would take; nothing is read or asked for it."""
    with _opened(home) as (ledger, config):
        _discover(home, ledger, config)
        values = preview_values(_forecast(home, ledger, config), config, limit)
    say(values, "\n".join(preview_lines(values)), as_json)


def preview_values(found: Forecast, config: Config, limit: int) -> dict[str, Any]:
    """What would be read next, at most ``limit`` sessions of it one by one."""
    from memoryd.jobs.forecast import projects_of

    first = [each for each in found.turns if each.day == found.turns[0].day]
    return {
        "state": found.standing.state,
        "reason": found.standing.reason,
        "next": [_turn(each, config) for each in found.turns[:limit]],
        "next_day": _price(first, config) if found.standing.state == "on" else None,
        "all": _price(found.turns, config),
        "projects": projects_of(found.turns),
        "through_at": found.through_at,
        "at_risk": [asdict(each) for each in found.at_risk],
    }


def _turn(each: Turn, config: Config) -> dict[str, Any]:
    row = each.row
    return {
        "agent": row.agent,
        "session": row.session,
        "project": row.project,
        "transcript": row.transcript,
        "size": row.size,
        "active_at": row.active_at,
        "deletes_at": each.deletes_at,
        "turn_at": each.turn_at,
    } | {
        name: value
        for name, value in _shown_price(each.price, config).items()
        if name != "sessions"
    }


def preview_lines(values: dict[str, Any]) -> list[str]:
    """The preview for a person."""
    why = WHY.get(values["reason"], "")
    lines = [f"backfill  {values['state']}{f': {why}' if why else ''}"]
    lines.append(f"in all    {_takes(values['all'])}")
    if values["next_day"]:
        lines.append(f"next      {_takes(values['next_day'])} in one day")
    if values["through_at"] is not None:
        lines.append(f"through   {when(values['through_at'])[:10]} at this pace")
    if values["projects"]:
        most = [f"{key or 'none'} {count}" for key, count in list(values["projects"].items())[:8]]
        more = len(values["projects"]) - len(most)
        lines.append(f"projects  {', '.join(most)}{f' and {more} more' if more > 0 else ''}")
    lines += _warnings(values["at_risk"])
    rows = [
        (each["agent"], each["session"], each["project"] or "-", age(each["active_at"]))
        for each in values["next"]
    ]
    return (
        [*lines, "", table(("AGENT", "SESSION", "PROJECT", "STILL FOR"), rows)] if rows else lines
    )


@backfill.command(epilog="Example: memoryd backfill start")
@home_option
@json_option
def start(home: Home, as_json: bool) -> None:
    """Begin, or go on after a pause; kept past restarts."""
    with _opened(home) as (ledger, config):
        values = begin(home, ledger, config)
    why = WHY.get(values["reason"], "")
    said = "backfill goes on by itself" if values["state"] == "on" else "backfill is allowed"
    say(
        values, f"{said}{f', but {why}' if why else ''}; stop it: `memoryd backfill pause`", as_json
    )


def begin(home: Home, ledger: Ledger, config: Config) -> dict[str, Any]:
    """Start it; how it stands then. Raises ``UsageError`` where the configuration says no."""
    from memoryd.daemon.client import Client
    from memoryd.jobs.backfill import standing

    if config.backfill.enabled is False:
        raise UsageError(
            "backfill is switched off in the configuration",
            hint=f'take "enabled = false" under [backfill] out of {home.config_file}',
        )
    ledger.archive.say("started")
    ledger.wake("backfill.share-spent")
    Client(home.socket(os.environ)).ring()
    costs = config.provider.name != "rules"
    return asdict(standing(ledger, config, os.environ, costs=costs))


@backfill.command(epilog="Example: memoryd backfill pause")
@home_option
@json_option
def pause(home: Home, as_json: bool) -> None:
    """Stop after the part that is being read; what waits goes on waiting, past restarts."""
    with _opened(home) as (ledger, _):
        ledger.archive.say("paused")
        jobs = ledger.archive.open_jobs()
        values = {"state": "paused", "reason": "backfill.paused", "since": ledger.clock.now_ms()}
    text = f"paused; {jobs} jobs wait until `memoryd backfill start`"
    say(values | {"jobs": jobs}, text, as_json)


@backfill.command(epilog="Example: memoryd backfill reset")
@home_option
@json_option
def reset(home: Home, as_json: bool) -> None:
    """Look at every session anew and try again what was set aside; nothing is read twice."""
    from memoryd.daemon.client import Client

    with _opened(home) as (ledger, config):
        aside, _ = ledger.archive.reset()
        sessions = _discover(home, ledger, config)
    Client(home.socket(os.environ)).ring()
    text = f"{aside} sessions that were set aside wait again; {sessions} were looked at"
    say({"set_aside": aside, "sessions": sessions}, text, as_json)
