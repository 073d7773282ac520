"""What of a home the doctor finds and ``--fix`` mends, beside its databases."""

from __future__ import annotations

import json
import os
import shutil
import socket
import stat
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

sys.path.append(str(Path(__file__).parent.parent / "memory"))

from store_builders import git, make_store

from memoryd.jobs import database, repairing_stores
from memoryd.jobs.backups import DAY_MS
from memoryd.jobs.doctor import examine
from memoryd.jobs.repairing import Repair, repair
from memoryd.jobs.workplace import open_ledger
from memoryd.memory import last_ran
from memoryd.memory.config import Config
from memoryd.memory.errors import HomeForeign
from memoryd.memory.health import Finding
from memoryd.memory.home import Home
from memoryd.memory.testing import FakeClock

NOBODY = 65534
HOUR = 3600


def wrong(home: Home, clock: FakeClock) -> list[Finding]:
    """What is not ok."""
    return [each for each in examine(home, clock, {}) if each.severity != "ok"]


def codes(home: Home, clock: FakeClock) -> list[str]:
    """The codes of what is not ok."""
    return [each.code for each in wrong(home, clock)]


def fix(home: Home, clock: FakeClock) -> list[Repair]:
    """``memoryd doctor --fix``, on a home whose ledger was copied today."""
    return [each for each in repair(home, clock, {}) if each.code != "backup.stale"]


def old(path: Path, clock: FakeClock, hours: float = 2) -> Path:
    """``path``, last changed so many hours ago."""
    at = clock.now_ms() / 1000 - hours * HOUR
    os.utime(path, (at, at), follow_symlinks=False)
    return path


def as_nobody(do: Callable[[], str]) -> str:
    """What ``do`` says in a process of a user without rights; as we are where we have none."""
    reads, writes = os.pipe()
    if (child := os.fork()) == 0:
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(NOBODY)
                os.setuid(NOBODY)
            os.write(writes, do().encode())
        finally:
            os._exit(0)
    os.close(writes)
    os.waitpid(child, 0)
    with open(reads, encoding="utf-8") as said:  # noqa: PTH123 - a descriptor
        return said.read()


@pytest.mark.parametrize(
    ("name", "mode", "severity"),
    [
        (".", 0o755, "problem"),
        ("inbox", 0o777, "warning"),
        ("run", 0o750, "warning"),
        ("memoryd.sqlite", 0o644, "warning"),
        ("config.toml", 0o604, "warning"),
    ],
)
def test_what_others_may_look_into_is_named_and_shut(
    home: Home, clock: FakeClock, name: str, mode: int, severity: str
) -> None:
    """A file in a home that is shut is shut as well, whatever its mode says."""
    open_ledger(home, Config(), clock).close()
    path = home.root / name
    if not path.exists():
        path.touch()
    path.chmod(mode)
    if name != ".":
        assert codes(home, clock) == []
        assert fix(home, clock) == []
        home.root.chmod(0o755)

    found = {each.what.split(" ")[0]: each for each in wrong(home, clock)}

    assert set(found) == {str(path), str(home.root)}
    assert found[str(path)].code == "home.mode" and found[str(path)].severity == severity
    assert "`memoryd doctor --fix`" in found[str(path)].todo
    fix(home, clock)
    assert codes(home, clock) == []
    assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600)


def test_a_key_file_that_others_may_read_is_a_problem(home: Home, clock: FakeClock) -> None:
    """It lies outside of the home."""
    key = home.root.parent / "key"
    key.write_text("x")
    key.chmod(0o644)
    home.config_file.write_text(f'[provider]\napi_key_file = "{key}"\n')

    (found,) = [each for each in wrong(home, clock) if each.code == "home.mode"]
    fix(home, clock)

    assert found.severity == "problem" and str(key) in found.what
    assert stat.S_IMODE(key.stat().st_mode) == 0o600


