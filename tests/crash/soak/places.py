"""Where a soak has its things, and what its processes are told."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from memoryd.memory.home import Home

#: As short as the configuration allows: a worker that stands still for longer has lost its job.
LEASE_SECONDS = 3
PROJECTS = 6
#: Of the file system that the home is on, where one of its own can be mounted.
DISK_BYTES = 1 << 30
_CONFIG = f"""
[queue]
workers = 2
lease_seconds = {LEASE_SECONDS}
heartbeat_seconds = 1
keep_finished = 1000000
drain_seconds = 2
retry_base_seconds = 1

[provider]
daily_calls = 1000000
daily_tokens = 10000000000

[backfill]
enabled = true
min_idle_hours = 1
per_day = 1000000

[memory]
auto_consolidate = false
"""


@dataclass(frozen=True)
class Places:
    """One folder; the home lies on a small file system of its own where ``mounted``."""

    root: Path
    mounted: bool

    @property
    def home(self) -> Home:
        """The home."""
        return Home(self.root / "disk" / "home")

    @property
    def calls(self) -> Path:
        """A line for each call of the model."""
        return self.root / "calls"

    @property
    def clock(self) -> Path:
        """What is added to the wall clock."""
        return self.root / "clock"

    @property
    def log(self) -> Path:
        """What the processes say."""
        return self.root / "log"

    @property
    def transcripts(self) -> Path:
        """Where the agent keeps its sessions."""
        return self.root / "person" / ".claude" / "projects" / "-soak"

    def project(self, number: int) -> Path:
        """A working directory."""
        return self.root / f"code{number}"

    @property
    def environ(self) -> Mapping[str, str]:
        """The environment of every process."""
        return {
            "HOME": str(self.root / "person"),
            "PATH": os.environ["PATH"],
            "MEMORYD_HOME": str(self.home.root),
            "TZ": "UTC",
        }


def make_places(root: Path) -> Places:
    """Make all of it. Only root may mount the disk that is filled later."""
    disk = root / "disk"
    disk.mkdir(parents=True)
    size = f"size={DISK_BYTES}"
    command = ["mount", "-t", "tmpfs", "-o", size, "memoryd-soak", str(disk)]
    mounted = os.geteuid() == 0 and subprocess.run(command, capture_output=True).returncode == 0
    places = Places(root, mounted)
    places.transcripts.mkdir(parents=True)
    for number in range(PROJECTS):
        places.project(number).mkdir()
    places.home.prepare()
    places.home.config_file.write_text(_CONFIG, "utf-8")
    return places
