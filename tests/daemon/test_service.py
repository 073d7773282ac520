"""The service files and the programs that take them, which are scripts of the test's own here."""

from __future__ import annotations

import json
import os
import plistlib
import shutil
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from managing import (
    FAKE_LAUNCHCTL,
    FAKE_LOGINCTL,
    FAKE_SYSTEMCTL,
    calls,
    make_environ,
    make_fake,
    make_installation,
    make_program,
)

from memoryd.cli.service import service as command
from memoryd.daemon import service
from memoryd.daemon.service_files import (
    LABEL,
    MARKER,
    UNIT,
    Installation,
    render_launchd,
    render_systemd,
)
from memoryd.daemon.service_managers import Launchd, Systemd
from memoryd.memory.errors import ServiceError
from memoryd.memory.home import Home


@pytest.fixture
def systemd(tmp_path: Path) -> Systemd:
    """systemd with a ``systemctl`` of ours."""
    make_fake(tmp_path, "systemctl", FAKE_SYSTEMCTL)
    make_fake(tmp_path, "loginctl", FAKE_LOGINCTL)
    return Systemd(make_environ(tmp_path))


@pytest.fixture
def launchd(tmp_path: Path) -> Launchd:
    """launchd with a ``launchctl`` of ours."""
    make_fake(tmp_path, "launchctl", FAKE_LAUNCHCTL)
    return Launchd(make_environ(tmp_path))


# ---------------------------------------------------------------- the files


AWKWARD = ["plain", "sp ace", "per%cent %h", "dol$lar ${HOME} $$", "ü", "semi;colon", "@PATH@"]


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd here")
@pytest.mark.parametrize("name", AWKWARD)
def test_systemd_has_nothing_to_say_about_the_unit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """``systemd-analyze`` finds the program and complains of nothing, whatever the path."""
    unit = tmp_path / UNIT
    unit.write_text(render_systemd(make_installation(tmp_path, name)))

    # Short: other units that it looks at have sockets there.
    with tempfile.TemporaryDirectory() as runtime:
        monkeypatch.setenv("XDG_RUNTIME_DIR", runtime)
        done = subprocess.run(
            ["systemd-analyze", "--user", "verify", str(unit)], capture_output=True, text=True
        )

    assert (done.returncode, done.stderr) == (0, "")


def test_the_unit_names_the_installation_absolutely(tmp_path: Path) -> None:
    """Program, home and PATH are in it, quoted as systemd reads them back."""
    installation = make_installation(tmp_path, 'a "b" \\ 100%')
    installation = Installation(Path("/opt/my %/memoryd"), installation.home, installation.path)

    lines = render_systemd(installation).splitlines()

    quoted = f'{tmp_path}/a \\"b\\" \\\\ 100%%'
    assert 'ExecStart=:"/opt/my %%/memoryd" run' in lines
    assert f'Environment="MEMORYD_HOME={quoted}/home"' in lines
    assert f'Environment="PATH={quoted}/bin:/usr/bin"' in lines


@pytest.mark.parametrize(
    "directive",
    [
        "Type=notify",
        "Restart=on-failure",
        "RestartPreventExitStatus=78",
        "KillMode=mixed",
        "UMask=0077",
        "NoNewPrivileges=yes",
        "OOMPolicy=continue",
        "RestartForceExitStatus=75",
        "Environment=MEMORYD_SUPERVISOR=systemd",
    ],
)
def test_the_unit_keeps_what_the_daemon_relies_on(tmp_path: Path, directive: str) -> None:
    """Losing one of these lines changes what a crash, a stop or a bad configuration does."""
    assert directive in render_systemd(make_installation(tmp_path)).splitlines()


def test_a_stop_waits_longer_than_the_longest_drain(tmp_path: Path) -> None:
    """Both managers give the daemon more than the 600 s that ``drain_seconds`` may be."""
    installation = make_installation(tmp_path)

    unit = dict(
        line.split("=", 1) for line in render_systemd(installation).splitlines() if "=" in line
    )
    agent = plistlib.loads(render_launchd(installation).encode())

    assert int(unit["TimeoutStopSec"]) > 600
    assert agent["ExitTimeOut"] > 600


