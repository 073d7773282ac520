"""A disk whose power can be cut: a file system of its own in a file, shut down without a flush.

``EXT4_IOC_SHUTDOWN`` (linux, ``fs/ext4/ioctl.c``) with the flag that leaves the journal as it is
stops every write at that moment. What was not synced by then is gone once the file system is
mounted again, as after a power cut. That takes root and a loop device.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import struct
import subprocess
import tempfile
from pathlib import Path

_SHUTDOWN = 0x8004587D  # _IOR('X', 125, __u32)
_WITHOUT_LOG = 2  # EXT4_GOING_FLAGS_NOLOGFLUSH
_SIZE = 96 << 20


class NoDisk(Exception):
    """No such disk can be made here."""


class Disk:
    """One such disk, mounted at ``place``. Raises ``NoDisk``."""

    def __init__(self) -> None:
        if os.geteuid() or shutil.which("mkfs.ext4") is None:
            raise NoDisk("it takes root and mkfs.ext4")
        # Not where pytest removes old folders: one that is mounted cannot be.
        folder = Path(tempfile.mkdtemp(prefix="memoryd-power-"))
        self.place = folder / "disk"
        self._image = folder / "image"
        self.place.mkdir(parents=True)
        self._image.touch()
        os.truncate(self._image, _SIZE)
        subprocess.run(["mkfs.ext4", "-q", str(self._image)], check=True)
        if not self._mount():
            self.remove()
            raise NoDisk("no loop device can be mounted")

    def _mount(self) -> bool:
        # Nothing is written because time passed: only what somebody synced is there afterwards.
        command = ["mount", "-o", "loop,commit=3600", str(self._image), str(self.place)]
        return subprocess.run(command, capture_output=True).returncode == 0

    def sync(self) -> None:
        """Have all of it survive."""
        subprocess.run(["sync", "-f", str(self.place)], check=True)

    def cut(self) -> None:
        """Cut the power: nothing is written any more, and nothing that was not synced was."""
        descriptor = os.open(self.place, os.O_RDONLY)
        fcntl.ioctl(descriptor, _SHUTDOWN, struct.pack("I", _WITHOUT_LOG))

    def restore(self) -> None:
        """The power is back. Nobody may have a file open any more."""
        subprocess.run(["umount", str(self.place)], check=True)
        if not self._mount():
            raise NoDisk("it cannot be mounted again")

    def remove(self) -> None:
        """Leave nothing of it, whoever still has a file open there."""
        subprocess.run(["umount", "--lazy", str(self.place)], check=False, capture_output=True)
        shutil.rmtree(self.place.parent, ignore_errors=True)
