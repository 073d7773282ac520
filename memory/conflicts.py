"""Conflicted copies: what a cloud drive leaves of a note that was edited in two places at once."""

from __future__ import annotations

import re

#: How Dropbox, Nextcloud and ownCloud, and Syncthing name the loser of two edits.
_CONFLICT = re.compile(
    r"(?P<stem>.+?)(?: \([^()]*conflicted copy[^()]*\)"
    r"|_conflict-\d{8}-\d{6}|\.sync-conflict-\d{8}-\d{6}-\w{7})\.md",
    re.IGNORECASE,
)


def conflict_of(path: str) -> str | None:
    """The note that the file at ``path`` is a cloud drive's conflicted copy of, by their names."""
    folder, _, name = path.rpartition("/")
    found = _CONFLICT.fullmatch(name)
    return f"{folder}/{found['stem']}.md" if found else None
