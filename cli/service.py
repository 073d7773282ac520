"""``memoryd service``: the daemon as the person's own systemd or launchd service."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from memoryd.memory.home import Home

if TYPE_CHECKING:
    from memoryd.daemon.service_files import Installation
    from memoryd.daemon.service_managers import State

_as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


@click.group()
def service() -> None:
    """Run memoryd in the background, from login on."""


@service.command()
@click.option("--dry-run", is_flag=True, help="Print the file and where it would go, and stop.")
@_as_json
@click.pass_context
def install(context: click.Context, dry_run: bool, as_json: bool) -> None:
    """Write the service file, enable the service and start it."""
    from memoryd.daemon import service as logic

    manager, installation = logic.manager(os.environ), _installation(context)
    if dry_run:
        path, text = str(manager.file()), manager.render(installation)
        shown = {"manager": manager.name, "path": path, "text": text}
        _say(shown, f"# {path}\n{text.rstrip()}", as_json)
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
    _say(values | _state(done.state), text, as_json)


@service.command()
@_as_json
def uninstall(as_json: bool) -> None:
    """Stop the service and remove its file. The memory stays."""
    from memoryd.daemon import service as logic

    manager = logic.manager(os.environ)
    removed = logic.uninstall(manager)
    path = str(manager.file())
    text = f"stopped the service and removed {path}" if removed else "no service is installed"
    _say({"manager": manager.name, "path": path, "removed": removed}, text, as_json)


@service.command()
@_as_json
@click.pass_context
def status(context: click.Context, as_json: bool) -> None:
    """Say whether the service is installed, enabled and active."""
    from memoryd.daemon import service as logic

    found = logic.status(logic.manager(os.environ), _installation(context))
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
    _say(values | _state(found.state), "\n".join(line.rstrip() for line in lines), as_json)


def _installation(context: click.Context) -> Installation:
    from memoryd.daemon.service_files import Installation

    home = context.find_object(Home) or Home.locate(None, os.environ)
    return Installation.running(home, os.environ)


def _state(state: State) -> dict[str, object]:
    return {"enabled": state.enabled, "active": state.active, "detail": state.detail}


def _word(value: bool | None) -> str:
    return "unknown" if value is None else "yes" if value else "no"


def _say(values: Mapping[str, object], text: str, as_json: bool) -> None:
    click.echo(json.dumps(values) if as_json else text)
