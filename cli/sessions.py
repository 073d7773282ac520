"""``memoryd sessions``: what was said, and what is kept of it."""

from __future__ import annotations

import click

from memoryd.cli.sessions_doctor import doctor
from memoryd.cli.sessions_forget import forget
from memoryd.cli.sessions_list import list_sessions
from memoryd.cli.sessions_show import show


@click.group(epilog="Example: memoryd sessions list")
def sessions() -> None:
    """See the sessions that were read, and have some forgotten."""


for _command in (list_sessions, show, forget, doctor):
    sessions.add_command(_command)
