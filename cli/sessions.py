"""``memoryd sessions``: what was said, what is kept of it, and finding it again."""

from __future__ import annotations

import click

from memoryd.cli.sessions_doctor import doctor
from memoryd.cli.sessions_forget import forget
from memoryd.cli.sessions_list import list_sessions
from memoryd.cli.sessions_recall import recall
from memoryd.cli.sessions_search import search
from memoryd.cli.sessions_show import show


@click.group(epilog='Example: memoryd sessions search "lease timeout"')
def sessions() -> None:
    """See, search and forget what was said to your agents."""


for _command in (list_sessions, show, search, recall, forget, doctor):
    sessions.add_command(_command)
