"""memoryd as the person's own service: install, uninstall and status, each safe to repeat.

A file is written, replaced or removed only where it is ours (it carries the marker) or not there at
all; what a person wrote under the same name stays. The manager is asked before anything is written,
so that a machine without one is left as it was.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from memoryd.daemon.service_files import MARKER, Installation
from memoryd.daemon.service_managers import Launchd, Manager, State, Systemd
from memoryd.memory.errors import ServiceError
from memoryd.memory.files import make_directory, read_or_none, write_atomic


@dataclass(frozen=True)
class Installed:
    """What ``install`` did."""

    path: Path
    #: Whether the file was written; False where it already said the same.
    changed: bool
    state: State


@dataclass(frozen=True)
class Status:
    """What there is of the service."""

    manager: str
    path: Path
    #: A file of ours is there.
    installed: bool
    #: The file is what this installation would write now.
    current: bool
    state: State


def manager(environ: Mapping[str, str], platform: str = "") -> Manager:
    """launchd on macOS, systemd everywhere else; ``platform`` is ours unless named."""
    return Launchd(environ) if (platform or sys.platform) == "darwin" else Systemd(environ)


def install(manager: Manager, installation: Installation) -> Installed:
    """Write the service file, enable the service and start it.

    Raises ``ServiceError`` where the manager cannot be used or refuses, and where a file that is
    not ours is in the way; ``HomeError`` where the home cannot be made.
    """
    text = manager.render(installation)
    path = manager.file()
    standing = _ours(path)
    manager.check()
    installation.home.prepare()
    changed = standing != text
    if changed:
        _write(path, text)
    manager.start(changed=changed)
    return Installed(path, changed, manager.state())


def uninstall(manager: Manager) -> bool:
    """Stop the service and remove its file. False where there was nothing to remove.

    Raises ``ServiceError`` where the file is not ours or the manager refuses; the file then stays.
    """
    path = manager.file()
    if _ours(path) is None:
        return False
    manager.check()
    manager.stop()
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise ServiceError(f"{path} cannot be removed: {error.strerror}") from error
    manager.forget()
    return True


def status(manager: Manager, installation: Installation) -> Status:
    """Whether the service is installed, up to date, enabled and active. Changes nothing."""
    path = manager.file()
    standing = _read(path)
    return Status(
        manager.name,
        path,
        installed=standing is not None and MARKER in standing,
        current=standing == manager.render(installation),
        state=manager.state(),
    )


def _ours(path: Path) -> str | None:
    """The text of our file at ``path``; None where none is. Raises for a file of someone else."""
    text = _read(path)
    if text is not None and MARKER not in text:
        raise ServiceError(
            f"{path} was not written by memoryd",
            hint="move it away to have memoryd manage the service, or manage it yourself",
        )
    return text


def _read(path: Path) -> str | None:
    try:
        data = read_or_none(path)
    except OSError as error:
        raise ServiceError(f"{path} cannot be read: {error.strerror}") from error
    return None if data is None else data.decode("utf-8", "replace")


def _write(path: Path, text: str) -> None:
    try:
        make_directory(path.parent)
        write_atomic(path, text.encode())
    except OSError as error:
        raise ServiceError(f"{path} cannot be written: {error.strerror}") from error
