"""Another version of the package under a running daemon."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from memoryd.daemon.lifecycle import Daemon
from memoryd.daemon.upgrade import EXIT_UPGRADED, Upgrades
from memoryd.memory.home import Home


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder of packages in which version 1.0 is installed."""
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "memoryd_other-3.0.dist-info").mkdir()
    write(folder, "1.0")
    return folder


def write(site: Path, version: str, *, at: int = 1) -> None:
    """pip writes the metadata of a version; its list of files comes last."""
    metadata = site / f"memoryd-{version}.dist-info"
    metadata.mkdir(exist_ok=True)
    (metadata / "RECORD").touch()
    os.utime(metadata / "RECORD", (at, at))


def remove(site: Path, version: str) -> None:
    """pip takes a version away."""
    metadata = site / f"memoryd-{version}.dist-info"
    (metadata / "RECORD").unlink()
    metadata.rmdir()


def test_an_upgrade_is_due_once_it_stands_still(home: Home, site: Path) -> None:
    """Not while two versions, none, or one without its list of files is there."""
    upgrades = Upgrades(home, ["", str(site.parent), str(site)])
    seen = [upgrades.due()]
    remove(site, "1.0")
    seen.append(upgrades.due())
    (site / "memoryd-2.0.dist-info").mkdir()
    seen += [upgrades.due(), upgrades.due()]
    write(site, "2.0")
    seen.append(upgrades.due())
    write(site, "2.0", at=2)
    seen += [upgrades.due(), upgrades.due()]

    assert upgrades.running == "1.0"
    assert seen == [None] * 6 + ["2.0"]


@pytest.mark.parametrize(
    "change",
    [
        lambda site: write(site, "1.0", at=9),
        lambda site: remove(site, "1.0"),
        lambda site: write(site, "2.0"),
    ],
    ids=["the same version anew", "the package removed", "two versions at once"],
)
def test_what_is_no_upgrade_is_none(home: Home, site: Path, change: Callable[[Path], None]) -> None:
    """However long it stays so."""
    upgrades = Upgrades(home, [str(site)])

    change(site)

    assert [upgrades.due() for _ in range(4)] == [None] * 4


def test_without_metadata_nothing_is_ever_due(home: Home, tmp_path: Path) -> None:
    """A checkout that was never installed."""
    upgrades = Upgrades(home, [str(tmp_path), str(tmp_path / "gone")])

    assert (upgrades.running, upgrades.due()) == ("", None)


def test_a_version_is_restarted_for_once(home: Home, site: Path) -> None:
    """Also where the next process still runs the old one, and where nothing can be written."""
    taken = [Upgrades(home, [str(site)]).take("2.0") for _ in range(2)]
    taken.append(Upgrades(home, [str(site)]).take("2.1"))
    (home.root / "run" / "restarted-for").unlink()
    (home.root / "run" / "restarted-for").mkdir()
    taken.append(Upgrades(home, [str(site)]).take("2.2"))

    assert taken == [True, False, True, False]


@pytest.mark.parametrize("supervisor", ["systemd", ""])
def test_the_daemon_drains_and_leaves_with_75_where_someone_starts_it(
    home: Home, site: Path, monkeypatch: pytest.MonkeyPatch, supervisor: str
) -> None:
    """In a terminal it goes on, and says once that it is not the newest."""
    signals: list[int] = []
    monkeypatch.setattr(os, "kill", lambda pid, number: signals.append(number))
    daemon = Daemon(home, {"MEMORYD_SUPERVISOR": supervisor})
    daemon.upgrades = Upgrades(home, [str(site)])
    write(site, "2.0")
    remove(site, "1.0")

    with capture_logs() as logs:
        for _ in range(4):
            daemon._end_if_upgraded()

    left = bool(supervisor)
    assert signals == [signal.SIGTERM] * left
    assert daemon.exit_code == (EXIT_UPGRADED if left else 0)
    assert daemon.seen.upgraded_to == "2.0"
    assert [(entry["event"], entry["restart"]) for entry in logs] == [("daemon.upgraded", left)]
