"""The life of the service under a real systemd, told as JSON; run by ``user_manager.sh``.

What is waited for is asked of systemd until it is so: it has no event for who has no bus.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

MEMORYD = Path(sys.executable).with_name("memoryd")
PERSON = Path(os.environ["HOME"])
HOME = PERSON / ".memoryd"
GROUP = Path("/sys/fs/cgroup/user/app.slice/memoryd.service/cgroup.procs")
TOLD: dict[str, object] = {}

#: A program of the provider that no signal but one ends, and a child of it.
STUBBORN = "#!/bin/sh\ntrap '' TERM HUP INT\nsleep 600 &\nsleep 600\n"


def memoryd(*words: str) -> subprocess.CompletedProcess[str]:
    """Run a command as the person."""
    return subprocess.run([MEMORYD, *words], capture_output=True, text=True)


def shown(*names: str) -> dict[str, str]:
    """What systemd says of the unit."""
    done = subprocess.run(
        ["systemctl", "--user", "show", f"--property={','.join(names)}", "memoryd.service"],
        capture_output=True,
        text=True,
    )
    return dict(line.split("=", 1) for line in done.stdout.splitlines())


def is_so(held: Callable[[], object]) -> bool:
    """Whether it came true within ten seconds."""
    deadline = time.monotonic() + 60
    while not held():
        if time.monotonic() > deadline:
            return False
        os.sched_yield()
    return True


def main_process() -> int:
    """The daemon's pid; 0 where none runs."""
    return int(shown("MainPID")["MainPID"])


def processes() -> list[str]:
    """All that runs in the unit."""
    try:
        return GROUP.read_text().split()
    except OSError:
        return []


def restarted(number: int, how: int) -> bool:
    """Signal the daemon; whether it is up again for the ``number``-th time."""
    os.kill(main_process(), how)
    wanted = {"NRestarts": str(number), "ActiveState": "active"}
    return is_so(lambda: shown(*wanted) == wanted)


def drop_in(*lines: str) -> None:
    """Change the unit as a person does."""
    folder = PERSON / ".config/systemd/user/memoryd.service.d"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "test.conf").write_text("\n".join(["[Service]", *lines]))
    subprocess.run(["systemctl", "--user", "daemon-reload"], check=True)


def session() -> Path:
    """A transcript that is worth a question."""
    place = PERSON / ".claude/projects/code/s-1.jsonl"
    place.parent.mkdir(parents=True)
    lines = []
    for number in range(6):
        role = ("user", "assistant")[number % 2]
        said = f"Please remember that I prefer tabs over spaces in every project, {number}. " * 3
        lines.append(
            {
                "type": role,
                "uuid": f"u-{number}",
                "sessionId": "s-1",
                "cwd": str(PERSON),
                "timestamp": f"2026-01-05T09:00:0{number}Z",
                "message": {"role": role, "content": said},
            }
        )
    place.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return place


def main() -> None:
    """Install, kill, starve, spoil, stop, uninstall."""
    os.chdir(PERSON)
    HOME.mkdir()
    stubborn = PERSON / "stubborn"
    stubborn.write_text(STUBBORN)
    stubborn.chmod(0o755)
    usable = f'[provider]\nname = "command"\ncommand = ["{stubborn}"]\n[queue]\ndrain_seconds = 1\n'
    (HOME / "config.toml").write_text(usable)

    done = memoryd("service", "install")
    TOLD["installed"] = [done.returncode, done.stderr]
    TOLD["ready"] = shown("ActiveState", "StatusText")
    status = Path(f"/proc/{main_process()}/status").read_text()
    TOLD["confined"] = "NoNewPrivs:\t1\n" in status and "Seccomp:\t2\n" in status

    drop_in("RestartSec=0", "WatchdogSec=1")
    memoryd("service", "restart")
    TOLD["restarted after a kill"] = restarted(1, signal.SIGKILL)
    TOLD["restarted by the watchdog"] = restarted(2, signal.SIGSTOP)

    memoryd("enqueue", "finalize", "--agent", "claude-code", "--transcript", str(session()))
    TOLD["asked"] = is_so(lambda: len(processes()) > 2)
    TOLD["stopped"] = memoryd("service", "stop").returncode
    TOLD["left over"] = processes()
    TOLD["after a stop"] = shown("ActiveState", "Result", "NRestarts")

    (HOME / "config.toml").write_text("nonsense = 1\n")
    TOLD["unusable"] = memoryd("service", "start").returncode
    TOLD["after 78"] = shown("ActiveState", "ExecMainStatus", "NRestarts")

    # Whatever else stands in the way of a start: a home that is a file.
    shutil.rmtree(HOME)
    HOME.touch()
    memoryd("service", "start")
    TOLD["gave up"] = is_so(lambda: shown("ActiveState") == {"ActiveState": "failed"})
    TOLD["after its starts"] = shown("NRestarts", "ExecMainStatus")

    HOME.unlink()
    TOLD["uninstalled"] = memoryd("service", "uninstall").returncode
    TOLD["after that"] = shown("LoadState")
    sys.stdout.write(json.dumps(TOLD))


if __name__ == "__main__":
    main()
