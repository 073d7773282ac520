"""The configuration, shown, checked, and refused where it cannot be used."""

from __future__ import annotations

import pytest
from processes import World

from memoryd.cli.common import configuration
from memoryd.memory.config import Config, load
from memoryd.memory.errors import ConfigError
from memoryd.memory.home import Home


def test_show_prints_every_setting_in_a_form_that_can_be_read_back(world: World) -> None:
    """The text is TOML; the file made of it changes nothing."""
    before = world.answer("config", "show")

    world.configure(world.run("config", "show").stdout)

    assert world.run("config", "check").returncode == 0
    assert world.answer("config", "show") == before
    assert before["queue"]["workers"] == 2


def test_check_names_every_problem_and_the_nearest_known_key(world: World) -> None:
    """All at once, so that a file is mended in one go."""
    world.configure('[queue]\nworker = 3\nlease_seconds = "long"\n[provder]\nname = "rules"\n')

    done = world.answer_failed("config", "check")

    assert done["usable"] is False
    assert done["problems"] == [
        "unknown key queue.worker; did you mean workers?",
        "queue.lease_seconds must be a whole number",
        "unknown section [provder]; did you mean provider?",
    ]


def test_other_commands_say_it_and_use_the_defaults(world: World) -> None:
    """A mistake in the file must not hide the queue."""
    world.configure("[queue\n")

    done = world.run("status")

    assert done.returncode == 0
    assert "uses the defaults, a daemon that runs what it last read" in done.stderr
    assert "`memoryd config check`" in done.stderr


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (b"a = 1\nx = [", 2),
        (b'a = 1\n\nx = """\n\n\n', 3),
        (b'x = "\n', 1),
        (b"a = 1\nb = 2\nx = '\xff'\n", 3),
        (b"a = 1\nx = = 2\n", 2),
    ],
)
def test_the_line_that_is_no_toml_is_named(home: Home, text: bytes, line: int) -> None:
    """Also where the parser names none: at the end of the file, and for bytes."""
    home.config_file.write_bytes(text)

    with pytest.raises(ConfigError) as raised:
        load(home.config_file)

    assert (
        f"at line {line}" in raised.value.message and f"at line {line}" in raised.value.problems[0]
    )


def test_what_is_said_of_a_broken_file_counts_its_problems(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first is named, and how many more there are."""
    home.config_file.write_text("[queue]\nworker = 3\nlease = 1\n[provder]\n")

    assert configuration(home) == Config()

    assert "worker; did you mean workers? (and 2 more);" in capsys.readouterr().err


def test_run_refuses_a_file_that_cannot_be_used(world: World) -> None:
    """With 78, which the service manager does not restart, and before anything is claimed."""
    world.configure('[provider]\nname = "oracle"\n')
    world.envelope(world.claude("Always run the linter."))

    for words in (("run",), ("run", "--once")):
        done = world.run(*words)
        assert done.returncode == 78
        assert "provider.name must be one of" in done.stderr

    assert [job.attempt for job in world.jobs()] in ([], [0])


def test_no_session_is_read_here_with_the_defaults_in_place_of_a_broken_file(
    world: World,
) -> None:
    """They exclude nothing, and the file may."""
    world.configure('[privacy]\nexclude = ["code/notes", "/"]\n')
    transcript = world.claude("Always run the linter.")

    words = ("enqueue", "finalize", "--agent", "claude-code", "--transcript", str(transcript))
    done = world.run(*words, "--wait")

    assert done.returncode == 1
    assert 'privacy.exclude "code/notes" means no directory' in done.stderr
    assert [job.attempt for job in world.jobs()] == [0]


def test_path_says_where_the_file_would_be(world: World) -> None:
    """Whether it exists or not."""
    assert world.answer("config", "path") == {
        "path": str(world.home.config_file),
        "exists": False,
    }
