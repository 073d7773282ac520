"""The service under a systemd that really runs, where one can be started in namespaces.

It takes as long as twenty commands and ten starts of the daemon: `make test-systemd`, as root.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
CANNOT = 77

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(180),
    pytest.mark.skipif(not os.environ.get("MEMORYD_TEST_SYSTEMD"), reason="`make test-systemd`"),
]


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that another user can reach."""
    made = Path(tempfile.mkdtemp(prefix="memoryd-systemd-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made, ignore_errors=True)


def test_the_service_lives_under_systemd_as_it_is_written(folder: Path) -> None:
    """Ready, restarted when it dies or stands still, stopped with all it started, or given up."""
    script = [str(HERE / "user_manager.sh"), str(folder), str(HERE.parents[1]), sys.base_prefix]
    done = subprocess.run(
        [*script, sys.executable, str(HERE / "real_service.py")],
        capture_output=True,
        text=True,
    )
    if done.returncode == CANNOT:
        pytest.skip(f"no user manager can be started here: {done.stderr[-300:]}")
    assert done.returncode == 0, done.stderr

    assert json.loads(done.stdout) == {
        "installed": [0, ""],
        "ready": {"ActiveState": "active", "StatusText": f"working {folder}/person/.memoryd"},
        "confined": True,
        "restarted after a kill": True,
        "restarted by the watchdog": True,
        "asked": True,
        "stopped": 0,
        "left over": [],
        "after a stop": {"ActiveState": "inactive", "Result": "success", "NRestarts": "2"},
        "unusable": 1,
        "after 78": {"ActiveState": "failed", "ExecMainStatus": "78", "NRestarts": "0"},
        "gave up": True,
        "after its starts": {"NRestarts": "5", "ExecMainStatus": "1"},
        "uninstalled": 0,
        "after that": {"LoadState": "not-found"},
    }
