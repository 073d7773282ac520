"""Any program as a provider: the prompt on its stdin, the answer on its stdout.

The program runs in a process group of its own, which ends with it: at the time limit, when it
writes too much, when its call is called off, and also when it leaves children behind; what left the
group is found by its mark
(``leftovers.py``). It runs in a folder of the home made for it, so name it by an absolute path or
let it be found in ``PATH``.
"""

from __future__ import annotations

import atexit
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from memoryd.memory.config import ProviderSettings
from memoryd.memory.errors import BadAnswer, ProviderPermanent, ProviderUnavailable
from memoryd.memory.files import PRIVATE
from memoryd.memory.own_calls import environment, prepared
from memoryd.memory.providers.base import Reply, Request, bounded
from memoryd.memory.providers.leftovers import VARIABLE, Mark, end_call, new_mark
from memoryd.memory.scanner import redact
from memoryd.memory.text import clip, fold

OUTPUT_BYTES = 4 << 20
_STDERR_BYTES = 16 << 10
_DETAIL_CHARACTERS = 300
_READ_BYTES = 1 << 16
#: How long a killed program is waited for: one that hangs in the kernel dies when that lets it.
_DYING_SECONDS = 10.0


class CommandProvider:
    """A program named by ``[provider] command``; no shell takes part."""

    name = "command"
    costs = True
    consolidates = True

    def __init__(
        self, settings: ProviderSettings, environ: Mapping[str, str], own_calls: Path
    ) -> None:
        self._command = settings.command
        # An agent's own program must not report its session to us: that would never end.
        self._environ = environment(environ, own_calls)
        self._own_calls = own_calls

    def complete(self, request: Request) -> Reply:
        """Answer one request; see ``Provider`` for what it raises."""
        if not self._command:
            raise ProviderPermanent("no command is configured", hint="set provider.command")
        prompt = f"{request.system}\n\n{request.prompt}\n"
        mark = new_mark(self._own_calls)
        environ = {**self._environ, VARIABLE: str(mark)}
        process = _start(self._command, environ, self._own_calls)
        with _Group(process, mark) as group, request.off.stops(group.kill):
            talk = _talk(process, prompt.encode("utf-8", "replace"), request.timeout_seconds)
            if talk.ended:
                group.ended.wait(max(0.0, talk.deadline - time.monotonic()))
            code = process.poll() if group.ended.is_set() else None
        _check(talk, code, request.timeout_seconds)
        text = talk.out.decode("utf-8", "replace")
        if not text.strip():
            raise BadAnswer("the command answered nothing")
        return bounded(Reply(text, len(prompt) // 4, len(text) // 4), request)


@dataclass
class _Talk:
    """What was read. ``ended`` is False when the limit came first."""

    deadline: float
    out: bytearray = field(default_factory=bytearray)
    err: bytearray = field(default_factory=bytearray)
    ended: bool = False


def _check(talk: _Talk, code: int | None, limit: float) -> None:
    if len(talk.out) > OUTPUT_BYTES:
        raise BadAnswer(f"the command wrote more than {OUTPUT_BYTES >> 20} MiB")
    if code is None:
        raise ProviderUnavailable(f"the command did not end within {limit:g} s")
    if code != 0:
        said = clip(fold(redact(talk.err.decode("utf-8", "replace"))[0]), _DETAIL_CHARACTERS)
        # It did not answer badly, it did not answer: logged out, offline, killed. One that leaves
        # by itself without a word of an answer was not at work: nothing was spent.
        raise ProviderUnavailable(
            f"the command ended with {code}: {said or 'it said nothing on standard error'}",
            hint="run it by hand with a prompt on standard input",
            free=code > 0 and not talk.out.strip(),
        )


def _start(
    command: Sequence[str], environ: Mapping[str, str], own_calls: Path
) -> subprocess.Popen[bytes]:
    try:
        place = prepared(own_calls)
    except OSError as error:
        raise ProviderUnavailable(
            f"the folder {own_calls} that commands run in cannot be made: {error.strerror}",
            hint="check who owns the home and that the disk has room",
            free=True,
        ) from error
    try:
        return subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(environ),
            cwd=place,
            start_new_session=True,
            umask=PRIVATE,
        )
    except (OSError, ValueError) as error:
        raise ProviderPermanent(
            f"the command {clip(command[0], 80)} cannot be run: {error}",
            hint="check provider.command; the service's PATH may differ from yours",
        ) from error


class _Group:
    """The program's process group. ``ended`` is set when the program itself has.

    A thread waits for it and then kills what it left behind, so that nobody holds our pipes.
    """

    def __init__(self, process: subprocess.Popen[bytes], mark: Mark) -> None:
        self._process = process
        self._mark = mark
        self.ended = threading.Event()
        #: The process leaves: what is read of a program that is killed for that is no end of it.
        self.leaving = False
        self._thread = threading.Thread(target=self._watch, name="command-wait", daemon=True)

    def __enter__(self) -> _Group:
        _RUNNING.add(self)
        self._thread.start()
        return self

    def __exit__(self, *raised: object) -> None:
        if self.leaving:
            threading.Event().wait()  # for the end of the process: nobody may record this as an end
        self.kill()
        self._thread.join(_DYING_SECONDS)
        _RUNNING.discard(self)
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                # A prompt that was not read to its end is flushed once more by close.
                with suppress(BrokenPipeError):
                    pipe.close()

    def _watch(self) -> None:
        # Seen but not reaped: as long as its entry stands, the group's number is not given away.
        if hasattr(os, "waitid"):
            os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)
            self._kill_group()
        end_call(self._mark)
        self._process.wait()
        self.ended.set()

    def kill(self) -> None:
        """End the program and what it started; harmless when it has ended."""
        if not self.ended.is_set():
            self._kill_group()
            end_call(self._mark)

    def _kill_group(self) -> None:
        # Gone already, or (macOS) only a zombie is left of it.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)


