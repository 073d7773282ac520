"""What is wrong with a baseline, as a person should hear it: a look that changes nothing."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from memoryd.memory import branch
from memoryd.memory.errors import BaselineUnusable, StoreError
from memoryd.memory.gitprogram import Git, require_git, what_to_do
from memoryd.memory.store import Store


@dataclass(frozen=True)
class Trouble:
    """One thing that is wrong: the code of its kind, what it is, and what to do about it."""

    code: str
    message: str
    hint: str


def find_trouble(store: Store, git: Git, now_ms: int) -> list[Trouble]:
    """Everything that stops or endangers the baseline of ``store``; worst first.

    Codes are those of ``errors`` that a job would wait for, and ``baseline.foreign``: another
    repository in the store's place, which stops nothing.
    """
    if not store.root.is_dir() and not store.git_dir.is_dir():
        return []
    found: list[Trouble] = []
    for look in (_program, _branch, _objects, _lock):
        found += _told(lambda look=look: look(store, git, now_ms))  # type: ignore[misc]
        if found and look in (_program, _branch):
            break  # what follows would only say the same again
    return found + list(_foreign(store))


def _told(look: Callable[[], object]) -> list[Trouble]:
    try:
        look()
    except StoreError as error:
        return [Trouble(error.code, error.message, error.hint)]
    return []


def _program(store: Store, git: Git, now_ms: int) -> None:
    require_git()


def _branch(store: Store, git: Git, now_ms: int) -> None:
    if not store.git_dir.is_dir():
        return
    branch.require_checked_out(store)
    branch.read_branch(store, git)
    git.ok("for-each-ref", "--count=1")


def _objects(store: Store, git: Git, now_ms: int) -> None:
    """See that every file of the newest commit can be read from it."""
    if not store.git_dir.is_dir() or branch.read_branch(store, git) is None:
        return
    listing = git.ok("ls-tree", "-r", "-z", "--long", "--full-tree", branch.BRANCH)
    bad = [line.split(b"\t", 1)[1] for line in listing.split(b"\0") if b" BAD\t" in line]
    if bad:
        names = ", ".join(os.fsdecode(name) for name in bad[:3])
        raise BaselineUnusable(
            f"{len(bad)} notes of {store.key} are missing in its history: {names}",
            hint=what_to_do(store.root, str(store.git_dir)),
        )


def _lock(store: Store, git: Git, now_ms: int) -> None:
    if error := branch.lock_trouble(store, now_ms):
        raise error


def _foreign(store: Store) -> Iterator[Trouble]:
    """A ``.git`` in the store that is not our link: harmless to us, but `git log` shows theirs."""
    link = store.root / ".git"
    if not os.path.lexists(link) or not store.git_dir.is_dir():
        return
    if not link.is_symlink() and link.is_file():
        target = link.read_text("utf-8", "replace").removeprefix("gitdir:").strip()
        place = store.root / target
        if place.resolve() == store.git_dir.resolve() or not place.exists():
            return
    yield Trouble(
        "baseline.foreign",
        f"{link} is another repository than the history of {store.key}",
        f"memoryd does not need it; `git --git-dir={shlex.quote(str(store.git_dir))} log`"
        " shows the history",
    )
