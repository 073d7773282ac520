"""memoryd as the person's own service: each command of it, safe to repeat.

A file is written, replaced or removed only where it is ours (it carries the marker) or not there at
all; what a person wrote under the same name stays. The manager is asked before anything is written,
so that a machine without one is left as it was. A person has one service, which serves one home;
another home does not take it over. A stop stays a stop: it is remembered, and only ``start``,
``restart``, ``install`` or the next login end it.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from memoryd.daemon import lingering, service_record
from memoryd.daemon.service_files import MARKER, Installation, Named, named_by
from memoryd.daemon.service_managers import Launchd, Systemd
from memoryd.daemon.service_programs import QUESTION_SECONDS, Manager, State, ask
from memoryd.daemon.service_record import Record
from memoryd.daemon.supervised import forgive
from memoryd.memory.errors import ServiceError
from memoryd.memory.files import make_directory, read_or_none, write_atomic
from memoryd.memory.home import Home
from memoryd.memory.locks import FileLock


@dataclass(frozen=True)
class Installed:
    """What ``install`` did."""

    path: Path
    #: Whether the file was written; False where it already said the same.
    changed: bool
    state: State
    #: Whether the service outlives a logout; None where nobody can say.
    lingers: bool | None


@dataclass(frozen=True)
class Status:
    """What there is of the service."""

    manager: str
    path: Path
    #: A file of ours is there.
    installed: bool
    #: The file is what this installation would write, but for PATH, which each shell has its own.
    current: bool
    state: State
    #: What the file names; of nothing where none is there.
    named: Named
    #: The person stopped it, and it has not been started since.
    stopped: bool
    lingers: bool | None

    @property
    def home(self) -> Home | None:
        """The home that the service is for."""
        return self.named.home


def manager(environ: Mapping[str, str], platform: str = "") -> Manager:
    """launchd on macOS, systemd everywhere else; ``platform`` is ours unless named."""
    return Launchd(environ) if (platform or sys.platform) == "darwin" else Systemd(environ)


def install(manager: Manager, installation: Installation, *, linger: bool = False) -> Installed:
    """Write the service file, enable the service and start it.

    ``linger`` also has systemd keep it while the person is logged out. Raises ``ServiceError``
    where the manager cannot be used or refuses, and where a file that is not ours, or the service
    of another home, is in the way; ``HomeError`` where the home cannot be made.
    """
    text = manager.render(installation)
    path = manager.file()
    standing = _ours(path)
    _refuse_another_home(standing, installation.home)
    manager.check()
    _refuse_a_second(manager, installation.home)
    installation.home.prepare()
    changed = standing != text
    if changed:
        _write(path, text)
    _begin(installation.home)
    manager.install(changed=changed)
    if linger:
        _linger(manager, installation.home)
    return Installed(path, changed, manager.state(), _lingers(manager))


def uninstall(manager: Manager) -> bool:
    """Stop the service and remove its file. False where there was nothing to remove.

    Raises ``ServiceError`` where the file is not ours or the manager refuses; the file then stays.
    Lingering ends where it was us who switched it on.
    """
    path = manager.file()
    text = _ours(path)
    if text is None:
        return False
    manager.check()
    manager.remove()
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise ServiceError(f"{path} cannot be removed: {error.strerror}") from error
    manager.forget()
    home = named_by(text).home
    if service_record.read(home).linger:
        lingering.switch_off(manager.environ)
    service_record.write(home, Record())
    return True


def start(manager: Manager) -> State:
    """Start the service. Raises ``ServiceError`` where none is installed or it does not start."""
    home = _installed(manager).home
    _refuse_a_second(manager, home)
    _begin(home)
    manager.start()
    return manager.state()


def stop(manager: Manager) -> State:
    """Stop the service until it is started, or until the next login. Raises ``ServiceError``."""
    home = _installed(manager).home
    try:
        # Before: nothing may start it while it drains. A home that is full is no reason not to.
        service_record.write(home, replace(service_record.read(home), stopped=True))
    finally:
        manager.stop()
    state = manager.state()
    if state.active:
        raise ServiceError(
            f"the service was told to stop and still is {state.detail}",
            hint="`memoryd service logs` tells why; `memoryd service status` looks again",
        )
    return state


def restart(manager: Manager) -> State:
    """Stop the service, with its drain, and start it. Raises ``ServiceError``."""
    home = _installed(manager).home
    _refuse_a_second(manager, home)
    _begin(home)
    manager.restart()
    return manager.state()


def status(manager: Manager, installation: Installation) -> Status:
    """Whether the service is installed, up to date, enabled and active. Changes nothing."""
    path = manager.file()
    standing = _read(path)
    ours = standing is not None and MARKER in standing
    named = named_by(standing) if standing is not None and ours else Named("", {})
    state = manager.state()
    same_path = replace(installation, path=named.path or installation.path)
    return Status(
        manager.name,
        path,
        installed=ours,
        current=standing == manager.render(same_path),
        state=state,
        named=named,
        stopped=not state.active and service_record.read(named.home).stopped,
        lingers=_lingers(manager) if ours else None,
    )


def logs(manager: Manager, lines: int) -> str:
    """The last ``lines`` of what the service said. Raises ``ServiceError`` where none are."""
    words = manager.log_command(_installed_text(manager), lines, follow=False)
    done = ask(manager.environ, QUESTION_SECONDS, *words)
    if done.returncode:
        said = " ".join(done.stderr.split())
        raise ServiceError(
            f"the log cannot be read: {said or done.returncode}",
            hint="`memoryd run` logs to the terminal",
        )
    return done.stdout.rstrip("\n") or done.stderr.strip()


def follow(manager: Manager, lines: int) -> int:
    """Show the log as it is written, until Ctrl-C; the exit code of the program that shows it."""
    words = manager.log_command(_installed_text(manager), lines, follow=True)
    return subprocess.run(words, env=dict(manager.environ), stdin=subprocess.DEVNULL).returncode


def _refuse_a_second(manager: Manager, home: Home | None) -> None:
    """A daemon that a person runs holds the home: the service would fail five times and give up."""
    if home is None or not home.daemon_lock.is_file() or manager.state().active is not False:
        return
    lock = FileLock(home.daemon_lock)
    if not lock.acquire():
        raise ServiceError(
            f"memoryd already runs on {home.root} (pid {lock.holder()}), not as the service",
            hint="end it first: Ctrl-C where it runs, or SIGTERM; it finishes what it works on",
        )
    lock.release()


def _begin(home: Home | None) -> None:
    """It is to run: a stop is over, and earlier bad starts are forgiven."""
    service_record.write(home, replace(service_record.read(home), stopped=False))
    forgive(home)


def _linger(manager: Manager, home: Home) -> None:
    if manager.name != "systemd":
        raise ServiceError("only systemd lingers", hint="launchd keeps agents until the logout")
    if lingering.switch_on(manager.environ):
        service_record.write(home, replace(service_record.read(home), linger=True))


def _lingers(manager: Manager) -> bool | None:
    return lingering.lingers(manager.environ) if manager.name == "systemd" else None


def _installed(manager: Manager) -> Named:
    return named_by(_installed_text(manager))


def _installed_text(manager: Manager) -> str:
    text = _ours(manager.file())
    if text is None:
        raise ServiceError(
            "no service is installed",
            hint="`memoryd service install` does; `memoryd run` runs in the foreground",
        )
    return text


def _refuse_another_home(standing: str | None, home: Home) -> None:
    other = named_by(standing).home if standing is not None else None
    if other is not None and other.root != home.root and other.root.is_dir():
        raise ServiceError(
            f"the service is installed for another home, {other.root}",
            hint="`memoryd service uninstall` first; its memory stays",
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
