"""Who holds a lock and what a home takes of the disk, seen without touching either."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from memoryd.memory import disk
from memoryd.memory.disk import disk_use
from memoryd.memory.holders import holders
from memoryd.memory.home import Home
from memoryd.memory.locks import FileLock


def held_by_another(path: Path) -> int:
    """A process of its own that holds the lock; its pid."""
    ready, done = os.pipe()
    child = os.fork()
    if not child:
        FileLock(path).acquire()
        os.write(done, b"x")
        signal.pause()
    os.close(done)
    os.read(ready, 1)
    os.close(ready)
    return child


def ended(child: int) -> None:
    """Kill the process and see it gone."""
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def test_a_held_lock_is_told_with_its_holder_and_since_when(home: Home) -> None:
    """The pid of the process, and the time it took the lock."""
    path = home.locks / "-code.lock"
    child = held_by_another(path)
    os.utime(path, (1_000, 1_000))

    (found,) = holders(home)
    ended(child)

    assert (found.lock, found.pid, found.since) == ("-code", child, 1_000_000)
    assert holders(home) == []  # the kernel gave it back, whatever the file says
    assert FileLock(path).acquire()


def test_a_lock_that_was_given_back_is_nobodys(home: Home) -> None:
    """Though the process that held it lives on; it says its time anew when it is taken."""
    lock = FileLock(home.locks / "-code.lock")
    before = int(time.time() * 1000) - 1_000

    lock.acquire()
    assert [each.pid for each in holders(home)] == [os.getpid()]
    assert holders(home)[0].since > before
    lock.release()

    assert holders(home) == []
    assert lock.holder() == 0


@pytest.mark.parametrize("said", [b"", b"x", b"0\n", b"-1\n", b"9" * 30, b"1e9", b"\xff" * 99])
def test_what_a_lock_file_says_is_believed_only_where_it_is_held(home: Home, said: bytes) -> None:
    """Anything may stand there: nothing is raised and nobody is named."""
    (home.locks / "odd.lock").write_bytes(said)
    (home.locks / "link.lock").symlink_to("/etc/hostname")
    os.mkfifo(home.locks / "pipe.lock")
    (home.locks / "folder.lock").mkdir()

    assert holders(home) == []


def test_a_home_without_locks_has_no_holders(tmp_path: Path) -> None:
    """Looking makes none."""
    assert holders(Home(tmp_path / "none")) == []
    assert not (tmp_path / "none").exists()


def test_the_disk_is_told_by_part(home: Home) -> None:
    """Files, folders with all below, and what is free; links are not followed."""
    home.ledger.write_bytes(b"x" * 1000)
    home.ledger.with_name("memoryd.sqlite-wal").write_bytes(b"x" * 300)
    (home.baselines / "a.git" / "objects").mkdir(parents=True)
    (home.baselines / "a.git" / "objects" / "pack").write_bytes(b"x" * 70)
    (home.baselines / "away").symlink_to("/usr")

    found = disk_use(home)

    assert (found.size("ledger"), found.size("ledger-wal")) == (1000, 300)
    assert 70 <= found.size("baselines") < 4096
    assert found.size("sessions") == 0 and found.free > 0


def test_a_huge_folder_costs_a_bounded_look(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is over the bound is not counted, and that is said."""
    monkeypatch.setattr(disk, "MOST_FILES", 3)
    for number in range(5):
        (home.inbox / f"{number}.json").write_bytes(b"x")

    inbox = next(part for part in disk_use(home).parts if part.what == "inbox")

    assert not inbox.whole and inbox.size <= 3


def test_a_holder_that_never_ends_costs_one_who_waits_a_thread_once(tmp_path: Path) -> None:
    """However often it gives up and comes again; then it has the lock, and gives it back."""
    path = tmp_path / "locks/one.lock"
    holder, later = FileLock(path), FileLock(path)
    before = threading.active_count()
    assert holder.acquire()

    assert not any(FileLock(path).acquire(0.001) for _ in range(5))
    assert threading.active_count() == before + 1
    threading.Timer(0.01, holder.release).start()

    assert later.acquire(5)
    assert not FileLock(path).acquire()
    later.release()
    assert FileLock(path).acquire()
