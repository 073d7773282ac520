"""The part of ``memoryd status`` that is said where no daemon answers."""

from __future__ import annotations

from typing import Any

from memoryd.cli.common import age


def alone_lines(values: dict[str, Any]) -> list[str]:
    """Why none does and how one starts, whose work lies there, what would keep it from starting."""
    return [*_why(values), *_left(values), *_history(values)]


def _why(values: dict[str, Any]) -> list[str]:
    for each in values.get("locks", ()):
        if each["lock"] == "daemon":
            who = f"process {each['pid']} works here for {age(each['since'])}"
            return [f"daemon    none answers; {who}: `memoryd doctor`"]
    if values.get("service_stopped"):
        return ["daemon    not running; you stopped it: `memoryd service start`"]
    return ["daemon    not running; start it with `memoryd run` or `memoryd service install`"]


def _left(values: dict[str, Any]) -> list[str]:
    running = values["counts"].get("running")
    if not running or not values.get("worker_died"):
        return []
    those = "the running job" if running == 1 else f"the {running} running jobs"
    return [f"died      who worked on {those}: taken up again at the next start"]


def _history(values: dict[str, Any]) -> list[str]:
    trouble = values.get("history_trouble")
    words = "the session history cannot be used, and memoryd does not start"
    return [f"damaged   {words}: {trouble}: `memoryd doctor --fix`"] if trouble else []
