"""``project.json``: what a project is known by besides its key, and where it is now.

The key never changes. A project that moved has its new place in ``path`` and its old ones in
``former_paths``; one whose memory was put into another's says so in ``merged_into``, and whoever
asks for it is given the other.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from memoryd.memory.errors import StoreError
from memoryd.memory.files import make_directory, read_or_none, write_atomic
from memoryd.memory.home import Home
from memoryd.memory.project_keys import Project, path_of
from memoryd.memory.repositories import as_seen, ask, has_commit, is_same_folder
from memoryd.memory.work_trees import kind_of

#: Worktrees that are remembered, the newest: agents make a new one for every task.
_WORKTREES = 200
#: Merged into one that was merged, and so on: a file edited into a ring must end too.
_MERGES = 20


@dataclass(frozen=True)
class Identity:
    """``project.json``. Empty where unknown: ``path`` too, once another moved to where it was."""

    key: str
    path: str
    git_common_dir: str = ""
    remote: str = ""
    root_commit: str = ""
    former_paths: tuple[str, ...] = ()
    #: Where its git worktrees were, so that one that is gone is still known.
    worktrees: tuple[str, ...] = ()
    merged_into: str = ""
    #: How its repository looked when git was asked (``memory/repositories.py``).
    seen: str = ""


def identities(home: Home) -> list[Identity]:
    """What every ``project.json`` says, by key; one that cannot be read is left out."""
    found = (identity(home, path.parent.name) for path in home.projects.glob("*/project.json"))
    return sorted((each for each in found if each), key=lambda each: each.key)


def identity(home: Home, key: str) -> Identity | None:
    """What the project's ``project.json`` says; None where there is none that can be read."""
    try:
        raw = read_or_none(identity_file(home, key))
        made = msgspec.json.decode(raw or b"", type=Identity)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None
    return replace(made, key=key)


def identity_file(home: Home, key: str) -> Path:
    """The ``project.json`` of a project."""
    return home.projects / key / "project.json"


def is_known(home: Home, key: str) -> bool:
    """Whether the home has anything of the project: who it is, or a store."""
    stores = (home.projects / key / "memory", home.baselines / f"{key}.git")
    return any(map(os.path.lexists, (identity_file(home, key), *stores)))


def followed(home: Home, known: Identity) -> Identity:
    """The project that has the memory of ``known`` now: itself, or what it was merged into."""
    for _ in range(_MERGES):
        into = identity(home, known.merged_into) if known.merged_into else None
        if into is None:
            return known
        known = into
    return known


def record(home: Home, project: Project) -> Identity:
    """Write ``project.json`` where it is missing, or where a repository that moved is found anew or
    is another than it was.

    Git is asked, for at most some seconds, who the repository is, where that may have changed: it
    is found again by its remote and its root commit as they were when it was last written to.
    Raises ``StoreError`` when the file cannot be written; one that is there and unreadable is left
    for a person.
    """
    known = identity(home, project.key)
    if known is None:
        known = identify(project)
        if not os.path.lexists(identity_file(home, project.key)):
            _make_room(home, project.key, as_text(project.path), displacing=False)
            _write(home, known)
    elif known.path != as_text(project.path) and kind_of(Path(project.path)) == "folder":
        move(home, project.key, project.path)
        return identity(home, project.key) or known
    elif (now := _as_it_is_now(known, Path(project.path))) != known:
        _write(home, now)
        return now
    return known


def _as_it_is_now(known: Identity, place: Path) -> Identity:
    """``known`` with who the repository at ``place`` is; unchanged where nobody can say."""
    if as_seen(place, known.git_common_dir) == known.seen:
        return known
    said = ask(place)
    if not said.git_common_dir:
        return known
    if not said.root_commit and known.root_commit:
        # A long history is not walked in time: whether it has that commit is known at once.
        seen = said.seen if has_commit(place, known.root_commit) else ""
        said = replace(said, root_commit=known.root_commit, seen=seen)
    return replace(known, **vars(said))


def record_key(home: Home, key: str) -> None:
    """Write ``project.json`` where there is none and the key says the path. Raises as ``record``.

    A long key does not: whoever resolved the directory calls ``record``.
    """
    path = path_of(key)
    if path is not None and identity(home, key) is None:
        record(home, Project(key, path))


def remember_worktrees(home: Home, key: str, trees: Iterable[str]) -> None:
    """Add to what a recorded project's worktrees are; nothing where it is not recorded."""
    known = identity(home, key)
    new = [text for tree in trees if known and (text := as_text(tree)) not in known.worktrees]
    if known is not None and new:
        _write(home, replace(known, worktrees=(*known.worktrees, *new)[-_WORKTREES:]))


