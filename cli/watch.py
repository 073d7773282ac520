"""``memoryd status --watch``: the status, kept up to date until Ctrl-C.

The daemon says when something changed (a long poll of its socket); at most once a second, and every
two seconds for what grows older, it is drawn anew in place. Where no daemon answers the files are
looked at instead, so a daemon may come and go meanwhile. Where the output is no terminal, and with
``--json``, there is a block or a line for each change.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import FrameType
from typing import Any

import click

from memoryd.cli.common import printable, require_home
from memoryd.cli.status import look
from memoryd.cli.status_text import lines_of
from memoryd.memory.errors import MemorydError
from memoryd.memory.home import Home

#: Between two looks, however much happens.
SHORTEST_SECONDS = 1.0
#: Between two looks when nothing happens, on a terminal and where each look is one more block.
LONGEST_SECONDS = 2.0
LONGEST_PLAIN_SECONDS = 60.0
#: Between two looks at the files while no daemon answers.
ALONE_SECONDS = 2.0

# Another screen, no cursor, no wrapping of lines; and back. (xterm's control sequences.)
_ENTER = "\x1b[?1049h\x1b[?25l\x1b[?7l"
_LEAVE = "\x1b[?7h\x1b[?25h\x1b[?1049l"
_HOME, _TO_LINE_END, _TO_SCREEN_END = "\x1b[H", "\x1b[K", "\x1b[J"


def watch_status(home: Home, *, as_json: bool) -> None:
    """Show the status of ``home`` until Ctrl-C. Raises what the first look raises."""
    require_home(home)
    with suppress(KeyboardInterrupt):
        if as_json or not sys.stdout.isatty():
            _follow(home, lambda values: _print(values, as_json), LONGEST_PLAIN_SECONDS)
            return
        screen = Screen(sys.stdout.fileno())
        try:
            with screen:
                _follow(home, lambda values: screen.draw(_lines(values)), LONGEST_SECONDS)
        finally:
            with suppress(OSError):  # the terminal may be gone
                click.echo("\n".join(screen.lines))  # what was seen last stays to be read


def _follow(home: Home, show: Callable[[dict[str, Any]], None], longest: float) -> None:
    """Look and show, again and again."""
    from memoryd.daemon.client import Client

    client = Client(home.socket(os.environ))
    seen, first = 0, True
    while True:
        began = time.monotonic()
        values = client.status()
        try:
            show(values if values is not None else look(home))
        except MemorydError as error:
            if first:
                raise
            show({"error": error.message})
        first = False
        _rest(SHORTEST_SECONDS - (time.monotonic() - began))
        changes = client.changes(seen, longest) if values is not None else None
        if changes is None:
            _rest(ALONE_SECONDS)
        seen = changes or 0


def _rest(seconds: float) -> None:
    if seconds > 0:
        time.sleep(seconds)


def _print(values: dict[str, Any], as_json: bool) -> None:
    if as_json:
        from memoryd.memory.scanner import redact_all

        click.echo(json.dumps(redact_all(values)))
        return
    click.echo("\n".join([*_lines(values), ""]))


def _lines(values: dict[str, Any]) -> list[str]:
    """What is shown: no secret, and nothing that drives the terminal."""
    from memoryd.memory.scanner import redact

    lines = [f"memoryd: {values['error']}"] if "error" in values else lines_of(values)
    return printable(redact("\n".join(lines))[0]).splitlines()


class Screen:
    """A screen of its own on a terminal, given back as it was however this ends.

    It is drawn anew when the window changes its size, and when the process comes back from Ctrl-Z.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._before: dict[int, Any] = {}
        self._drawing = False
        self._stale = False
        #: What was drawn last.
        self.lines: Sequence[str] = ()

    def __enter__(self) -> Screen:
        actions = {
            signal.SIGWINCH: self._on_resize,
            signal.SIGTSTP: self._on_suspend,
            signal.SIGTERM: _on_terminate,
            signal.SIGHUP: _on_terminate,
        }
        for number, action in actions.items():
            self._before[number] = signal.signal(number, action)
        self._write(_ENTER)
        return self

    def __exit__(self, *error: object) -> None:
        with suppress(OSError):  # the terminal may be gone
            self._write(_LEAVE)
        for number, action in self._before.items():
            signal.signal(number, action)

    def draw(self, lines: Sequence[str]) -> None:
        """Show ``lines``, as many as there is room for."""
        self.lines = lines
        self._drawing = self._stale = True
        while self._stale:  # the window may change while it is drawn
            self._stale = False
            shown = _fitting(self.lines, os.get_terminal_size(self._descriptor).lines)
            body = f"{_TO_LINE_END}\r\n".join(shown)
            self._write(f"{_HOME}{body}{_TO_LINE_END}{_TO_SCREEN_END}")
        self._drawing = False

    def _write(self, text: str) -> None:
        """Past Python's buffer, which a signal's handler may not enter a second time."""
        data = text.encode("utf-8", "replace")
        while data:
            data = data[os.write(self._descriptor, data) :]

    def _on_resize(self, number: int, frame: FrameType | None) -> None:
        self._stale = True
        if not self._drawing:
            self.draw(self.lines)

    def _on_suspend(self, number: int, frame: FrameType | None) -> None:
        self._write(_LEAVE)
        os.kill(os.getpid(), signal.SIGSTOP)
        self._write(_ENTER)
        self._on_resize(number, frame)


def _on_terminate(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


def _fitting(lines: Sequence[str], height: int) -> Sequence[str]:
    """As many of ``lines`` as ``height`` holds; the last then says how many are left out."""
    if len(lines) <= height or height < 2:
        return lines[: max(height, 1)]
    return [*lines[: height - 1], f"... {len(lines) - height + 1} more lines"]
