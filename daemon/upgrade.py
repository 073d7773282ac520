"""Another version of the package under a running daemon.

pip replaces the files of a package one by one, and much of the daemon is imported only when it is
used: an old process with new files is neither. So it looks for the version that is installed, by
the name of its ``.dist-info`` folder (PEP 376), and where that has become another one and nothing
has moved since the last look, it asks to be started anew: once for each version.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from memoryd.memory.files import read_or_none, write_atomic
from memoryd.memory.home import Home
from memoryd.memory.log import logger

EXIT_UPGRADED = 75
#: Between two looks; an upgrade that has not moved from one to the next is finished.
LOOK_SECONDS = 30.0


@dataclass(frozen=True)
class Package:
    """The package as its metadata has it: the version, and when its list of files was written."""

    version: str
    written_ns: int


class Upgrades:
    """Looks whether this process runs another version than is installed."""

    def __init__(self, home: Home, path: Iterable[str] | None = None) -> None:
        self._done = home.root / "run" / "restarted-for"
        self._folder = _folder(sys.path if path is None else path)
        self._running = self._look()
        self._seen = self._running

    @property
    def running(self) -> str:
        """The version of this process; empty where it is not installed as a package."""
        return self._running.version if self._running else ""

    def due(self) -> str | None:
        """The version that is installed and not running, once its files stand still."""
        before, self._seen = self._seen, self._look()
        found = self._seen
        if found is None or self._running is None or found.version == self._running.version:
            return None
        return found.version if found == before else None

    def take(self, version: str) -> bool:
        """Remember that ``version`` is what it is started anew for; False where it was already.

        Where that cannot be remembered it is not done: it could be for ever.
        """
        try:
            if read_or_none(self._done) == version.encode():
                return False
            write_atomic(self._done, version.encode())
        except OSError as error:
            logger().warning("upgrade.not_remembered", reason=error.strerror)
            return False
        return True

    def _look(self) -> Package | None:
        """What is installed now; None where it is not, or just being replaced."""
        named = _metadata(self._folder) if self._folder else []
        if len(named) != 1:
            return None
        try:
            written = (named[0] / "RECORD").stat().st_mtime_ns
        except OSError:
            return None
        return Package(_version(named[0]), written)


def _folder(path: Iterable[str]) -> Path | None:
    """The first folder of ``path`` that has our metadata, as Python finds it."""
    return next((Path(each) for each in path if each and _metadata(Path(each))), None)


def _metadata(folder: Path) -> list[Path]:
    try:
        return [each for each in folder.iterdir() if _is_ours(each.name)]
    except OSError:
        return []


def _is_ours(name: str) -> bool:
    return name.startswith("memoryd-") and name.endswith(".dist-info")


def _version(metadata: Path) -> str:
    return metadata.name.removeprefix("memoryd-").removesuffix(".dist-info")
