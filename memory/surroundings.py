"""Whether a home's surroundings are well: who may read it, the disk it is on, where it stands.

Looking changes nothing. ``open_modes`` is what ``doctor --fix`` mends; the rest is a person's.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from memoryd.memory import last_ran
from memoryd.memory.database_files import companions
from memoryd.memory.files import DIRECTORY_MODE, FILE_MODE, read_or_none
from memoryd.memory.health import Finding
from memoryd.memory.home import FOLDERS, Home, foreign_todo, user

#: Less room than this on the home's disk is named: git and SQLite need some to work at all.
ROOM_BYTES = 100 << 20
#: The same for files.
ROOM_FILES = 1000
_FIX = "`memoryd doctor --fix` mends it"


@dataclass(frozen=True)
class WrongMode:
    """A path whose permissions are not the promised ones: what they are and should be."""

    path: Path
    mode: int
    wanted: int


def wrong_modes(home: Home, *more: Path) -> Iterator[WrongMode]:
    """What of the home's own folders and files others may look into, or we may not.

    ``more`` are files beside them, as a key's. Raises ``OSError`` where the home cannot be seen.
    """
    folders = (home.root, *(home.root / name for name in FOLDERS), home.root / "profiles")
    for path in dict.fromkeys(folders):
        yield from _wrong(path, DIRECTORY_MODE)
    files = (home.config_file, home.identity, home.identity_copy, *more)
    databases = (home.ledger, home.session_history)
    every = (*files, *databases, *(each for path in databases for each in companions(path)))
    for path in (*every, *sorted(home.backups.glob("*.sqlite"))):
        yield from _wrong(path, FILE_MODE)


def _wrong(path: Path, wanted: int) -> Iterator[WrongMode]:
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return
    is_ours = stat.S_ISDIR if wanted == DIRECTORY_MODE else stat.S_ISREG
    mode = stat.S_IMODE(found.st_mode)
    if is_ours(found.st_mode) and (mode & 0o077 or mode & wanted != wanted):
        yield WrongMode(path, mode, wanted)


def open_modes(home: Home, *more: Path) -> list[WrongMode]:
    """Of the wrong modes those that count: what others can see, or is not ours to write.

    What lies in a home that others cannot enter is shut, whatever mode it has. Raises ``OSError``.
    """
    shut = not stat.S_IMODE(home.root.stat().st_mode) & 0o077
    return [
        each
        for each in wrong_modes(home, *more)
        if not shut or each.path in more or each.mode & each.wanted != each.wanted
    ]


def modes(home: Home, *more: Path) -> Iterator[Finding]:
    """Folders and files that are not the owner's alone, as was promised, or not theirs to write."""
    for each in open_modes(home, *more):
        others = each.mode & 0o077
        what = f"{each.path} has the mode {each.mode:04o}, not {each.wanted:04o}: " + (
            "others may look into it" if others else "memoryd cannot write there"
        )
        grave = each.path in (home.root, *more) or not others
        yield Finding("home.mode", "problem" if grave else "warning", what, _FIX)


def owners(home: Home) -> Iterator[Finding]:
    """Folders and files that are another user's, as after ``sudo``."""
    paths = [home.root, *(home.root / name for name in FOLDERS)]
    paths += [home.ledger, home.session_history, home.config_file, home.identity, home.daemon_lock]
    theirs: dict[int, list[Path]] = {}
    for path in paths:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            theirs.setdefault(path.lstat().st_uid, []).append(path)
    us = os.geteuid()
    theirs.pop(us, None)
    for owner, found in theirs.items():
        more = f" and {len(found) - 1} more in the home" if len(found) > 1 else ""
        what = f"{found[0]}{more}: the owner is {user(owner)}, and memoryd runs as {user(us)}"
        todo = foreign_todo(home.root, owner)
        yield Finding("home.foreign", "problem", what, todo)


def folders(home: Home) -> Iterator[Finding]:
    """What is no folder where one of the home should be."""
    for path in home.misplaced():
        what = f"{path} is no folder, and one of the home should be there"
        todo = "`memoryd doctor --fix` keeps it under another name and makes the folder"
        yield Finding("home.unusable", "problem", what, todo)


def disk(home: Home) -> Iterator[Finding]:
    """A disk that has no room, or is not to be written."""
    found = os.statvfs(home.root)
    if found.f_flag & os.ST_RDONLY:
        what = f"the disk of {home.root} is mounted read-only"
        yield Finding("home.readonly", "problem", what, "mount it for writing; nothing is lost")
        return
    free = shutil.disk_usage(home.root).free
    if free < ROOM_BYTES:
        what = f"the disk of {home.root} has {free >> 20} MB left"
        todo = "make room: nothing is lost, what could not be written is tried again"
        yield Finding("disk.full", "problem", what, todo)
    if found.f_files and found.f_favail < ROOM_FILES:
        what = f"the disk of {home.root} has room for {found.f_favail} more files"
        todo = "delete files you do not need there: nothing is lost meanwhile"
        yield Finding("disk.full", "problem", what, todo)


def standing(home: Home) -> Iterator[Finding]:
    """A home that has another place than when it was last worked, or that is there twice."""
    former = moved_from(home)
    if former is None:
        return
    if is_same_home(former, home):
        what = f"{home.root} is a copy of the home {former}: they have one uuid"
        todo = "use one of them; `memoryd doctor --fix` here says that it is this one"
        yield Finding("home.copied", "warning", what, todo)
        return
    what = f"the home was moved here from {former}"
    todo = f"{MOVED_TODO}; `memoryd doctor --fix` notes its new place"
    yield Finding("home.moved", "warning", what, todo)


#: What names the home by its path, outside of it.
MOVED_TODO = (
    "`memoryd service install` and `memoryd integrate` name the new place where you run a service"
    " or set MEMORYD_HOME"
)


def moved_from(home: Home) -> Path | None:
    """Where the home was when it was last worked; None where that is here, or not known."""
    last = last_ran.read(home.root)
    if last is None:
        return None
    former = Path(last.home)
    try:
        return None if former == home.root or former.samefile(home.root) else former
    except OSError:
        return former


def is_same_home(former: Path, home: Home) -> bool:
    """Whether a home stands at ``former`` that has the uuid of this one."""
    try:
        theirs = json.loads(read_or_none(Home(former).identity) or b"")["uuid"]
        return bool(theirs == json.loads(home.identity.read_bytes())["uuid"])
    except (OSError, ValueError, KeyError, TypeError):
        return False
