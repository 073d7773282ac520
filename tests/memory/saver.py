"""A process that saves notes into one store: ``python saver.py HOME KEY PREFIX COUNT``."""

from __future__ import annotations

import sys
from pathlib import Path

from memoryd.memory.apply import apply_plan
from memoryd.memory.clock import SystemClock
from memoryd.memory.files import sha256
from memoryd.memory.home import Home
from memoryd.memory.notes import new_note
from memoryd.memory.plan import Operation, Plan, SliceRange


def main(home: str, key: str, prefix: str, count: str) -> None:
    """Save COUNT notes one by one, each as a job of its own."""
    for number in range(int(count)):
        name = f"{prefix}-{number:04d}"
        text = new_note(
            name=name, description=f"About {name}", type="user", body=f"The fact {name}."
        ).decode()
        operation = Operation(
            key, f"user/{name}.md", None, sha256(text.encode()), text, "", f"c-{name}"
        )
        part = SliceRange("claude-code", name, 1, 1)
        made = Plan(f"job-{name}", part, "rules", (operation,))
        apply_plan(Home(Path(home)), made, clock=SystemClock(), wait_seconds=60)


if __name__ == "__main__":
    main(*sys.argv[1:])
