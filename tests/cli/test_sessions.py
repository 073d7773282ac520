"""``memoryd sessions``, as a person types it."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from processes import PNPM, TABS, World

PLAIN = "What does the parser of the importer do with a heron?"


def read(world: World, *said: str, session: str = "s-1") -> Path:
    """Have a session distilled."""
    transcript = world.claude(*said, session=session)
    words = ("enqueue", "finalize", "--agent", "claude-code", "--transcript", str(transcript))
    world.answer(*words, "--wait")
    return transcript


def files_with(world: World, word: str) -> list[str]:
    """The files of the home that hold the word."""
    found = [path for path in world.home.root.rglob("*") if path.is_file()]
    return [path.name for path in found if word.encode() in path.read_bytes()]


def test_a_session_is_listed_and_shown(world: World) -> None:
    """In text and in JSON, by any piece of its id that is unique."""
    read(world, f"{TABS}\nand more", PLAIN)

    (listed,) = world.answer("sessions", "list")["sessions"]
    shown = world.answer("sessions", "show", "claude-code/s-", "--limit", "2")
    text = world.run("sessions", "list").stdout
    told = world.run("sessions", "show", "1").stdout

    assert (listed["agent"], listed["session"], listed["state"]) == (
        "claude-code",
        "s-1",
        "distilled",
    )
    assert (listed["messages"], listed["user_messages"], listed["first"]) == (4, 2, TABS)
    assert listed["version"] == "2.1.230"
    assert TABS in text and "and more" not in text and "distilled" in text
    assert shown["said"][0]["text"] == f"{TABS}\nand more"
    assert (len(shown["said"]), shown["next_after"], shown["messages_kept"]) == (2, 2, 4)
    assert [job["outcome"] for job in shown["jobs"]] == ["notes.written"]
    assert len(shown["notes"]) == 1
    assert "heron" in told and "claude-code 2.1.230 s-1" in told
    tail = world.answer("sessions", "show", "s-1", "--tail", "1")["said"]
    assert [line["seq"] for line in tail] == [4]


def test_sessions_are_chosen_by_project_and_agent(world: World) -> None:
    """And an empty home says that nothing was read."""
    world.home.prepare()
    assert world.run("sessions", "list").stdout == "no session was read yet\n"
    read(world, TABS)

    assert len(world.answer("sessions", "list", "--project", ".")["sessions"]) == 1
    assert world.answer("sessions", "list", "--project", "/")["sessions"] == []
    assert world.answer("sessions", "list", "--agent", "codex")["sessions"] == []
    none = world.run("sessions", "list", "--agent", "codex").stdout
    assert none == "no session that was read fits (1 session)\n"


def test_a_filter_that_names_nothing_known_is_refused(world: World) -> None:
    """An agent as a usage error, a project as what is not there; both with the nearest."""
    read(world, TABS)
    typo = str(world.project.parent / f"{world.project.name}x")

    for words in (("list",), ("search", "tabs"), ("forget",)):
        agent = world.run("sessions", *words, "--agent", "claud-code")
        project = world.run("sessions", *words, "--project", typo)

        assert (agent.returncode, project.returncode) == (2, 1)
        assert "the nearest: claude-code" in agent.stderr
        assert f"the nearest: {world.project}" in project.stderr


def test_a_list_names_projects_so_that_project_takes_them(world: World) -> None:
    """Whole, by the directory, however deep that is."""
    read(world, TABS)

    lines = world.run("sessions", "list").stdout.splitlines()

    place = lines[1][lines[0].index("PROJECT") :].split()[0]
    assert world.answer("sessions", "list", "--project", place)["sessions"]
    assert place == str(world.project)


def test_what_was_said_in_no_known_directory_is_a_project_in_plain_words(world: World) -> None:
    """It is listed as what it is, and its key reaches it."""
    path = world.root / "s-1.jsonl"
    path.write_text(json.dumps({"type": "message", "role": "user", "text": TABS}) + "\n")
    words = ("enqueue", "finalize", "--agent", "generic", "--transcript", str(path))
    world.answer(*words, "--wait")

    listed = world.run("project", "list").stdout
    shown = world.run("project", "show", "%-").stdout
    found = world.answer("sessions", "search", "--project", "%-", "tabs")

    assert "no directory known" in listed and "no directory known" in shown
    assert [each["session"] for each in found["hits"]] == ["s-1"]
    (session,) = world.answer("sessions", "list", "--project", "%-")["sessions"]
    assert session["session"] == "s-1"


@pytest.mark.parametrize("command", ["show", "forget"])
def test_a_name_that_fits_none_or_several_is_refused(world: World, command: str) -> None:
    """With what to type instead."""
    read(world, TABS, session="s-1")
    read(world, PNPM, session="s-2")

    none = world.run("sessions", command, "nothing")
    both = world.run("sessions", command, "s-")
    wild = world.run("sessions", command, "%")

    assert (none.returncode, both.returncode, wild.returncode) == (1, 1, 1)
    assert "no session is called 'nothing'" in none.stderr and "sessions list" in none.stderr
    assert "claude-code/s-2, claude-code/s-1" in both.stderr
    assert "no session is called '%'" in wild.stderr


def test_a_forgotten_session_is_gone_and_its_notes_are_named(world: World) -> None:
    """They stay, with the command that forgets them."""
    read(world, TABS, PLAIN)
    assert files_with(world, "heron")

    done = world.answer("sessions", "forget", "s-1")
    text = world.run("sessions", "forget", "s-1").stdout

    assert [each["messages"] for each in done["forgotten"]] == [4]
    (note,) = done["notes"]
    assert "no word of it was kept, and none will be" in text
    assert f"memoryd memory forget {note['path'].removesuffix('.md')} --project" in text
    assert files_with(world, "heron") == []
    assert len(world.notes()) == 1
    (listed,) = world.answer("sessions", "list")["sessions"]
    assert (listed["state"], listed["first"]) == ("forgotten", "")
    assert "not kept any more" in world.run("sessions", "show", "s-1").stdout
    asked = ("enqueue", "finalize", "--agent", "claude-code", "--session", "s-1")
    assert "session.forgotten" in world.run(*asked).stderr


def test_its_notes_are_forgotten_with_it(world: World) -> None:
    """With tombstones: another session that says the same is not learned."""
    read(world, TABS, PLAIN)

    done = world.answer("sessions", "forget", "s-1", "--notes")

    (gone,) = done["notes_forgotten"]
    assert done["notes"] == [] and world.notes() == {}
    read(world, TABS, session="s-2")
    assert world.notes() == {}
    world.answer("memory", "undo", gone["undo"][-8:])
    assert len(world.notes()) == 1


def test_words_go_with_a_pass_over_the_home(world: World) -> None:
    """Those of last January, once a home keeps them for a day; the session is still listed."""
    read(world, TABS, PLAIN)
    world.configure("[sessions]\nkeep_days = 1\n")

    world.run("run", "--once")

    assert files_with(world, "heron") == []
    (listed,) = world.answer("sessions", "list")["sessions"]
    assert (listed["state"], listed["messages"]) == ("distilled", 4)
    assert world.answer("sessions", "show", "s-1")["messages_kept"] == 0


def test_many_are_shown_before_they_are_forgotten(world: World) -> None:
    """By agent, project and age; without --yes nothing happens."""
    read(world, TABS, session="s-1")
    read(world, PNPM, session="s-2")

    seen = world.run("sessions", "forget", "--older-than", "1")
    none = world.answer("sessions", "forget", "--before", "2026-01-05")
    assert "nothing was forgotten; --yes forgets these 2 sessions" in seen.stdout
    assert (none["sessions"], none["done"]) == ([], False)
    assert world.answer("sessions", "forget", "--agent", "claude-code")["done"] is False
    assert len(world.answer("sessions", "show", "s-1")["said"]) == 2

    done = world.answer("sessions", "forget", "--project", ".", "--yes")

    assert len(done["forgotten"]) == 2
    assert world.answer("sessions", "forget", "--project", ".")["sessions"] == []


@pytest.mark.slow
def test_a_person_in_a_terminal_is_asked_before_words_go(world: World) -> None:
    """No: all stays. Yes: they go; a script is not asked."""
    read(world, TABS)

    said_no, told = on_a_terminal(world, b"n\n", "sessions", "forget", "s-1")
    kept = world.answer("sessions", "show", "s-1")["messages_kept"]
    said_yes, _ = on_a_terminal(world, b"y\n", "sessions", "forget", "s-1")

    assert (said_no, kept, said_yes) == (1, 2, 0)
    assert "claude-code/s-1: " in told and "nothing was forgotten" in told
    assert world.answer("sessions", "show", "s-1")["messages_kept"] == 0


def on_a_terminal(world: World, typed: bytes, *words: str) -> tuple[int, str]:
    """The exit code of a command at which a person types, and what it says."""
    main, side = pty.openpty()
    program = Path(sys.executable).with_name("memoryd")
    with subprocess.Popen(
        [program, *words], stdin=side, stdout=subprocess.PIPE, env=world.environ
    ) as process:
        os.write(main, typed)
        assert process.stdout is not None
        said = process.stdout.read().decode()
        code = process.wait(timeout=60)
    os.close(side)
    os.close(main)
    return code, said


def test_what_is_to_be_forgotten_must_be_said(world: World) -> None:
    """Either sessions or what to find them by."""
    for words in ((), ("s-1", "--agent", "codex"), ("--yes",)):
        done = world.run("sessions", "forget", *words)
        assert (done.returncode, "say which" in done.stderr) == (2, True)


def test_a_session_that_was_never_read_can_be_forgotten(world: World) -> None:
    """By its agent and whole id."""
    world.home.prepare()
    transcript = world.claude(TABS, session="s-7")

    done = world.answer("sessions", "forget", "claude-code/s-7")
    world.hook(transcript, "s-7")
    world.run("run", "--once")

    assert done["forgotten"][0]["read"] is True
    assert world.jobs() == []


def test_what_was_skipped_is_told_by_agent_and_version(world: World) -> None:
    """What memoryd does not know apart from what it leaves out on purpose."""
    transcript = world.claude(TABS)
    lines = [{"type": "novelty"}] * 30 + [{"type": "progress"}] * 3
    with transcript.open("a") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)
        file.write("no json\n")
    words = ("enqueue", "finalize", "--agent", "claude-code", "--transcript", str(transcript))
    world.answer(*words, "--wait")

    (one,) = world.answer("sessions", "doctor")["agents"]
    text = world.run("sessions", "doctor").stdout
    found = [each["code"] for each in world.answer("doctor")["findings"]]

    assert (one["agent"], one["version"], one["sessions"]) == ("claude-code", "2.1.230", 1)
    assert (one["known"], one["unknown"], one["bad_lines"]) == (
        {"progress": 3},
        {"novelty": 30},
        1,
    )
    assert one["read_worse"] is True
    assert "of unknown type: 30 novelty" in text and "than before" in text
    assert "transcripts.unknown" in found
    transcript.unlink()
    assert world.answer("sessions", "doctor")["agents"][0]["gone"] == 1


def test_a_database_that_cannot_be_read_is_named(world: World) -> None:
    """With its agent; the others are read."""
    world.home.prepare()
    path = Path(world.environ["HOME"]) / ".hermes" / "state.db"
    path.parent.mkdir(parents=True)
    path.write_bytes(os.urandom(4096))

    (one,) = world.answer("sessions", "doctor")["unreadable"]

    assert one["agent"] == "hermes" and "state.db" in one["reason"]


ZEPPELIN = "Please remember that we always fly the zeppelin to Reykjavik."


def left_of(world: World, *words: str) -> set[str]:
    """The files of the home that hold one of the words, or are called so, git's objects apart."""
    return {
        path.relative_to(world.home.root).as_posix()
        for path in world.home.root.rglob("*")
        if path.is_file() and "objects" not in path.parts
        for word in words
        if word in path.name.lower() or word in path.read_bytes().decode("utf-8", "replace").lower()
    }


@pytest.mark.slow
@pytest.mark.parametrize("command", ["sessions forget", "memory forget", "memory delete"])
def test_a_forgotten_note_is_in_no_file_but_in_gits_history(world: World, command: str) -> None:
    """Neither its words nor its name; the answer says where they still are."""
    read(world, TABS, ZEPPELIN, PNPM)
    world.answer("memory", "list")
    read(world, "Please remember that we call the heron Gustav.", session="s-2")
    (note,) = [each for each in world.answer("memory", "list")["notes"] if "zep" in each["name"]]
    name = note["name"]
    assert len(left_of(world, "zeppelin", name)) > 4

    if command == "sessions forget":
        done = world.answer("sessions", "forget", "s-1", "--notes")
        left = left_of(world, "zeppelin", "reykjavik")
    else:
        done = world.answer(*command.split(), name)
        left = left_of(world, "zeppelin", "reykjavik") - {"sessions.sqlite", "sessions.sqlite-wal"}

    assert left == set()
    assert any("git" in line for line in done["left"])