_RUNNING: set[_Group] = set()


def kill_running() -> None:
    """End every program that a thread of this process waits for.

    Called when the process leaves, so that it leaves no program behind. Those threads come to no
    other end than the process: their attempts are neither answered nor failed by it.
    """
    running = list(_RUNNING)
    for group in running:
        group.leaving = True
    for group in running:
        group.kill()


atexit.register(kill_running)


def _talk(process: subprocess.Popen[bytes], prompt: bytes, seconds: float) -> _Talk:
    """Write the prompt and read both pipes until they end, the limit comes, or it is too much."""
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    talk = _Talk(time.monotonic() + seconds)
    left = memoryview(prompt)
    with selectors.DefaultSelector() as selector:
        os.set_blocking(process.stdin.fileno(), False)
        selector.register(process.stdin, selectors.EVENT_WRITE)
        selector.register(process.stdout, selectors.EVENT_READ, talk.out)
        selector.register(process.stderr, selectors.EVENT_READ, talk.err)
        while selector.get_map() and len(talk.out) <= OUTPUT_BYTES:
            ready = selector.select(max(0.0, talk.deadline - time.monotonic()))
            if not ready:
                return talk
            for key, _ in ready:
                if key.data is None:
                    left = _write(selector, process.stdin, left)
                else:
                    _read(selector, key, process.stderr)
    talk.ended = len(talk.out) <= OUTPUT_BYTES
    return talk


def _write(selector: selectors.BaseSelector, pipe: IO[bytes], left: memoryview) -> memoryview:
    """Write what fits; close the pipe when all is written or nobody reads it."""
    try:
        left = left[os.write(pipe.fileno(), left[:_READ_BYTES]) :]
    except BrokenPipeError:
        left = left[:0]  # a program need not read its prompt
    if not left:
        selector.unregister(pipe)
        pipe.close()
    return left


def _read(selector: selectors.BaseSelector, key: selectors.SelectorKey, stderr: IO[bytes]) -> None:
    """Keep what came: all of the answer, the end of what is said on stderr."""
    data = os.read(key.fd, _READ_BYTES)
    if not data:
        selector.unregister(key.fileobj)
        return
    key.data.extend(data)
    if key.fileobj is stderr:
        del key.data[:-_STDERR_BYTES]
