"""What of the stores ``memoryd doctor --fix`` repairs: locks of dead gits, links, indexes."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

from memoryd.memory.baseline import Baseline
from memoryd.memory.derived import follow_index
from memoryd.memory.health import stale_lock_files
from memoryd.memory.home import Home
from memoryd.memory.store import INDEX, Store

#: How long ``ps`` may take.
_PS_SECONDS = 10
#: A store that is being written is left.
_WAIT_SECONDS = 1.0


def unlock(home: Home, now_ms: int) -> Iterator[str]:
    """Delete locks of gits that died over ten minutes ago, where no git runs at all.

    Raises ``OSError``, ``StoreError``.
    """
    for store in Store.all(home):
        for path in stale_lock_files(store, now_ms):
            if git_runs():
                yield f"{path} is left: a git is at work on this machine"
                continue
            with store.writer_lock(_WAIT_SECONDS):
                path.unlink(missing_ok=True)
            yield f"{path} was left by a git that died and is deleted"


def git_runs() -> bool:
    """Whether any git program runs; also where nobody can tell."""
    try:
        done = subprocess.run(
            ("ps", "-A", "-o", "comm="), capture_output=True, timeout=_PS_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return True
    names = (line.rsplit(b"/", 1)[-1].strip() for line in done.stdout.splitlines())
    return any(name == b"git" or name.startswith(b"git-") for name in names)


def link(home: Home) -> Iterator[str]:
    """Put back the ``.git`` file of stores whose history is there. Raises ``StoreError``."""
    for store in Store.all(home):
        baseline = Baseline(store)
        if not store.root.is_dir() or not baseline.is_unlinked():
            continue
        with store.writer_lock(_WAIT_SECONDS):
            baseline.ensure()
        yield f"{store.root / '.git'} was missing and leads to the history again"


def indexes(home: Home, now_ms: int) -> Iterator[str]:
    """Move what stands in an index's place aside and make the index. Raises ``StoreError``."""
    for store in Store.all(home):
        path = store.root / INDEX
        if store.is_profile or not (path.is_symlink() or path.exists()):
            continue
        if path.is_file() and not path.is_symlink() and store.shown_index() is not None:
            continue
        with store.writer_lock(_WAIT_SECONDS):
            aside = path.with_name(f".{INDEX}.damaged-{now_ms}")
            path.rename(aside)
            follow_index(store)
        yield f"{path} was no file that can be read: it is kept as {aside.name}, and made again"
