"""``memoryd doctor --fix``: what is safe to repair is repaired, each step told in a line.

Safe is what loses nothing: a file is moved aside and kept, never deleted, but for what nobody can
read any more: temporary files and locks of processes that died. What changes under a running daemon
(the databases, its socket) is left while one holds the home's lock; the line says so.
"""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from memoryd.jobs import checks_rows, envelope, repairing_stores, restoring
from memoryd.jobs.workplace import open_ledger
from memoryd.memory import last_ran, surroundings
from memoryd.memory.clock import Clock
from memoryd.memory.config import Config, load
from memoryd.memory.errors import BadEnvelope, ConfigError, HomeForeign, MemorydError
from memoryd.memory.files import make_directory, old_leftovers
from memoryd.memory.home import FOLDERS, Home
from memoryd.memory.locks import FileLock

#: A write takes milliseconds; one that was not finished for so long is nobody's.
LEFT_MS = 3600 * 1000


@dataclass(frozen=True)
class Repair:
    """One step: the code of the finding it is about, what was done, or why it was ``left``."""

    code: str
    what: str
    left: bool = False


def repair(home: Home, clock: Clock, environ: Mapping[str, str]) -> list[Repair]:
    """Repair what is safe in ``home``; what was done, and what was left, in order.

    Nothing is made where no home is. Raises nothing of its own: a step that fails is a line.
    """
    if not home.is_made():
        return []
    try:
        home.require_own()
    except HomeForeign as error:
        return [Repair(error.code, f"{error.message}: nothing is mended", left=True)]
    work = _Work(home, clock, environ, _config(home))
    done: list[Repair] = []
    for step in _STEPS:
        done += _told(step, work)
    with _alone(home) as holder:
        for step in _STEPS_ALONE:
            if not holder:
                done += _told(step, work)
            elif step.looks is not None:
                done += _left_to(step.looks, work, holder)
    return list(dict.fromkeys(done))


@dataclass(frozen=True)
class _Work:
    home: Home
    clock: Clock
    environ: Mapping[str, str]
    config: Config


_Looks = Callable[[Home, Clock], MemorydError | None]


@dataclass(frozen=True)
class Step:
    """One repair: the code of the finding it is about, and what does it, in lines.

    ``looks`` says whether there is something to do, where a daemon is in the way of doing it.
    """

    code: str
    do: Callable[[_Work], Iterator[str]]
    looks: _Looks | None = None


def _config(home: Home) -> Config:
    try:
        return load(home.config_file)
    except ConfigError:
        return Config()


def _told(step: Step, work: _Work) -> Iterator[Repair]:
    try:
        for line in step.do(work):
            yield Repair(step.code, line)
    except MemorydError as error:
        yield Repair(error.code, str(error), left=True)
    except OSError as error:
        yield Repair(step.code, f"{error.filename}: {error.strerror}", left=True)


def _left_to(looks: _Looks, work: _Work, holder: str) -> Iterator[Repair]:
    """One line where there is something to do that a daemon is in the way of."""
    trouble = looks(work.home, work.clock)
    if trouble is not None:
        yield Repair(trouble.code, f"{trouble.message}: left, {holder}", left=True)


@contextmanager
def _alone(home: Home) -> Iterator[str]:
    """The home's lock, held; where that cannot be, the reason instead of an empty text."""
    lock = FileLock(home.daemon_lock)
    try:
        taken = lock.acquire()
    except OSError as error:
        yield f"the lock {home.daemon_lock} cannot be taken: {error.strerror}"
        return
    if not taken:
        yield f"memoryd runs here (pid {lock.holder()}): stop it first"
        return
    with lock:
        yield ""


# -- beside a daemon -------------------------------------------------------------------------------


def _modes(work: _Work) -> Iterator[str]:
    key = work.config.provider.api_key_file
    more = [Path(key).expanduser()] if key else []
    for each in surroundings.open_modes(work.home, *more):
        each.path.chmod(each.wanted)
        yield f"{each.path}: the mode is {each.wanted:04o} now, it was {each.mode:04o}"


