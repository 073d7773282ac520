"""What is a person's: their versions of files, told from ours and committed under their name."""

from __future__ import annotations

from collections.abc import Mapping

from memoryd.memory import scanner, subjects
from memoryd.memory.baseline import Baseline


def has_secret(data: bytes | None, path: str = "") -> bool:
    """Whether the scanner finds a secret in these bytes or in the file's path.

    Neither then ever enters a baseline.
    """
    return data is not None and scanner.has_secret(path, data.decode("utf-8", "replace"))


def commit_theirs(baseline: Baseline, files: Mapping[str, bytes | None], now_ms: int) -> str:
    """Commit a person's versions (None: they removed it) as theirs; the commit's id comes back."""
    if baseline.head() is None:
        # A history that was lost, or never was, begins with what a person has: none of it is news.
        subject = f"Begin with the {len(files)} files that are here"
    else:
        known = baseline.files()
        subject = f"By hand: {subjects.done(known, files, subjects.THEIRS) or 'tombstones'}"
    return baseline.commit(files, subject, author="person", now_ms=now_ms)