def test_what_memoryd_may_not_write_is_named_and_opened(home: Home, clock: FakeClock) -> None:
    """By its owner, without any other right."""
    wrong(home, clock)  # nobody may import what is not loaded yet
    shutil.rmtree(home.root)
    place = home.root.parent
    if os.geteuid() == 0:
        ours = [each for each in place.parents if each.name.startswith(("pytest-", "popen-"))]
        for folder in (place, *ours):
            folder.chmod(0o755)
        os.chown(place, NOBODY, NOBODY)

    def said() -> str:
        home.prepare()
        open_ledger(home, Config(), clock).close()
        home.ledger.chmod(0o400)
        home.inbox.chmod(0o500)
        found = [each.what for each in wrong(home, clock) if each.code == "home.mode"]
        done = [each.what for each in fix(home, clock)]
        return json.dumps([found, done, codes(home, clock)])

    found, done, left = json.loads(as_nobody(said))

    assert [what.split(" ")[0] for what in found] == [str(home.inbox), str(home.ledger)]
    assert all("cannot write" in what for what in found)
    assert len(done) == 2 and left == []


def test_the_home_of_another_user_is_refused_and_not_written(home: Home, clock: FakeClock) -> None:
    """Also by root, who could: what root makes there is none of its owner's."""
    if os.geteuid() != 0:
        home = Home(Path("/"))
    else:
        os.chown(home.root, NOBODY, NOBODY)
    before = sorted(home.root.iterdir())

    with pytest.raises(HomeForeign, match="belongs to the user") as raised:
        open_ledger(home, Config(), clock)

    assert "run memoryd as " in raised.value.hint and "chown -R" in raised.value.hint
    assert sorted(home.root.iterdir()) == before
    if os.geteuid() == 0:
        (found,) = examine(home, clock, {})
        assert (found.code, found.todo) == ("home.foreign", raised.value.hint)
        home.root.chmod(0o755)
        (done,) = repair(home, clock, {})
        assert done.left and done.code == "home.foreign"
        assert stat.S_IMODE(home.root.stat().st_mode) == 0o755


class _Disk(NamedTuple):
    f_flag: int = 0
    f_files: int = 1 << 20
    f_favail: int = 1 << 20


class _Usage(NamedTuple):
    total: int = 1 << 30
    used: int = 1 << 29
    free: int = 1 << 29


@pytest.mark.parametrize(
    ("disk", "usage", "code", "what"),
    [
        (_Disk(), _Usage(free=50 << 20), "disk.full", "50 MB left"),
        (_Disk(f_favail=7), _Usage(), "disk.full", "7 more files"),
        (_Disk(f_flag=os.ST_RDONLY), _Usage(), "home.readonly", "read-only"),
    ],
)
def test_a_disk_without_room_is_named(
    home: Home,
    clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
    disk: _Disk,
    usage: _Usage,
    code: str,
    what: str,
) -> None:
    """Of bytes, of files, or of any leave to write."""
    monkeypatch.setattr("os.statvfs", lambda path: disk)
    monkeypatch.setattr("shutil.disk_usage", lambda path: usage)

    (found,) = wrong(home, clock)

    assert (found.code, found.severity) == (code, "problem")
    assert what in found.what and "nothing is lost" in found.todo


