"""The part of ``memoryd status`` that is about jobs: where they are, why, and what was done."""

from __future__ import annotations

from typing import Any

from memoryd.cli.common import age, size, table
from memoryd.cli.words import plain
from memoryd.memory.text import counted

#: In the order in which a job goes through them.
_STATUSES = ("pending", "waiting", "retrying", "running", "completed", "failed", "cancelled")
_INDENT = " " * 10
#: A lock that is held for so long is told; the daemon's own is held for as long as it runs.
_HELD_MS = 10_000


def job_lines(values: dict[str, Any]) -> list[str]:
    """Counts, the reasons to wait, the oldest, and what was done in the last hour and day."""
    return [
        *_counts(values),
        *_waits(values),
        *_oldest(values.get("oldest", ())),
        *_done(values.get("done", ())),
    ]


def _counts(values: dict[str, Any]) -> list[str]:
    """One line; by kind below it where there are several."""
    counts = values["counts"]
    known = [name for name in _STATUSES if counts.get(name)]
    said = ", ".join(f"{counts[name]} {name}" for name in known) or "none"
    kinds = values.get("kinds", {})
    if len(kinds) < 2:
        return [f"jobs      {said}{''.join(f' ({kind})' for kind in kinds)}"]
    rows = [
        (kind, *(str(kinds[kind].get(name) or "-") for name in known)) for kind in sorted(kinds)
    ]
    below = table(("", *known), rows).splitlines()
    return [f"jobs      {said}", *(f"{_INDENT}{line}" for line in below)]


def _waits(values: dict[str, Any]) -> list[str]:
    """Each reason with how many wait for it and until when."""
    lines = []
    for each in values.get("waits", ()):
        first, last = age(each["first_at"]), age(each["last_at"])
        until = f"next {first}" + (f", last {last}" if last != first else "")
        lines.append(f"waiting   {each['jobs']}: {plain(each['reason'])}, {until}")
    return lines


def _oldest(oldest: list[dict[str, Any]]) -> list[str]:
    said = [
        f"{each['status']} {each['kind']} {each['job'][-8:]} for {age(each['since'])}"
        for each in oldest
    ]
    return [f"oldest    {', '.join(said)}"] if said else []


def _done(done: list[dict[str, Any]]) -> list[str]:
    """What was done, a line for each span in which anything was."""
    lines = []
    for each in done:
        attempts = sum(each["attempts"].values())
        if not attempts and not each["jobs"]:
            continue
        jobs = ", ".join(
            f"{each['jobs'][name]} {name}" for name in _STATUSES if name in each["jobs"]
        )
        said = [jobs or "no job ended", counted(attempts, "attempt")]
        if each["calls"]:
            tokens = each["input_tokens"] + each["output_tokens"]
            said.append(f"{counted(each['calls'], 'call')}, {counted(tokens, 'token')}")
        span = "hour" if each["hours"] == 1 else "day"
        lines.append(f"{f'last {span}':<10}{'; '.join(said)}")
    return lines


def lock_lines(values: dict[str, Any]) -> list[str]:
    """Who holds a store for longer than a write takes."""
    from time import time

    return [
        f"lock      {each['lock']} is held by process {each['pid']} for {age(each['since'])}"
        for each in values.get("locks", ())
        if each["lock"] != "daemon" and time() * 1000 - each["since"] >= _HELD_MS
    ]


def disk_lines(values: dict[str, Any]) -> list[str]:
    """What the home takes of the disk, and what is free."""
    disk = values.get("disk")
    if not disk:
        return []
    said = [
        f"{part['what']} {'' if part['whole'] else 'over '}{size(part['size'])}"
        for part in disk["parts"]
        if part["size"]
    ]
    return [f"disk      {', '.join([*said, 'free ' + size(disk['free'])])}"]
