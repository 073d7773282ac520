"""Projects: which code base a directory belongs to, and the key under which its memory is kept.

A project is the git work tree that encloses the directory, whatever worktree or link it is reached
by, else the directory itself. It is found by reading ``.git``, without running git: a daemon asks
for every message. ``project.json`` in the project's folder says what a key cannot: the path, the
git common dir, the remote and the root commit that tell a moved repository from another one.
"""

from __future__ import annotations

import fnmatch
import hashlib
import os
import re
import stat
import threading
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import msgspec

from memoryd.memory.errors import BaselineError, StoreError
from memoryd.memory.files import make_directory, read_or_none, write_atomic
from memoryd.memory.gitprogram import Git
from memoryd.memory.home import Home

_KEEP = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._+@")
_LONGEST_KEY = 180
_KEPT_OF_LONG = 150
_RELATIVE = "%-"
_GIT_SECONDS = 5.0
_POINTER_BYTES = 8_192
_CACHED = 10_000


@dataclass(frozen=True)
class Project:
    """One code base: the key of its store and the directory it is in."""

    key: str
    path: str


@dataclass(frozen=True)
class Identity:
    """``project.json``: what a project is known by besides its key. Empty where unknown."""

    key: str
    path: str
    git_common_dir: str = ""
    remote: str = ""
    root_commit: str = ""
    former_paths: tuple[str, ...] = ()


def project_key(path: str) -> str:
    """The key of the project at ``path``: injective always, one safe name of a folder.

    Segments of the absolute path, each byte outside ``A-Za-z0-9._+@`` as %XX, joined by ``-``; the
    root is ``%2F``. Over 180 characters: the first 150, ``%~`` and 16 hex of the path's sha256. A
    path that is not absolute here (empty, relative, of Windows) starts with ``%-``. Keys that
    would meet the names of the home's own files (``daemon``, ``profile-...``) have their first
    letter written as %XX.
    """
    raw = _bytes(path)
    absolute = raw.startswith(b"/")
    segments = [segment for segment in raw.split(b"/") if segment] if absolute else raw.split(b"/")
    key = "-".join(map(_segment, segments))
    if not absolute:
        key = _RELATIVE + key
    elif not segments:
        key = "%2F"
    elif key == "daemon" or key.startswith("profile-"):
        key = f"%{ord(key[0]):02X}{key[1:]}"
    if len(key) > _LONGEST_KEY:
        return f"{key[:_KEPT_OF_LONG]}%~{hashlib.sha256(raw).hexdigest()[:16]}"
    return key


def path_of(key: str) -> str | None:
    """The path whose key this is; None for a long key, which does not hold it, and for no key."""
    if not re.fullmatch(r"(?:%-)?(?:[A-Za-z0-9._+@-]|%[0-9A-F]{2})*", key):
        return None
    rest = key.removeprefix(_RELATIVE)
    raw = b"/".join(map(_decoded, rest.split("-")))
    if key == "%2F":
        raw = b"/"
    elif rest == key:
        raw = b"/" + raw
    path = raw.decode("utf-8", "surrogateescape")
    return path if project_key(path) == key else None


def _bytes(path: str) -> bytes:
    try:
        return path.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return path.encode("utf-8", "surrogatepass")


def _segment(segment: bytes) -> str:
    return "".join(chr(byte) if byte in _KEEP else f"%{byte:02X}" for byte in segment)


def _decoded(segment: str) -> bytes:
    return re.sub(rb"%(..)", lambda found: bytes([int(found[1], 16)]), segment.encode())


