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
        if _lock_now(descriptor) or (timeout > 0 and _lock_within(descriptor, timeout)):
            self._descriptor = descriptor
            with contextlib.suppress(OSError):  # a full disk: the lock is the lock all the same
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
            return True
        if timeout <= 0:
            os.close(descriptor)
        return False

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


def _lock_within(descriptor: int, timeout: float) -> bool:
    """Block for the lock in a helper thread; on timeout the helper gives it back itself."""
    guard = threading.Lock()
    taken = threading.Event()
    abandoned = False

    def wait() -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        with guard:
            if abandoned:
                os.close(descriptor)
            else:
                taken.set()

    threading.Thread(target=wait, name="lock-wait", daemon=True).start()
    if taken.wait(timeout):
        return True
    with guard:
        if taken.is_set():
            return True
        abandoned = True
    return False
