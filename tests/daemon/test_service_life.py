"""Stopping, starting, reading and keeping the service, with programs of the test's own."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
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
from memoryd.cli.setup import setup
from memoryd.daemon import service, service_record
from memoryd.daemon.service_files import UNIT, named_by, render_launchd, render_systemd
from memoryd.daemon.service_managers import Launchd, Systemd
from memoryd.daemon.service_record import Record
from memoryd.memory.errors import ServiceError
from memoryd.memory.home import Home
from memoryd.memory.locks import FileLock

AWKWARD = ["plain", "sp ace", "per%cent %h", 'a "b" \\ 100%', "ü", "@PATH@", "<b> & 'x'"]


@pytest.fixture
def systemd(tmp_path: Path) -> Systemd:
    """systemd with a ``systemctl`` and a ``loginctl`` of ours."""
    make_fake(tmp_path, "systemctl", FAKE_SYSTEMCTL)
    make_fake(tmp_path, "loginctl", FAKE_LOGINCTL)
    return Systemd(make_environ(tmp_path))


@pytest.fixture
def launchd(tmp_path: Path) -> Launchd:
    """launchd with a ``launchctl`` of ours."""
    make_fake(tmp_path, "launchctl", FAKE_LAUNCHCTL)
    return Launchd(make_environ(tmp_path))


@pytest.fixture
def commands(tmp_path: Path, systemd: Systemd, monkeypatch: pytest.MonkeyPatch) -> CliRunner:
    """The commands as a person runs them on Linux, with the fakes."""
    program = make_program(tmp_path / "env" / "bin" / "memoryd")
    monkeypatch.setattr(sys, "argv", [str(program)])
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("PATH", systemd.environ["PATH"])
    monkeypatch.setenv("MEMORYD_HOME", str(tmp_path / "home"))
    return CliRunner()


# ---------------------------------------------------------------- start, stop, restart


def test_a_stop_is_remembered_until_a_start(tmp_path: Path, systemd: Systemd) -> None:
    """It is stopped, not disabled: the next login starts it, and nothing before."""
    installation = make_installation(tmp_path)
    service.install(systemd, installation)

    state = service.stop(systemd)
    stopped = service.status(systemd, installation)
    service.start(systemd)
    started = service.status(systemd, installation)

    assert (state.enabled, state.active) == (True, False)
    assert (stopped.stopped, started.stopped) == (True, False)
    assert calls(tmp_path)[3:] == [
        f"--user stop {UNIT}",
        f"--user reset-failed {UNIT}",
        f"--user start {UNIT}",
    ]


def test_a_stop_that_changed_nothing_is_no_success(tmp_path: Path, systemd: Systemd) -> None:
    """The service that is told to stop and still runs is named."""
    service.install(systemd, make_installation(tmp_path))
    make_fake(tmp_path, "systemctl", FAKE_SYSTEMCTL.replace("stop) rm -f active", "stop) :"))

    with pytest.raises(ServiceError, match=r"told to stop and still is active \(running\)"):
        service.stop(systemd)


def test_setup_does_not_start_what_a_person_stopped(commands: CliRunner) -> None:
    """``--yes`` takes every step but that one."""
    commands.invoke(command, ["install"])
    commands.invoke(command, ["stop"])

    done = commands.invoke(setup, ["--yes", "--json", "--skip", "hooks", "--skip", "backfill"])

    step = {each["step"]: each for each in json.loads(done.output)["steps"]}["service"]
    assert (step["state"], "service start" in step["text"]) == ("shown", True)
    assert json.loads(commands.invoke(command, ["status", "--json"]).output)["active"] is False


def test_after_the_next_login_a_stop_is_over(tmp_path: Path, systemd: Systemd) -> None:
    """What runs is not shown as stopped, whoever started it."""
    installation = make_installation(tmp_path)
    service.install(systemd, installation)
    service.stop(systemd)

    (tmp_path / "active").touch()

    assert service.status(systemd, installation).stopped is False


def test_a_start_forgives_what_failed_too_often(tmp_path: Path, systemd: Systemd) -> None:
    """systemd refuses to start such a one before it is reset, a restart too."""
    service.install(systemd, make_installation(tmp_path))
    for do in (service.start, service.restart):
        (tmp_path / "active").unlink()
        (tmp_path / "failed").touch()

        assert systemd.state().failed
        assert do(systemd).active
        assert not (tmp_path / "failed").exists()


def test_a_home_that_cannot_be_written_is_stopped_all_the_same(
    tmp_path: Path, systemd: Systemd, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That the stop could not be remembered is said."""
    service.install(systemd, make_installation(tmp_path))

    def full(path: Path, data: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(service_record, "write_atomic", full)

    with pytest.raises(ServiceError, match=r"service\.json cannot be written"):
        service.stop(systemd)
    assert systemd.state().active is False


@pytest.mark.parametrize("words", ["start", "stop", "restart", "logs"])
def test_without_a_service_the_way_to_one_is_said(words: str, commands: CliRunner) -> None:
    """Nothing is started that was not installed."""
    done = commands.invoke(command, [words])

    assert isinstance(done.exception, ServiceError)
    assert done.exception.message == "no service is installed"
    assert "memoryd service install" in done.exception.hint


def test_launchd_stops_by_letting_go_and_starts_anew(tmp_path: Path, launchd: Launchd) -> None:
    """``KeepAlive`` ends with ``bootout``; ``kickstart -k`` would kill what still works."""
    service.install(launchd, make_installation(tmp_path))
    before = len(calls(tmp_path))
    domain = f"gui/{os.getuid()}"

    states = [service.stop(launchd), service.restart(launchd), service.restart(launchd)]

    load = [f"enable {domain}/memoryd.daemon", f"bootstrap {domain} {launchd.file()}"]
    gone = f"bootout {domain}/memoryd.daemon"
    assert [state.active for state in states] == [False, True, True]
    assert calls(tmp_path)[before:] == [gone, *load, gone, *load]


def test_launchd_is_waited_for_until_it_has_drained(
    tmp_path: Path, launchd: Launchd, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It answers before the daemon is gone, and cannot load it again before that."""
    monkeypatch.setattr("memoryd.daemon.service_managers._LOOK_SECONDS", 0)
    service.install(launchd, make_installation(tmp_path))
    (tmp_path / "slow").touch()

    assert service.stop(launchd).active is False
    assert not (tmp_path / "leaving").exists()


def test_launchd_counts_starts_by_itself(tmp_path: Path, launchd: Launchd) -> None:
    """The first was not one of them."""
    service.install(launchd, make_installation(tmp_path))

    assert launchd.state().restarts == 3


def test_a_daemon_that_a_person_runs_is_named_before_the_service_fails(
    tmp_path: Path, systemd: Systemd
) -> None:
    """It holds the home: nothing is written, nothing is started; then all goes on."""
    installation = make_installation(tmp_path)
    installation.home.prepare()

    with FileLock(installation.home.daemon_lock) as lock:
        assert lock.acquire()
        with pytest.raises(ServiceError, match=rf"already runs on .* \(pid {os.getpid()}\)"):
            service.install(systemd, installation)
        assert not systemd.file().exists()
    service.install(systemd, installation)
    (tmp_path / "active").unlink()

    with FileLock(installation.home.daemon_lock) as lock:
        assert lock.acquire()
        for do in (service.start, service.restart):
            with pytest.raises(ServiceError, match="not as the service"):
                do(systemd)
    assert service.start(systemd).active


# ---------------------------------------------------------------- one service, one home


@pytest.mark.parametrize("name", AWKWARD)
def test_a_service_file_tells_what_it_names(tmp_path: Path, name: str) -> None:
    """Whatever the paths hold; systemd takes no quotes in the program's."""
    installation = make_installation(tmp_path, name)
    plain = replace(installation, program=Path("/opt/my %/memoryd"))

    for text in (render_systemd(plain), render_launchd(plain)):
        named = named_by(text)

        assert (named.program, named.path) == (str(plain.program), plain.path)
        assert named.home == plain.home
        assert named.environ["HOME"] == str(plain.person)


@pytest.mark.parametrize("text", ["", "ExecStart", "<?xml", "<?xml version='1.0'?><plist/>", "\0="])
def test_a_service_file_that_was_edited_names_nothing(text: str) -> None:
    """Never an error: looking must not fail."""
    assert (named_by(text).program, named_by(text).home) == ("", None)


def test_the_service_of_another_home_is_not_taken_over(tmp_path: Path, systemd: Systemd) -> None:
    """That home would be left without a daemon; one that is gone is replaced."""
    here, there = make_installation(tmp_path, "here"), make_installation(tmp_path, "there")
    service.install(systemd, there)

    with pytest.raises(ServiceError, match="another home") as caught:
        service.install(systemd, here)
    assert "memoryd service uninstall" in caught.value.hint
    assert named_by(systemd.file().read_text()).home == there.home

    shutil.rmtree(there.home.root)
    assert service.install(systemd, here).changed


def test_status_names_the_other_home(tmp_path: Path, commands: CliRunner) -> None:
    """And does not advise to install over it."""
    commands.invoke(command, ["install", "--home", str(tmp_path / "other")])

    shown = commands.invoke(command, ["status"]).output

    assert f"it serves another home, {tmp_path}/other" in shown
    assert "differs" not in shown


def test_another_path_in_the_shell_is_no_other_installation(
    tmp_path: Path, systemd: Systemd
) -> None:
    """Every shell, cron and editor has its own PATH; the program decides."""
    installation = make_installation(tmp_path)
    service.install(systemd, installation)

    found = service.status(systemd, replace(installation, path="/somewhere/else:/bin"))

    assert found.current


# ---------------------------------------------------------------- lingering


@pytest.mark.parametrize("before", [False, True])
def test_lingering_is_ended_only_where_it_was_ours(
    tmp_path: Path, systemd: Systemd, before: bool
) -> None:
    """Asked for twice, switched on once, remembered through everything between."""
    if before:
        (tmp_path / "linger").touch()
    installation = make_installation(tmp_path)

    plain = service.install(systemd, installation)
    kept = [service.install(systemd, installation, linger=True) for _ in range(2)]
    service.stop(systemd)
    service.start(systemd)
    service.uninstall(systemd)

    assert [each.lingers for each in (plain, *kept)] == [before, True, True]
    assert (tmp_path / "linger").exists() is before
    assert service_record.read(installation.home) == Record()


def test_lingering_that_is_refused_is_said(tmp_path: Path, systemd: Systemd) -> None:
    """The service is installed all the same, and nothing is remembered."""
    (tmp_path / "refuse").touch()
    installation = make_installation(tmp_path)

    with pytest.raises(ServiceError, match="enable-linger failed: Access denied") as caught:
        service.install(systemd, installation, linger=True)

    assert f"loginctl enable-linger {os.getuid()}" in caught.value.hint
    assert systemd.state().active
    assert service_record.read(installation.home) == Record()


def test_lingering_that_stays_off_is_no_success(tmp_path: Path, systemd: Systemd) -> None:
    """What loginctl says afterwards counts, and what was not switched on is not ours to end."""
    make_fake(tmp_path, "loginctl", FAKE_LOGINCTL.replace(": > linger", ":"))

    with pytest.raises(ServiceError, match="lingering could not be switched on") as caught:
        service.install(systemd, make_installation(tmp_path), linger=True)

    assert f"loginctl enable-linger {os.getuid()}" in caught.value.hint
    assert not service_record.read(make_installation(tmp_path).home).linger


def test_launchd_has_no_lingering(tmp_path: Path, launchd: Launchd) -> None:
    """It is said, not passed over."""
    with pytest.raises(ServiceError, match="only systemd lingers"):
        service.install(launchd, make_installation(tmp_path), linger=True)


@pytest.mark.parametrize("kept", ["", "[]", "{", '{"stopped": "yes", "linger": 1}', "[" * 100_000])
def test_a_damaged_record_remembers_nothing(home: Home, kept: str) -> None:
    """And stands in nobody's way."""
    (home.root / "service.json").write_text(kept)

    assert service_record.read(home) == Record()


# ---------------------------------------------------------------- the log


def test_logs_are_the_journals(tmp_path: Path, commands: CliRunner) -> None:
    """The last lines of our unit, without a pager."""
    make_fake(tmp_path, "journalctl", "echo one; echo two")
    commands.invoke(command, ["install"])

    shown = commands.invoke(command, ["logs", "-n", "7"])

    assert shown.output == "one\ntwo\n"
    assert calls(tmp_path)[-1] == (f"--user --unit={UNIT} --lines=7 --no-pager --output=short-iso")


def test_logs_can_be_followed(tmp_path: Path, systemd: Systemd) -> None:
    """The program that shows them has the terminal."""
    make_fake(tmp_path, "journalctl", "exit 3")
    service.install(systemd, make_installation(tmp_path))

    assert service.follow(systemd, 5) == 3
    assert calls(tmp_path)[-1].endswith("--lines=5 --no-pager --output=short-iso --follow")


def test_without_a_journal_it_is_said_where_the_log_is(tmp_path: Path, systemd: Systemd) -> None:
    """systemd may send it elsewhere."""
    bare = tmp_path / "bare"
    bare.mkdir()
    service.install(systemd, make_installation(tmp_path))

    with pytest.raises(ServiceError, match="journalctl was not found") as caught:
        service.logs(Systemd({**systemd.environ, "PATH": str(bare)}), 5)

    assert "standard error" in caught.value.hint


def test_launchds_log_is_a_file(tmp_path: Path, launchd: Launchd) -> None:
    """Before the daemon wrote anything there is none."""
    installation = make_installation(tmp_path)
    service.install(launchd, installation)

    with pytest.raises(ServiceError, match="there is no log at"):
        service.logs(launchd, 2)
    (installation.home.logs / "launchd.log").write_text("one\ntwo\nthree\n")

    assert service.logs(launchd, 2) == "two\nthree"


# ---------------------------------------------------------------- what systemd thinks of the unit


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd here")
def test_systemd_finds_the_unit_less_exposed_than_a_plain_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own measure, over all directives it knows; 9.8 is a service without any."""
    unit = tmp_path / UNIT
    unit.write_text(render_systemd(make_installation(tmp_path)))
    runtime = tmp_path / "runtime"
    runtime.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))

    done = subprocess.run(
        ["systemd-analyze", "--user", "security", "--offline=true", str(unit), "--threshold=80"],
        capture_output=True,
        text=True,
    )

    assert (done.returncode, done.stderr) == (0, "")