class Resolver:
    """The one place that says which project a directory belongs to, for reads and writes alike.

    ``worktrees`` "together" gives every git worktree its main repository; "apart" keeps it a
    project of its own. Answers are cached for the resolver's life: one a job, or one a request.
    """

    def __init__(self, home: Home, worktrees: Literal["together", "apart"] = "together") -> None:
        self._home = home
        self._together = worktrees == "together"
        self._known: dict[str, Project] = {}
        self._moved: dict[str, str] | None = None
        self._guard = threading.Lock()

    def resolve(self, cwd: str) -> Project:
        """The project of ``cwd``, which may be gone, relative, empty or another system's.

        A directory that is gone belongs to the repository it was inside of, if that is still
        there. What is no absolute path here is a project of its own, by its text.
        """
        with self._guard:
            found = self._known.get(cwd)
            if found is None:
                found = self._resolve(cwd)
                if len(self._known) >= _CACHED:
                    self._known.clear()
                self._known[cwd] = found
            return found

    def _resolve(self, cwd: str) -> Project:
        if not cwd.startswith("/") or "\0" in cwd:
            return Project(project_key(cwd), cwd)
        try:
            place = Path(os.path.realpath(cwd))
            root = self._repository(place) or place
        except (OSError, ValueError):  # a name too long or unspeakable for this file system
            root = Path(os.path.normpath(cwd.replace("//", "/")))
        path = str(root)
        key = project_key(path)
        if not (self._home.projects / key / "project.json").exists():
            key = self._adopted().get(path, key)
        return Project(key, path)

    def _repository(self, place: Path) -> Path | None:
        """The work tree that encloses ``place``, or the main one it is a worktree of."""
        for folder in (place, *place.parents):
            pointer = folder / ".git"
            kind = _kind(pointer)
            if kind == "folder" and _kind(pointer / "HEAD") == "file":
                return folder
            if kind == "file" and (git_dir := _git_dir(pointer)) is not None:
                main = _main_work_tree(git_dir) if self._together else None
                return main or folder
        return None

    def _adopted(self) -> dict[str, str]:
        """Paths of projects whose key says another path: they were moved here."""
        if self._moved is None:
            self._moved = {
                known.path: known.key
                for known in identities(self._home)
                if project_key(known.path) != known.key
            }
        return self._moved


def _kind(path: Path) -> Literal["folder", "file"] | None:
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return None
    if stat.S_ISDIR(mode):
        return "folder"
    return "file" if stat.S_ISREG(mode) else None


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
    return common.parent if common.name == ".git" else common


def identities(home: Home) -> list[Identity]:
    """What every ``project.json`` says, by key; one that cannot be read is left out."""
    found = (identity(home, path.parent.name) for path in home.projects.glob("*/project.json"))
    return sorted((each for each in found if each), key=lambda each: each.key)


def identity(home: Home, key: str) -> Identity | None:
    """What the project's ``project.json`` says; None where there is none that can be read."""
    try:
        raw = read_or_none(home.projects / key / "project.json")
        made = msgspec.json.decode(raw or b"", type=Identity)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None
    return replace(made, key=key)


def record(home: Home, project: Project) -> Identity:
    """Write ``project.json`` unless it is there already, and return what it says.

    Git is asked, for at most some seconds, who the repository is. Raises ``StoreError`` when the
    file cannot be written; one that is there and unreadable is left for a person.
    """
    known = identity(home, project.key)
    if known is not None:
        return known
    made = _identify(project)
    if not os.path.lexists(home.projects / project.key / "project.json"):
        _write(home, made)
    return made


def adopt(home: Home, project: Project) -> Project:
    """The moved repository that ``project`` is, under its old key; else ``project`` itself.

    Adopted is only a project not recorded yet, when exactly one recorded one has its root commit
    and remote and is gone from its old path. ``project.json`` then says the new path.
    """
    if identity(home, project.key) is not None:
        return project
    made = _identify(project)
    if not made.root_commit:
        return project
    fitting = [
        known
        for known in identities(home)
        if (known.root_commit, known.remote) == (made.root_commit, made.remote)
    ]
    if len(fitting) != 1 or os.path.lexists(fitting[0].path):
        return project
    return move(home, fitting[0].key, project.path)


