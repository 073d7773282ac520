"""``memoryd config``: what is set, whether it can be used, where it stands."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from memoryd.cli.common import home_option, json_option, say
from memoryd.memory.home import Home


@click.group(epilog="Example: memoryd config check")
def config() -> None:
    """Show or check the configuration."""


@config.command(epilog="Example: memoryd config show")
@home_option
@json_option
def show(home: Home, as_json: bool) -> None:
    """Print every setting as it is used, defaults included."""
    from memoryd.memory.config import load

    values = asdict(load(home.config_file))
    lines = []
    for section, settings in values.items():
        lines.append(f"[{section}]")
        lines += [f"{key} = {_toml(value)}" for key, value in settings.items()]
        lines.append("")
    say(values, "\n".join(lines).rstrip(), as_json)


@config.command(epilog="Example: memoryd config check")
@home_option
@json_option
def check(home: Home, as_json: bool) -> None:
    """Read the file and print every problem; exit code 1 when there is one."""
    import sys

    from memoryd.memory.config import load
    from memoryd.memory.errors import ConfigError

    problems: tuple[str, ...] = ()
    try:
        load(home.config_file)
    except ConfigError as error:
        problems = error.problems or (error.message,)
    state = "can be used" if home.config_file.exists() else "does not exist; the defaults are used"
    text = "\n".join(problems) if problems else f"{home.config_file} {state}"
    values = {"path": str(home.config_file), "usable": not problems, "problems": list(problems)}
    say(values, text, as_json)
    if problems:
        sys.exit(1)


@config.command(epilog="Example: $EDITOR $(memoryd config path)")
@home_option
@json_option
def path(home: Home, as_json: bool) -> None:
    """Print where the configuration file stands, or would."""
    values = {"path": str(home.config_file), "exists": home.config_file.exists()}
    say(values, str(home.config_file), as_json)


def _toml(value: object) -> str:
    """``value`` as TOML writes it; JSON does for text, numbers, booleans and lists of text."""
    return json.dumps(list(value) if isinstance(value, tuple) else value, ensure_ascii=False)
