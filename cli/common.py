"""What the commands share: the home, the configuration, JSON, times, tables."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from memoryd.memory.errors import (
    ConfigError,
    HomeError,
    LedgerError,
    MemorydError,
    UsageError,
)
from memoryd.memory.home import Home

if TYPE_CHECKING:
    from memoryd.jobs.ledger import Ledger
    from memoryd.memory.config import Config
    from memoryd.memory.projects import Resolver
    from memoryd.memory.store import Store

_Command = TypeVar("_Command", bound=Callable[..., Any])

#: What drives a terminal or turns a line around, and halves of characters that cannot be written.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
#: The last moment of the year 9999.
_LAST_MS = 253_402_300_799_000


#: What an agent that answers a question of ours may not do: it was not a person who asked for it.
REFUSED_IN_OWN_CALLS = frozenset(
    {
        "apply",
        "cite",
        "delete",
        "enqueue",
        "forget",
        "import",
        "reject",
        "rename",
        "restore",
        "save",
        "undo",
    }
)


def _take_home(context: click.Context, parameter: click.Parameter, value: str | None) -> Home:
    _refuse_in_own_calls(context.info_name or "")
    home = Home.locate(value or context.find_root().obj, os.environ)
    if home.root.exists() and not home.root.is_dir():
        raise HomeError(
            f"the home {home.root} is a file", hint="name a directory with --home or $MEMORYD_HOME"
        )
    return home


def _refuse_in_own_calls(command: str) -> None:
    if command not in REFUSED_IN_OWN_CALLS:
        return
    from memoryd.memory.own_calls import VARIABLE

    if os.environ.get(VARIABLE):
        raise UsageError(
            f"{command} does nothing in a program that answers a question of memoryd's",
            hint=f"answer on standard output; elsewhere {VARIABLE} is not set",
        )


def home_option(command: _Command) -> _Command:
    """``--home`` on the command itself, besides the one before it; the ``Home`` is passed on."""
    return click.option("--home", metavar="DIR", callback=_take_home, help="The home to use.")(
        command
    )


def json_option(command: _Command) -> _Command:
    """``--json``: one JSON object instead of text."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")(command)


def project_option(command: _Command) -> _Command:
    """``--project``, for ``store_of``."""
    return click.option(
        "--project",
        metavar="DIR",
        help="The project by any directory in it, or by its key; else the current directory's.",
    )(command)


def agent_option(text: str) -> Callable[[_Command], _Command]:
    """``--agent``, one whose transcripts can be read; ``text`` is its help."""
    return click.option("--agent", metavar="AGENT", callback=_take_agent, help=text)


