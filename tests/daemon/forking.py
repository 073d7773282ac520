"""``memoryd`` in a process of its own, forked from one that has its modules: no start-up to pay.

The start-up of a Python with our imports is most of what a test of a command costs. One server a
test process imports them once; each command is a fork of it with the environment, the folder and
the streams it was given: a real process with a pid, signals and an exit code. Nothing is open in
the server, so nothing is shared. Tests of the start-up itself start the program.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO

#: What most commands import; what is missing here a command imports by itself.
_IMPORTED = (
    "memoryd.cli.main",
    "memoryd.cli.common",
    "memoryd.cli.queue",
    "memoryd.cli.status",
    "memoryd.cli.memory",
    "memoryd.cli.enqueue",
    "memoryd.cli.run",
    "memoryd.cli.sessions",
    "memoryd.daemon.client",
    "memoryd.daemon.once",
    "memoryd.daemon.lifecycle",
    "memoryd.jobs.workplace",
    "memoryd.jobs.worker",
    "memoryd.jobs.report",
    "memoryd.sessions.agents",
    "memoryd.sessions.search",
    "memoryd.memory.log",
    "memoryd.memory.store",
    "memoryd.memory.undo",
    "memoryd.memory.apply",
    "memoryd.memory.providers.rules",
    "tomllib",
    "structlog",
    "peewee",
    "git",
)


class Process:
    """A forked command, with what ``subprocess.Popen`` offers of it."""

    def __init__(
        self,
        arguments: Sequence[str],
        environ: Mapping[str, str],
        cwd: Path,
        streams: Sequence[int],
        *,
        program: str = "memoryd",
        start_new_session: bool = False,
    ) -> None:
        """Fork ``memoryd ARGUMENTS`` with these three streams, which stay the caller's.

        ``program`` may be the path of a Python program that becomes ``memoryd`` by itself.
        """
        self.args = [program, *arguments]
        self.returncode: int | None = None
        #: Set by a caller who wants to read what it says.
        self.stdout: IO[bytes] | None = None
        asked = {
            "arguments": self.args,
            "environ": dict(environ),
            "cwd": str(cwd),
            "session": start_new_session,
        }
        said = json.dumps(asked).encode()
        self._told, tells = socket.socketpair()
        with tells:
            server = _server()
            socket.send_fds(server, [b"%08d" % len(said)], [*streams, tells.fileno()])
            server.sendall(said)
        self._answers = self._told.makefile("r")
        self.pid = int(self._answers.readline())

    def wait(self, timeout: float | None = None) -> int:
        """The exit code, a negative signal number where one ended it."""
        if self.returncode is None:
            with selectors.DefaultSelector() as waiting:
                waiting.register(self._told, selectors.EVENT_READ)
                if not waiting.select(timeout):
                    raise subprocess.TimeoutExpired(self.args, timeout or 0)
            self.returncode = os.waitstatus_to_exitcode(int(self._answers.readline()))
            self._answers.close()
            self._told.close()
        return self.returncode

    def poll(self) -> int | None:
        """The exit code; None while it runs."""
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def send_signal(self, number: int) -> None:
        """Send it a signal."""
        os.kill(self.pid, number)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)


def run(
    arguments: Sequence[str],
    *,
    environ: Mapping[str, str],
    cwd: Path,
    seconds: float,
) -> subprocess.CompletedProcess[str]:
    """``memoryd ARGUMENTS`` to its end. Raises ``subprocess.TimeoutExpired`` and ends it."""
    # Files, not pipes: nothing that a child inherits can keep us waiting.
    with (
        open(os.devnull, "rb") as stdin,  # noqa: PTH123
        tempfile.TemporaryFile() as stdout,
        tempfile.TemporaryFile() as stderr,
    ):
        streams = [stdin.fileno(), stdout.fileno(), stderr.fileno()]
        process = Process(arguments, environ, cwd, streams)
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise
        return subprocess.CompletedProcess(process.args, code, _said(stdout), _said(stderr))


def _said(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode()


@cache
def _server() -> socket.socket:
    """The connection to this process's server; it ends with the connection."""
    ours, theirs = socket.socketpair()
    process = subprocess.Popen(
        [sys.executable, __file__, str(theirs.fileno())], pass_fds=[theirs.fileno()]
    )
    theirs.close()

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    return ours


def serve(connection: socket.socket) -> None:
    """Fork a command for each request until the other side is gone."""
    for module in _IMPORTED:
        __import__(module)
    gc.collect()
    gc.freeze()  # what is shared stays shared: no fork's collector writes to it
    while True:
        head, numbers, _, _ = socket.recv_fds(connection, 8, 4)
        if not head:
            return
        asked = json.loads(_read(connection, int(head)))
        if (keeper := os.fork()) == 0:
            _keep(connection, asked, numbers)
        for number in numbers:
            os.close(number)
        os.waitpid(keeper, 0)


def _read(connection: socket.socket, length: int) -> bytes:
    said = b""
    while len(said) < length:
        said += connection.recv(length - len(said))
    return said


def _keep(connection: socket.socket, asked: dict[str, object], numbers: Sequence[int]) -> None:
    """In a process between: fork the command, tell its pid and, once it ended, how."""
    if os.fork():
        os._exit(0)  # the server must not wait for the command
    connection.close()
    *streams, tells = numbers
    if (pid := os.fork()) == 0:
        os.close(tells)
        _be_memoryd(asked, streams)
    for stream in streams:
        os.close(stream)
    os.write(tells, b"%d\n" % pid)
    _, status = os.waitpid(pid, 0)
    os.write(tells, b"%d\n" % status)
    os._exit(0)


def _be_memoryd(asked: dict[str, object], streams: Sequence[int]) -> None:
    """Take the streams, the environment and the folder that were asked for, and run."""
    import time

    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    environ, arguments = asked["environ"], asked["arguments"]
    assert isinstance(environ, dict) and isinstance(arguments, list)
    os.environ.clear()
    os.environ.update(environ)
    time.tzset()
    if asked["session"]:
        os.setsid()
    os.chdir(str(asked["cwd"]))
    sys.argv = list(arguments)
    if sys.argv[0] != "memoryd":
        runpy.run_path(sys.argv[0], run_name="__main__")
        sys.exit()
    from memoryd.cli.main import main

    try:
        main()
    except SystemExit as leaving:
        if not {"run", "mcp"}.intersection(sys.argv[1:2]):
            _leave(leaving.code)
        raise  # what serves takes its interpreter down as Python does, with its threads


def _leave(code: object) -> None:
    """Leave as Python does, but for what takes longest: every object of the server taken apart.

    Whoever asked to be called at the exit is, and threads are waited for. It returns where Python
    has a word to say: a message in place of a code, an output that nobody reads.
    """
    if not isinstance(code, int | None):
        return
    threading._shutdown()
    atexit._run_exitfuncs()
    with suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code or 0)


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as listening:
        serve(listening)
