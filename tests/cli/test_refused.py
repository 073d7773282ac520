"""A program that answers a question of memoryd's cannot write to the memory it is asked for."""

from __future__ import annotations

import click
import pytest
from processes import TABS, World

from memoryd.cli.common import REFUSED_IN_OWN_CALLS
from memoryd.cli.main import COMMANDS, cli


def every_command(group: click.Group) -> set[str]:
    """The names of all commands, at any depth."""
    context = click.Context(group)
    names: set[str] = set()
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        names |= {name} | (every_command(command) if isinstance(command, click.Group) else set())
    return names


def test_what_is_refused_there_are_commands() -> None:
    """A renamed one would be let through."""
    assert every_command(cli) >= REFUSED_IN_OWN_CALLS
    assert set(COMMANDS) <= every_command(cli)


@pytest.mark.slow
def test_an_agent_that_was_asked_saves_nothing_and_may_look(world: World) -> None:
    """Its instructions may tell it to save what people say."""
    world.home.prepare()
    note = ("--type", "feedback", "--description", "Tabs", "--content", TABS)

    saved = world.run("memory", "save", "tabs", *note, MEMORYD_OWN_CALL="1")
    session = ("--agent", "claude-code", "--transcript", str(world.claude(TABS)))
    asked = world.run("enqueue", "finalize", *session, MEMORYD_OWN_CALL="1")
    looked = world.run("memory", "list", MEMORYD_OWN_CALL="1")

    assert (saved.returncode, asked.returncode, looked.returncode) == (1, 1, 0)
    for refused in (saved, asked):
        assert "answers a question of memoryd's" in refused.stderr
    assert world.run("memory", "save", "tabs", *note).returncode == 0
