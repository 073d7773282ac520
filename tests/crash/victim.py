"""Runs ``memoryd`` with a scripted model, and kills it at a named point.

``victim.py POINT TIME CALLS ARGUMENT...``: the process gets SIGKILL when it reaches POINT the
TIME-th time (``-`` for never). Each call of the model adds a line to the file CALLS.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

from memoryd.memory import seams
from memoryd.memory.config import ProviderSettings
from memoryd.memory.providers import registry
from memoryd.memory.providers.base import Reply, Request

_SAID = re.compile(r"I prefer (\w+) over (\w+)\.")
_TURNED = re.compile(r"I went from (\w+) to (\w+)\.")


class Counted:
    """Finds every ``I prefer A over B.`` of the person's, and counts how often it was asked."""

    name = "scripted"
    costs = True
    consolidates = True

    def __init__(self, calls: str) -> None:
        self.calls = calls

    def complete(self, request: Request) -> Reply:
        """Answer with one fact for each preference that was said."""
        with open(self.calls, "a", encoding="utf-8") as file:  # noqa: PTH123
            file.write(f"{request.messages[0].seq}\n")
        facts = [
            {
                "statement": f"Prefers {found[1]} over {found[2]}.",
                "category": "preference",
                "evidence": [{"message": message.label, "span": found[0]}],
                "explicitness": "explicit",
                "sensitivity": "none",
                "confidence": 0.95,
                "note": None,
                "relation": {"kind": "new", "name": None},
            }
            for message in request.messages
            if message.role == "user"
            for found in _SAID.finditer(message.text)
        ]
        facts += [
            facts_of_turning(message.label, found, request)
            for message in request.messages
            for found in _TURNED.finditer(message.text)
        ]
        return Reply(json.dumps({"facts": facts}), 10, 10)


def facts_of_turning(label: str, found: re.Match[str], request: Request) -> dict[str, object]:
    """The fact that contradicts the note shown which says what was left."""
    left = next(note for note in request.notes if f"Prefers {found[1]}" in note.body)
    return {
        "statement": f"Uses {found[2]} and no {found[1]}.",
        "category": "preference",
        "evidence": [{"message": label, "span": found[0]}],
        "explicitness": "explicit",
        "sensitivity": "none",
        "confidence": 0.95,
        "note": None,
        "relation": {"kind": "contradicts", "name": left.name},
    }


def main() -> None:
    """Set the trap, then be ``memoryd``."""
    point, time, calls, *arguments = sys.argv[1:]
    left = 0 if time == "-" else int(time)

    def hook(reached: str) -> None:
        nonlocal left
        if reached == point:
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    def make(settings: ProviderSettings, environ: Mapping[str, str], own_calls: Path) -> Counted:
        return Counted(calls)

    seams.hook = hook
    registry.make = make
    sys.argv = ["memoryd", *arguments]
    from memoryd.cli.main import main as memoryd

    memoryd()


if __name__ == "__main__":
    main()
