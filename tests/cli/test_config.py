"""The configuration, shown, checked, and refused where it cannot be used."""

from __future__ import annotations

from processes import World


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
    assert "the defaults are used" in done.stderr


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
