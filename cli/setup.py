"""``memoryd setup``: everything step by step; each is asked for, each can be undone."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

import click

from memoryd.cli.common import configuration, home_option, json_option, open_queue, say
from memoryd.memory.errors import MemorydError
from memoryd.memory.home import Home

if TYPE_CHECKING:
    from memoryd.jobs.forecast import Forecast
    from memoryd.memory.config import Config

EXIT_USAGE = 2
STEPS = ("home", "hooks", "service", "backfill")
#: Steps that only a person takes: they may cost money.
_ASKED_FOR = {"backfill"}

_NO_AGENT = "no agent that memoryd knows is here"
_NO_MANAGER = (
    "so nothing here can start memoryd at login: have what starts programs here run `memoryd run`;"
    " `--skip service` leaves this step out"
)

_WORDS = {
    "done": "is done already",
    "would": "would be done",
    "did": "done",
    "skipped": "left out",
    "failed": "FAILED",
    "shown": "for you to know",
}


@dataclass(frozen=True)
class Step:
    """One step: ``state`` is a key of ``_WORDS``; ``text`` what it would do, did or shows."""

    step: str
    state: str
    text: str
    undo: str = ""


@dataclass(frozen=True)
class _Asked:
    """How a person, or a script, wants the steps to be taken."""

    home: Home
    yes: bool
    ask: bool
    skip: tuple[str, ...]
    as_json: bool


@click.command(epilog="Example: memoryd setup --yes --skip service")
@click.option("--yes", is_flag=True, help="Take every step without asking, for scripts.")
@click.option("--skip", multiple=True, type=click.Choice(STEPS), help="Leave a step out.")
@home_option
@json_option
def setup(home: Home, yes: bool, skip: tuple[str, ...], as_json: bool) -> None:
    """Make the home, put in your agents' hooks, run memoryd from login on, read what was before.

    Each step is shown first and asked for, says how it is undone, and does nothing where it is done
    already. Without a terminal and without --yes nothing is done: the steps are shown, exit code 2.
    """
    ask = not yes and not as_json and sys.stdin.isatty()
    asked = _Asked(home, yes, ask, skip, as_json)
    taken = [_take(asked, name, plan, do) for name, plan, do in _STEPS]
    taken.append(_provider(home))
    if as_json or not ask:
        text = "\n".join(line for each in taken for line in _lines(each))
        say({"steps": [asdict(each) for each in taken]}, text, as_json)
    else:
        _show(taken[-1])
    if any(each.state == "would" for each in taken):
        click.echo("nothing was done: run it in a terminal, or with --yes", err=True)
        sys.exit(EXIT_USAGE)
    if any(each.state == "failed" for each in taken):
        sys.exit(1)


def _take(
    asked: _Asked, name: str, plan: Callable[[Home], Step], do: Callable[[Home], str]
) -> Step:
    """One step: planned, asked for, done, and said where a person is listening."""
    if name in asked.skip:
        return _told(asked, Step(name, "skipped", "--skip"))
    try:
        planned = plan(asked.home)
        if planned.state == "would" and asked.yes and name in _ASKED_FOR:
            return _told(asked, replace(planned, state="shown"))
        if planned.state != "would" or not (asked.yes or asked.ask):
            return _told(asked, planned)
        if asked.ask:
            _show(planned)
            if not click.confirm("Do it?", default=True):
                return _told(asked, replace(planned, state="skipped", text="you said no"))
        return _told(asked, replace(planned, state="did", text=do(asked.home)))
    except MemorydError as error:
        if not (asked.yes or asked.ask):  # nothing was to be done, so nothing failed
            return Step(name, "shown", f"cannot be done as things are: {error}")
        return _told(asked, Step(name, "failed", str(error)))


def _told(asked: _Asked, step: Step) -> Step:
    if asked.ask:
        _show(step)
    return step


def _show(step: Step) -> None:
    say({}, "\n".join(_lines(step)), as_json=False)


def _lines(step: Step) -> Iterator[str]:
    yield f"{step.step}: {_WORDS[step.state]}"
    yield from (f"  {line}" for line in step.text.splitlines())
    if step.undo and step.state in {"would", "did"}:
        yield f"  to undo it: {step.undo}"


# ---------------------------------------------------------------- the steps


def _plan_home(home: Home) -> Step:
    if home.identity.exists():
        return Step("home", "done", str(home.root))
    return Step("home", "would", f"make {home.root}, for you alone", f"delete {home.root}")


def _do_home(home: Home) -> str:
    home.prepare()
    return f"made {home.root}"


def _plan_hooks(home: Home) -> Step:
    text, changes = _hooks(home, dry_run=True)
    state = "would" if changes else "shown" if text.startswith(_NO_AGENT) else "done"
    return Step("hooks", state, text, "`memoryd integrate --remove`")


def _do_hooks(home: Home) -> str:
    return _hooks(home, dry_run=False)[0]


def _hooks(home: Home, *, dry_run: bool) -> tuple[str, bool]:
    """What becomes of every agent found, in words, and whether anything changes.

    Raises ``IntegrationError`` where settings could not be edited; the others were.
    """
    from memoryd.cli.integrate import elsewhere, lines_of
    from memoryd.memory.errors import IntegrationError
    from memoryd.sessions.integration import integrating

    wanted = integrating.Wanted(home, os.environ, integrating.hook_program(), dry_run=dry_run)
    every = [integrating.integrate(wanted, agent) for agent in integrating.named(())]
    found = [each for each in every if each.state != "absent"]
    shown = found if dry_run else [replace(each, diff="") for each in found]
    lines = [line for each in shown for line in lines_of(each, dry_run=dry_run)]
    text = "\n".join([*lines, elsewhere(home)]).rstrip() or _NO_AGENT
    changes = any(each.state in {"added", "updated"} for each in found)
    if any(each.state == "refused" for each in found) and not (dry_run and changes):
        raise IntegrationError(text, hint="mend the settings, then `memoryd integrate`")
    return text, changes


def _plan_service(home: Home) -> Step:
    from memoryd.daemon import service as logic
    from memoryd.daemon.service_files import Installation
    from memoryd.memory.errors import ServiceError

    manager = logic.manager(os.environ)
    found = logic.status(manager, Installation.running(home, os.environ))
    if found.installed and found.current and found.state.enabled and found.state.active:
        return Step("service", "done", f"{found.path}, {found.state.detail}")
    if found.stopped:
        return Step("service", "shown", "you stopped it; `memoryd service start` starts it")
    try:
        manager.check()
    except ServiceError as error:  # a container, say: no fault, and nothing to be done here
        return Step("service", "shown", f"{error.message}\n{_NO_MANAGER}")
    text = f"write {found.path}, enable it with {found.manager} and start it"
    return Step("service", "would", text, "`memoryd service uninstall`")


def _do_service(home: Home) -> str:
    from memoryd.daemon import service as logic
    from memoryd.daemon.service_files import Installation

    manager = logic.manager(os.environ)
    done = logic.install(manager, Installation.running(home, os.environ))
    said = f"wrote {done.path}; the service is {done.state.detail}"
    if manager.name == "systemd" and not done.lingers:
        said += "\nit ends when you log out; `memoryd service install --linger` keeps it"
    return said


def _plan_backfill(home: Home) -> Step:
    """The sessions from before: by itself where that is free, else a person's own decision."""
    from memoryd.cli.backfill_shown import preview_lines, preview_values

    config = configuration(home)
    found = _archive(home, config)
    lines = preview_lines(preview_values(found, config, limit=1))[:-3] if found.turns else []
    state, undo = found.standing.state, "`memoryd backfill pause`"
    if state == "on":
        return Step("backfill", "shown", "\n".join(lines or ["nothing waits"]), undo)
    if found.standing.reason != "backfill.not-started" or not found.turns:
        return Step("backfill", "shown", "\n".join(lines or [f"backfill is {state}"]))
    begin = "begin to read the sessions from before: `memoryd backfill start`"
    return Step("backfill", "would", "\n".join([begin, *lines]), undo)