def _take_agent(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> str | None:
    if value is None:
        return None  # before the readers of every agent are imported
    from memoryd.sessions.agents import known

    if value in known():
        return value
    import difflib

    near = difflib.get_close_matches(value.lower(), known(), n=3, cutoff=0.4)
    those = f"the nearest: {', '.join(near)}" if near else f"known are {', '.join(known())}"
    raise click.BadParameter(f"no agent is called {value[:80]!r}; {those}", context, parameter)


def store_of(home: Home, project: str | None) -> Store:
    """The store of the project named by a directory or a key, or of the current directory.

    Raises ``HomeError`` where there is no home, and as ``key_of`` does.
    """
    require_home(home)
    from memoryd.memory.store import Store

    return Store.for_project(home, key_of(home, project))


def key_of(home: Home, project: str | None) -> str:
    """The key of the project named by a directory or a key, or of the current directory.

    Raises ``UsageError`` for a name that is neither a directory nor of a known project.
    """
    return _key(home, resolver_of(home), project)


def record_project(home: Home, project: str | None) -> None:
    """Have the home note which directory a project is in, once its store has been written."""
    resolver = resolver_of(home)
    resolver.remember([_key(home, resolver, project)])


def _key(home: Home, resolver: Resolver, project: str | None) -> str:
    if not project:
        return resolver.resolve(os.fspath(Path.cwd())).key
    from memoryd.memory.project_names import named_project

    place = absolute(project)
    used = partial(_said_in, home)
    return named_project(home, project, place, resolver.resolve, used, new=True).key


def _said_in(home: Home) -> set[str]:
    """The keys of the projects in which something was said."""
    from memoryd.memory.clock import SystemClock
    from memoryd.sessions.history import History

    if not home.session_history.exists():
        return set()
    with History(home.session_history, SystemClock()).looking() as history:
        return set(history.project_use())


def resolver_of(home: Home) -> Resolver:
    """What tells the project of a directory, as the configuration says."""
    from memoryd.memory.projects import Resolver

    return Resolver(home, configuration(home).projects.worktrees)


def say(values: dict[str, Any], text: str, as_json: bool, *, theirs: bool = False) -> None:
    """Print ``values`` as JSON, or ``text``; nothing in either can drive the terminal.

    Secrets are redacted, but for ``theirs``: a person's own file, shown on their own terminal.
    """
    if not theirs:
        from memoryd.memory.scanner import redact, redact_all

        values, text = (redact_all(values), "") if as_json else ({}, redact(text)[0])
    if not as_json:
        click.echo(printable(text))
        return
    # A damaged row may hold bytes: shown as they are written in Python.
    content = json.dumps(values, ensure_ascii=False, indent=2, default=repr)
    click.echo(_UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", content))


def configuration(home: Home) -> Config:
    """The configuration; where it cannot be used, that is said and the defaults stand in."""
    from memoryd.memory.config import Config, load

    try:
        return load(home.config_file)
    except ConfigError as error:
        more = len(error.problems) - 1
        rest = f" (and {more} more)" if more > 0 else ""
        used = "this command uses the defaults, a daemon that runs what it last read"
        said = f"memoryd: {error.message}{rest}; {used}: `memoryd config check`"
        click.echo(printable(said), err=True)
        return Config()


def require_home(home: Home) -> None:
    """Raise ``HomeError`` where there is no home: a command that looks into one makes none."""
    if not home.is_made():
        raise HomeError(
            f"there is no home at {home.root}",
            hint="`memoryd setup` makes one, as does the first session; --home names another",
        )


def open_queue(home: Home, *, make: bool = False) -> tuple[Ledger, Config]:
    """The ledger, with what lies in the inbox taken in first, and the configuration.

    Raises ``HomeError`` where there is no home and none is to be made: who only looks makes none.
    """
    if not make:
        require_home(home)
    from memoryd.memory import log

    log.configure(quiet=True)
    config = configuration(home)
    return _taken_in(home, config), config


def look_into_queue(home: Home) -> tuple[Ledger, Config]:
    """The ledger for a command that only shows it, and the configuration.

    What lies in the inbox is taken in first. Where nothing does, or where the system refuses to
    write (a full or read-only disk), nothing is written: then it is said what is missing. Raises
    ``HomeError`` where there is no home, and ``LedgerError``.
    """
    require_home(home)
    from memoryd.jobs.intake import is_empty
    from memoryd.jobs.workplace import look_into_ledger
    from memoryd.memory import log
    from memoryd.memory.clock import SystemClock
    from memoryd.memory.errors import HomeForeign

    log.configure(quiet=True)
    config, clock = configuration(home), SystemClock()
    if is_empty(home.inbox):
        ledger = look_into_ledger(home, config, clock)
        return ledger or _taken_in(home, config), config
    try:
        return _taken_in(home, config, set_aside=False), config
    except HomeForeign:
        raise
    except (LedgerError, HomeError, OSError) as error:
        ledger = look_into_ledger(home, config, clock)
        if ledger is None:
            raise
        _say_without_inbox(error)
        return ledger, config


def _say_without_inbox(error: MemorydError | OSError) -> None:
    why = str(error) if isinstance(error, MemorydError) else error.strerror
    said = f"memoryd: {why}\n  shown without the sessions that wait in the inbox"
    click.echo(printable(said), err=True)


def _taken_in(home: Home, config: Config, *, set_aside: bool = True) -> Ledger:
    """The ledger, with what lies in the inbox; without it where another process keeps that."""
    from memoryd.jobs.intake import COMMAND_WAIT_SECONDS, take_in
    from memoryd.jobs.workplace import find_transcript, open_ledger
    from memoryd.memory.clock import SystemClock
    from memoryd.memory.errors import InboxBusy

    def find(agent: str, session: str) -> Path | None:
        return find_transcript(os.environ, agent, session)

    ledger = open_ledger(home, config, SystemClock())
    try:
        take_in(home, ledger, find, set_aside=set_aside, wait_seconds=COMMAND_WAIT_SECONDS)
    except InboxBusy as error:  # what is asked of the ledger itself needs nothing of the inbox
        _say_without_inbox(error)
    except BaseException:  # passed on: the file must not stay open
        ledger.close()
        raise
    return ledger


def working_alone(home: Home) -> int | None:
    """The process that has the home's lock, a daemon or a ``run --once``; None where none has."""
    from memoryd.memory.holders import holders

    return next((each.pid for each in holders(home) if each.lock == "daemon"), None)


def unanswered(home: Home) -> UsageError:
    """What to say where a daemon was asked for and none answers."""
    if (pid := working_alone(home)) is not None:
        return UsageError(
            f"process {pid} works this home and does not answer", hint="`memoryd doctor` says more"
        )
    return UsageError(
        "no daemon answers on this home", hint="start it with `memoryd run` and try again"
    )


def ring(home: Home) -> str:
    """Tell the daemon to look; what is to be said, on a line of its own, where none answers."""
    from memoryd.daemon.client import Client

    if Client(home.socket(os.environ)).ring():
        return ""
    if (pid := working_alone(home)) is not None:
        return f"\n  process {pid} works this home and does not answer: `memoryd doctor`"
    return (
        "\n  no daemon runs: `memoryd run --once` works it now,"
        " `memoryd service install` has one run from login on"
    )


@contextmanager
def interruptible(said: str) -> Iterator[None]:
    """Where Ctrl-C ends what is done here, say what that leaves, and leave with 130."""
    try:
        yield
    except KeyboardInterrupt:
        from memoryd.cli.main import EXIT_INTERRUPTED

        click.echo(f"\nmemoryd: interrupted; {said}", err=True)
        sys.exit(EXIT_INTERRUPTED)


def heard_ms(home: Home, project: str) -> int:
    """When the newest message that was read of a project was said (ms); 0 where none was."""
    from memoryd.memory.clock import SystemClock
    from memoryd.sessions.history import History

    if not home.session_history.exists():
        return 0
    with History(home.session_history, SystemClock()) as history:
        return history.newest_said_ms(project)


def age(then_ms: int | None) -> str:
    """How long ago (or ahead) ``then_ms`` is, in one unit: ``12s``, ``3m``, ``in 2h``."""
    if then_ms is None:
        return "-"
    if not _is_time(then_ms):
        return "?"
    seconds = int(time.time() - then_ms / 1000)
    prefix, seconds = ("in ", -seconds) if seconds < 0 else ("", seconds)
    for unit, length in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= length:
            return f"{prefix}{seconds // length}{unit}"
    return f"{prefix}{seconds}s"


def lasted(milliseconds: int) -> str:
    """A duration in one unit, or two: ``0.3s``, ``12s``, ``3m 5s``, ``2h 4m``."""
    seconds = max(0, milliseconds) / 1000
    if seconds < 10:
        return f"{seconds:.1f}s"
    if seconds < 60:
        return f"{seconds:.0f}s"
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}m {rest}s" if minutes < 60 else f"{minutes // 60}h {minutes % 60}m"


def size(count: int) -> str:
    """So many bytes, in one unit: ``812 B``, ``1.4 MB``."""
    amount, units = float(count), ["B", "kB", "MB", "GB", "TB"]
    while amount >= 1000 and len(units) > 1:
        amount /= 1000
        units.pop(0)
    return (
        f"{amount:.0f} {units[0]}"
        if units[0] == "B" or amount >= 10
        else f"{amount:.1f} {units[0]}"
    )


def when(then_ms: int | None) -> str:
    """``then_ms`` in local time, to the second."""
    if then_ms is None:
        return "-"
    if not _is_time(then_ms):
        return "?"
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(then_ms / 1000))


def _is_time(then_ms: object) -> bool:
    """Whether it is a time at all: a damaged row may hold anything. 9999 is the last year shown."""
    return isinstance(then_ms, int | float) and abs(then_ms) < _LAST_MS


def table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """``rows`` under ``heads`` in columns as wide as they need to be, one line each."""
    cells = [[" ".join(str(cell).split()) for cell in row] for row in (heads, *rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    ]
    return "\n".join(lines)


def printable(text: str) -> str:
    """``text`` without control characters: what agents and files say must not drive a terminal."""
    return _UNSAFE.sub("\N{REPLACEMENT CHARACTER}", text)


def absolute(path: str | Path) -> Path:
    """A path as a person gave it, made absolute. Raises ``UsageError`` for a ``~`` of nobody."""
    try:
        return Path(path).expanduser().absolute()
    except RuntimeError as error:
        raise UsageError(
            f"there is no user of that name: {path}", hint="name the path in full"
        ) from error
