"""Where other memories are, and which project each belongs to."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from import_builders import put

from memoryd.memory.errors import UsageError
from memoryd.memory.home import Home
from memoryd.memory.importing import places
from memoryd.memory.importing.places import (
    CLAUDE_CODE,
    FREECODE,
    directories,
    freecode_legacy_key,
    is_claude_key,
)
from memoryd.memory.importing.sources import Source, find_sources
from memoryd.memory.projects import Project, project_key, record


@pytest.fixture
def person(tmp_path: Path) -> Path:
    """The person's own directory."""
    return tmp_path / "person"


def freecode(person: Path, key: str) -> Path:
    """A FreeCode store with one note; its memory directory."""
    memory = person / ".freecode" / "projects" / key / "memory"
    put(memory, "user/a.md", "Use tabs.")
    return memory


def found(person: Path, home: Home, given: Path | None = None) -> list[Source]:
    """What is found for this person."""
    return find_sources(None, given, {"HOME": str(person)}, home)


def known(home: Home, path: Path) -> None:
    """Have memoryd know a project."""
    record(home, Project(project_key(str(path)), str(path)))


@pytest.mark.parametrize(
    ("path", "key"),
    [
        ("/home/a/my-project", "home__a__my_h_project"),
        ("/a/b c/ünï", "a__b c__ünï"),
        ("/", ""),
        ('/a<b>:"|?*/c', "ab__c"),
    ],
)
def test_freecodes_key_of_a_path(path: str, key: str) -> None:
    """As it was observed."""
    assert FREECODE.key(path) == key


def test_other_keys_of_a_path() -> None:
    """FreeCode's older one, and Claude Code's, whose long ones end in a hash."""
    assert freecode_legacy_key("/home/a/my project!") == "my_project_"
    assert is_claude_key("-home-a-my-project-x", "/home/a/my.project/x")
    long = "/" + "d" * 250
    assert is_claude_key("-" + "d" * 199 + "-1x2y3z", long)
    assert not is_claude_key("-" + "d" * 199, long)
    assert CLAUDE_CODE.key("/\N{GRINNING FACE}") == "--"


def test_a_key_that_one_directory_has_is_placed(tmp_path: Path, home: Home, person: Path) -> None:
    """Hyphens, dots and spaces in names included."""
    project = tmp_path / "my-code" / "an app.v2"
    project.mkdir(parents=True)
    memory = freecode(person, FREECODE.key(str(project)))

    assert found(person, home) == [
        Source("freecode", FREECODE.key(str(project)), memory, (str(project),))
    ]


def test_a_key_that_two_directories_have_is_not_placed(tmp_path: Path) -> None:
    """The scheme is not injective: both are named, a person must say."""
    for path in ("a__b/c", "a/b/c"):
        (tmp_path / path).mkdir(parents=True)
    key = FREECODE.key(str(tmp_path / "a/b/c"))

    assert directories(key, FREECODE) == (str(tmp_path / "a/b/c"), str(tmp_path / "a__b/c"))


def test_a_search_that_would_take_too_long_finds_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half an answer would look like the only one."""
    (tmp_path / "a").mkdir()
    key = FREECODE.key(str(tmp_path / "a"))
    assert directories(key, FREECODE) == (str(tmp_path / "a"),)

    monkeypatch.setattr(places, "MAX_LISTED", len(tmp_path.parts) - 1)

    assert directories(key, FREECODE) == ()


def test_two_ways_to_one_directory_are_one(tmp_path: Path) -> None:
    """A link is no second place."""
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a__b").symlink_to(tmp_path / "a" / "b")

    assert directories(FREECODE.key(str(tmp_path / "a/b")), FREECODE) == (str(tmp_path / "a/b"),)


def test_a_project_that_is_gone_is_not_placed(tmp_path: Path, home: Home, person: Path) -> None:
    """Its memory is there and is listed."""
    freecode(person, FREECODE.key(str(tmp_path / "gone")))

    (source,) = found(person, home)

    assert source.belongs_to == ()


def test_an_older_key_is_placed_by_the_one_known_project_of_that_name(
    tmp_path: Path, home: Home, person: Path
) -> None:
    """Two of one name, and nobody can tell."""
    freecode(person, "zz_old-app")
    known(home, tmp_path / "x" / "zz_old-app")
    assert found(person, home)[0].belongs_to == (str(tmp_path / "x" / "zz_old-app"),)

    known(home, tmp_path / "y" / "zz_old-app")
    assert len(found(person, home)[0].belongs_to) == 2


def test_the_memory_of_the_root_directory_has_an_empty_key(home: Home, person: Path) -> None:
    """It lies beside the projects' folders."""
    memory = person / ".freecode" / "projects" / "memory"
    put(memory, "user/a.md", "Use tabs.")

    assert found(person, home) == [Source("freecode", "", memory)]
    assert found(person, home, memory) == [Source("freecode", "", memory)]


