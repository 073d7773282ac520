"""What was done to a memory, and what changed since, as a person asks for it."""

from __future__ import annotations

from processes import PNPM, TABS, World


def _distil(world: World, *said: str, session: str = "s-1") -> str:
    """Have a session distilled; the job's id."""
    transcript = world.claude(*said, session=session)
    words = ("enqueue", "finalize", "--agent", "claude-code", "--transcript", str(transcript))
    return str(world.answer(*words, "--wait")["job"]["id"])


def test_history_and_diff_tell_what_a_job_and_a_person_did(world: World) -> None:
    """The job, then an edit in no commit yet; and nothing drives the terminal."""
    job = _distil(world, TABS)
    (path,) = world.notes()
    (commit,) = world.answer("memory", "history")["commits"]
    note = world.store().root / path
    note.write_text(note.read_text() + "\nMine \x1b[31m\n")

    text = world.run("memory", "history", note.stem).stdout
    since = world.answer("memory", "diff", job[-8:])
    shown = world.run("memory", "diff").stdout

    assert (commit["job"], commit["author"], commit["paths"]) == (job, "memoryd", [path])
    assert job[-8:] in text and commit["commit"][:8] in text and path in text
    assert since["since"] == commit["commit"]
    assert [(each["path"], each["status"]) for each in since["files"]] == [(path, "changed")]
    assert "+Mine \N{REPLACEMENT CHARACTER}[31m" in shown
    assert world.run("memory", "diff", "--since-consolidation").returncode == 1


def test_show_says_that_a_job_was_undone(world: World) -> None:
    """And that it stands again once the undo is undone."""
    job = _distil(world, TABS, PNPM)
    undone = world.answer("memory", "undo", job)["id"]

    told = world.run("show", job).stdout
    values = world.answer("show", job)

    assert "undone: " in told and "applied: " not in told
    assert undone in told
    assert values["undone"] == undone
    world.answer("memory", "undo", undone)
    assert world.answer("show", job)["undone"] is None


def test_a_project_without_a_memory_says_so(world: World) -> None:
    """No error for its history; nothing to compare with."""
    world.home.prepare()

    assert world.answer("memory", "history")["commits"] == []
    assert "nothing was ever written" in world.run("memory", "diff").stderr
