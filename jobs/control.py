"""How a handler says that a job should run later: control flow, not an error."""

from __future__ import annotations


class Snooze(Exception):
    """Put the job off until ``until_ms`` at no cost, with the code of the reason.

    ``detail`` is one line for a person.
    """

    def __init__(self, until_ms: int, reason: str, detail: str = "") -> None:
        super().__init__(reason)
        self.until_ms = until_ms
        self.reason = reason
        self.detail = detail