def move(home: Home, key: str, path: str) -> Project:
    """Say that the project ``key`` is at ``path`` now; ``StoreError`` where none is recorded."""
    known = _recorded(home, key)
    made = identify(Project(key, path))
    taken = {as_text(path), *_make_room(home, key, as_text(path))}
    _write(
        home,
        replace(
            made,
            former_paths=tuple(old for old in _places_of(known) if old not in taken),
            worktrees=known.worktrees,
            merged_into=known.merged_into,
        ),
    )
    return Project(key, path)


def _make_room(home: Home, key: str, path: str, *, displacing: bool = True) -> list[str]:
    """Have no project but ``key`` be at ``path``, or have been: who asks for it once it is gone
    means the last. Where the others are comes back."""
    others = [other for other in identities(home) if other.key != key]
    for other in others:
        if other.path == path and displacing:  # nobody knows where it is now
            former = _places_of(other)
            left = replace(other, path="", git_common_dir="", seen="", former_paths=former)
            _write(home, left)
        elif other.path and path in other.former_paths:
            former = tuple(old for old in other.former_paths if old != path)
            _write(home, replace(other, former_paths=former))
    return [other.path for other in others if other.path]


def _places_of(known: Identity) -> tuple[str, ...]:
    """Where it was and is, the last place last."""
    return tuple(old for old in dict.fromkeys((*known.former_paths, known.path)) if old)


def last_place(known: Identity) -> str:
    """Where it is, or where it was when anybody knew; empty where nobody ever did."""
    return known.path or "".join(known.former_paths[-1:])


def merge_identity(home: Home, key: str, into: str) -> None:
    """Say that the memory of ``key`` is that of ``into`` from now on; an empty ``into`` ends that.

    Raises ``StoreError`` where ``key`` is not recorded.
    """
    _write(home, replace(_recorded(home, key), merged_into=into))


def is_gone(path: str) -> bool:
    """Whether there is surely nothing at ``path``: what may not be looked at counts as there."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except (OSError, ValueError):
        return False
    return False


def has_left(known: Identity) -> bool:
    """Whether a repository is gone from its place, with its git directory, on this machine.

    What was made there again without it (an editor's settings) is not the repository; an empty
    folder may be where a disk is mounted.
    """
    if known.path and not known.path.startswith("/"):
        return False
    if known.path and not is_gone(known.path):
        place = Path(known.path)
        if not known.git_common_dir or not is_gone(str(place / ".git")) or _is_empty(place):
            return False
    # A worktree or submodule that was removed did not move while its repository is there.
    return not known.git_common_dir or is_gone(known.git_common_dir)


def _is_empty(folder: Path) -> bool:
    """Whether nothing is in ``folder``; what may not be looked at counts as empty."""
    try:
        return next(folder.iterdir(), None) is None
    except OSError:
        return True


def may_be_replaced(known: Identity) -> bool:
    """Whether another repository than git was asked about may be at the place of ``known``."""
    return bool(known.seen and known.path) and not is_same_folder(Path(known.path), known.seen)


def is_replaced(known: Identity) -> bool:
    """Whether another repository is at the place of ``known`` now. Asks git where that may be."""
    made = identify(Project(known.key, known.path)) if may_be_replaced(known) else None
    return made is not None and made.root_commit not in {"", known.root_commit}


def fitting(made: Identity, every: Iterable[Identity]) -> list[Identity]:
    """Those of ``every`` that are the same repository or a clone of it: root commit and remote."""
    if not made.root_commit:
        return []
    wanted = (made.root_commit, made.remote)
    return [known for known in every if (known.root_commit, known.remote) == wanted]


def identify(project: Project) -> Identity:
    """Ask git who the repository at the project's path is; unknown stays empty."""
    said = ask(Path(project.path))
    return Identity(project.key, project.path, **vars(said))


def as_text(path: str) -> str:
    """``path`` as ``project.json`` can hold it: bytes that are no UTF-8 are replaced."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _recorded(home: Home, key: str) -> Identity:
    known = identity(home, key)
    if known is None:
        raise StoreError(f"no project {key} is recorded", hint="`memoryd project list` shows them")
    return known


def _write(home: Home, made: Identity) -> None:
    path = identity_file(home, made.key)
    try:
        make_directory(path.parent)
        write_atomic(path, msgspec.json.format(_encoded(made)) + b"\n")
    except OSError as error:
        raise StoreError(
            f"{path} cannot be written: {error.strerror}",
            hint="check who owns the home and that the disk has room",
        ) from error


def _encoded(made: Identity) -> bytes:
    return msgspec.json.encode(
        replace(
            made,
            path=as_text(made.path),
            git_common_dir=as_text(made.git_common_dir),
            remote=as_text(made.remote),
            former_paths=tuple(map(as_text, made.former_paths)),
            worktrees=tuple(map(as_text, made.worktrees)),
        )
    )
