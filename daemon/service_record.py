"""What a home remembers of its service: ``service.json``, written by the commands alone.

A stop of the person's and a lingering that we switched on are no state of systemd's that could be
asked for: both look like what somebody else may have done.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from memoryd.memory.errors import ServiceError
from memoryd.memory.files import read_or_none, write_atomic
from memoryd.memory.home import Home


@dataclass(frozen=True)
class Record:
    """``stopped``: the last command was ``service stop``; ``linger``: we switched lingering on."""

    stopped: bool = False
    linger: bool = False


def read(home: Home | None) -> Record:
    """The record of ``home``; nothing remembered where there is none that can be read."""
    try:
        found = json.loads((read_or_none(home.root / "service.json") if home else None) or b"{}")
    except (OSError, ValueError, RecursionError):
        return Record()
    if not isinstance(found, dict):
        return Record()
    return Record(found.get("stopped") is True, found.get("linger") is True)


def write(home: Home | None, record: Record) -> None:
    """Remember ``record``; a home that is gone has nothing to remember it for.

    Raises ``ServiceError`` where the file cannot be written.
    """
    if home is None or not home.root.is_dir() or read(home) == record:
        return
    path = home.root / "service.json"
    try:
        write_atomic(path, json.dumps(asdict(record)).encode() + b"\n")
    except OSError as error:
        raise ServiceError(f"{path} cannot be written: {error.strerror}") from error
