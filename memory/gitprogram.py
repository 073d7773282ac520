"""The git program, run through GitPython's command interface and through nothing else of it.

Each run is cut off from the person: no global or system configuration, no hooks, no signing, no
``GIT_*`` that leaked in, C locale. It is a process group of its own and is killed as one at its
limit. (GitPython's own limit finds descendants with ``pgrep`` or ``ps`` and races them; its
``as_process`` gives us the process, and we keep the time.)
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from memoryd.memory.errors import BaselineLocked, BaselineUnusable, StoreError
from memoryd.memory.files import PRIVATE, full_disk

#: The oldest git whose ``core.fsync`` and trailer formats we rely on.
OLDEST = (2, 36)

#: How long one command may take; only garbage collection has longer.
LIMIT_SECONDS = 30.0

#: Stands over every file of settings, the repository's own included.
_CONFIG = {
    "commit.gpgSign": "false",
    "core.autocrlf": "false",
    "core.checkStat": "default",
    "core.fileMode": "false",
    "core.fsmonitor": "false",
    "core.ignoreStat": "false",
    "core.sparseCheckout": "false",
    "core.splitIndex": "true",  # a save in a large store writes what changed of the index
    "core.trustctime": "true",
    "core.untrackedCache": "false",
    "core.fsync": "all",
    "core.hooksPath": os.devnull,
    "core.attributesFile": os.devnull,
    "core.excludesFile": os.devnull,
    "gc.auto": "0",
    "i18n.commitEncoding": "utf-8",
    "init.defaultRefFormat": "files",
    "log.showRoot": "true",
    "maintenance.auto": "false",
    "safe.directory": "*",
    "tag.gpgSign": "false",
    "trailer.separators": ":",
}

_LOCK = re.compile(r"'([^']+\.lock)': File exists")
_NO_ROOM = ("No space left", "Disk quota exceeded")


@dataclass(frozen=True)
class Output:
    """What a command said: its exit status and both streams."""

    status: int
    out: bytes
    err: str

    @property
    def line(self) -> str:
        """The output as one line of text."""
        return self.out.decode("utf-8", "surrogateescape").strip()


@dataclass(frozen=True)
class Git:
    """The git program at work in ``folder``, with ``environ`` over an isolated environment."""

    folder: Path
    environ: Mapping[str, str] = field(default_factory=dict)
    limit_seconds: float = LIMIT_SECONDS

    def run(
        self, *arguments: str, given: bytes = b"", env: Mapping[str, str] | None = None
    ) -> Output:
        """Run one command, ``given`` on its standard input; failing is for ``ok`` to judge.

        Raises ``BaselineUnusable`` when git is missing, too old or over its limit.
        """
        require_git()
        return _run(self, ("git", *arguments), given, env or {})

    def ok(
        self, *arguments: str, given: bytes = b"", env: Mapping[str, str] | None = None
    ) -> bytes:
        """The output of a command that must succeed. Raises ``failure`` where it does not."""
        done = self.run(*arguments, given=given, env=env)
        if done.status != 0:
            raise self.failure(arguments[0], done)
        return done.out

    def line(
        self, *arguments: str, given: bytes = b"", env: Mapping[str, str] | None = None
    ) -> str:
        """The one line that a command which must succeed says."""
        return self.ok(*arguments, given=given, env=env).decode().strip()

    def failure(self, command: str, done: Output) -> StoreError:
        """The error for a command that failed: no job's fault, we ask only for what must work."""
        message = f"git {command} failed: {_last_line(done.err) or f'status {done.status}'}"
        if any(words in done.err for words in _NO_ROOM):
            return full_disk(message)
        if lock := _LOCK.search(done.err):
            return locked(lock[1])
        place = self.environ.get("GIT_DIR", str(self.folder))
        return BaselineUnusable(message, hint=what_to_do(self.folder, place))


