"""What ``memoryd status`` says for a person: compact, aligned, and nothing that is empty."""

from __future__ import annotations

from typing import Any

from memoryd.cli.common import age, when
from memoryd.cli.status_alone import alone_lines
from memoryd.cli.status_jobs import disk_lines, job_lines, lock_lines
from memoryd.cli.words import plain
from memoryd.memory.text import counted


def lines_of(values: dict[str, Any]) -> list[str]:
    """The report as lines, each with its label in a column of ten."""
    daemon = values["daemon"] or {}
    return [
        f"home      {values['home']}",
        *(_daemon(values["daemon"]) if values["daemon"] else alone_lines(values)),
        *job_lines(values),
        *_people(values),
        *_providers(values),
        *_daily(values),
        *_inbox(values),
        *_told(values),
        *_backfill(values["backfill"]),
        *_stores(daemon),
        *lock_lines(values),
        *disk_lines(values),
    ]


def _people(values: dict[str, Any]) -> list[str]:
    """What waits for more words, and what for a person's."""
    lines = []
    if values["throttled"]:
        runs = counted(values["throttled"], "run")
        lines.append(f"throttled {runs}, read with the next job of the session")
    if values.get("in_review"):
        waiting = f"{counted(values['in_review'], 'candidate')} for your word"
        lines.append(f"review    {waiting}: `memoryd memory review --all`")
    return lines


def _daily(values: dict[str, Any]) -> list[str]:
    """What is done once a day, and when it last was."""
    lines = []
    ran = [each["last_run_at"] for each in values["consolidations"] if each["last_run_at"]]
    if ran:
        lines.append(
            f"daily     {counted(len(ran), 'project')} consolidated, last {age(max(ran))} ago"
        )
    runs = [f"{each['name']} {age(each['at'])} ago" for each in values.get("daily_runs", ())]
    if runs:
        lines.append(f"daily     {', '.join(runs)}")
    return lines


def _inbox(values: dict[str, Any]) -> list[str]:
    lines = []
    if values["inbox"]:
        lines.append(f"inbox     {counted(values['inbox'], 'envelope')} not yet taken in")
    if values["bad_envelopes"]:
        lines.append(f"inbox     {values['bad_envelopes']} unreadable, kept in inbox/bad/")
    if values["switches"]:
        lines.append(f"switches  {', '.join(values['switches'])} set: sessions are passed over")
    return lines


def _told(values: dict[str, Any]) -> list[str]:
    """Who told of the ends of sessions, so that a person sees whether the hooks work."""
    lines = [
        f"sessions  {each['agent']}, ended in 7 days: {each['hook']} told by hooks,"
        f" {each['sweep']} found by the sweep"
        for each in values["told"]
        if each["hook"] or each["sweep"]
    ]
    return lines + [
        f"hooks     those of {agent} were not heard in 7 days: `memoryd integrate {agent}`,"
        " `memoryd doctor`"
        for agent in values["unheard"]
    ]


#: Why old sessions are not read, in the order in which that is said.
_UNREAD = {
    "waiting": "wait for their turn",
    "excluded": "excluded",
    "young": "still too young",
    "old": "too old",
    "set_aside": "set aside",
    "gone": "deleted by their agent before",
}


def _backfill(brief: dict[str, Any]) -> list[str]:
    unread = [f"{brief[name]} {why}" for name, why in _UNREAD.items() if brief.get(name)]
    if not unread and not brief["mined"]:
        return []
    said = ", ".join([f"{brief['mined']} old sessions read", *unread])
    return [f"archive   {said}; backfill is {brief['state']}: `memoryd backfill status`"]


def _stores(daemon: dict[str, Any]) -> list[str]:
    """What a person should know of the stores and the ledger a daemon looks after."""

    def of(name: str) -> list[tuple[str, Any]]:
        return sorted(daemon.get(name, {}).items())

    lines = [f"held      {key}: {reason}" for key, reason in of("held_stores")]
    if uncopied := daemon.get("uncopied_ledger"):
        lines.append(f"ledger    not copied today: {' '.join(str(uncopied).split())}")
    lines += [f"unusable  {key}: {reason}" for key, reason in of("unusable_stores")]
    for key, notes in of("unreadable_notes"):
        lines += [f"unread    {key}: {path}: {why}" for path, why in sorted(notes.items())[:5]]
        if len(notes) > 5:
            lines.append(f"unread    {key}: and {len(notes) - 5} more")
    for key, paths in of("uncommitted_secrets"):
        lines.append(
            f"secret    {key}: {', '.join(paths[:5])}: not in the history while it is there"
        )
    return lines


def _daemon(daemon: dict[str, Any]) -> list[str]:
    said = [f"pid {daemon['pid']}"]
    if daemon.get("version"):
        said.append(f"version {daemon['version']}")
    said.append(f"up {age(daemon['started_at'])}")
    if "workers" in daemon:
        said.append(f"{daemon['busy']} of {counted(daemon['workers'], 'worker')} busy")
    if until := daemon.get("stopping_until"):
        rest = age(until)
        said.append(f"stopping, {rest} at most" if rest.startswith("in ") else "stopping")
    if daemon["reloads"]:
        said.append(f"configuration read again {counted(daemon['reloads'], 'time')}")
    looked = [
        f"{name} {age(at)} ago"
        for name in ("sweep", "rescue", "discovery")
        if (at := daemon.get(f"last_{name}_at")) is not None
    ]
    lines = [f"daemon    {', '.join(said)}", *_restart(daemon)]
    return [*lines, f"looked    {', '.join(looked)}"] if looked else lines


def _restart(daemon: dict[str, Any]) -> list[str]:
    """Why the daemon should be started anew."""
    why = []
    if daemon.get("upgraded_to"):
        why.append(f"version {daemon['upgraded_to']} is installed")
    if daemon.get("restart_for"):
        why.append(f"{', '.join(daemon['restart_for'])} changed")
    return [f"restart   needed: {', '.join(why)}"] if why else []


def _providers(values: dict[str, Any]) -> list[str]:
    """The one that is asked and its budget, and all that are not asked at the moment."""
    name = str(values["provider"])
    lines = [f"provider  {name}" + (" (offline, free)" if name == "rules" else "")]
    if name != "rules":
        lines.append(f"budget    today {_budget(values, name)}")
    for each in values.get("spending", ()):
        if each["provider"] != name:
            spent = f"{counted(each['calls'], 'call')}, {counted(each['tokens'], 'token')}"
            lines.append(f"budget    today {spent} of {each['provider']}, before")
    known = values.get("breakers")
    broken = known if known is not None else [values["breaker"]] if values["breaker"] else []
    return lines + [f"breaker   {_breaker(each)}" for each in broken]


def _budget(values: dict[str, Any], name: str) -> str:
    said = [
        f"{values['calls_today']} of {counted(values['daily_calls'], 'call')}",
        f"{values['tokens_today']} of {counted(values['daily_tokens'], 'token')}",
    ]
    cost = sum(each["cost"] for each in values.get("spending", ()) if each["provider"] == name)
    if cost or values.get("daily_cost"):
        bound = f" of {values['daily_cost']:g}" if values.get("daily_cost") else ""
        said.append(f"money {cost / 1_000_000:.2f}{bound}")
    return ", ".join(said)


def _breaker(breaker: dict[str, Any]) -> str:
    name = breaker["provider"]
    if breaker["state"] == "stopped":
        return f"{name} is not asked any more: {breaker['detail']}"
    why = plain(breaker["reason"])
    return f"{name}: {why}, since {when(breaker['since'])}, next try {age(breaker['until'])}"
