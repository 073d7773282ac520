"""Who a git repository is: what git says of it, and whether it may be another by now.

Git is asked once and again only where what lies in the repository's folder says that the answer may
have changed: its settings (a remote was added, it is another repository in the same place), whether
it is a shallow clone, and, as long as it is young, its history (the first commit was amended).
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from memoryd.memory.errors import BaselineError
from memoryd.memory.gitprogram import Git
from memoryd.memory.work_trees import kind_of

_GIT_SECONDS = 5.0
#: A history whose log is longer is not begun anew, and to walk it takes its time.
_YOUNG_BYTES = 16_384
_LINE_BYTES = 1_024


@dataclass(frozen=True)
class Repository:
    """What git says. Empty where unknown."""

    git_common_dir: str = ""
    remote: str = ""
    root_commit: str = ""
    #: What ``as_seen`` said when git was asked; empty where it is to be asked again.
    seen: str = ""


def ask(place: Path) -> Repository:
    """Ask git, for at most some seconds a question, about the repository whose folder is ``place``;
    all is empty where there is none."""
    made = Repository()
    if not place.is_absolute() or kind_of(place) != "folder":
        return made
    git = Git(place, {"GIT_CEILING_DIRECTORIES": str(place.parent)}, limit_seconds=_GIT_SECONDS)
    try:
        common = git.run("rev-parse", "--git-common-dir")
        if common.status != 0:
            return made
        folder = os.path.realpath(place / common.line)
        made = Repository(folder, seen=as_seen(place, folder))
        remote = git.run("config", "--get", "remote.origin.url")
        made = replace(made, remote=_without_credentials(remote.line))
        if (Path(folder) / "shallow").exists():
            return made  # what looks like the root commit there is not
        roots = git.run("rev-list", "--max-parents=0", "HEAD")
        if roots.status != 0:  # nothing is committed yet
            return replace(made, seen="")
        return replace(made, root_commit=min(roots.line.split() or [""]))
    except BaselineError:  # no git, or not within its limit: the path alone identifies it
        return made


def has_commit(place: Path, commit: str) -> bool:
    """Whether git says that the repository at ``place`` has this commit."""
    git = Git(place, {"GIT_CEILING_DIRECTORIES": str(place.parent)}, limit_seconds=_GIT_SECONDS)
    try:
        return git.run("cat-file", "-e", f"{commit}^{{commit}}").status == 0
    except BaselineError:
        return False


def as_seen(place: Path, git_common_dir: str) -> str:
    """What changes with what git would say of the repository at ``place``; empty where none is.

    ``git_common_dir`` is where its settings are, as git said; empty where it was not asked.
    """
    if not place.is_absolute():
        return ""
    git_dir = Path(git_common_dir or place / ".git")
    found = [_stamp(place / ".git"), _stamp(git_dir / "config")]
    if not any(found):
        return ""
    found.append("shallow" if (git_dir / "shallow").exists() else "")
    found.append(_young(git_dir / "logs" / "HEAD"))
    return " ".join(each or "-" for each in found)


def is_as_seen(place: Path, git_common_dir: str, seen: str) -> bool:
    """Whether what is at ``place`` is surely the repository it was when ``as_seen`` said ``seen``,
    whatever was committed in it since."""
    return as_seen(place, git_common_dir).split()[:2] == seen.split()[:2]


def is_same_folder(place: Path, seen: str) -> bool:
    """Whether the ``.git`` at ``place`` is the very one that ``as_seen`` saw: what is rewritten in
    a repository, its first commit too, does not change that."""
    return (_stamp(place / ".git") or "-") == seen.partition(" ")[0]


def _stamp(path: Path) -> str:
    """Which file it is and when it was written; of a folder, in which much is written, only which
    it is."""
    try:
        found = path.stat()
    except (OSError, ValueError):
        return ""
    if stat.S_ISDIR(found.st_mode):
        return str(found.st_ino)
    return f"{found.st_ino}:{found.st_mtime_ns}"


def _young(log: Path) -> str:
    """How far a history has come that was begun in this repository; empty once it is long."""
    try:
        with log.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            first = file.read(_LINE_BYTES) if size <= _YOUNG_BYTES else b""
    except (OSError, ValueError):
        return ""
    return str(size) if b"\tcommit (initial)" in first.partition(b"\n")[0] else ""


def _without_credentials(url: str) -> str:
    """A remote's URL without user, password, query and fragment: no secret reaches the disk."""
    if "://" not in url:
        return url
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()
