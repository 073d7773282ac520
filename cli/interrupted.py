"""What is said when a person ends a command that waits: nothing is lost, and how it goes on."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click

from memoryd.cli.common import printable


@contextmanager
def telling_when_interrupted(text: str) -> Iterator[None]:
    """On Ctrl-C say ``text`` on standard error and leave with the exit code of that."""
    from memoryd.cli.main import EXIT_INTERRUPTED

    try:
        yield
    except KeyboardInterrupt:
        click.echo(printable(f"\nmemoryd: interrupted; {text}"), err=True)
        sys.exit(EXIT_INTERRUPTED)
