"""Where tests have their folders: in memory where the machine has a place for that.

Nothing waits for a disk there, which is a third of the suite's time. What a process leaves when it
dies is the same in memory as on a disk; what a machine leaves when its power is cut is tried on a
disk of its own (`crash/power.py`).
"""

from __future__ import annotations

import os
import shutil
import tempfile

#: What the largest tests need at once, and some.
_ENOUGH = 2 << 30
_MEMORY = "/dev/shm"


def place() -> str:
    """A folder for temporary folders; its path is short, so that a socket's fits under it."""
    if os.access(_MEMORY, os.W_OK | os.X_OK) and _usable():
        return _MEMORY
    return tempfile.gettempdir()


def _usable() -> bool:
    """Whether there is room, and programs that tests write there may run."""
    may_run = not os.statvfs(_MEMORY).f_flag & os.ST_NOEXEC
    return may_run and shutil.disk_usage(_MEMORY).free >= _ENOUGH
