"""systemd and launchd through their own programs: what differs between the two, and no more."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from memoryd.daemon.service_files import (
    LABEL,
    UNIT,
    Installation,
    render_launchd,
    render_systemd,
)
from memoryd.memory.errors import ServiceError
from memoryd.memory.text import clip

QUESTION_SECONDS = 30
#: A restart waits for the drain (660 s at most, as the files say) and for the start.
CHANGE_SECONDS = 800

_BY_HAND = "`memoryd run` runs the daemon in the foreground, under any supervisor"


@dataclass(frozen=True)
class State:
    """What the manager says of the service; None where it could not be asked."""

    enabled: bool | None
    active: bool | None
    #: The manager's own word, for a person.
    detail: str


class Manager(Protocol):
    """The program that starts services on this machine."""

    @property
    def name(self) -> str:
        """``systemd`` or ``launchd``."""
        ...

    def file(self) -> Path:
        """Where the service file belongs."""
        ...

    def render(self, installation: Installation) -> str:
        """The text of the service file."""
        ...

    def check(self) -> None:
        """Raise ``ServiceError``, with a way out, where the manager cannot be used."""
        ...

    def start(self, *, changed: bool) -> None:
        """Enable and start the service; one that runs is restarted only if its file changed."""
        ...

    def stop(self) -> None:
        """Stop and disable the service. One that is not there is no error."""
        ...

    def forget(self) -> None:
        """Called after the file is gone."""
        ...

    def state(self) -> State:
        """Whether the service is enabled and active. Never raises for a manager that is away."""
        ...


@dataclass(frozen=True)
class Systemd:
    """The person's own systemd instance (``systemctl --user``)."""

    environ: Mapping[str, str]
    name: str = "systemd"

    def file(self) -> Path:
        """``memoryd.service`` in the person's unit folder (systemd.unit(5))."""
        base = self.environ.get("XDG_CONFIG_HOME") or "~/.config"
        return Path(base).expanduser().absolute() / "systemd" / "user" / UNIT

    def render(self, installation: Installation) -> str:
        """The user unit."""
        return render_systemd(installation)

    def check(self) -> None:
        """Ask for its version: that needs the program and the connection to it."""
        _must(self._ask("show", "--property=Version"), "the user's systemd cannot be reached")

    def start(self, *, changed: bool) -> None:
        """``daemon-reload``, ``enable --now``, and ``restart`` for a file that changed under it."""
        was_active = self.state().active
        self._must_do("daemon-reload")
        # A service that failed too often is not started again until this; it has no other effect,
        # and fails for one that systemd has not loaded.
        self._ask("reset-failed", UNIT)
        self._must_do("enable", "--now", UNIT)
        if changed and was_active:
            self._must_do("restart", UNIT)

    def stop(self) -> None:
        """``disable --now``."""
        self._must_do("disable", "--now", UNIT)

    def forget(self) -> None:
        """``daemon-reload``, so that the unit is not remembered."""
        self._must_do("daemon-reload")

    def state(self) -> State:
        """From ``systemctl show``, which answers for units that do not exist too."""
        try:
            answer = self._ask("show", "--property=UnitFileState,ActiveState,SubState", UNIT)
            _must(answer, "the user's systemd cannot be reached")
        except ServiceError as error:
            return State(None, None, error.message)
        lines = (line.partition("=") for line in answer.stdout.splitlines())
        said = {key: value for key, _, value in lines}
        active = said.get("ActiveState", "")
        detail = f"{active or 'unknown'} ({said.get('SubState') or 'unknown'})"
        return State(
            said.get("UnitFileState") == "enabled", active in {"active", "reloading"}, detail
        )

    def _ask(self, *words: str) -> subprocess.CompletedProcess[str]:
        return _run(self.environ, QUESTION_SECONDS, "systemctl", "--user", *words)

    def _must_do(self, *words: str) -> None:
        done = _run(self.environ, CHANGE_SECONDS, "systemctl", "--user", *words)
        _must(done, f"systemctl --user {' '.join(words)} failed")


@dataclass(frozen=True)
class Launchd:
    """The person's launchd domain (``launchctl ... gui/<uid>``)."""

    environ: Mapping[str, str]
    name: str = "launchd"

    def file(self) -> Path:
        """The property list among the person's launch agents (launchd.plist(5))."""
        return Path("~/Library/LaunchAgents").expanduser() / f"{LABEL}.plist"

    def render(self, installation: Installation) -> str:
        """The launch agent."""
        return render_launchd(installation)

    def check(self) -> None:
        """Look at the domain: there is none without a graphical login."""
        _must(self._ask("print", self._domain), "launchd has no session for this user")

    def start(self, *, changed: bool) -> None:
        """``bootstrap``, after ``bootout`` where an older file is loaded."""
        loaded = self.state().enabled
        if loaded and not changed:
            self._must_do("kickstart", f"{self._domain}/{LABEL}")
            return
        if loaded:
            self._must_do("bootout", f"{self._domain}/{LABEL}")
        self._must_do("enable", f"{self._domain}/{LABEL}")
        self._must_do("bootstrap", self._domain, str(self.file()))

    def stop(self) -> None:
        """``bootout`` where it is loaded."""
        if self.state().enabled:
            self._must_do("bootout", f"{self._domain}/{LABEL}")

    def forget(self) -> None:
        """launchd forgets at ``bootout``."""

    def state(self) -> State:
        """From ``launchctl print``, which fails for a service that is not loaded."""
        try:
            self.check()
            answer = self._ask("print", f"{self._domain}/{LABEL}")
        except ServiceError as error:
            return State(None, None, error.message)
        if answer.returncode != 0:
            return State(False, False, "not loaded")
        running = "state = running" in answer.stdout
        return State(True, running, "running" if running else "loaded")

    @property
    def _domain(self) -> str:
        return f"gui/{os.getuid()}"

    def _ask(self, *words: str) -> subprocess.CompletedProcess[str]:
        return _run(self.environ, QUESTION_SECONDS, "launchctl", *words)

    def _must_do(self, *words: str) -> None:
        done = _run(self.environ, CHANGE_SECONDS, "launchctl", *words)
        _must(done, f"launchctl {' '.join(words)} failed")


def _run(
    environ: Mapping[str, str], seconds: int, program: str, *words: str
) -> subprocess.CompletedProcess[str]:
    found = shutil.which(program, path=environ.get("PATH"))
    if found is None:
        raise ServiceError(f"{program} was not found", hint=_BY_HAND)
    plain = {**environ, "LC_ALL": "C", "SYSTEMD_COLORS": "0", "SYSTEMD_PAGER": ""}
    try:
        return subprocess.run(
            [found, *words],
            env=plain,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
        )
    except subprocess.TimeoutExpired as error:
        raise ServiceError(
            f"{program} {' '.join(words)} did not end within {seconds} s", hint=_BY_HAND
        ) from error
    except OSError as error:
        raise ServiceError(f"{program} cannot be run: {error.strerror}", hint=_BY_HAND) from error


def _must(done: subprocess.CompletedProcess[str], what: str) -> None:
    if done.returncode == 0:
        return
    said = " ".join(done.stderr.split()) or f"exit status {done.returncode}"
    raise ServiceError(f"{what}: {clip(said, 300)}", hint=_BY_HAND)