def _archive(home: Home, config: Config) -> Forecast:
    """What backfill would do; nothing is made where there is no home yet."""
    from memoryd.jobs.discovery import discover
    from memoryd.jobs.forecast import first_forecast, forecast
    from memoryd.memory.clock import SystemClock

    if not home.ledger.exists():
        return first_forecast(home, config, os.environ, SystemClock().now_ms())
    ledger, config = open_queue(home)
    try:
        discover(home, ledger, config, os.environ)
        return forecast(home, ledger, config, os.environ)
    finally:
        ledger.close()


def _do_backfill(home: Home) -> str:
    from memoryd.cli.backfill import begin

    ledger, config = open_queue(home, make=True)
    try:
        begin(home, ledger, config)
    finally:
        ledger.close()
    return "old sessions are read a few at a time: `memoryd backfill status`"


def _provider(home: Home) -> Step:
    """Who reads the sessions. Nothing is changed: one that costs is a person's own decision."""
    chosen = configuration(home).provider
    who = "rules: offline and free" if chosen.name == "rules" else f"{chosen.name} {chosen.model}"
    change = f"another: [provider] in {home.config_file}, then `memoryd config check`"
    return Step("provider", "shown", f"{who.rstrip()}\n{change}")


_STEPS: tuple[tuple[str, Callable[[Home], Step], Callable[[Home], str]], ...] = (
    ("home", _plan_home, _do_home),
    ("hooks", _plan_hooks, _do_hooks),
    ("service", _plan_service, _do_service),
    ("backfill", _plan_backfill, _do_backfill),
)
