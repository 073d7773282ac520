"""Which memoryd last ran on a home, and where the home was then: ``run/last.json``.

For people only: a schema from the future is explained by the version that made it, a home that was
moved or copied by the place it had. Nothing depends on it; a file that is missing says nothing.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

from memoryd.memory.files import read_or_none, write_atomic

_KEPT_CHARACTERS = 4096


@dataclass(frozen=True)
class LastRan:
    """A version of memoryd and the absolute path of the home that it worked."""

    version: str
    home: str


def place(home: Path) -> Path:
    """The file under the home's folder."""
    return home / "run" / "last.json"


def read(home: Path) -> LastRan | None:
    """What was noted in the home at ``home``; None where nothing was, or nothing of ours."""
    try:
        found = json.loads(read_or_none(place(home)) or b"")
        kept = LastRan(found["version"], found["home"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    texts = (kept.version, kept.home)
    good = all(isinstance(each, str) and each.isprintable() for each in texts)
    return kept if good and max(map(len, texts)) <= _KEPT_CHARACTERS else None


def note(home: Path) -> None:
    """Note that this memoryd works the home at ``home``. Raises ``OSError``."""
    _keep(home, LastRan(version("memoryd"), str(home)))


def note_place(home: Path) -> None:
    """Note that the home is at ``home``, whatever worked it last. Raises ``OSError``."""
    last = read(home)
    _keep(home, LastRan(last.version if last else version("memoryd"), str(home)))


def _keep(home: Path, now: LastRan) -> None:
    if read(home) != now:
        write_atomic(place(home), json.dumps(asdict(now)).encode() + b"\n")


def as_words(home: Path) -> str:
    """`` to X or newer, which last ran on this home`` where X is known to be newer than this one.

    Else that this one, named, is too old: who wrote what cannot be read left no name.
    """
    last, ours = read(home), version("memoryd")
    if last is not None and _numbers(last.version) > _numbers(ours):
        return f" to {last.version} or newer, which last ran on this home"
    return f" to one that is newer than this {ours}"


def _numbers(version: str) -> tuple[int, ...]:
    """``0.10.1`` as numbers that compare; what is no number ends them."""
    found: list[int] = []
    for part in version.split("."):
        if not (part.isascii() and part.isdigit() and len(part) < 10):
            break
        found.append(int(part))
    return tuple(found)
