"""A store: one directory of markdown with one writer lock, one baseline and one list of tombstones.

Only these files of it are memory, and only they are ever read, written or committed here: in a
project ``<type>/*.md``, ``archive/<type>/*.md`` and ``tombstones.jsonl`` (its ``MEMORY.md`` is
derived); in a profile ``USER.md``, ``MEMORY.md``, ``SOUL.md``, ``promotions.json`` and
``tombstones.jsonl``. Nothing is followed: a symbolic link, a pipe or a folder in the place of a
file is not read and not written.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from memoryd.memory import index
from memoryd.memory.conflicts import conflict_of
from memoryd.memory.errors import NoteError, StoreBusy, StoreError
from memoryd.memory.exchange import take_away
from memoryd.memory.files import (
    full_disk,
    is_full,
    leftovers,
    make_directory,
    sha256,
    sync_directory,
    write_atomic,
)
from memoryd.memory.home import Home
from memoryd.memory.locks import FileLock
from memoryd.memory.log import logger
from memoryd.memory.notes import ARCHIVE, TYPES, Note, parse

#: The largest file that is read; a larger one is reported as unreadable.
MAX_FILE_BYTES = 1 << 20

#: Tombstones only grow, by some 500 bytes each.
MAX_TOMBSTONES_BYTES = 64 << 20

TOMBSTONES = "tombstones.jsonl"
INDEX = "MEMORY.md"
#: What can be made again from the notes and is not theirs: outside the baseline.
DERIVED = ".graph"
PROFILE_PREFIX = "profile-"

_FOLDERS = (*TYPES, *(f"{ARCHIVE}/{name}" for name in TYPES))
_PLACES = frozenset({"", ARCHIVE, INDEX, TOMBSTONES, *_FOLDERS})
_PROFILE_FILES = frozenset({"USER.md", "MEMORY.md", "SOUL.md", "promotions.json", TOMBSTONES})


@dataclass(frozen=True)
class Unreadable:
    """A file in a note's place that is no readable note, and why."""

    path: str
    reason: str


