"""``memoryd``: the command line. Each command is imported only when it is the one that runs."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import NoReturn

import click

from memoryd.cli import streams
from memoryd.memory.errors import ConfigError, MemorydError

EXIT_FAILED = 1
EXIT_UNUSABLE_CONFIGURATION = 78
EXIT_INTERRUPTED = 130

#: Command -> (module, attribute, what ``--help`` says of it). Kept here so that ``--help`` imports
#: none of them.
COMMANDS: dict[str, tuple[str, str, str]] = {
    "backfill": ("backfill", "backfill", "Read the sessions from before memoryd."),
    "cancel": ("queue", "cancel", "Call a job off."),
    "cite": ("cite", "cite", "Take the citations out of an agent's answer and credit them."),
    "config": ("config", "config", "Show or check the configuration."),
    "consolidate": ("consolidate", "consolidate", "Merge what a project's notes say twice."),
    "demo": ("demo", "demo", "Show memoryd at work in a temporary home."),
    "doctor": ("doctor", "doctor", "Find what is wrong and say what to do."),
    "enqueue": ("enqueue", "enqueue", "Have a session distilled."),
    "events": ("events", "events", "Tell what was remembered, as it happens."),
    "graph": ("graph", "graph", "See how notes are used."),
    "integrate": ("integrate", "integrate", "Have your agents tell memoryd of their sessions."),
    "list": ("queue", "list_jobs", "List the newest jobs."),
    "memory": ("memory", "memory", "Read, save, review, delete and undo what is remembered."),
    "project": ("project", "project", "See the projects, move one, join two."),
    "prune": ("prune", "prune", "Delete old finished jobs."),
    "retry": ("queue", "retry", "Try a failed or cancelled job again."),
    "run": ("run", "run", "Run the daemon in the foreground."),
    "service": ("service", "service", "Run memoryd in the background, from login on."),
    "sessions": ("sessions", "sessions", "See, search and forget what was said to your agents."),
    "setup": ("setup", "setup", "Set everything up, step by step."),
    "show": ("queue", "show", "Tell all about one job."),
    "status": ("status", "status", "Say how the queue and the daemon are."),
}


class LazyGroup(click.Group):
    """A group that knows its commands by name and imports one when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All commands, sorted."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported; None where there is none of that name."""
        import importlib

        if cmd_name not in COMMANDS:
            return None
        module, attribute, _ = COMMANDS[cmd_name]
        command = getattr(importlib.import_module(f"memoryd.cli.{module}"), attribute)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, but an unknown name is answered with the nearest known one."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            import difflib

            close = difflib.get_close_matches(args[0], list(COMMANDS), n=1)
            meant = f" Did you mean `memoryd {close[0]}`?" if close else ""
            from memoryd.memory.scanner import redact  # before it is cut: half a secret is none

            ctx.fail(f"There is no command {redact(args[0])[0][:60]!r}.{meant}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list in ``--help``, from the table, importing nothing."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name][2]) for name in sorted(COMMANDS)])


def _version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from importlib.metadata import version

        click.echo(f"memoryd {version('memoryd')}")
        ctx.exit()


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Example: memoryd demo",
)
@click.option(
    "--home", metavar="DIR", help="The home to use instead of $MEMORYD_HOME or ~/.memoryd."
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_version,
    help="Print the version and leave.",
)
@click.pass_context
def cli(context: click.Context, home: str | None) -> None:
    """The memory of your coding agents: finished sessions become markdown that is yours."""
    context.obj = home


def main() -> NoReturn:
    """Run the command line; the exit code is 0, 1 (failed), 2 (usage) or 78 (configuration)."""
    streams.open_closed()
    try:
        code = _run()
    except OSError:  # not even what is wrong could be said
        code = EXIT_FAILED
    sys.exit(_flushed(code))


def _flushed(code: int) -> int:
    """The exit code once everything is written; a full disk may still refuse that."""
    refused = streams.flushed()
    if refused is None:
        return code
    if code == 0 and not isinstance(refused, BrokenPipeError):
        with suppress(OSError):
            click.echo(f"memoryd: the output could not be written: {refused.strerror}", err=True)
    return code or EXIT_FAILED


def _run() -> int:
    """Run the command line and say what is wrong; the exit code.

    Raises ``OSError`` where that could not be said.
    """
    try:
        code = cli.main(standalone_mode=False)
        return code if isinstance(code, int) else 0
    except SystemExit as left:
        return left.code if isinstance(left.code, int) else int(bool(left.code))
    except click.exceptions.Abort:  # Ctrl-C, or no answer where one was asked for
        click.echo("memoryd: interrupted", err=True)
        return EXIT_INTERRUPTED
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except click.ClickException as error:
        return _misused(error)
    except MemorydError as error:
        return told(error)
    except BrokenPipeError:
        return EXIT_FAILED  # whoever read our output has seen enough
    except OSError as error:
        return told(_refused(error))


def _misused(error: click.ClickException) -> int:
    """Say how the command is used: what was typed may be a secret that slipped in."""
    import io

    from memoryd.cli.common import printable
    from memoryd.memory.scanner import redact

    said = io.StringIO()
    error.show(said)
    click.echo(printable(redact(said.getvalue())[0]), nl=False, err=True)
    return error.exit_code


def _refused(error: OSError) -> MemorydError:
    """The last net: what the system refused, wherever nobody could say more about it."""
    where = f"{os.fsdecode(error.filename)}: " if isinstance(error.filename, str | bytes) else ""
    return MemorydError(
        f"the system refused: {where}{error.strerror or type(error).__name__}",
        hint="see that the disk has room and who owns the home; `memoryd doctor` looks it over",
    )


def fail(error: MemorydError, code: int = EXIT_FAILED) -> NoReturn:
    """Say on standard error what is wrong and what to do next, and leave with ``code``."""
    sys.exit(told(error, code))


def told(error: MemorydError, code: int = EXIT_FAILED) -> int:
    """Say on standard error what is wrong and what to do next; ``code`` comes back."""
    from memoryd.cli.common import printable
    from memoryd.memory.scanner import redact

    more = error.problems[1:] if isinstance(error, ConfigError) else ()
    lines = [f"memoryd: {error.message}", *(f"  {line}" for line in (*more, error.hint) if line)]
    click.echo(printable(redact("\n".join(lines))[0]), err=True)
    return code


if __name__ == "__main__":
    main()
