"""systemd and launchd through their own programs: what differs between the two, and no more."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from memoryd.daemon.service_files import (
    LABEL,
    UNIT,
    Installation,
    log_file,
    named_by,
    render_launchd,
    render_systemd,
)
from memoryd.daemon.service_programs import CHANGE_SECONDS, QUESTION_SECONDS, State, ask, find, must
from memoryd.memory.errors import ServiceError

_TO_STDERR = (
    "the daemon logs to standard error, which systemd keeps where you told it to;"
    " `memoryd run` shows it"
)
_LOGS = "`memoryd service logs` may tell why; `memoryd run` runs it in the foreground"
#: ``launchctl bootout`` may answer before the daemon has drained: 36, "Operation now in progress".
_IN_PROGRESS = 36
#: Between two looks whether it has; launchd has no way to wait.
_LOOK_SECONDS = 0.2


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
        must(self._ask("show", "--property=Version"), "the user's systemd cannot be reached")

    def install(self, *, changed: bool) -> None:
        """``daemon-reload``, ``enable --now``, and ``restart`` for a file that changed under it."""
        was_active = self.state().active
        self._must_do("daemon-reload")
        self._reset_failed()
        self._must_do("enable", "--now", UNIT)
        if changed and was_active:
            self._must_do("restart", UNIT)

    def start(self) -> None:
        """``start``; one that failed too often is forgiven."""
        self._reset_failed()
        self._must_do("start", UNIT)

    def stop(self) -> None:
        """``stop``: no ``Restart=`` applies to it; enabled as it is, the next login starts it."""
        self._must_do("stop", UNIT)

    def restart(self) -> None:
        """``restart``; one that failed too often is forgiven."""
        self._reset_failed()
        self._must_do("restart", UNIT)

    def remove(self) -> None:
        """``disable --now``."""
        self._must_do("disable", "--now", UNIT)

    def forget(self) -> None:
        """``daemon-reload``, so that the unit is not remembered."""
        self._must_do("daemon-reload")

    def state(self) -> State:
        """From ``systemctl show``, which answers for units that do not exist too."""
        wanted = "UnitFileState,ActiveState,SubState,NRestarts,MainPID"
        try:
            answer = self._ask("show", f"--property={wanted}", UNIT)
            must(answer, "the user's systemd cannot be reached")
        except ServiceError as error:
            return State(None, None, error.message)
        lines = (line.partition("=") for line in answer.stdout.splitlines())
        said = {key: value for key, _, value in lines}
        active = said.get("ActiveState", "")
        return State(
            said.get("UnitFileState") == "enabled",
            active in {"active", "reloading"},
            f"{active or 'unknown'} ({said.get('SubState') or 'unknown'})",
            failed=active == "failed",
            restarts=_number(said.get("NRestarts", "")),
            pid=_number(said.get("MainPID", "")) or None,
        )

    def log_command(self, text: str, lines: int, *, follow: bool) -> list[str]:
        """``journalctl --user``."""
        program = find(self.environ, "journalctl", _TO_STDERR)
        words = ["--user", f"--unit={UNIT}", f"--lines={lines}", "--no-pager", "--output=short-iso"]
        return [program, *words, *(["--follow"] if follow else [])]

    def sees(self, names: Collection[str], text: str) -> frozenset[str] | None:
        """From the running process; else what systemd itself and the file would give it."""
        pid = self.state().pid
        own = _environ_of(pid) if pid else None
        if own is not None:
            return frozenset(names) & own
        try:
            answer = self._ask("show-environment")
        except ServiceError:
            return None
        if answer.returncode:
            return None
        given = {line.partition("=")[0] for line in answer.stdout.splitlines()}
        return frozenset(names) & (given | set(named_by(text).environ))

    def _reset_failed(self) -> None:
        """Without it a service that failed too often is not started; fails for one not loaded."""
        self._ask("reset-failed", UNIT)

    def _ask(self, *words: str) -> subprocess.CompletedProcess[str]:
        return ask(self.environ, QUESTION_SECONDS, "systemctl", "--user", *words)

    def _must_do(self, *words: str) -> None:
        done = ask(self.environ, CHANGE_SECONDS, "systemctl", "--user", *words)
        must(done, f"systemctl --user {' '.join(words)} failed", _LOGS)


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
        must(self._ask("print", self._domain), "launchd has no session for this user")

    def install(self, *, changed: bool) -> None:
        """``bootstrap``, after ``bootout`` where an older file is loaded."""
        if self.state().enabled and not changed:
            self._must_do("kickstart", self._target)
            return
        self.restart()

    def start(self) -> None:
        """``bootstrap`` where it is not loaded, ``kickstart`` where it is."""
        if self.state().enabled:
            self._must_do("kickstart", self._target)
            return
        self._must_do("enable", self._target)
        self._must_do("bootstrap", self._domain, str(self.file()))

    def stop(self) -> None:
        """``bootout`` where it is loaded: ``KeepAlive`` ends with it; the next login loads it."""
        if not self.state().enabled:
            return
        done = ask(self.environ, CHANGE_SECONDS, "launchctl", "bootout", self._target)
        if done.returncode != _IN_PROGRESS:
            must(done, f"launchctl bootout {self._target} failed")
        self._wait_until_gone()

    def restart(self) -> None:
        """``bootout``, which drains (``kickstart -k`` kills), and ``bootstrap``."""
        self.stop()
        self.start()

    def remove(self) -> None:
        """``bootout`` where it is loaded."""
        self.stop()

    def forget(self) -> None:
        """launchd forgets at ``bootout``."""

    def state(self) -> State:
        """From ``launchctl print``, which fails for a service that is not loaded."""
        try:
            self.check()
            answer = self._ask("print", self._target)
        except ServiceError as error:
            return State(None, None, error.message)
        if answer.returncode != 0:
            return State(False, False, "not loaded")
        lines = (line.strip().partition(" = ") for line in answer.stdout.splitlines())
        said = {key: value for key, _, value in reversed(list(lines))}
        running = said.get("state") == "running"
        runs = _number(said.get("runs", ""))
        return State(
            True,
            running,
            "running" if running else "loaded",
            restarts=None if runs is None else max(0, runs - 1),
            pid=_number(said.get("pid", "")),
        )

    def log_command(self, text: str, lines: int, *, follow: bool) -> list[str]:
        """``tail`` of the file that the property list names."""
        home = named_by(text).home
        log = log_file(home) if home else None
        if log is None or not log.exists():
            where = f" at {log}" if log else ""
            raise ServiceError(
                f"there is no log{where} yet", hint="`memoryd service status` tells how it is"
            )
        program = find(self.environ, "tail", f"the log is {log}")
        return [program, "-n", str(lines), *(["-F"] if follow else []), str(log)]

    def sees(self, names: Collection[str], text: str) -> frozenset[str] | None:
        """What the property list sets, and what launchd itself has (``launchctl getenv``)."""
        seen = set(names) & set(named_by(text).environ)
        try:
            seen |= {name for name in names if self._ask("getenv", name).stdout.strip()}
        except ServiceError:
            return None
        return frozenset(seen)

    def _wait_until_gone(self) -> None:
        """Until the domain does not know it any more: ``bootstrap`` would fail before."""
        deadline = time.monotonic() + CHANGE_SECONDS
        while self._ask("print", self._target).returncode == 0:
            if time.monotonic() > deadline:
                raise ServiceError(f"{LABEL} did not end within {CHANGE_SECONDS} s")
            time.sleep(_LOOK_SECONDS)

    @property
    def _domain(self) -> str:
        return f"gui/{os.getuid()}"

    @property
    def _target(self) -> str:
        return f"{self._domain}/{LABEL}"

    def _ask(self, *words: str) -> subprocess.CompletedProcess[str]:
        return ask(self.environ, QUESTION_SECONDS, "launchctl", *words)

    def _must_do(self, *words: str) -> None:
        done = ask(self.environ, CHANGE_SECONDS, "launchctl", *words)
        must(done, f"launchctl {' '.join(words)} failed", _LOGS)


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() else None


def _environ_of(pid: int) -> frozenset[str] | None:
    """The names of a process's variables; None where the system does not show them."""
    try:
        data = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return None
    return frozenset(os.fsdecode(word.partition(b"=")[0]) for word in data.split(b"\0") if word)