@dataclass(frozen=True)
class Store:
    """One store of ``home``. Nothing is made by looking; ``baseline.ensure`` makes what is missing.

    ``key`` is the project's key, or ``profile-<id>``; plans name stores by it.
    """

    home: Home
    key: str
    root: Path

    @classmethod
    def for_project(cls, home: Home, key: str) -> Store:
        """The memory of the project with this key."""
        return cls(home, _safe_key(key), home.projects / key / "memory")

    @classmethod
    def for_profile(cls, home: Home, profile: str) -> Store:
        """The files of one profile."""
        return cls(home, PROFILE_PREFIX + _safe_key(profile), home.root / "profiles" / profile)

    @classmethod
    def open(cls, home: Home, key: str) -> Store:
        """The store a plan calls ``key``."""
        if key.startswith(PROFILE_PREFIX):
            return cls.for_profile(home, key.removeprefix(PROFILE_PREFIX))
        return cls.for_project(home, key)

    @classmethod
    def all(cls, home: Home) -> list[Store]:
        """Every store of ``home`` in the order of their paths: those with a baseline, and folders
        of notes whose baseline is missing."""
        keys = {path.name.removesuffix(".git") for path in home.baselines.glob("*.git")}
        stores = [cls.open(home, key) for key in keys if _is_key(key)]
        stores += [each for each in cls.in_projects(home) if each.key not in keys and each.paths()]
        return sorted(stores, key=lambda store: store.root)

    @classmethod
    def in_projects(cls, home: Home) -> list[Store]:
        """Every project's store that has a folder, with a baseline or without, sorted by key."""
        found = []
        for root in sorted(home.projects.glob("*/memory")):
            with contextlib.suppress(StoreError):  # a folder of a name that no project has
                found.append(cls.for_project(home, root.parent.name))
        return found

    @property
    def is_profile(self) -> bool:
        """A profile's files rather than a project's memory."""
        return self.key.startswith(PROFILE_PREFIX)

    @property
    def git_dir(self) -> Path:
        """The baseline repository."""
        return self.home.baselines / f"{self.key}.git"

    @property
    def lock_path(self) -> Path:
        """The file whose lock is the right to write."""
        return self.home.locks / f"{self.key}.lock"

    @contextlib.contextmanager
    def writer_lock(self, timeout: float = 0.0) -> Iterator[None]:
        """Hold the right to write; not re-entrant. Raises ``StoreBusy`` after ``timeout`` s, and
        ``StoreError`` where the lock file cannot be made."""
        lock = FileLock(self.lock_path)
        try:
            taken = lock.acquire(timeout)
        except OSError as error:
            raise _failed(f"the lock {self.lock_path}", error) from error
        if not taken:
            raise StoreBusy(
                f"the store {self.key} is being written by process {lock.holder() or 'unknown'}",
                hint="try again in a moment",
            )
        with lock:
            yield

    def holds(self, path: str) -> bool:
        """Whether ``path`` is the name of a file of memory in this store (it need not exist)."""
        if self.is_profile or path == TOMBSTONES:
            return path in _PROFILE_FILES
        folder, _, name = path.rpartition("/")
        return folder in _FOLDERS and _is_note_name(name)

    def paths(self) -> list[str]:
        """Every file of memory there is, readable or not, sorted."""
        if self.is_profile:
            return sorted(name for name in _PROFILE_FILES if os.path.lexists(self.root / name))
        found = [TOMBSTONES] if os.path.lexists(self.root / TOMBSTONES) else []
        for folder in _FOLDERS:
            found += [f"{folder}/{name}" for name in self._names(folder) if _is_note_name(name)]
        return sorted(found)

    def places(self) -> list[Path]:
        """The folders that files of memory are in, there or not: the root first."""
        return [self.root, *(self.root / folder for folder in _FOLDERS)]

    def paths_named(self, name: str) -> list[str]:
        """Where a file of this name is, in any folder of notes."""
        every = (f"{folder}/{name}" for folder in _FOLDERS)
        return [path for path in every if os.path.lexists(self.root / path)]

    def fingerprint(self) -> frozenset[tuple[object, ...]]:
        """What the file system says of the store's folders and its branch, without a file read.

        The same again means that nothing was written, moved or committed in between.
        """
        places = self.places()
        refs = (self.git_dir / name for name in ("HEAD", "packed-refs", "refs/heads/main"))
        return frozenset(
            (str(path), seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns)
            for path in (*places, *refs, *(each for place in places for each in _inside(place)))
            if (seen := _stat(path)) is not None
        )

    def notes(self) -> list[Note]:
        """Every readable note, archived ones too, sorted by path."""
        return self._survey()[0]

    def unreadable(self) -> list[Unreadable]:
        """Every file in a note's place that ``notes`` leaves out, with the reason."""
        return self._survey()[1]

    def read(self, path: str) -> bytes | None:
        """The bytes of a file of memory, None where there is none.

        Raises ``StoreError`` for a path outside memory, a link, what is no file, a file over
        ``MAX_FILE_BYTES`` and one that cannot be read.
        """
        return _read(path, self._safe(path))

    def digest(self, path: str) -> str | None:
        """The sha256 of a file of memory, None where there is none. Raises as ``read`` does."""
        data = self.read(path)
        return None if data is None else sha256(data)

    def replace(
        self,
        path: str,
        data: bytes,
        *,
        found: str | None,
        note: Callable[[], object] | None = None,
    ) -> bool:
        """Put ``data`` at ``path`` if the file still has the sha256 ``found`` (None: no file).

        False when it changed meanwhile; then nothing was done. ``note`` is called right before the
        file gets its name: from then on until it has it, a temporary file is there that
        ``files.leftovers`` finds, also when what comes between raises. Raises ``StoreError`` as
        ``read`` does, and for data too large to be read back. The caller holds the writer lock.
        """
        noted = False

        def still(place: Path) -> bool:
            nonlocal noted
            same = _is_still(path, found, place)
            if same and note is not None:
                noted = True
                note()
            return same

        if len(data) > _limit(path):
            raise _refused(path, f"it would be larger than {_limit(path)} bytes")
        full = self._safe(path)
        try:
            make_directory(full.parent)
            return write_atomic(full, data, still=still, keep=lambda: noted)
        except OSError as error:
            raise _failed(path, error) from error

    def remove(self, path: str, *, found: str) -> bool:
        """Take the file away if it still has the sha256 ``found``; False when it changed."""
        full = self._safe(path)
        try:
            taken = full.parent.is_dir() and take_away(full, partial(_is_still, path, found))
            if taken:
                sync_directory(full.parent)
        except OSError as error:
            raise _failed(path, error) from error
        return taken

    def changed_at_ms(self, path: str) -> tuple[int, int]:
        """When the file, or where it is gone the folder it was in, was last changed (ms).

        First as the file says, which whoever wrote it may have set to anything; then as the file
        system noted it, a move into its place included.
        """
        place = self._safe(path)
        while not os.path.lexists(place) and place != self.root:
            place = place.parent
        if not os.path.lexists(place):
            return 0, 0
        seen = place.lstat()
        return seen.st_mtime_ns // 1_000_000, seen.st_ctime_ns // 1_000_000

    def write_index(self) -> None:
        """Write ``MEMORY.md``, the derived index of a project; leave it when it says the same."""
        if not self.is_profile:
            self.put_index(self.survey_index()[0])

    def survey_index(self) -> tuple[str, list[Unreadable]]:
        """What the index is to say, and what ``unreadable`` says, in one reading of the notes."""
        notes, unreadable = self._survey()
        live = (note for note in notes if not note.archived)
        return index.render(live, ((each.path, each.reason) for each in unreadable)), unreadable

    def put_index(self, text: str) -> None:
        """Write ``MEMORY.md`` unless it says ``text`` already. The caller holds the writer lock."""
        try:
            if self.shown_index() != text.encode():
                make_directory(self.root)
                write_atomic(self.root / INDEX, text.encode())
            for each in leftovers(self.root / INDEX):
                each.unlink(missing_ok=True)
        except OSError as error:
            raise _failed(INDEX, error) from error

    def shown_index(self) -> bytes | None:
        """What ``MEMORY.md`` says; None where it is missing, no plain file, or cannot be read.

        Never waits and never follows: a pipe or a link in its place is no index.
        """
        try:
            return _read(INDEX, self.root / INDEX)
        except StoreError:
            return None

    def has_long_index(self) -> bool:
        """Whether the index is so long that it is cut short anyway.

        Reading 10,000 notes for one more line is not worth a save's time: such an index is left to
        ``write_index``, which the refresh of what is derived calls.
        """
        return index.CUT_SHORT.encode() in (self.shown_index() or b"")

    def refresh_index(self) -> None:
        """Write ``MEMORY.md`` after a save, unless it is a long one. Never raises: what is derived
        fails no save. What stands in the way is logged, and ``health.derived`` names it."""
        try:
            if not self.has_long_index():
                self.write_index()
        except StoreError as error:
            logger().warning("index.unusable", store=self.key, reason=str(error))

    def _survey(self) -> tuple[list[Note], list[Unreadable]]:
        notes: list[Note] = []
        unreadable: list[Unreadable] = []
        paths = [] if self.is_profile else [path for path in self.paths() if path != TOMBSTONES]
        listed = frozenset(paths)
        for path, read in self._readers(paths):
            if (other := conflict_of(path)) in listed:
                reason = f"it is a conflicted copy of {other}: keep what you want of it there"
                unreadable.append(Unreadable(path, reason))
                continue
            try:
                data = read()
                if data is not None:
                    notes.append(parse(data, path))
            except NoteError as error:
                unreadable.append(Unreadable(path, error.message.removeprefix(f"{path}: ")))
            except StoreError as error:
                unreadable.append(Unreadable(path, error.hint))
        return notes, unreadable

    def _readers(self, paths: list[str]) -> Iterator[tuple[str, Callable[[], bytes | None]]]:
        """Each of these notes' paths, which are sorted, with what reads it. A folder is looked at
        once: opening ten thousand files by their whole paths takes longer than reading them."""
        for folder, inside in itertools.groupby(paths, lambda path: path.rpartition("/")[0]):
            here = list(inside)
            with _opened(self._safe(here[0]).parent) as descriptor:
                for path in here:
                    name = self.root / path if descriptor is None else path[len(folder) + 1 :]
                    yield path, partial(_read, path, name, descriptor)

    def _names(self, folder: str) -> list[str]:
        place = self.root / folder
        if any(part.is_symlink() for part in (place, place.parent) if part != self.root):
            return []
        try:
            with os.scandir(place) as found:
                return [each.name for each in found]
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise _refused(folder, error.strerror or "it cannot be listed") from error

    def _safe(self, path: str) -> Path:
        """The full path of a file of memory, none of whose folders below the root is a link."""
        if not self.holds(path):
            raise StoreError(f"{path!r} is no file of memory", hint="notes are <type>/<name>.md")
        full = self.root / path
        for folder in full.relative_to(self.root).parents:
            if folder.parts and (self.root / folder).is_symlink():
                raise _refused(path, f"{folder} is a symbolic link")
        return full


