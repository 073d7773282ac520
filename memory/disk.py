"""What a home takes of the disk: a bounded look, cheap enough for every ``status``."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from memoryd.memory.home import Home

#: Files of one folder that are looked at; the rest is not counted, and that is said.
MOST_FILES = 2_000


@dataclass(frozen=True)
class Use:
    """Bytes that something takes. ``whole`` is False where there is more than was looked at."""

    what: str
    size: int
    whole: bool = True


@dataclass(frozen=True)
class Disk:
    """What a home takes, by part, and what is free on its disk. All in bytes."""

    parts: list[Use]
    free: int

    def size(self, what: str) -> int:
        """Bytes of one part, 0 where it is not there."""
        return sum(part.size for part in self.parts if part.what == what)


def disk_use(home: Home) -> Disk:
    """The ledger and the session history with their logs, and the folders that grow."""
    files = {
        "ledger": home.ledger,
        "ledger-wal": _log(home.ledger),
        "sessions": home.session_history,
        "sessions-wal": _log(home.session_history),
    }
    folders = {
        "projects": home.projects,
        "baselines": home.baselines,
        "inbox": home.inbox,
        "backups": home.backups,
        "logs": home.logs,
    }
    parts = [Use(what, _size(path)) for what, path in files.items()]
    parts += [_folder(what, path) for what, path in folders.items()]
    return Disk(parts, _free(home.root))


def _log(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return 0


def _folder(what: str, root: Path) -> Use:
    """All below ``root``, links not followed, the nearest first."""
    size, seen, waiting = 0, 0, [os.fspath(root)]
    for folder in waiting:  # which grows
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    seen += 1
                    if seen > MOST_FILES:
                        return Use(what, size, whole=False)
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    else:
                        size += entry.stat(follow_symlinks=False).st_size
        except OSError:  # gone meanwhile, or not ours to look into
            continue
    return Use(what, size)


def _free(root: Path) -> int:
    try:
        return shutil.disk_usage(root).free
    except OSError:
        return 0
