"""Programs of the test's own in place of systemd's and launchd's, and an installation to name."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from memoryd.daemon.service_files import Installation
from memoryd.memory.home import Home

FAKE_SYSTEMCTL = """
case "$2" in
    show)
        if [ "$3" = --property=Version ]; then echo Version=252; exit; fi
        if [ -e enabled ]; then echo UnitFileState=enabled; else echo UnitFileState=; fi
        if [ -e active ]; then echo ActiveState=active; echo SubState=running
        elif [ -e failed ]; then echo ActiveState=failed; echo SubState=failed
        else echo ActiveState=inactive; echo SubState=dead; fi
        if [ -e restarts ]; then echo NRestarts=$(cat restarts); else echo NRestarts=0; fi
        if [ -e pid ]; then echo MainPID=$(cat pid); else echo MainPID=0; fi;;
    show-environment) cat environment;;
    enable) : > enabled; : > active;;
    disable) rm -f enabled active;;
    start | restart) : > active;;
    stop) rm -f active;;
    reset-failed) rm -f failed restarts; echo "Unit not loaded." >&2; exit 1;;
esac
"""

FAKE_LAUNCHCTL = """
case "$1 $2" in
    print*memoryd.daemon)
        if [ -e leaving ]; then rm leaving active; echo "	state = running"; exit; fi
        if [ -e active ]; then echo "	state = running"; echo "	runs = 4"; else exit 113; fi;;
    getenv*) cat "env.$2" 2> /dev/null;;
    bootstrap*) : > active;;
    bootout*) if [ -e slow ]; then : > leaving; exit 36; fi; rm active;;
esac
"""

FAKE_LOGINCTL = """
case "$1" in
    show-user) if [ -e linger ]; then echo yes; else echo no; fi;;
    enable-linger) if [ -e refuse ]; then echo "Access denied" >&2; exit 1; fi; : > linger;;
    disable-linger) rm linger;;
esac
"""


def make_program(path: Path, script: str = "") -> Path:
    """An executable shell script."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}")
    path.chmod(0o755)
    return path


def make_fake(folder: Path, name: str, script: str) -> None:
    """A program ``name``, alone on a PATH of its own, that keeps its state in ``folder``."""
    place = shlex.quote(str(folder))
    make_program(folder / "bin" / name, f'cd {place}\necho "$*" >> calls\n{script}')


def calls(folder: Path) -> list[str]:
    """What the fakes were asked to change so far, questions left out."""
    log = folder / "calls"
    lines = log.read_text().splitlines() if log.exists() else []
    return [line for line in lines if "show" not in line and "print" not in line]


def make_installation(folder: Path, name: str = "plain") -> Installation:
    """An installation whose paths all hold ``name``."""
    program = make_program(folder / name / "bin" / "memoryd")
    return Installation(program, Home(folder / name / "home"), f"{program.parent}:/usr/bin")


def make_environ(folder: Path) -> dict[str, str]:
    """An environment whose PATH holds only the fake and the shell's own programs."""
    return {"PATH": f"{folder / 'bin'}:/bin:/usr/bin", "HOME": os.environ["HOME"]}
