"""``memoryd sessions``: what was said, and finding it again."""

from __future__ import annotations

import click

from memoryd.cli import sessions_recall, sessions_search


@click.group(epilog='Example: memoryd sessions search "lease timeout"')
def sessions() -> None:
    """See, search and forget what was said to your agents."""


sessions.add_command(sessions_recall.recall)
sessions.add_command(sessions_search.search)
