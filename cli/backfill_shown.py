"""What ``memoryd backfill`` says: the values of its JSON, and the lines for a person."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from memoryd.cli.common import age, table, when
from memoryd.memory.text import counted

if TYPE_CHECKING:
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
    "budget.too-small": "no call fits into its share of the day's budget; `memoryd doctor` says"
    " what to raise",
    "extraction.switched-off": "MEMORYD_DISABLE or MEMORYD_DISABLE_EXTRACTION is set",
    "extraction.off": "auto_extract = false under [memory]",
    "curation.manual": 'mode = "manual" under [curation]',
}


def _underscored(counts: Any) -> dict[str, int]:
    from memoryd.jobs.archived import STAGES

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


def status_values(found: Forecast, ledger: Ledger, config: Config) -> dict[str, Any]:
    """How backfill stands, as JSON."""
    fresh = found.fresh
    return asdict(found.standing) | {
        "agents": [
            {"agent": agent, "fresh": fresh.get(agent, 0)} | _underscored(found.counts.get(agent))
            for agent in sorted({*found.counts, *fresh})
        ],
        "today": _today(ledger, config),
        "waiting": _price(found.turns, config),
        "through_at": found.through_at,
        "at_risk": [asdict(each) for each in found.at_risk],
        "set_aside": [
            {"agent": row.agent, "session": row.session, "job": row.job_id, "code": row.job_code}
            for row in found.aside
        ],
    }


def status_lines(values: dict[str, Any]) -> list[str]:
    """The same for a person."""
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
    said = counted(takes["sessions"], "session")
    if takes["calls"]:
        said += f", about {counted(takes['calls'], 'call')} and {counted(takes['tokens'], 'token')}"
    return said if takes["cost"] is None else f"{said}, {takes['cost']:.2f} of money"


def _used(today: dict[str, Any]) -> str:
    said = f"{today['sessions']} of {counted(today['per_day'], 'session')}"
    if today["max_calls"] is None:
        return said
    calls = f"{today['calls']} of {counted(today['max_calls'], 'call')}"
    return f"{said}, {calls}, {today['tokens']} of {counted(today['max_tokens'], 'token')}"


def _warnings(at_risk: list[dict[str, Any]]) -> list[str]:
    from memoryd.jobs.forecast import deletes_when

    now_ms = int(time.time() * 1000)
    return [
        f"at risk   {each['agent']} deletes {counted(each['sessions'], 'session')} before their"
        f" turn, the first {deletes_when(each['first_at'], now_ms)} ({each['setting']})"
        for each in at_risk
    ]


def _table(agents: list[dict[str, Any]]) -> list[str]:
    if not agents:
        return ["no sessions of any agent are here"]
    heads = [name for name in agents[0] if name == "agent" or any(each[name] for each in agents)]
    rows = [[str(each[name]) for name in heads] for each in agents]
    return ["", table([name.replace("_", " ").upper() for name in heads], rows)]


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
