"""``memoryd service``: the daemon as the person's own systemd or launchd service."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from memoryd.cli.common import home_option, json_option, say
from memoryd.memory.home import Home

if TYPE_CHECKING:
    from memoryd.daemon.service_managers import State


@click.group(epilog="Example: memoryd service install --dry-run")
def service() -> None:
    """Run memoryd in the background, from login on."""


@service.command(epilog="Example: memoryd service install --dry-run")
@click.option("--dry-run", is_flag=True, help="Print the file and where it would go, and stop.")
@home_option
@json_option
def install(home: Home, dry_run: bool, as_json: bool) -> None:
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
    done = logic.install(manager, installation)
    values: dict[str, object] = {
        "manager": manager.name,
        "path": str(done.path),
        "changed": done.changed,
    }
    wrote = "wrote" if done.changed else "nothing to change in"
    text = f"{wrote} {done.path}\nthe service is {done.state.detail}"
    if manager.name == "systemd":
        text += "\n`loginctl enable-linger` keeps it running while you are logged out"
    say(values | _state(done.state), text, as_json)


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
    }
    lines = [f"installed  {_word(found.installed)}  {found.path if found.installed else ''}"]
    if found.installed and not found.current:
        lines.append("           the file differs from this installation: memoryd service install")
    lines.append(f"enabled    {_word(found.state.enabled)}")
    lines.append(f"active     {_word(found.state.active)}  {found.state.detail}")
    say(values | _state(found.state), "\n".join(line.rstrip() for line in lines), as_json)


def _state(state: State) -> dict[str, object]:
    return {"enabled": state.enabled, "active": state.active, "detail": state.detail}


def _word(value: bool | None) -> str:
    return "unknown" if value is None else "yes" if value else "no"
