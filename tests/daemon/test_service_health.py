"""What ``doctor`` says of the service, with programs of the test's own."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from managing import (
    FAKE_LAUNCHCTL,
    FAKE_LOGINCTL,
    FAKE_SYSTEMCTL,
    make_environ,
    make_fake,
    make_installation,
    make_program,
)

from memoryd.daemon import service
from memoryd.daemon.service_files import Installation
from memoryd.daemon.service_health import look_at_service
from memoryd.daemon.service_managers import Launchd, Systemd
from memoryd.jobs.doctor import Look
from memoryd.memory.health import Finding
from memoryd.memory.testing import FakeClock

KEY = '[provider]\nname = "openai"\nmodel = "m"\napi_key_env = "MY_KEY"\n'
LOCAL = "http://127.0.0.1:1/v1"


class Person:
    """A person on a machine with our fakes, who installed the service."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.environ = make_environ(folder)
        make_fake(folder, "systemctl", FAKE_SYSTEMCTL)
        make_fake(folder, "loginctl", FAKE_LOGINCTL)
        make_fake(folder, "launchctl", FAKE_LAUNCHCTL)
        git = make_program(folder / "plain" / "bin" / "git")
        program = make_installation(folder).program
        monkeypatch.setattr(sys, "argv", [str(program)])
        monkeypatch.setattr(sys, "platform", "linux")
        self.environ["PATH"] += f":{git.parent}"
        (folder / "environment").write_text("HOME=/here\nLANG=C\n")
        home = make_installation(folder).home
        self.installation = Installation.running(home, self.environ)
        self.systemd = Systemd(self.environ)
        service.install(self.systemd, self.installation)
        (folder / "linger").touch()

    def wrong(self) -> list[Finding]:
        """What is found."""
        look = Look(self.installation.home, FakeClock(), self.environ)
        return list(look_at_service(look))

    def configure(self, text: str) -> None:
        """Write the configuration."""
        self.installation.home.config_file.write_text(text)


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Person:
    """A person whose service stands as it should."""
    return Person(tmp_path, monkeypatch)


def remove(person: Person, *names: str) -> None:
    """Take files of the fakes' state away."""
    for name in names:
        (person.folder / name).unlink()


def write(person: Person, name: str, text: str = "") -> None:
    """Write a file of the fakes' state."""
    (person.folder / name).write_text(text)


FAULTS: dict[str, tuple[Callable[[Person], object], list[tuple[str, str]]]] = {
    "nothing": (lambda person: None, []),
    "a program that is gone": (
        lambda person: person.installation.program.unlink(),
        [("service.gone", "problem")],
    ),
    "another program": (
        lambda person: service.install(
            person.systemd,
            replace(person.installation, program=make_program(person.folder / "x" / "memoryd")),
        ),
        [("service.outdated", "warning")],
    ),
    "not enabled": (lambda person: remove(person, "enabled"), [("service.disabled", "warning")]),
    "not running": (lambda person: remove(person, "active"), [("service.inactive", "problem")]),
    "stopped by the person": (
        lambda person: service.stop(person.systemd),
        [("service.stopped", "warning")],
    ),
    "given up": (
        lambda person: (remove(person, "active"), write(person, "failed")),
        [("service.failed", "problem")],
    ),
    "restarted by itself": (
        lambda person: write(person, "restarts", "7"),
        [("service.restarts", "warning")],
    ),
    "no lingering": (lambda person: remove(person, "linger"), [("service.linger", "ok")]),
    "no systemd": (
        lambda person: make_fake(person.folder, "systemctl", "exit 1"),
        [("service.unknown", "warning")],
    ),
    "a key of the shell's own": (
        lambda person: person.configure(KEY),
        [("service.key", "problem")],
    ),
    "a key that the service has": (
        lambda person: (person.configure(KEY), write(person, "environment", "MY_KEY=x\n")),
        [],
    ),
    "the usual key, which only the shell has": (
        lambda person: (
            person.configure(KEY.replace("api_key_env", "base_url").replace("MY_KEY", LOCAL)),
            person.environ.update(OPENAI_API_KEY="x"),
        ),
        [("service.key", "problem")],
    ),
    "no key for a server of one's own": (
        lambda person: person.configure(
            KEY.replace("api_key_env", "base_url").replace("MY_KEY", LOCAL)
        ),
        [],
    ),
    "a key in a file": (
        lambda person: person.configure(
            KEY.replace("api_key_env", "api_key_file").replace("MY_KEY", "/a/key")
        ),
        [],
    ),
    "a key that only systemd has, and not the running service": (
        lambda person: (
            person.configure(KEY),
            write(person, "environment", "MY_KEY=x\n"),
            write(person, "pid", str(os.getpid())),
        ),
        [("service.key", "problem")] if Path("/proc/self/environ").exists() else [],
    ),
    "a program of the shell's own": (
        lambda person: person.configure('[provider]\nname = "command"\ncommand = ["myagent"]\n'),
        [("service.program", "problem")],
    ),
    "a variable of the shell's own": (
        lambda person: person.environ.update(CLAUDE_CONFIG_DIR="/else"),
        [("service.variable", "warning")],
    ),
    "a path of the shell's own": (
        lambda person: person.environ.update(PATH=f"{person.environ['PATH']}:/sbin"),
        [],
    ),
    "a unit of the person's own": (
        lambda person: person.systemd.file().write_text("[Service]\nExecStart=/mine\n"),
        [("service.ok", "ok")],
    ),
    "no service": (lambda person: person.systemd.file().unlink(), [("service.ok", "ok")]),
}


NO_TODO = {"service.unknown", "service.ok"}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_wrong_with_the_service_is_named(fault: str, person: Person) -> None:
    """One finding a fault; a problem says what to do."""
    break_it, expected = FAULTS[fault]

    break_it(person)
    found = person.wrong()

    assert [(each.code, each.severity) for each in found] == expected
    assert all(each.todo for each in found if each.code not in NO_TODO)


def test_the_service_of_another_home_is_not_this_homes(tmp_path: Path, person: Person) -> None:
    """A home without a service may be worked by `memoryd run`."""
    other = replace(person.installation, home=make_installation(tmp_path, "other").home)
    person.installation = other

    (none,) = person.wrong()

    assert none.severity == "ok"
    assert none.what == "no service is installed for this home; no daemon answers"


def test_a_service_beside_a_daemon_of_the_persons_own_is_not_said_to_run(person: Person) -> None:
    """It is no fault, and the words say what runs."""
    remove(person, "active")

    (found,) = look_at_service(
        Look(person.installation.home, FakeClock(), person.environ, {"pid": 1})
    )

    assert (found.code, found.severity) == ("service.ok", "ok")
    assert found.what == "the service does not run; a daemon that was started by hand does"


def test_launchd_is_asked_for_variables_one_by_one(
    person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has no list of them; a key set with ``launchctl setenv`` is seen."""
    monkeypatch.setattr(sys, "platform", "darwin")
    service.uninstall(person.systemd)
    service.install(Launchd(person.environ), person.installation)
    write(person, "active")
    person.configure(KEY)
    before = [each.code for each in person.wrong()]
    write(person, "env.MY_KEY", "x")

    assert before == ["service.restarts", "service.key"]
    assert [each.code for each in person.wrong()] == ["service.restarts"]
