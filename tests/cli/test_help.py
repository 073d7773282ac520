"""Every command explains itself, with an example, and README knows it."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from memoryd.cli.main import COMMANDS, cli

ROOT = Path(__file__).parent.parent.parent
README = (ROOT / "README.md").read_text("utf-8")


def _commands(group: click.Group, before: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """The words of every command below ``group``, groups themselves too."""
    found: list[tuple[str, ...]] = []
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        found.append((*before, name))
        if isinstance(command, click.Group):
            found += _commands(command, (*before, name))
    return found


ALL = _commands(cli)


@pytest.mark.parametrize("words", ALL, ids=" ".join)
def test_every_command_has_help_with_an_example(words: tuple[str, ...]) -> None:
    """What it does in a sentence, and one line that a person can copy."""
    done = CliRunner().invoke(cli, [*words, "--help"])

    assert done.exit_code == 0
    assert "Example: " in done.output
    assert "memoryd " + words[0] in done.output.split("Example: ")[1]


#: One brings its own along; the service names its own, and there is one.
WITHOUT_HOME = {
    ("demo",),
    *(("service", word) for word in ("uninstall", "start", "stop", "restart", "logs")),
}


@pytest.mark.parametrize("words", ALL, ids=" ".join)
def test_every_command_that_prints_takes_json_and_a_home(words: tuple[str, ...]) -> None:
    """The same two options everywhere, but where no home is looked at or one is brought along."""
    command: click.Command = cli
    for word in words:
        assert isinstance(command, click.Group)
        found = command.get_command(click.Context(command), word)
        assert found is not None
        command = found
    if isinstance(command, click.Group):
        return
    options = {option for parameter in command.params for option in parameter.opts}

    assert "--json" in options
    assert "--home" in options or words in WITHOUT_HOME


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_readme_names_every_command(name: str) -> None:
    """A command nobody can find is not there."""
    assert f"`{name}" in README or f"memoryd {name}" in README


@pytest.mark.parametrize("words", [words for words in ALL if len(words) > 1], ids=" ".join)
def test_readme_names_every_subcommand_beside_its_group(words: tuple[str, ...]) -> None:
    """In the table of commands."""
    rows = [line for line in README.splitlines() if line.startswith(f"| `{words[0]} ")]

    named = " ".join(row.split("`")[1].removeprefix(words[0]).replace("\\|", " ") for row in rows)
    assert words[1] in named.split()


def test_an_unknown_command_is_answered_with_the_nearest() -> None:
    """A typo is a usage error, and says what was probably meant."""
    done = CliRunner().invoke(cli, ["statsu"])

    assert done.exit_code == 2
    assert "Did you mean `memoryd status`?" in done.output


def test_the_version_is_that_of_the_package() -> None:
    """For whoever reports a fault."""
    done = CliRunner().invoke(cli, ["--version"])

    assert (done.exit_code, done.output) == (0, "memoryd 0.1.0\n")
