"""What is a person's: their versions of files, told from ours and committed under their name."""

from __future__ import annotations

from collections.abc import Mapping

from memoryd.memory import scanner
from memoryd.memory.baseline import Baseline


def has_secret(data: bytes | None, path: str = "") -> bool:
    """Whether the scanner finds a secret in these bytes or in the file's path.

    Neither then ever enters a baseline.
    """
    return data is not None and scanner.has_secret(path, data.decode("utf-8", "replace"))


def commit_theirs(baseline: Baseline, files: Mapping[str, bytes | None], now_ms: int) -> str:
    """Commit a person's versions (None: they removed it) as theirs; the commit's id comes back."""
    names = ", ".join(sorted(files)[:3]) + (" ..." if len(files) > 3 else "")
    # A history that was lost, or never was, begins with what a person has: none of it is news.
    subject = f"By hand: {names}" if baseline.head() else f"Begin with what is here: {names}"
    return baseline.commit(files, subject, author="person", now_ms=now_ms)