@pytest.mark.parametrize("name", [*AWKWARD, "<b> & ]]> \"quoted\" 'x'"])
def test_the_launch_agent_reads_back_as_it_was_meant(tmp_path: Path, name: str) -> None:
    """Whatever the path holds, the property list gives the same value back."""
    installation = make_installation(tmp_path, name.replace("/", "-"))

    agent = plistlib.loads(render_launchd(installation).encode())

    assert agent["ProgramArguments"] == [str(installation.program), "run"]
    assert agent["EnvironmentVariables"] == {
        "HOME": os.environ["HOME"],
        "MEMORYD_HOME": str(installation.home.root),
        "MEMORYD_SUPERVISOR": "launchd",
        "PATH": installation.path,
    }
    assert agent["StandardErrorPath"] == str(installation.home.logs / "launchd.log")
    assert agent["Label"] == LABEL
    assert agent["KeepAlive"] == {"SuccessfulExit": False}
    assert (agent["ProcessType"], agent["Umask"]) == ("Background", 0o077)


@pytest.mark.parametrize("bad", ["a\nExecStart=/bin/sh", "a\rb", "a\0b", "a\x1bb", "a\u2028b"])
def test_a_path_with_a_line_break_is_refused(tmp_path: Path, bad: str) -> None:
    """No path can add a line of its own to a service file."""
    installation = Installation(Path("/usr/bin/memoryd"), Home(tmp_path / bad), "/usr/bin")

    for render in (render_systemd, render_launchd):
        with pytest.raises(ServiceError, match="line break"):
            render(installation)


@pytest.mark.parametrize("letter", ['"', "'", "\\"])
def test_a_program_that_systemd_cannot_start_is_refused(tmp_path: Path, letter: str) -> None:
    """systemd takes no quote or backslash in a program's path, so neither do we."""
    installation = Installation(Path(f"/a{letter}b/memoryd"), Home(tmp_path), "/usr/bin")

    with pytest.raises(ServiceError, match="quotes and backslashes"):
        render_systemd(installation)


def test_the_running_installation_is_named_by_its_own_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program, and a PATH of folders that exist: its own first, then the person's."""
    program = make_program(tmp_path / "env" / "bin" / "memoryd")
    mine = tmp_path / "mine"
    mine.mkdir()
    monkeypatch.setattr(sys, "argv", [str(program), "service", "install"])

    found = Installation.running(
        Home(tmp_path / "home"), {"PATH": f"{mine}:relative::{tmp_path}/gone:/usr/bin:{mine}"}
    )

    assert found.program == program
    folders = found.path.split(":")
    assert folders[:3] == [str(program.parent), str(mine), "/usr/bin"]
    assert len(set(folders)) == len(folders) and all(Path(folder).is_dir() for folder in folders)


