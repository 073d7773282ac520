"""How a handler says that a job should run later, and how an error is written down."""

from __future__ import annotations

from memoryd.memory.scanner import redact
from memoryd.memory.text import clip

#: What of an error is looked at; the ledger keeps far less.
_LOOKED_AT = 1 << 16


class GiveBack(Exception):
    """Return the job at no cost, in its place in the order: better work waits. No error either."""


class Snooze(Exception):
    """Put the job off until ``until_ms`` at no cost, with the code of the reason.

    ``detail`` is one line for a person. Control flow, not an error.
    """

    def __init__(self, until_ms: int, reason: str, detail: str = "") -> None:
        super().__init__(reason)
        self.until_ms = until_ms
        self.reason = reason
        self.detail = detail


def safe_detail(text: str) -> str:
    """``text`` of an error without secrets: it may quote an answer, a key, a file's line."""
    return redact(clip(text, _LOOKED_AT))[0]
