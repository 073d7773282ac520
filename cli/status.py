"""``memoryd status``: how the queue and the daemon are."""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import Any

import click

from memoryd.cli.common import age, home_option, json_option, open_queue, say, when
from memoryd.cli.words import plain
from memoryd.memory.home import Home


@click.command(epilog="Example: memoryd status --json")
@home_option
@json_option
def status(home: Home, as_json: bool) -> None:
    """Say how the queue and the daemon are; works with the daemon running or not."""
    from memoryd.daemon.client import Client
    from memoryd.jobs.report import report

    ledger, config = open_queue(home)
    values = Client(home.socket(os.environ)).status()
    if values is None:
        values = asdict(report(home, ledger, config, os.environ)) | {"daemon": None}
    say(values, "\n".join(_lines(values)), as_json)


def _lines(values: dict[str, Any]) -> list[str]:
    counts = values["counts"]
    jobs = ", ".join(f"{count} {name}" for name, count in sorted(counts.items())) or "none"
    lines = [f"home      {values['home']}", f"daemon    {_daemon(values['daemon'])}"]
    lines.append(f"jobs      {jobs}")
    if values["oldest_pending_at"] is not None:
        lines.append(f"oldest    pending for {age(values['oldest_pending_at'])}")
    for reason, count in sorted(values["waiting"].items()):
        until = f", next look {age(values['next_due_at'])}" if values["next_due_at"] else ""
        lines.append(f"waiting   {count}: {plain(reason)}{until}")
    if values["throttled"]:
        lines.append(f"throttled {values['throttled']} runs, read with the next job of the session")
    if values.get("in_review"):
        waiting = f"{values['in_review']} candidates wait for your word"
        lines.append(f"review    {waiting}: `memoryd memory review --all`")
    lines.append(f"provider  {_provider(values)}")
    ran = [each["last_run_at"] for each in values["consolidations"] if each["last_run_at"]]
    if ran:
        lines.append(f"daily     {len(ran)} projects consolidated, last {age(max(ran))} ago")
    if values["inbox"]:
        lines.append(f"inbox     {values['inbox']} envelopes not yet taken in")
    if values["bad_envelopes"]:
        lines.append(f"inbox     {values['bad_envelopes']} unreadable, kept in inbox/bad/")
    if values["switches"]:
        lines.append(f"switches  {', '.join(values['switches'])} set: sessions are passed over")
    return lines + _told(values) + _backfill(values["backfill"]) + _stores(values["daemon"] or {})


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
    """What a person should know of the stores, as far as a daemon looks after them."""

    def of(name: str) -> list[tuple[str, Any]]:
        return sorted(daemon.get(name, {}).items())

    lines = [f"held      {key}: {reason}" for key, reason in of("held_stores")]
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


def _daemon(daemon: dict[str, Any] | None) -> str:
    if daemon is None:
        return "not running; start it with `memoryd run` or `memoryd service install`"
    working = f", working {len(daemon['working'])}" if daemon["working"] else ", idle"
    return f"pid {daemon['pid']}, up {age(daemon['started_at'])}{working}"


def _provider(values: dict[str, Any]) -> str:
    name = str(values["provider"])
    if name == "rules":
        return "rules (offline, free)"
    spent = (
        f"{name}, today {values['calls_today']} of {values['daily_calls']} calls,"
        f" {values['tokens_today']} of {values['daily_tokens']} tokens"
    )
    breaker = values["breaker"]
    if breaker is None:
        return spent
    if breaker["state"] == "stopped":
        return f"{spent}; stopped: {breaker['detail']}"
    return f"{spent}; away since {when(breaker['since'])}, next try {age(breaker['until'])}"
