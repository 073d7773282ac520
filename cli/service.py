"""``memoryd service``: the daemon as the person's own systemd or launchd service."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from memoryd.cli.common import home_option, json_option, say
from memoryd.memory.home import Home
from memoryd.memory.text import counted

if TYPE_CHECKING:
    from memoryd.daemon.service import Installed, Status
    from memoryd.daemon.service_programs import State


@click.group(epilog="Example: memoryd service install --dry-run")
def service() -> None:
    """Run memoryd in the background, from login on."""


@service.command(epilog="Example: memoryd service install --dry-run")
@click.option("--dry-run", is_flag=True, help="Print the file and where it would go, and stop.")
@click.option("--linger", is_flag=True, help="Keep it running while you are logged out (systemd).")
@home_option
@json_option
def install(home: Home, dry_run: bool, linger: bool, as_json: bool) -> None:
    """Write the service file, enable the service and start it."""
    from memoryd.daemon import service as logic
    from memoryd.daemon.service_files import Installation

    manager = logic.manager(os.environ)
    installation = Installation.running(home, os.environ)
    if dry_run:
        path, text = str(manager.file()), manager.render(installation)
        shown = {"manager": manager.name, "path": path, "text": text}
        say(shown, f"# {path}\n{text.rstrip()}", as_json)
        return
    done = logic.install(manager, installation, linger=linger)
    values: dict[str, object] = {
        "manager": manager.name,
        "path": str(done.path),
        "changed": done.changed,
        "lingers": done.lingers,
    }
    say(values | _state(done.state), "\n".join(_installed(done, manager.name)), as_json)


def _installed(done: Installed, manager: str) -> list[str]:
    wrote = "wrote" if done.changed else "nothing to change in"
    lines = [f"{wrote} {done.path}", f"the service is {done.state.detail}"]
    if manager == "systemd" and not done.lingers:
        lines.append("it ends when you log out; `memoryd service install --linger` keeps it")
    return lines


@service.command(epilog="Example: memoryd service uninstall")
@json_option
def uninstall(as_json: bool) -> None:
    """Stop the service and remove its file. The memory stays."""
    from memoryd.daemon import service as logic

    manager = logic.manager(os.environ)
    removed = logic.uninstall(manager)
    path = str(manager.file())
    text = f"stopped the service and removed {path}" if removed else "no service is installed"
    say({"manager": manager.name, "path": path, "removed": removed}, text, as_json)


@service.command(epilog="Example: memoryd service start")
@json_option
def start(as_json: bool) -> None:
    """Start the service; one that runs is left alone."""
    from memoryd.daemon import service as logic

    manager = logic.manager(os.environ)
    _say_state(manager.name, logic.start(manager), as_json)


@service.command(epilog="Example: memoryd service stop")
@json_option
def stop(as_json: bool) -> None:
    """Stop the service until `memoryd service start`, or your next login."""
    from memoryd.daemon import service as logic

    manager = logic.manager(os.environ)
    _say_state(manager.name, logic.stop(manager), as_json)


@service.command(epilog="Example: memoryd service restart")
@json_option
def restart(as_json: bool) -> None:
    """Stop the service, letting it finish what it works on, and start it."""
    from memoryd.daemon import service as logic

    manager = logic.manager(os.environ)
    _say_state(manager.name, logic.restart(manager), as_json)


@service.command(epilog="Example: memoryd service logs --lines 50 --follow")
@click.option("-n", "--lines", default=100, type=click.IntRange(1, 100_000), show_default=True)
@click.option("-f", "--follow", is_flag=True, help="Go on showing what is logged, until Ctrl-C.")
@json_option
def logs(lines: int, follow: bool, as_json: bool) -> None:
    """Show what the service logged last."""
    from memoryd.daemon import service as logic

    if follow and as_json:
        raise click.UsageError("--follow shows the lines as they are: it goes without --json")
    manager = logic.manager(os.environ)
    if follow:
        sys.exit(1 if logic.follow(manager, lines) else 0)
    text = logic.logs(manager, lines)
    say({"manager": manager.name, "lines": text.splitlines()}, text, as_json)


@service.command(epilog="Example: memoryd service status")
@home_option
@json_option
def status(home: Home, as_json: bool) -> None:
    """Say whether the service is installed, enabled and active."""
    from memoryd.daemon import service as logic
    from memoryd.daemon.service_files import Installation

    installation = Installation.running(home, os.environ)
    found = logic.status(logic.manager(os.environ), installation)
    values: dict[str, object] = {
        "manager": found.manager,
        "path": str(found.path),
        "installed": found.installed,
        "current": found.current,
        "home": str(found.home.root) if found.home else None,
        "stopped": found.stopped,
        "lingers": found.lingers,
        "restarts": found.state.restarts,
    }
    say(values | _state(found.state), "\n".join(_status(found, home)), as_json)


def _status(found: Status, home: Home) -> list[str]:
    lines = [f"installed  {_word(found.installed)}  {found.path if found.installed else ''}"]
    if found.home is not None and found.home != home:
        lines.append(f"           it serves another home, {found.home.root}")
    elif found.installed and not found.current:
        lines.append("           the file differs from this installation: memoryd service install")
    lines.append(f"enabled    {_word(found.state.enabled)}")
    lines.append(f"active     {_word(found.state.active)}  {found.state.detail}")
    if found.stopped:
        lines.append("           you stopped it: `memoryd service start`, or your next login")
    if found.state.restarts:
        lines.append(f"           started again by itself {counted(found.state.restarts, 'time')}")
    return [line.rstrip() for line in lines]


def _say_state(manager: str, state: State, as_json: bool) -> None:
    say({"manager": manager} | _state(state), f"the service is {state.detail}", as_json)


def _state(state: State) -> dict[str, object]:
    return {"enabled": state.enabled, "active": state.active, "detail": state.detail}


def _word(value: bool | None) -> str:
    return "unknown" if value is None else "yes" if value else "no"