def move(home: Home, key: str, path: str) -> Project:
    """Say that the project ``key`` is at ``path`` now; ``StoreError`` where none is recorded."""
    known = identity(home, key)
    if known is None:
        raise StoreError(
            f"no project {key} is recorded", hint="`memoryd memory list --all` shows them"
        )
    made = _identify(Project(key, path))
    former = tuple(dict.fromkeys((*known.former_paths, known.path)))
    _write(home, replace(made, former_paths=tuple(old for old in former if old != path)))
    return Project(key, path)


def _write(home: Home, made: Identity) -> None:
    path = home.projects / made.key / "project.json"
    try:
        make_directory(path.parent)
        write_atomic(path, msgspec.json.format(_encoded(made)) + b"\n")
    except OSError as error:
        raise StoreError(
            f"{path} cannot be written: {error.strerror}",
            hint="check who owns the home and that the disk has room",
        ) from error


def _encoded(made: Identity) -> bytes:
    def text(value: str) -> str:
        return value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")

    return msgspec.json.encode(
        Identity(
            made.key,
            text(made.path),
            text(made.git_common_dir),
            text(made.remote),
            made.root_commit,
            tuple(map(text, made.former_paths)),
        )
    )


def _identify(project: Project) -> Identity:
    """Ask git who the repository at the project's path is; unknown stays empty."""
    made = Identity(project.key, project.path)
    place = Path(project.path)
    if not project.path.startswith("/") or _kind(place) != "folder":
        return made
    git = Git(place, {"GIT_CEILING_DIRECTORIES": str(place.parent)}, limit_seconds=_GIT_SECONDS)
    try:
        common = git.run("rev-parse", "--git-common-dir")
        if common.status != 0:
            return made
        made = replace(made, git_common_dir=os.path.realpath(place / common.line))
        remote = git.run("config", "--get", "remote.origin.url")
        made = replace(made, remote=_without_credentials(remote.line))
        if (Path(made.git_common_dir) / "shallow").exists():
            return made  # what looks like the root commit there is not
        roots = git.run("rev-list", "--max-parents=0", "HEAD")
        return replace(
            made, root_commit=min(roots.line.split() or [""]) if not roots.status else ""
        )
    except BaselineError:  # no git, or not within its limit: the path alone identifies it
        return made


def _without_credentials(url: str) -> str:
    """A remote's URL without user, password, query and fragment: no secret reaches the disk."""
    if "://" not in url:
        return url
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()


def excluded(path: str, globs: Iterable[str]) -> bool:
    """Whether ``path`` or a folder above it meets one of the globs (``[privacy] exclude``).

    A glob with a slash is held against the whole path (``~`` is the home directory, ``*`` and
    ``**`` match across slashes too), one without against each name in it. Links count on both
    sides: a directory is excluded by whatever name it is reached.
    """
    places = dict.fromkeys((os.path.normpath(path), os.path.realpath(path)))
    wanted = [each for glob in globs for each in dict.fromkeys((glob, _resolved(glob)))]
    return any(_meets(Path(place), wanted) for place in places)


def _meets(place: Path, globs: Iterable[str]) -> bool:
    whole = [str(place), *map(str, place.parents)]
    for glob in globs:
        pattern = _absolute(glob).rstrip("/") if glob.strip("/") else glob
        against: Iterable[str] = whole if "/" in pattern else place.parts
        if any(fnmatch.fnmatchcase(each, pattern) for each in against):
            return True
        if pattern.endswith("/**") and pattern.removesuffix("/**") in whole:
            return True
    return False


def _resolved(glob: str) -> str:
    """``glob`` with the links in the part before its first wildcard followed."""
    absolute = _absolute(glob)
    if not absolute.startswith("/"):
        return glob
    fixed = re.split(r"[*?\[]", absolute, maxsplit=1)[0]
    folder = fixed if fixed == absolute else fixed.rpartition("/")[0] + "/"
    rest = absolute[len(folder) :]
    real = os.path.realpath(folder)
    return real if not rest else f"{real.rstrip('/')}/{rest}"


def _absolute(glob: str) -> str:
    return f"{Path.home()}{glob[1:]}" if glob == "~" or glob.startswith("~/") else glob