def locked(lock: str) -> BaselineLocked:
    """The error for a lock file that stands in the way."""
    return BaselineLocked(
        f"another git is at work, or one died and left {lock}",
        hint=f"when no git is running there, remove the lock: `rm {shlex.quote(lock)}`",
    )


def what_to_do(root: Path, git_dir: str) -> str:
    """What helps with a repository that cannot be used; the notes are plain files, and safe."""
    here, there = shlex.quote(str(root)), shlex.quote(git_dir)
    return (
        f"`git -C {here} fsck` says what is damaged; if it cannot be mended,"
        f" `mv {there} {there}.damaged` and a new history begins from the notes as they are"
    )


def require_git() -> None:
    """Raise ``BaselineUnusable`` unless a git of ``OLDEST`` or newer is there."""
    program = shutil.which("git")
    if program is None:
        raise BaselineUnusable("git is not installed", hint=f"install git {_oldest()} or newer")
    found = _version(program)
    if found < OLDEST:
        raise BaselineUnusable(
            f"git {'.'.join(map(str, found))} is too old", hint=f"install {_oldest()} or newer"
        )


@functools.lru_cache(maxsize=4)
def _version(program: str) -> tuple[int, ...]:
    done = _run(Git(Path("/")), (program, "version"), b"", {})
    numbers = re.search(rb"(\d+)\.(\d+)", done.out)
    if done.status != 0 or numbers is None:
        raise BaselineUnusable(f"{program} does not say its version", hint="reinstall git")
    return int(numbers[1]), int(numbers[2])


def _run(git: Git, command: tuple[str, ...], given: bytes, environ: Mapping[str, str]) -> Output:
    env = {**_isolation(), **git.environ, **environ}
    leaked = sorted(name for name in os.environ if name.startswith("GIT_") and name not in env)
    if leaked:  # GitPython always hands the whole environment on
        command = ("env", *(part for name in leaked for part in ("-u", name)), *command)
    process = _spawn(git.folder, command, env)
    try:
        out, err = process.communicate(given, timeout=git.limit_seconds)
    except subprocess.TimeoutExpired as error:
        _end(process)
        raise BaselineUnusable(
            f"git was killed after {git.limit_seconds:g} seconds",
            hint="check the disk; the next attempt starts afresh",
        ) from error
    except BaseException:  # passed on: the command must not outlive who asked for it
        _end(process)
        raise
    return Output(process.returncode, out, err.decode("utf-8", "replace"))


def _spawn(
    folder: Path, command: tuple[str, ...], env: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    try:
        import git
    except ImportError as error:
        raise BaselineUnusable("git cannot be started", hint=f"install git {_oldest()}") from error
    try:
        wrapper = git.Git(folder).execute(
            list(command),
            env=env,
            as_process=True,
            istream=subprocess.PIPE,
            start_new_session=True,
            umask=PRIVATE,
        )
    except (git.GitCommandNotFound, OSError) as error:
        raise BaselineUnusable(
            f"git cannot be started in {folder}",
            hint=f"see that this folder can be entered and that git {_oldest()} is installed",
        ) from error
    process = wrapper.proc
    wrapper.proc = None  # ours to wait for and to end
    assert process is not None
    return process


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill the command with every process it started, and reap it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def _isolation() -> dict[str, str]:
    env = {
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_SYSTEM": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_DEFAULT_REF_FORMAT": "files",
        "GIT_CONFIG_COUNT": str(len(_CONFIG)),
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_LITERAL_PATHSPECS": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_TERMINAL_PROMPT": "0",
    }
    for at, (key, value) in enumerate(_CONFIG.items()):
        env |= {f"GIT_CONFIG_KEY_{at}": key, f"GIT_CONFIG_VALUE_{at}": value}
    return env


def _oldest() -> str:
    return ".".join(map(str, OLDEST))


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("hint:")]
    return lines[-1].removeprefix("fatal: ")[:300] if lines else ""