def test_a_home_on_a_network_file_system_is_named(
    home: Home, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is begun there; the repair leaves it and says why."""
    monkeypatch.setattr(database, "_file_system", lambda folder: "nfs4")

    (found,) = {each for each in wrong(home, clock) if each.severity == "problem"}

    assert found.code == "home.network" and "local disk" in found.todo
    assert {each.code for each in repair(home, clock, {}) if each.left} == {"home.network"}
    assert not home.ledger.exists()


def test_a_home_that_was_moved_is_named_with_what_names_it_by_its_path(
    home: Home, clock: FakeClock, tmp_path: Path
) -> None:
    """Its stores work there as before; once it is noted, nothing is said any more."""
    make_store(home, a="Use tabs.")
    last_ran.note(home.root)
    assert codes(home, clock) == []
    home.root.rename(tmp_path / "elsewhere")
    moved = Home(tmp_path / "elsewhere")

    (found,) = wrong(moved, clock)

    assert found.code == "home.moved" and str(home.root) in found.what
    assert "`memoryd service install`" in found.todo
    assert [each.code for each in fix(moved, clock)] == ["home.moved"]
    assert codes(moved, clock) == []


def test_a_home_reached_by_a_link_has_not_moved(home: Home, clock: FakeClock) -> None:
    """It is one home."""
    last_ran.note(home.root)
    link = home.root.with_name("link")
    link.symlink_to(home.root)

    assert codes(Home(link), clock) == []


def test_a_copy_of_a_home_is_named(home: Home, clock: FakeClock, tmp_path: Path) -> None:
    """It has the uuid of the one it was copied from, which is still there."""
    last_ran.note(home.root)
    copy = Home(shutil.copytree(home.root, tmp_path / "copy"))

    (found,) = wrong(copy, clock)

    assert found.code == "home.copied" and str(home.root) in found.what
    assert codes(home, clock) == []


@pytest.mark.parametrize("years", [-56, 74])
def test_a_clock_that_is_far_off_is_named_and_stops_nothing(
    home: Home, clock: FakeClock, years: int
) -> None:
    """1970 and 2100; what was enqueued is there all the same."""
    ledger = open_ledger(home, Config(), clock)
    told = {"cutoff": 1, "transcript": "", "cwd": "", "trigger": "cli"}
    ledger.enqueue("finalize", "codex", "s1", **told)  # type: ignore[arg-type]
    clock.step(years * 365.25 * 24 * HOUR)

    ledger.enqueue("finalize", "codex", "s2", **told)  # type: ignore[arg-type]

    assert ledger.claim("me") is not None
    ledger.db.change(
        "update job set updated_at = :then", then=clock.now_ms() - years * 365 * DAY_MS
    )
    ledger.close()
    (found,) = [each for each in wrong(home, clock) if each.code == "clock.off"]
    assert found.severity == "problem" and "set the clock" in found.todo


def test_a_ledger_that_was_not_copied_for_days_is_named_and_copied(
    home: Home, clock: FakeClock
) -> None:
    """By the command that is named, once a day."""
    clock.step(time.time() - clock.now_ms() / 1000 + 4 * 24 * HOUR)
    open_ledger(home, Config(), clock).close()

    (found,) = wrong(home, clock)

    assert found.code == "backup.stale" and "`memoryd doctor --fix`" in found.todo
    assert [each.code for each in repair(home, clock, {})] == ["backup.stale"]
    (copy,) = home.backups.glob("memoryd-*.sqlite")
    os.utime(copy, (clock.now_ms() / 1000,) * 2)
    assert codes(home, clock) == []
    assert repair(home, clock, {}) == []


def test_missing_folders_and_what_died_left_are_put_right(home: Home, clock: FakeClock) -> None:
    """Temporary files over an hour old, a socket nobody listens at; younger ones stay."""
    shutil.rmtree(home.root / "inbox")
    young = home.root / ".config.toml.0123456789ab.tmp"
    left = home.root / ".home.json.0123456789ab.tmp"
    for path in (young, left):
        path.touch()
    old(young, clock, 0.5)
    old(left, clock, 2)
    path = home.socket({})
    if len(str(path)) < 100:
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(str(path))

    done = {each.code for each in fix(home, clock)}

    assert (
        {"home.missing", "home.leftover"}
        <= done
        <= {"home.missing", "home.leftover", "socket.stale"}
    )
    assert (home.root / "inbox" / "bad").is_dir()
    assert young.exists() and not left.exists() and not path.exists()
    assert fix(home, clock) == []


def test_an_envelope_that_a_killed_hook_left_whole_is_taken_in(
    home: Home, clock: FakeClock
) -> None:
    """Half of one says nothing: the sweep finds its session."""
    said = {
        "version": 1, "agent": "codex", "event": "session-end", "session": "s1",
        "transcript": None, "cwd": None, "reason": None, "cutoff": 0, "time_ms": 1, "switches": [],
    }  # fmt: skip
    whole, half = home.inbox / ".1-2-ab.json.tmp", home.inbox / ".3-4-cd.json.tmp"
    whole.write_text(json.dumps(said))
    half.write_text(json.dumps(said)[:40])
    at_work = home.inbox / ".5-6-ef.json.tmp"
    at_work.touch()
    os.utime(at_work, (clock.now_ms() / 1000,) * 2)
    for path in (whole, half):
        old(path, clock)

    lines = [each.what for each in fix(home, clock)]

    assert len(lines) == 2
    assert [path.name for path in home.inbox.glob("*.json")] == ["1-2-ab.json"]
    assert [path.name for path in home.inbox.glob(".*.tmp")] == [at_work.name]


def test_locks_of_a_dead_git_go_where_no_git_runs(
    home: Home, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where one does, the line says that it is left."""
    store = make_store(home, a="A")
    lock = store.git_dir / "refs/heads/main.lock"
    lock.touch()
    old(lock, clock, 0.25)
    monkeypatch.setattr(repairing_stores, "git_runs", lambda: True)
    (line,) = fix(home, clock)
    assert "is left" in line.what and lock.exists()
    monkeypatch.setattr(repairing_stores, "git_runs", lambda: False)

    (line,) = fix(home, clock)

    assert "is deleted" in line.what and not lock.exists()
    assert codes(home, clock) == []


def test_whether_a_git_runs_can_be_told() -> None:
    """Also where nobody can: then one may."""
    assert repairing_stores.git_runs() in (True, False)


def test_a_store_that_lost_its_git_file_is_named_and_linked_again(
    home: Home, clock: FakeClock
) -> None:
    """`git log` works in place as before."""
    store = make_store(home, a="A")
    (store.root / ".git").unlink()
    assert codes(home, clock) == ["baseline.unlinked"]

    fix(home, clock)

    assert codes(home, clock) == []
    assert git(store, "log", "--oneline")


@pytest.mark.parametrize("kind", ["folder", "link", "pipe"])
def test_what_stands_in_an_indexs_place_is_kept_and_the_index_made(
    home: Home, clock: FakeClock, kind: str
) -> None:
    """It may be a person's."""
    store = make_store(home, a="Use tabs.")
    path = store.root / "MEMORY.md"
    path.unlink(missing_ok=True)
    if kind == "folder":
        path.mkdir()
        (path / "mine").touch()
    elif kind == "link":
        path.symlink_to("/etc/hostname")
    else:
        os.mkfifo(path)
    assert codes(home, clock) == ["index.unusable"]

    fix(home, clock)

    assert codes(home, clock) == []
    assert path.is_file() and not path.is_symlink()
    (kept,) = store.root.glob(".MEMORY.md.damaged-*")
    assert kind != "folder" or (kept / "mine").exists()


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        *(("gone", name) for name in ("inbox", "projects", "baselines", "backups", "locks", "run")),
        *(("file", name) for name in ("inbox", "projects", "run", "memoryd.sqlite")),
        *(("link", name) for name in ("backups", "memoryd.sqlite")),
        *(("pipe", name) for name in ("baselines", "logs")),
    ],
)
def test_looking_at_a_broken_home_and_repairing_it_raise_nothing(
    home: Home, clock: FakeClock, name: str, kind: str
) -> None:
    """Whatever stands in the place of a part of it: it is named, and all is well after."""
    path = home.root / name
    shutil.rmtree(path, ignore_errors=True)
    if kind == "file":
        path.write_bytes(b"x")
    elif kind == "link":
        path.symlink_to("/nowhere/at/all")
    elif kind == "pipe":
        os.mkfifo(path)

    found = [each for each in examine(home, clock, {}) if each.severity == "problem"]
    assert kind == "gone" or (found and all("doctor --fix" in each.todo for each in found[:1]))
    repair(home, clock, {})
    found = examine(home, clock, {})

    assert [each for each in found if each.severity == "problem"] == []
    assert kind == "gone" or list(home.root.glob(f"{name}.damaged-*"))


@pytest.mark.parametrize("spoilt", [b'{"id": "\0', b"", b"[]"])
def test_a_home_json_that_cannot_be_read_is_put_back_from_its_copy(
    home: Home, clock: FakeClock, spoilt: bytes
) -> None:
    """The uuid is what it was, and the damaged file is kept."""
    known = home.prepare()
    home.identity.write_bytes(spoilt)

    done = fix(home, clock)

    assert [each for each in done if each.left] == []
    assert home.uuid() == known
    (aside,) = home.root.glob("home.json.damaged-*")
    assert aside.read_bytes() == spoilt
