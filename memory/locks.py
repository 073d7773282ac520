"""Held file locks: freed by the kernel with their process, so a crash never leaves one behind.

``flock`` belongs to the open file, not to the process, so two openings in one process exclude each
other too. The file itself is never unlinked (a second holder could then get in) and its contents,
the holder's pid, are information for people only: the lock is the lock, whatever the file says. It
was taken when the file was last changed; one that was given back is empty.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
from pathlib import Path
from types import TracebackType
from typing import ClassVar

from memoryd.memory.files import DIRECTORY_MODE, FILE_MODE


class FileLock:
    """One exclusive lock on ``path``. Not re-entrant; use one object per holder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None

    def acquire(self, timeout: float = 0.0) -> bool:
        """Take the lock; wait at most ``timeout`` seconds. False when it stayed with another.

        The wait is the kernel's (a helper thread blocks in ``flock``), never a polling loop.
        Raises ``OSError`` when the file cannot be opened. Its folder is made, but not what that is
        in: who comes when a home was taken away must not make half of one in its place.
        """
        with contextlib.suppress(FileExistsError):
            self.path.parent.mkdir(mode=DIRECTORY_MODE)
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
        if not _lock_now(descriptor):
            if timeout <= 0:
                os.close(descriptor)
                return False
            wait = _Wait.on(descriptor)
            if not wait.within(timeout):
                return False
            descriptor = wait.descriptor
        self._descriptor = descriptor
        with contextlib.suppress(OSError):  # a full disk: the lock is the lock all the same
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        return True

    def release(self) -> None:
        """Give the lock back; harmless when it is not held."""
        if self._descriptor is None:
            return
        descriptor, self._descriptor = self._descriptor, None
        with contextlib.suppress(OSError):
            os.ftruncate(descriptor, 0)
        # Unlock before closing: a child between fork and exec may hold a duplicate of the file.
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)

    def holder(self) -> int:
        """The pid the last holder wrote, 0 when there is none to read. Information only."""
        try:
            return int(self.path.read_bytes().strip() or 0)
        except (OSError, ValueError):
            return 0

    def is_in_place(self) -> bool:
        """Whether the lock that is held is on the file that others would lock now."""
        if self._descriptor is None:
            return False
        try:
            found = self.path.stat()
        except OSError:
            return False
        return os.path.samestat(found, os.fstat(self._descriptor))

    def __enter__(self) -> FileLock:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()


def is_alive(pid: int) -> bool:
    """Whether a process has this pid, whosever it is; 0 is nobody's."""
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def _lock_now(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


class _Wait:
    """A thread that blocks for the lock on ``descriptor`` until it has it, however long that is.

    ``flock`` cannot be called off. Whoever gave up leaves the thread to the next who waits for the
    same file, so that a holder who never ends costs one thread and one descriptor, not one of each
    for everybody who came; where nobody waits any more, the lock goes back as soon as it comes.
    """

    _guard = threading.Lock()
    #: Nobody waits for these, by the file.
    _left: ClassVar[dict[tuple[int, int], list[_Wait]]] = {}

    def __init__(self, descriptor: int, file: tuple[int, int]) -> None:
        self.descriptor = descriptor
        self._file = file
        self._taken = threading.Event()

    @classmethod
    def on(cls, descriptor: int) -> _Wait:
        """One that waits for the file of ``descriptor``, which is its own from here on."""
        found = os.fstat(descriptor)
        file = (found.st_dev, found.st_ino)
        with cls._guard:
            left = cls._left.get(file)
            made = left.pop() if left else cls(descriptor, file)
        if made.descriptor != descriptor:
            os.close(descriptor)
        else:
            threading.Thread(target=made._block, name="lock-wait", daemon=True).start()
        return made

    @classmethod
    def forget(cls) -> None:
        """In a child that was forked no such thread is left."""
        cls._guard = threading.Lock()
        cls._left.clear()

    def within(self, timeout: float) -> bool:
        """Whether the lock came in time; if not, the wait is the next one's."""
        if self._taken.wait(timeout):
            return True
        with self._guard:
            if not self._taken.is_set():
                self._left.setdefault(self._file, []).append(self)
                return False
        return True

    def _block(self) -> None:
        fcntl.flock(self.descriptor, fcntl.LOCK_EX)
        with self._guard:
            left = self._left.get(self._file, [])
            if self in left:
                left.remove(self)
                fcntl.flock(self.descriptor, fcntl.LOCK_UN)  # as in ``release``
                os.close(self.descriptor)
            else:
                self._taken.set()
            if not left:
                self._left.pop(self._file, None)


os.register_at_fork(after_in_child=_Wait.forget)
