"""A process that saves notes into one store: ``python saver.py HOME KEY PREFIX COUNT``."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

from memoryd.memory.clock import SystemClock
from memoryd.memory.errors import StoreBusy
from memoryd.memory.home import Home
from memoryd.memory.saving import Saved, save_note
from memoryd.memory.store import Store


def main(home: str, key: str, prefix: str, count: str) -> None:
    """Save COUNT notes one by one; whoever finds the store busy comes back."""
    store = Store.for_project(Home(Path(home)), key)
    for number in range(int(count)):
        while (saved := _save(store, f"{prefix}-{number:04d}")) is None:
            pass
        assert saved.written, saved.outcome


def _save(store: Store, name: str) -> Saved | None:
    digest = hashlib.sha256(name.encode()).hexdigest()
    words = " ".join(digest[at : at + 6] for at in range(0, 48, 6))
    try:
        return save_note(
            store,
            type="user",
            name=name,
            description=f"About {name}",
            content=f"The words {words}.",
            clock=SystemClock(),
        )
    except StoreBusy:
        return None


if __name__ == "__main__":
    main(*sys.argv[1:])
