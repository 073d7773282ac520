"""Settings files read and replaced: never half, never over somebody's edit, never without a copy.

A link is followed: whoever keeps settings in a repository of their own finds the edit there. The
bytes that an edit replaces are kept in the home's ``backups/settings`` (0600), with a receipt that
says what the file was before us; where nobody has edited it since, taking us out restores exactly
that. A copy is named by its content, so that doing and undoing leaves no more than two.
"""

from __future__ import annotations

import json
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from memoryd.memory.errors import IntegrationError
from memoryd.memory.exchange import take_away
from memoryd.memory.files import make_directory, read_or_none, sha256, sync_directory, write_atomic
from memoryd.memory.home import Home

SIZE_LIMIT_BYTES = 1 << 20

#: A file that is replaced becomes ours: under sudo that would take it from the person.
_OWN = "run memoryd as the user whose agents it is to hear"


@dataclass(frozen=True)
class Settings:
    """A settings file as it was read. ``data`` is None where there is none yet."""

    #: The file itself, behind any links.
    path: Path
    data: bytes | None
    mode: int


@dataclass(frozen=True)
class Receipt:
    """What a file was before our first edit, and what it was after our last."""

    path: str
    #: The sha256 of what it was; empty where there was no file.
    before: str
    after: str


def read(path: Path) -> Settings:
    """The settings at ``path``, links followed. Raises ``IntegrationError`` where it is no file."""
    try:
        target = _target(path)
        status = target.lstat() if target.exists() else None
        if status is not None and not stat.S_ISREG(status.st_mode):
            raise IntegrationError(f"{path} is not a file")
        if status is not None and status.st_size > SIZE_LIMIT_BYTES:
            raise IntegrationError(f"{path} is larger than {SIZE_LIMIT_BYTES >> 20} MiB")
        owner = (target.parent.stat() if status is None else status).st_uid
        if owner != os.geteuid():
            raise IntegrationError(f"{path} belongs to another user", hint=_OWN)
        data = read_or_none(target)
    except OSError as error:
        raise IntegrationError(f"{path} cannot be read: {error.strerror}") from error
    return Settings(target, data, stat.S_IMODE(status.st_mode) if status else 0o600)


def text_of(data: bytes | None) -> str:
    """The text of a settings file. Raises ``IntegrationError`` where it is no UTF-8."""
    try:
        return (data or b"").decode("utf-8")
    except UnicodeDecodeError as error:
        raise IntegrationError("it is not UTF-8 text") from error


def replace(home: Home, agent: str, settings: Settings, data: bytes | None) -> bool:
    """Make the file ``data`` (None: no file); False, and nothing done, where it changed since read.

    Raises ``IntegrationError`` where it, or its copy, cannot be written.
    """
    try:
        receipt = _next_receipt(home, agent, settings, data)
        _keep(home, settings.data)
        if not _write(settings, data):
            return False
        _write_receipt(home, agent, receipt)
    except OSError as error:
        raise IntegrationError(f"{settings.path} cannot be written: {error.strerror}") from error
    return True


def original(home: Home, agent: str, settings: Settings) -> Settings | None:
    """What the file was before us, if nobody else has edited it since; None where that is open."""
    receipt = _receipt(home, agent)
    if receipt is None or settings.data is None or receipt.path != os.fspath(settings.path):
        return None
    if receipt.after != sha256(settings.data):
        return None
    if not receipt.before:
        return Settings(settings.path, None, settings.mode)
    data = read_or_none(_copy(home, receipt.before))
    if data is None or sha256(data) != receipt.before:
        return None
    return Settings(settings.path, data, settings.mode)


def _target(path: Path) -> Path:
    """``path`` behind its links. A link to nothing is refused: nobody knows what it was to be."""
    try:
        target = path.resolve()
    except RuntimeError as error:  # Python 3.11 and 3.12 raise it for a loop
        raise IntegrationError(f"{path} is a link that leads to itself") from error
    if path.is_symlink() and not target.exists():
        raise IntegrationError(f"{path} is a link to {target}, which is not there")
    return target


def _write(settings: Settings, data: bytes | None) -> bool:
    def still(place: Path) -> bool:
        return read_or_none(place) == settings.data

    if data is not None:
        return write_atomic(settings.path, data, still=still, mode=settings.mode)
    if read_or_none(settings.path) is None:
        return settings.data is None
    if not take_away(settings.path, still):
        return False
    sync_directory(settings.path.parent)
    return True


# ---------------------------------------------------------------- copies and receipts


def _folder(home: Home) -> Path:
    return home.backups / "settings"


def _copy(home: Home, digest: str) -> Path:
    return _folder(home) / f"{digest}.bak"


def _keep(home: Home, data: bytes | None) -> None:
    make_directory(_folder(home))
    if data is not None and read_or_none(_copy(home, sha256(data))) != data:
        write_atomic(_copy(home, sha256(data)), data)


def _next_receipt(home: Home, agent: str, settings: Settings, data: bytes | None) -> Receipt:
    """The receipt after this edit: what was before us stays so through edits of our own."""
    known = original(home, agent, settings)
    first = settings if known is None else known
    before = "" if first.data is None else sha256(first.data)
    return Receipt(os.fspath(settings.path), before, "" if data is None else sha256(data))


def _receipt(home: Home, agent: str) -> Receipt | None:
    try:
        said = json.loads(read_or_none(_folder(home) / f"{agent}.json") or b"null")
        return Receipt(str(said["path"]), str(said["before"]), str(said["after"]))
    except (ValueError, KeyError, TypeError):
        return None  # without one the entries are taken out one by one


def _write_receipt(home: Home, agent: str, receipt: Receipt) -> None:
    content = {"path": receipt.path, "before": receipt.before, "after": receipt.after}
    write_atomic(_folder(home) / f"{agent}.json", json.dumps(content).encode("ascii") + b"\n")
