"""The file of the session history, opened more than once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from memoryd.memory.errors import HistoryError
from memoryd.memory.files import make_database_file
from memoryd.sessions.database import Database


@pytest.mark.slow
def test_opening_it_again_leaves_the_locks_of_who_has_it_open(tmp_path: Path) -> None:
    """Another process would take the log away that this one still reads."""
    path = tmp_path / "sessions.sqlite"
    first, second = Database(path), Database(path)
    first.open()
    second.open()
    script = (
        "import sqlite3, sys; database = sqlite3.connect(sys.argv[1]);"
        "database.execute('insert into unindexed values (7)'); database.commit(); database.close()"
    )

    subprocess.run([sys.executable, "-c", script, str(path)], check=True)

    assert path.with_name("sessions.sqlite-wal").exists()
    with first.reading() as cursor:
        assert cursor.execute("select message_id from unindexed").fetchall() == [(7,)]
    first.close()
    second.close()


def test_a_file_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    """Also where a link leads to it; one that is there keeps what it holds."""
    link, target = tmp_path / "link", tmp_path / "target"
    link.symlink_to(target)

    make_database_file(link)
    assert (target.stat().st_mode & 0o777, target.read_bytes()) == (0o600, b"")

    target.write_bytes(b"kept")
    make_database_file(link)
    assert target.read_bytes() == b"kept"


def test_a_directory_in_its_place_is_said(tmp_path: Path) -> None:
    """As a thing of the disk."""
    (tmp_path / "sessions.sqlite").mkdir()

    with pytest.raises(HistoryError) as caught:
        Database(tmp_path / "sessions.sqlite").open()

    assert "is a folder" in caught.value.message