def test_without_a_program_there_is_no_service(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Python that has no memoryd beside it is told what to do."""
    monkeypatch.setattr(sys, "argv", ["-c"])
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))

    with pytest.raises(ServiceError, match="no memoryd program") as caught:
        Installation.running(Home(tmp_path), {})

    assert "install memoryd" in caught.value.hint


# ---------------------------------------------------------------- install, uninstall, status


def test_install_writes_the_unit_and_starts_it(tmp_path: Path, systemd: Systemd) -> None:
    """The file is where systemd looks, private, and the service is enabled and active."""
    installation = make_installation(tmp_path)

    done = service.install(systemd, installation)

    expected = Path(os.environ["HOME"]) / ".config/systemd/user" / UNIT
    assert (done.path, done.changed) == (expected, True)
    assert expected.read_text() == render_systemd(installation)
    assert (done.state.enabled, done.state.active) == (True, True)
    assert calls(tmp_path) == [
        "--user daemon-reload",
        f"--user reset-failed {UNIT}",
        f"--user enable --now {UNIT}",
    ]


def test_install_again_changes_nothing(tmp_path: Path, systemd: Systemd) -> None:
    """The second run leaves the file and does not restart the daemon."""
    service.install(systemd, make_installation(tmp_path))
    before = systemd.file().stat().st_mtime_ns

    done = service.install(systemd, make_installation(tmp_path))

    assert not done.changed
    assert systemd.file().stat().st_mtime_ns == before
    assert not [call for call in calls(tmp_path) if " restart " in call]


def test_install_from_elsewhere_restarts_what_runs(tmp_path: Path, systemd: Systemd) -> None:
    """A virtual environment made anew elsewhere: the new program runs, not the old."""
    old = make_installation(tmp_path, "old")
    service.install(systemd, old)

    new = replace(make_installation(tmp_path, "new"), home=old.home)
    done = service.install(systemd, new)

    assert done.changed
    assert calls(tmp_path)[-1] == f"--user restart {UNIT}"
    assert "/new/bin/memoryd" in systemd.file().read_text()


def test_a_unit_of_the_persons_own_is_left_alone(tmp_path: Path, systemd: Systemd) -> None:
    """Neither install nor uninstall touches a file without our marker."""
    systemd.file().parent.mkdir(parents=True)
    systemd.file().write_text("[Service]\nExecStart=/mine\n")

    with pytest.raises(ServiceError, match="not written by memoryd"):
        service.install(systemd, make_installation(tmp_path))
    with pytest.raises(ServiceError, match="not written by memoryd"):
        service.uninstall(systemd)

    assert systemd.file().read_text() == "[Service]\nExecStart=/mine\n"
    assert calls(tmp_path) == []


def test_uninstall_stops_and_removes(tmp_path: Path, systemd: Systemd) -> None:
    """The service is stopped before its file goes; a second time there is nothing to do."""
    service.install(systemd, make_installation(tmp_path))

    assert service.uninstall(systemd) is True
    assert not systemd.file().exists()
    assert calls(tmp_path)[-2:] == [f"--user disable --now {UNIT}", "--user daemon-reload"]
    assert service.uninstall(systemd) is False


def test_status_follows_the_life_of_the_service(tmp_path: Path, systemd: Systemd) -> None:
    """Not installed; installed and running; written by another installation."""
    installation = make_installation(tmp_path)

    before = service.status(systemd, installation)
    service.install(systemd, installation)
    after = service.status(systemd, installation)
    moved = service.status(systemd, make_installation(tmp_path, "elsewhere"))

    assert (before.installed, before.current, before.state.enabled) == (False, False, False)
    assert (after.installed, after.current, after.state.active) == (True, True, True)
    assert after.state.detail == "active (running)"
    assert (moved.installed, moved.current) == (True, False)


@pytest.mark.parametrize("platform", ["linux", "darwin"])
def test_without_a_manager_nothing_is_written(tmp_path: Path, platform: str) -> None:
    """The error names the program that is missing and the way to run without it."""
    environ = {"HOME": os.environ["HOME"], "PATH": str(tmp_path)}
    manager = service.manager(environ, platform)
    installation = make_installation(tmp_path)

    with pytest.raises(ServiceError, match="was not found") as caught:
        service.install(manager, installation)

    assert "memoryd run" in caught.value.hint
    assert not manager.file().exists()
    assert not installation.home.root.exists()
    assert service.status(manager, installation).state.active is None


def test_a_manager_that_cannot_be_reached_is_said(tmp_path: Path) -> None:
    """No session bus: its own words are in the error, and nothing is written."""
    make_fake(tmp_path, "systemctl", 'echo "Failed to connect to bus: No medium" >&2; exit 1')
    systemd = Systemd(make_environ(tmp_path))

    with pytest.raises(ServiceError, match="Failed to connect to bus: No medium"):
        service.install(systemd, make_installation(tmp_path))

    assert not systemd.file().exists()


def test_a_refused_start_is_said_and_can_be_repeated(tmp_path: Path) -> None:
    """The file stays, so that the next install only has to start it."""
    make_fake(tmp_path, "systemctl", 'if [ "$2" = enable ]; then echo "no room" >&2; exit 1; fi')
    systemd = Systemd(make_environ(tmp_path))

    with pytest.raises(ServiceError, match=r"enable --now memoryd\.service failed: no room"):
        service.install(systemd, make_installation(tmp_path))

    make_fake(tmp_path, "systemctl", FAKE_SYSTEMCTL)
    assert service.install(systemd, make_installation(tmp_path)).state.active is True


def test_a_folder_in_the_files_place_is_a_clear_error(tmp_path: Path, systemd: Systemd) -> None:
    """What cannot be read is named, with the system's own reason."""
    systemd.file().mkdir(parents=True)

    with pytest.raises(ServiceError, match="Is a directory"):
        service.install(systemd, make_installation(tmp_path))


def test_the_launch_agent_is_loaded_once(tmp_path: Path, launchd: Launchd) -> None:
    """Bootstrapped the first time; the second time launchd is only asked to see it runs."""
    domain = f"gui/{os.getuid()}"

    service.install(launchd, make_installation(tmp_path))
    again = service.install(launchd, make_installation(tmp_path))

    assert launchd.file() == Path(os.environ["HOME"]) / "Library/LaunchAgents" / f"{LABEL}.plist"
    assert MARKER in launchd.file().read_text()
    assert (again.changed, again.state.active) == (False, True)
    assert calls(tmp_path) == [
        f"enable {domain}/{LABEL}",
        f"bootstrap {domain} {launchd.file()}",
        f"kickstart {domain}/{LABEL}",
    ]


def test_a_changed_launch_agent_is_loaded_anew(tmp_path: Path, launchd: Launchd) -> None:
    """The old one is booted out first, and uninstall ends with none."""
    domain = f"gui/{os.getuid()}"
    old = make_installation(tmp_path, "old")
    service.install(launchd, old)

    service.install(launchd, replace(make_installation(tmp_path, "new"), home=old.home))

    assert calls(tmp_path)[2:] == [
        f"bootout {domain}/{LABEL}",
        f"enable {domain}/{LABEL}",
        f"bootstrap {domain} {launchd.file()}",
    ]
    assert service.uninstall(launchd) is True
    assert calls(tmp_path)[-1] == f"bootout {domain}/{LABEL}"
    assert not launchd.file().exists()


# ---------------------------------------------------------------- the commands


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CliRunner:
    """The commands as a person runs them on Linux, with the fake ``systemctl``."""
    make_fake(tmp_path, "systemctl", FAKE_SYSTEMCTL)
    make_fake(tmp_path, "loginctl", FAKE_LOGINCTL)
    make_fake(tmp_path, "journalctl", "echo one; echo two")
    program = make_program(tmp_path / "env" / "bin" / "memoryd")
    monkeypatch.setattr(sys, "argv", [str(program)])
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("PATH", make_environ(tmp_path)["PATH"])
    monkeypatch.setenv("MEMORYD_HOME", str(tmp_path / "home"))
    return CliRunner()


def test_a_dry_run_shows_the_file_and_writes_nothing(tmp_path: Path, commands: CliRunner) -> None:
    """The place, the whole text, and no trace afterwards."""
    done = commands.invoke(command, ["install", "--dry-run"])
    as_json = commands.invoke(command, ["install", "--dry-run", "--json"])

    place = Path(os.environ["HOME"]) / ".config/systemd/user" / UNIT
    assert done.exit_code == as_json.exit_code == 0
    assert done.output.startswith(f"# {place}\n")
    assert f'ExecStart=:"{tmp_path}/env/bin/memoryd" run' in done.output
    shown = json.loads(as_json.output)
    assert sorted(shown) == ["manager", "path", "text"]
    assert shown["text"] in done.output
    assert not place.parent.exists() and not (tmp_path / "home").exists()
    assert calls(tmp_path) == []


def test_every_command_answers_in_json(commands: CliRunner) -> None:
    """The keys are stable, whether or not there is a service."""
    answers = [
        json.loads(commands.invoke(command, [*words, "--json"]).output)
        for words in map(
            str.split,
            [
                *("status", "install", "status", "start", "stop", "restart", "logs -n 2"),
                *("uninstall", "uninstall"),
            ],
        )
    ]

    state = {"enabled", "active", "detail"}
    status = {"manager", "path", "installed", "current", "home", "stopped", "lingers", "restarts"}
    status |= state
    assert [set(answer) for answer in answers] == [
        status,
        {"manager", "path", "changed", "lingers"} | state,
        status,
        {"manager"} | state,
        {"manager"} | state,
        {"manager"} | state,
        {"manager", "lines"},
        {"manager", "path", "removed"},
        {"manager", "path", "removed"},
    ]
    assert [answers[0]["installed"], answers[2]["installed"]] == [False, True]
    assert [answer["active"] for answer in answers[3:6]] == [True, False, True]
    assert answers[6]["lines"] == ["one", "two"]
    assert [answers[7]["removed"], answers[8]["removed"]] == [True, False]


def test_status_reads_as_three_lines(commands: CliRunner) -> None:
    """Installed, enabled, active: a yes or a no each."""
    commands.invoke(command, ["install"])

    lines = commands.invoke(command, ["status"]).output.splitlines()

    assert [line.split()[:2] for line in lines] == [
        ["installed", "yes"],
        ["enabled", "yes"],
        ["active", "yes"],
    ]


def test_the_home_named_on_the_command_is_the_services(tmp_path: Path, commands: CliRunner) -> None:
    """``--home`` wins over the environment and reaches the file."""
    done = commands.invoke(command, ["install", "--dry-run", "--home", str(tmp_path / "other")])

    assert f'Environment="MEMORYD_HOME={tmp_path}/other"' in done.output
