"""What ``[privacy] exclude`` may say, in ``config.toml`` and in a project's own file."""

from __future__ import annotations

from pathlib import Path

import pytest

from memoryd.memory.config import AGENTS, Config, PrivacySettings, load, load_project
from memoryd.memory.errors import ConfigError
from memoryd.memory.exclusions import excluded
from memoryd.sessions.agents import known


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home directory with code in it."""
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "code/notes/drafts").mkdir(parents=True)
    return tmp_path


def written(folder: Path, text: str, name: str = "config.toml") -> Path:
    """A file of settings."""
    path = folder / name
    path.write_text(text)
    return path


def problems(path: Path) -> tuple[str, ...]:
    """Why the configuration is refused."""
    with pytest.raises(ConfigError) as failed:
        load(path)
    return failed.value.problems


@pytest.mark.parametrize(
    "entry",
    [
        "{}/code/notes",
        "~/code/notes",
        "$HOME/code/notes",
        "${{HOME}}/code/notes/",
        "~/co*/notes",
        "~/code/**",
        "**/code/notes",
        "*/code/notes",
        "notes",
        "not*",
    ],
)
def test_an_entry_that_is_taken_excludes(person: Path, entry: str) -> None:
    """Every form that the table shows, and what lies below."""
    path = written(person, f"[privacy]\nexclude = ['{entry.format(person)}']\n")

    globs = load(path).privacy.exclude

    assert excluded(str(person / "code/notes/drafts"), globs)
    assert not excluded(str(person / "other"), globs)


@pytest.mark.parametrize(
    ("entry", "instead"),
    [
        ("code/notes", 'write "~/code/notes"'),
        ("./code/notes", 'write "~/code/notes"'),
        ("notes/", 'write "~/notes"'),
        (".", "that project"),
        ("./", "that project"),
        ("", "is empty"),
        (" ", "is empty"),
        ("$SECRETS/x", "write the path itself"),
        ("${SECRETS}", "write the path itself"),
        ("~ada/x", "/home/"),
        ("~/../x", "the whole path"),
        ("..", "the whole path"),
        ("C:\\\\work", "/mnt/c"),
    ],
)
def test_an_entry_that_would_protect_nothing_is_refused(
    person: Path, entry: str, instead: str
) -> None:
    """By its name, with what to write instead."""
    (problem,) = problems(written(person, f'[privacy]\nexclude = ["{entry}"]\n'))

    assert problem.startswith(f'privacy.exclude "{entry.replace(chr(92) * 2, chr(92))}" ')
    assert instead in problem


@pytest.mark.parametrize(
    ("entry", "inside", "outside"),
    [
        (".", "drafts", ".."),
        ("./", ".", ".."),
        ("./drafts", "drafts/old", "."),
        ("drafts/old", "drafts/old", "drafts"),
        ("drafts", "drafts", "."),
    ],
)
def test_in_a_projects_own_file_an_entry_is_seen_from_there(
    tmp_path: Path, entry: str, inside: str, outside: str
) -> None:
    """Whatever letters its directory is made of; what all exclude stays excluded."""
    project = tmp_path / "a [b]*"
    (project / "drafts/old").mkdir(parents=True)
    written(project, f'[privacy]\nexclude = ["{entry}"]\n', ".memoryd.toml")

    globs = load_project(project, Config(privacy=PrivacySettings(("/all",)))).privacy.exclude

    assert excluded(str(project / inside), globs) and excluded("/all/of/it", globs)
    assert not excluded(str(project / outside), globs)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('exclude = ["x"]', "exclude stands in no section: write [privacy]"),
        ("auto_extract = false", "auto_extract stands in no section: write [memory]"),
        ("foo = 1", "unknown key foo: a project file may set only"),
        ("[foo]\nx = 1", "unknown section [foo]: a project file may set only"),
        ("[privcy]\nx = 1", "unknown section [privcy]; did you mean privacy?"),
        ("privacy = 1", "[privacy] is not a section"),
        ("memory = 1", "[memory] is not a section"),
        ('[privacy]\nexclude = "oops"', "privacy.exclude must be a list of strings"),
        ("[privacy]\nkeep = 1", "unknown key privacy.keep"),
        ('[privacy]\nexclude = ["$X/y"]', 'privacy.exclude "$X/y" holds a variable'),
    ],
)
def test_what_is_wrong_in_a_projects_own_file_is_said_as_what_it_is(
    tmp_path: Path, text: str, said: str
) -> None:
    """Nobody has to guess which of the rules it broke."""
    written(tmp_path, text, ".memoryd.toml")

    with pytest.raises(ConfigError) as failed:
        load_project(tmp_path, Config())

    assert said in failed.value.message


def test_a_project_without_a_directory_has_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What lies where the program was started is not its own."""
    written(tmp_path, '[privacy]\nexclude = ["."]\n', ".memoryd.toml")
    monkeypatch.chdir(tmp_path)

    assert load_project(Path(), Config()) == Config()
    assert not excluded("", (str(tmp_path), "**"))


def test_a_key_on_the_top_level_is_told_its_section(tmp_path: Path) -> None:
    """It is no section that is unknown."""
    said = problems(written(tmp_path, "keep_days = 3\nfoo = 1\n"))

    assert said == (
        "keep_days stands in no section: write [sessions] on the line above it",
        "unknown key foo",
    )


def test_an_agent_that_nobody_knows_is_refused(tmp_path: Path) -> None:
    """With the nearest that is known; it would have stopped the sweep."""
    text = '[sessions]\nagents = ["codex", "opncode", "zzz"]\n'

    near, far = problems(written(tmp_path, text))

    assert near == "sessions.agents names no agent that is known: 'opncode'; did you mean opencode?"
    assert "the known ones are claude-code, codex" in far


def test_the_agents_a_configuration_may_name_are_those_that_can_be_read() -> None:
    """One list says it for the other."""
    assert known() == AGENTS
