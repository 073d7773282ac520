"""A store reads and writes its own files and nothing else."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from store_builders import make_store, note_bytes, write_bytes, write_note

from memoryd.memory.errors import DiskFull, StoreBusy, StoreError
from memoryd.memory.files import sha256
from memoryd.memory.home import Home
from memoryd.memory.store import MAX_FILE_BYTES, Store, Unreadable


@pytest.mark.parametrize(
    "path",
    [
        "../x.md",
        "user/../user/x.md",
        "/etc/x.md",
        "user/x.txt",
        "user/.x.md",
        "user/deep/x.md",
        "other/x.md",
        "archive/x.md",
        "x.md",
        "MEMORY.md",
        ".git",
        "user/x\0.md",
        "",
        "user/" + "x" * 300 + ".md",
    ],
)
def test_no_path_leads_out_of_memory(home: Home, path: str) -> None:
    """Reading, writing and removing refuse whatever is no name of a note."""
    store = make_store(home)

    with pytest.raises(StoreError):
        store.read(path)
    with pytest.raises(StoreError):
        store.replace(path, b"x", found=None)
    with pytest.raises(StoreError):
        store.remove(path, found="")


def test_links_pipes_and_folders_are_not_followed(home: Home, tmp_path: Path) -> None:
    """They are named as unreadable, and nothing behind them is read or written."""
    store = make_store(home, real="Here")
    secret = tmp_path / "elsewhere.md"
    secret.write_text("not ours")
    (store.root / "user/link.md").symlink_to(secret)
    (store.root / "user/folder.md").mkdir()
    os.mkfifo(store.root / "user/pipe.md")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "x.md").write_text("not ours")
    (store.root / "project").symlink_to(tmp_path / "outside")

    assert [note.name for note in store.notes()] == ["real"]
    assert [found.path for found in store.unreadable()] == [
        "user/folder.md",
        "user/link.md",
        "user/pipe.md",
    ]
    with pytest.raises(StoreError, match="symbolic link"):
        store.read("project/x.md")
    with pytest.raises(StoreError, match="symbolic link"):
        store.replace("project/y.md", b"x", found=None)
    assert sorted(path.name for path in (tmp_path / "outside").iterdir()) == ["x.md"]
    assert secret.read_text() == "not ours"


def test_a_huge_file_and_a_bad_header_are_reported(home: Home) -> None:
    """The rest of the store stays readable."""
    store = make_store(home, good="Fine")
    write_bytes(store, "user/huge.md", b"x" * (MAX_FILE_BYTES + 1))
    write_bytes(store, "user/open.md", b"---\nname: a\n")

    assert [note.name for note in store.notes()] == ["good"]
    assert store.unreadable() == [
        Unreadable("user/huge.md", "it is larger than 1048576 bytes"),
        Unreadable("user/open.md", "the header is not closed"),
    ]
    with pytest.raises(StoreError, match="larger"):
        store.replace("user/new.md", b"x" * (MAX_FILE_BYTES + 1), found=None)


def test_a_file_changed_meanwhile_is_not_replaced(home: Home) -> None:
    """Every write names the bytes it was decided on."""
    store = make_store(home, a="One")
    old = sha256(note_bytes("user/a.md", "One"))
    write_note(store, "user/a.md", "A person's")

    assert not store.replace("user/a.md", b"ours", found=old)
    assert not store.replace("user/a.md", b"ours", found=None)
    assert not store.remove("user/a.md", found=old)

    assert store.read("user/a.md") == note_bytes("user/a.md", "A person's")
    assert [path.name for path in (store.root / "user").iterdir()] == ["a.md"]


def test_a_write_is_private_and_a_removal_complete(home: Home) -> None:
    """0600 in 0700, and nothing left behind."""
    store = make_store(home)

    assert store.replace("episode/a.md", b"x", found=None)

    assert (store.root / "episode/a.md").stat().st_mode & 0o777 == 0o600
    assert (store.root / "episode").stat().st_mode & 0o777 == 0o700
    assert store.remove("episode/a.md", found=sha256(b"x"))
    assert store.read("episode/a.md") is None


def test_one_writer_at_a_time(home: Home) -> None:
    """The second is told to come back."""
    store = make_store(home)

    with (
        store.writer_lock(),
        pytest.raises(StoreBusy, match=str(os.getpid())),
        store.writer_lock(),
    ):
        pass

    with store.writer_lock():
        assert store.lock_path.exists()


def test_a_full_disk_does_not_keep_a_store_from_being_locked(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pid in the lock's file is information only; where there is no file, that is said."""
    store = make_store(home)

    def full(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", full)
        with store.writer_lock():
            assert store.lock_path.exists()
    with store.writer_lock():
        pass

    monkeypatch.setattr(os, "open", full)
    with pytest.raises(DiskFull), store.writer_lock():
        pass


def test_the_index_is_derived_from_the_notes(home: Home) -> None:
    """One section a type, one line a note, no archived ones; the same text is not written."""
    store = make_store(home, b="B", a="A")
    write_note(store, "project/c.md", "C")
    write_note(store, "archive/user/old.md", "Old")

    store.write_index()

    text = (store.root / "MEMORY.md").read_text()
    assert text.endswith(
        "## User\n- [a](user/a.md) — About a\n- [b](user/b.md) — About b\n\n"
        "## Project\n- [c](project/c.md) — About c\n"
    )
    inode = (store.root / "MEMORY.md").stat().st_ino
    store.write_index()
    assert (store.root / "MEMORY.md").stat().st_ino == inode


def test_a_long_index_says_that_it_is_cut(home: Home) -> None:
    """200 lines, then a warning with the total."""
    store = make_store(home)
    for number in range(230):
        write_bytes(store, f"user/n{number:03}.md", b"x")

    store.write_index()

    lines = (store.root / "MEMORY.md").read_text().split("---\n")[1].strip().splitlines()
    assert len(lines) == 202
    assert lines[-1].startswith("> WARNING: index truncated at 200 lines (232 total)")
    (store.root / "user/n229.md").unlink()
    store.refresh_index()
    assert "(232 total)" in (store.root / "MEMORY.md").read_text()
    store.write_index()
    assert "(231 total)" in (store.root / "MEMORY.md").read_text()


def test_a_profile_is_a_store_of_its_own_files(home: Home) -> None:
    """It has its own lock and baseline, and no notes."""
    store = Store.open(home, "profile-default")

    assert (store.root, store.git_dir.name, store.lock_path.name) == (
        home.root / "profiles" / "default",
        "profile-default.git",
        "profile-default.lock",
    )
    assert store.holds("USER.md") and not store.holds("user/a.md")
    assert store.replace("USER.md", b"- x\n", found=None)
    assert store.paths() == ["USER.md"]


@pytest.mark.parametrize("key", ["", "..", "a/b", "a\0", "x" * 300, "profile-../x"])
def test_no_key_leads_out_of_the_home(home: Home, key: str) -> None:
    """A key is one name of a folder."""
    with pytest.raises(StoreError):
        Store.open(home, key)
