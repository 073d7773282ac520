"""Work trees of git, found by reading ``.git``: a daemon asks for every message, git is too slow.

| what lies in a folder            | whose work tree it is                                       |
|----------------------------------|-------------------------------------------------------------|
| a folder ``.git`` with a HEAD    | its own                                                     |
| a file ``.git``, of a worktree   | the main repository's, also where that is bare, in a folder |
|                                  | beside the worktrees, or has forgotten the worktree         |
| a file ``.git``, of a submodule  | its own: it is another code base; in a worktree, that of    |
|                                  | the same submodule in the main repository                   |
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

_POINTER_BYTES = 8_192


def enclosing(place: Path, *, together: bool, not_below: Path) -> tuple[Path, Path] | None:
    """The project's folder and the work tree that enclose ``place``; None where none does.

    They differ in a git worktree when those are ``together``. A repository in ``not_below`` (the
    person's home directory, under their settings) encloses that folder alone.
    """
    for folder in (place, *place.parents):
        if folder == not_below and folder != place:
            return None
        pointer = folder / ".git"
        kind = kind_of(pointer)
        if kind == "folder" and kind_of(pointer / "HEAD") == "file":
            return folder, folder
        if kind == "file" and (git_dir := _git_dir(pointer)) is not None:
            return (_main(folder, git_dir) if together else None) or folder, folder
    return None


def kind_of(path: Path) -> Literal["folder", "file"] | None:
    """What is at ``path``, links followed; None for nothing, for a pipe and the like."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return None
    if stat.S_ISDIR(mode):
        return "folder"
    return "file" if stat.S_ISREG(mode) else None


def trees_of(git_dir: Path) -> Iterator[str]:
    """The worktrees that the repository ``git_dir`` knows, those that are gone included."""
    try:
        every = sorted((git_dir / "worktrees").iterdir())
    except OSError:
        return
    for each in every:
        pointer = _pointer(each / "gitdir")
        if pointer.endswith("/.git") and "\n" not in pointer and "\0" not in pointer:
            yield os.path.normpath(each / pointer.removesuffix("/.git"))


def _main(folder: Path, git_dir: Path) -> Path | None:
    """What ``folder`` is in the main repository; None when it is in no worktree."""
    main = _main_work_tree(git_dir)
    if main is not None or "worktrees" not in git_dir.parts:
        return main
    # A submodule of a worktree: <main>/.git/worktrees/<name>/modules/<submodule>
    parts = git_dir.parts
    at = len(parts) - 1 - parts[::-1].index("worktrees")
    if parts[at + 2 : at + 3] != ("modules",):
        return None
    worktree = Path(*parts[: at + 2])
    tree = _pointer(worktree / "gitdir").removesuffix("/.git")
    main = _main_work_tree(worktree)
    if main is None or not tree or not folder.is_relative_to(tree):
        return None
    return main / folder.relative_to(tree)


def _pointer(path: Path) -> str:
    """The one line of a small git file; empty where it cannot be read."""
    try:
        with path.open("rb") as file:
            return os.fsdecode(file.read(_POINTER_BYTES)).strip()
    except OSError:
        return ""


def _git_dir(pointer: Path) -> Path | None:
    """Where a ``.git`` file points, whether or not that is there; None when it points nowhere."""
    text = _pointer(pointer)
    if not text.startswith("gitdir:") or "\0" in text or "\n" in text:
        return None
    return Path(os.path.realpath(pointer.parent / text.removeprefix("gitdir:").strip()))


def _main_work_tree(git_dir: Path) -> Path | None:
    """The main repository of a worktree's git dir; None when it is no worktree (a submodule)."""
    common_text = _pointer(git_dir / "commondir")
    if common_text and "\0" not in common_text and "\n" not in common_text:
        common = Path(os.path.realpath(git_dir / common_text))
    elif git_dir.parent.name == "worktrees" and not git_dir.exists():
        common = git_dir.parent.parent  # pruned: where it was is all there is to go by
    else:
        return None
    beside = common.parent / ".git"  # a bare repository with its worktrees around it
    hub = kind_of(beside) == "file" and _git_dir(beside) == common
    return common.parent if common.name == ".git" or hub else common
