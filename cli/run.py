"""``memoryd run``: the daemon in the foreground, or one pass over what is ready."""

from __future__ import annotations

import os
import sys

import click

from memoryd.cli.common import home_option, interruptible, json_option, say
from memoryd.memory.errors import ConfigError, HomeGone
from memoryd.memory.home import Home
from memoryd.memory.text import counted


@click.command(epilog="Example: memoryd run --once")
@click.option("--once", is_flag=True, help="Sweep, work off what is ready, and leave.")
@click.option("--verbose", is_flag=True, help="Log more; with --once, log at all.")
@home_option
@json_option
def run(once: bool, verbose: bool, home: Home, as_json: bool) -> None:
    """Run the daemon in the foreground until SIGTERM; its log goes to standard error.

    --once beside a daemon has the daemon work off its queue and waits for it; what the daemon does
    by the hour (letting go of words, tidying up) stays its own.

    Exit codes: 1 when another daemon runs on the home, 70 when an attempt was stuck, 75 when the
    service is to start another version that was installed, 78 when the configuration cannot be
    used, or the home was taken away under the daemon.
    """
    from memoryd.memory import log

    # Who works the queue by hand reads a sentence; the log is the daemon's way to speak.
    log.configure(verbose=verbose, quiet=once and not verbose)
    try:
        if not once:
            sys.exit(_run_daemon(home))
        from memoryd.daemon.once import run_once
        from memoryd.memory.config import load

        with interruptible("what was not done stays in the queue"):
            worked = run_once(home, load(home.config_file), os.environ)
    except (ConfigError, HomeGone) as error:
        from memoryd.cli.main import EXIT_UNUSABLE_CONFIGURATION, fail
        from memoryd.daemon.supervised import exit_code

        fail(error, exit_code(EXIT_UNUSABLE_CONFIGURATION, os.environ))
    by = "the running daemon" if worked.by == "daemon" else "this process"
    values = {"by": worked.by, "attempts": worked.attempts, "rested": worked.rested}
    say(values, f"worked by {by}: {counted(worked.attempts, 'attempt')}", as_json)
    if not worked.rested:
        sys.exit(1)


def _run_daemon(home: Home) -> int:
    from memoryd.daemon.lifecycle import Daemon
    from memoryd.daemon.supervised import ended_well, may_start
    from memoryd.memory.clock import SystemClock

    if not may_start(home, os.environ, SystemClock()):
        return 0
    code = Daemon(home, os.environ).run()
    if code == 0:
        ended_well(home, os.environ)
    return code