def concerns_store(path: str) -> bool:
    """Whether something that happens at ``path`` can change what a project's store holds.

    ``path`` is relative to the store's root, which itself is ``""``. What editors and programs put
    beside the notes (swap files, probes, backups, locks, temporary files) changes nothing.
    """
    folder, _, name = path.rpartition("/")
    return path in _PLACES or (folder in _FOLDERS and _is_note_name(name))


def _inside(folder: Path) -> list[Path]:
    try:
        return [Path(each) for each in os.scandir(folder)]
    except OSError:  # what is no folder, or may not be listed, holds nothing that could be seen
        return []


def _stat(path: Path) -> os.stat_result | None:
    try:
        return path.lstat()
    except OSError:
        return None


def _is_key(key: str) -> bool:
    return (
        key not in {"", ".", ".."} and not {"/", "\0"} & set(key) and len(os.fsencode(key)) <= 240
    )


def _safe_key(key: str) -> str:
    if not _is_key(key):
        raise StoreError(
            f"{key!r} cannot name a store", hint="`memoryd memory list --all` shows them"
        )
    return key


def _is_note_name(name: str) -> bool:
    return (
        name.endswith(".md")
        and not name.startswith(".")
        and "/" not in name
        and "\0" not in name
        and (len(name) <= 63 or len(os.fsencode(name)) <= 255)
    )