def _folders(work: _Work) -> Iterator[str]:
    for path in work.home.misplaced():
        aside = path.with_name(f"{path.name}.damaged-{work.clock.now_ms()}")
        path.rename(aside)
        yield f"{path} was no folder and is kept as {aside.name}"
    for name in FOLDERS:
        path = work.home.root / name
        if not path.exists():
            make_directory(path)
            yield f"{path} was missing and is made"


def _leftovers(work: _Work) -> Iterator[str]:
    home, before_ms = work.home, work.clock.now_ms() - LEFT_MS
    gone = [
        each
        for folder in (home.root, home.backups, home.root / "run", *home.projects.glob("*/"))
        for each in old_leftovers(folder, before_ms)
    ]
    for each in gone:
        each.unlink(missing_ok=True)
    if gone:
        yield f"{len(gone)} temporary files of processes that died are deleted"


def _identity(work: _Work) -> Iterator[str]:
    aside = work.home.put_back_identity(work.clock.now_ms())
    if aside is not None:
        yield f"{work.home.identity} could not be read: kept as {aside.name}, its copy is back"


def _half_envelopes(work: _Work) -> Iterator[str]:
    """A hook that was killed before its rename: what is whole is taken in, the rest is nothing."""
    before_ms = work.clock.now_ms() - LEFT_MS
    for path in sorted(work.home.inbox.glob(".*.json.tmp")):
        if path.lstat().st_mtime_ns // 1_000_000 > before_ms:
            continue
        try:
            envelope.read(path)
        except BadEnvelope:
            path.unlink(missing_ok=True)
            yield f"{path} is half an envelope and is deleted: the sweep finds its session"
        else:
            name = path.name.removeprefix(".").removesuffix(".tmp")
            path.rename(path.with_name(name))
            yield f"{path} is a whole envelope and is taken in as {name}"


def _place(work: _Work) -> Iterator[str]:
    former = surroundings.moved_from(work.home)
    if former is not None:
        last_ran.note_place(work.home.root)
        yield f"{work.home.root} is noted as the home's place, not {former} any more"


def _git_locks(work: _Work) -> Iterator[str]:
    yield from repairing_stores.unlock(work.home, work.clock.now_ms())


def _links(work: _Work) -> Iterator[str]:
    yield from repairing_stores.link(work.home)


def _indexes(work: _Work) -> Iterator[str]:
    yield from repairing_stores.indexes(work.home, work.clock.now_ms())


# -- with nobody beside ----------------------------------------------------------------------------


def _socket(work: _Work) -> Iterator[str]:
    path = work.home.socket(work.environ)
    if path.is_socket() and stat.S_ISSOCK(path.lstat().st_mode):
        path.unlink()
        yield f"{path} was left by a daemon that died and is deleted"


def _ledger(work: _Work) -> Iterator[str]:
    yield from restoring.restore_ledger(work.home, work.config, work.clock)


def _rows(work: _Work) -> Iterator[str]:
    ledger = open_ledger(work.home, work.config, work.clock)
    try:
        yield from checks_rows.set_aside(ledger, work.home.backups, work.clock.now_ms())
    finally:
        ledger.close()


def _words(work: _Work) -> Iterator[str]:
    yield from restoring.restore_history(work.home, work.clock)


def _copy(work: _Work) -> Iterator[str]:
    yield from restoring.copy_where_stale(work.home, work.config, work.clock)


#: In the order in which one needs the other.
_STEPS = (
    Step("home.missing", _folders),
    Step("home.unusable", _identity),
    Step("home.mode", _modes),
    Step("home.leftover", _leftovers),
    Step("envelope.left", _half_envelopes),
    Step("home.moved", _place),
    Step("baseline.locked", _git_locks),
    Step("baseline.unlinked", _links),
    Step("index.unusable", _indexes),
)
_STEPS_ALONE = (
    Step("socket.stale", _socket),
    Step("ledger.damaged", _ledger, restoring.ledger_trouble),
    Step("row.unusable", _rows),
    Step("history.damaged", _words, restoring.history_trouble),
    Step("backup.stale", _copy),
)
