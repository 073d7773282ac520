"""A directory has one spelling, whatever case, accents or system its path comes in."""

from __future__ import annotations

import os
import unicodedata
from functools import partial
from pathlib import Path

import pytest

from memoryd.memory.home import Home
from memoryd.memory.projects import Resolver
from memoryd.memory.spelling import as_on_disk, from_windows


def folded(name: str) -> str:
    """As a volume that ignores case and composition compares names."""
    return unicodedata.normalize("NFC", name).casefold()


def look_at(path: str) -> os.stat_result:
    """``lstat`` as such a volume would answer it."""
    here = Path("/")
    for name in filter(None, path.split("/")):
        same = [each for each in here.iterdir() if folded(each.name) == folded(name)]
        here = same[0] if same else here / name
    return here.lstat()


ignoring_case = partial(as_on_disk, look_at=look_at)


def test_a_volume_that_ignores_case_has_one_project_a_directory(home: Home, tmp_path: Path) -> None:
    """However an agent spells it."""
    app = tmp_path.resolve() / "Apps" / "Café 7"
    app.mkdir(parents=True)
    other = unicodedata.normalize("NFD", "CAFÉ 7")

    resolver = Resolver(home, spelled=ignoring_case)

    for spelling in ("Apps/Café 7", "apps/café 7", "APPS/CAFÉ 7", f"aPPS/{other}"):
        assert resolver.resolve(f"{tmp_path.resolve()}/{spelling}").path == str(app)


def test_names_that_are_not_there_keep_their_spelling(tmp_path: Path) -> None:
    """Also below a folder that is respelled."""
    (tmp_path / "App").mkdir()
    root = str(tmp_path.resolve())

    assert ignoring_case(f"{root}/aPP/Gone/x") == f"{root}/App/Gone/x"
    assert ignoring_case("/") == "/"


def test_a_volume_that_minds_case_keeps_its_directories_apart(home: Home, tmp_path: Path) -> None:
    """Two names are two projects, and a wrong one is no other's."""
    for name in ("app", "APP", "Other"):
        (tmp_path / name).mkdir()
    resolver = Resolver(home)

    found = {resolver.resolve(str(tmp_path / name)).key for name in ("app", "APP", "App", "other")}

    assert len(found) == 4


def test_a_folder_that_may_not_be_listed_keeps_the_spelling(tmp_path: Path) -> None:
    """Nothing better is known."""
    (tmp_path / "App").mkdir()

    def refuse(path: str) -> list[str]:
        raise PermissionError(path)

    path = f"{tmp_path.resolve()}/aPP"
    assert as_on_disk(path, look_at, refuse) == path


@pytest.mark.parametrize(
    "path",
    ["C:\\Users\\x\\app", "c:/Users/x/app", "C:\\Users\\x\\app\\", "C:\\\\Users\\.\\x\\app"],
)
def test_a_windows_drive_is_the_directory_it_is_mounted_at(path: str, tmp_path: Path) -> None:
    """As WSL mounts it; where it does not, it is text in one spelling."""
    (tmp_path / "c").mkdir()

    assert from_windows(path, tmp_path) == f"{tmp_path}/c/Users/x/app"
    assert from_windows(path, tmp_path / "none") == "C:\\Users\\x\\app"


@pytest.mark.parametrize("path", ["", "a:b", "/mnt/c/x", "\\\\host\\c:\\x", "CC:\\x", "C:x"])
def test_what_names_no_drive_is_left_alone(path: str, tmp_path: Path) -> None:
    """Shares, relative paths, names with a colon."""
    (tmp_path / "a").mkdir()
    (tmp_path / "c").mkdir()

    assert from_windows(path, tmp_path) == path


def test_a_path_of_windows_is_one_project_in_all_its_spellings(home: Home) -> None:
    """Of a machine that is not this one."""
    resolver = Resolver(home)

    found = {resolver.resolve(path) for path in ("Q:\\app", "q:/app", "Q:\\app\\", "q:\\\\app")}

    assert len(found) == 1
