"""The programs of systemd and launchd: how they are asked, and what both managers share."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from memoryd.daemon.service_files import Installation
from memoryd.memory.errors import ServiceError
from memoryd.memory.text import clip

QUESTION_SECONDS = 30
#: A restart waits for the drain (660 s at most, as the files say) and for the start.
CHANGE_SECONDS = 800

BY_HAND = "`memoryd run` runs the daemon in the foreground, under any supervisor"


@dataclass(frozen=True)
class State:
    """What the manager says of the service; None where it could not be asked."""

    enabled: bool | None
    active: bool | None
    #: The manager's own word, for a person.
    detail: str
    #: It gave up on it: too many bad starts.
    failed: bool = False
    #: How often it was started again by itself since it was last started by hand.
    restarts: int | None = None
    pid: int | None = None


class Manager(Protocol):
    """The program that starts services on this machine."""

    @property
    def name(self) -> str:
        """``systemd`` or ``launchd``."""
        ...

    @property
    def environ(self) -> Mapping[str, str]:
        """What the programs are run with."""
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

    def install(self, *, changed: bool) -> None:
        """Enable and start the service; one that runs is restarted only if its file changed."""
        ...

    def start(self) -> None:
        """Start it, whatever made it stop. One that runs is left alone."""
        ...

    def stop(self) -> None:
        """Stop it until it is started, or until the next login. One that is stopped is no error."""
        ...

    def restart(self) -> None:
        """Stop it as ``stop`` does, with its drain, and start it."""
        ...

    def remove(self) -> None:
        """Stop and disable the service. One that is not there is no error."""
        ...

    def forget(self) -> None:
        """Called after the file is gone."""
        ...

    def state(self) -> State:
        """How the service is. Never raises for a manager that is away."""
        ...

    def log_command(self, text: str, lines: int, *, follow: bool) -> list[str]:
        """The program that shows the last ``lines`` of the log of the service file ``text``.

        Raises ``ServiceError`` that says where the log is, where there is no such program.
        """
        ...

    def sees(self, names: Collection[str], text: str) -> frozenset[str] | None:
        """Which variables the service of the file ``text`` sees; None where nobody can say."""
        ...


def find(environ: Mapping[str, str], program: str, hint: str = BY_HAND) -> str:
    """The path of ``program``. Raises ``ServiceError`` where it is not on the PATH."""
    found = shutil.which(program, path=environ.get("PATH"))
    if found is None:
        raise ServiceError(f"{program} was not found", hint=hint)
    return found


def ask(
    environ: Mapping[str, str], seconds: int, program: str, *words: str
) -> subprocess.CompletedProcess[str]:
    """Run ``program`` with plain output. Raises ``ServiceError`` for one that cannot be run."""
    found = program if program.startswith("/") else find(environ, program)
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
            f"{program} {' '.join(words)} did not end within {seconds} s", hint=BY_HAND
        ) from error
    except OSError as error:
        raise ServiceError(f"{program} cannot be run: {error.strerror}", hint=BY_HAND) from error


def must(done: subprocess.CompletedProcess[str], what: str, hint: str = BY_HAND) -> None:
    """Raise ``ServiceError`` with the program's own words where it failed."""
    if done.returncode == 0:
        return
    said = " ".join(done.stderr.split()) or f"exit status {done.returncode}"
    raise ServiceError(f"{what}: {clip(said, 300)}", hint=hint)