def test_claude_codes_memory_is_placed_by_the_transcripts_beside_it(
    tmp_path: Path, home: Home, person: Path
) -> None:
    """Where two directories have its key, what was said there decides."""
    for name in ("my-app", "my.app"):
        (tmp_path / name).mkdir()
    key = "-" + CLAUDE_CODE.key(str(tmp_path / "my.app"))
    folder = person / ".claude" / "projects" / key
    put(folder, "memory/MEMORY.md", "- [A](a.md) — a\n")
    assert len(found(person, home)[0].belongs_to) == 2

    lines = ["not json", json.dumps([1]), json.dumps({"cwd": "/"}), json.dumps({"cwd": 5})]
    lines.append(json.dumps({"cwd": str(tmp_path / "my.app")}))
    put(folder, "s-1.jsonl", "\n".join(lines) + "\n")

    assert found(person, home)[0].belongs_to == (str(tmp_path / "my.app"),)


def test_a_source_is_found_from_any_folder_of_its_agent(home: Home, person: Path) -> None:
    """The memory, the project, all projects, or the agent's own directory."""
    memory = freecode(person, "zz__one")
    freecode(person, "zz__two")

    for given in (memory, memory.parent):
        assert [each.key for each in found(person, home, given)] == ["zz__one"]
    for given in (memory.parent.parent, person / ".freecode"):
        assert [each.key for each in found(person, home, given)] == ["zz__one", "zz__two"]


def test_a_copy_of_a_memory_is_one_if_the_person_says_so(
    tmp_path: Path, home: Home, person: Path
) -> None:
    """Its project must then be named."""
    put(tmp_path / "copy", "user/a.md", "Use tabs.")

    (source,) = find_sources("freecode", tmp_path / "copy", {"HOME": str(person)}, home)

    assert source == Source("freecode", str(tmp_path / "copy"), tmp_path / "copy")


def test_any_other_directory_is_a_folder(tmp_path: Path, home: Home, person: Path) -> None:
    """Known by its path; below the person's directory without naming it."""
    for place in (person / "notes", tmp_path / "notes"):
        place.mkdir(parents=True)

    assert found(person, home, person / "notes")[0].key == "~/notes"
    assert found(person, home, tmp_path / "notes")[0].key == str(tmp_path / "notes")


def test_a_linked_project_is_not_followed(home: Home, person: Path, tmp_path: Path) -> None:
    """A memory behind a link is somebody else's."""
    put(tmp_path / "else" / "memory", "user/a.md", "Use tabs.")
    projects = person / ".freecode" / "projects"
    projects.mkdir(parents=True)
    (projects / "x").symlink_to(tmp_path / "else")

    assert found(person, home) == []


def test_what_is_no_directory_is_refused(home: Home, person: Path, tmp_path: Path) -> None:
    """And so is a folder that is not named."""
    with pytest.raises(UsageError, match="no directory"):
        found(person, home, tmp_path / "none")
    with pytest.raises(UsageError, match="must be named"):
        find_sources("folder", None, {}, home)