@contextlib.contextmanager
def _opened(folder: Path) -> Iterator[int | None]:
    """The folder for opening files in it; None where it is gone or no folder: they are read by
    their whole paths then, which says what is wrong."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        yield None
        return
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _read(path: str, place: str | Path, folder: int | None = None) -> bytes | None:
    """The bytes of the file of memory ``path``, which is at ``place`` (in ``folder``)."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(place, flags, dir_fd=folder)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise _refused(path, error.strerror or "it cannot be opened") from error
    try:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode):
            raise _refused(path, "it is not a plain file")
        return _read_whole(path, descriptor, facts.st_size)
    except OSError as error:
        raise _refused(path, error.strerror or "it cannot be read") from error
    finally:
        os.close(descriptor)


def _is_still(path: str, found: str | None, place: Path) -> bool:
    """Whether the file of memory ``path``, which is at ``place``, has the sha256 ``found``."""
    data = _read(path, place)
    return (None if data is None else sha256(data)) == found


def _read_whole(path: str, descriptor: int, size: int) -> bytes:
    limit = _limit(path)
    data = os.read(descriptor, min(size, limit) + 1)
    while len(data) > size and len(data) <= limit:  # it grows while it is read
        more = os.read(descriptor, limit + 1 - len(data))
        if not more:
            break
        data += more
    if len(data) > limit:
        raise _refused(path, f"it is larger than {limit} bytes")
    return data


def _limit(path: str) -> int:
    return MAX_TOMBSTONES_BYTES if path == TOMBSTONES else MAX_FILE_BYTES


def _refused(path: str, reason: str) -> StoreError:
    return StoreError(f"{path} cannot be used", hint=reason)


def _failed(path: str, error: OSError) -> StoreError:
    """The error for what the system would not write."""
    if is_full(error):
        return full_disk(f"{path} cannot be written: {error.strerror}")
    return _refused(path, error.strerror or "it cannot be written")
