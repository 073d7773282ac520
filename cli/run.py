"""``memoryd run``: the daemon in the foreground, or one pass over what is ready."""

from __future__ import annotations

import os
import sys

import click

from memoryd.cli.common import home_option, json_option, say
from memoryd.memory.errors import ConfigError
from memoryd.memory.home import Home


@click.command(epilog="Example: memoryd run --once")
@click.option("--once", is_flag=True, help="Sweep, work off what is ready, and leave.")
@click.option("--verbose", is_flag=True, help="Log more.")
@home_option
@json_option
def run(once: bool, verbose: bool, home: Home, as_json: bool) -> None:
    """Run the daemon in the foreground until SIGTERM; its log goes to standard error.

    --once beside a daemon has the daemon work off its queue and waits for it; what the daemon does
    by the hour (letting go of words, tidying up) stays its own.

    Exit codes: 1 when another daemon runs on the home, 70 when an attempt was stuck, 78 when the
    configuration cannot be used.
    """
    from memoryd.memory import log

    log.configure(verbose=verbose)
    try:
        if not once:
            from memoryd.daemon.lifecycle import Daemon

            sys.exit(Daemon(home, os.environ).run())
        from memoryd.daemon.once import run_once
        from memoryd.memory.config import load

        worked = run_once(home, load(home.config_file), os.environ)
    except ConfigError as error:
        from memoryd.cli.main import EXIT_UNUSABLE_CONFIGURATION, fail

        fail(error, EXIT_UNUSABLE_CONFIGURATION)
    by = "the running daemon" if worked.by == "daemon" else "this process"
    values = {"by": worked.by, "attempts": worked.attempts, "rested": worked.rested}
    say(values, f"worked by {by}: {worked.attempts} attempts", as_json)
    if not worked.rested:
        sys.exit(1)
