"""A model that answers by what was said, and writes down each call where no crash can lose it.

It understands three sentences of a person's, and finds one fact in each:

| said | fact |
|---|---|
| ``I prefer A over B.`` | a new one |
| ``I went from A to B.`` | one that contradicts the note ``Prefers A ...`` |
| ``The port of A is N now.`` | one that updates the note ``The port of A is ...`` |
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import structlog

from memoryd.memory.providers.base import Reply, Request

_SAID = re.compile(r"I prefer (\w+) over (\w+)\.")
_TURNED = re.compile(r"I went from (\w+) to (\w+)\.")
_PORT = re.compile(r"The port of (\w+) is (\d+) now\.")


class Scripted:
    """``calls`` is the file that gets a line a call; ``trouble`` may raise or answer badly.

    ``trouble`` is asked with the ordinal of the call, from 1, over all processes (0 where ``count``
    is False); where it gives a text that is the answer. ``merges`` answers a consolidation.
    """

    name = "scripted"
    costs = True
    consolidates = True

    def __init__(
        self,
        calls: Path,
        *,
        trouble: Callable[[int], str] = lambda number: "",
        merges: Callable[[Request], Mapping[str, object]] = lambda request: {"merges": []},
        count: bool = True,
    ) -> None:
        self._calls = calls
        self._trouble = trouble
        self._merges = merges
        self._counts = count

    def complete(self, request: Request) -> Reply:
        """Answer with one fact for each sentence that is understood."""
        number = self._count(request)
        text = self._trouble(number)
        if not text and request.purpose == "consolidate":
            text = json.dumps({"episode": None, "promote": [], **self._merges(request)})
        return Reply(text or json.dumps({"facts": _facts(request)}), 10, 10)

    def _count(self, request: Request) -> int:
        """Add the call's line; how many there are with it."""
        about = structlog.contextvars.get_contextvars()  # what the worker has in its log lines
        line = {
            "at": time.time(),
            "job": about.get("job"),
            "attempt": about.get("attempt"),
            "purpose": request.purpose,
            "messages": [each.id for each in request.messages],
        }
        # One write of a short line: what several processes append is never mixed.
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT
        descriptor = os.open(self._calls, flags, 0o600)
        try:
            os.write(descriptor, json.dumps(line).encode() + b"\n")
        finally:
            os.close(descriptor)
        return len(self._calls.read_bytes().splitlines()) if self._counts else 0


def _facts(request: Request) -> list[dict[str, Any]]:
    people = [each for each in request.messages if each.role == "user"]
    found = []
    for message in people:
        for said in _SAID.finditer(message.text):
            statement = f"Prefers {said[1]} over {said[2]}."
            found.append(_fact(message.label, said[0], statement))
        for said in _TURNED.finditer(message.text):
            left = _shown(request, f"Prefers {said[1]} ")
            statement = f"Uses {said[2]} and no {said[1]}."
            found.append(_fact(message.label, said[0], statement, contradicts=left))
        for said in _PORT.finditer(message.text):
            old = _shown(request, f"The port of {said[1]} is ")
            statement = f"The port of {said[1]} is {said[2]}."
            found.append(_fact(message.label, said[0], statement, updates=old))
    return found


def _shown(request: Request, words: str) -> str | None:
    return next((note.name for note in request.notes if words in note.body), None)


def _fact(
    label: str,
    span: str,
    statement: str,
    *,
    contradicts: str | None = None,
    updates: str | None = None,
) -> dict[str, Any]:
    kind = "contradicts" if contradicts else "updates" if updates else "new"
    return {
        "statement": statement,
        "category": "preference",
        "evidence": [{"message": label, "span": span}],
        "explicitness": "explicit",
        "sensitivity": "none",
        "confidence": 0.95,
        "note": None,
        "relation": {"kind": kind, "name": contradicts or updates},
    }
