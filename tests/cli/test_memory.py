"""Reading, deleting and undoing notes, as a person types it."""

from __future__ import annotations

from click.testing import CliRunner
from processes import PNPM, TABS, World

from memoryd.cli.main import cli
from memoryd.jobs.ledger import Ledger
from memoryd.memory.clock import local_date
from memoryd.memory.errors import UsageError
from memoryd.memory.home import Home
from memoryd.memory.testing import FakeClock


def _distil(world: World, *said: str, session: str = "s-1") -> str:
    """Have a session distilled; the job's id."""
    transcript = world.claude(*said, session=session)
    words = ("enqueue", "finalize", "--agent", "claude-code", "--transcript", str(transcript))
    return str(world.answer(*words, "--wait")["job"]["id"])


def test_the_notes_of_the_project_one_is_in_are_listed_and_shown(world: World) -> None:
    """Elsewhere there are none; `--all` and `--project` look there too."""
    _distil(world, TABS, PNPM)
    (listed,) = [note for note in world.answer("memory", "list")["notes"] if "pnpm" in note["name"]]

    shown = world.answer("memory", "show", listed["name"])
    by_type = world.answer("memory", "show", f"{listed['type']}/{listed['name']}")

    assert shown == by_type
    assert "pnpm" in shown["body"] and shown["path"].endswith(".md")
    assert len(world.answer("memory", "list", "--all")["notes"]) == 2
    assert len(world.answer("memory", "list", "--project", listed["project"])["notes"]) == 2
    assert world.answer("memory", "list", "--project", str(world.root))["notes"] == []


def test_a_deleted_note_is_not_learned_again_and_can_be_brought_back(world: World) -> None:
    """Not from the same words in another session; undo lifts that."""
    _distil(world, TABS)
    (note,) = world.answer("memory", "list")["notes"]

    gone = world.answer("memory", "delete", note["name"])
    _distil(world, TABS, session="s-2")
    assert world.answer("memory", "list")["notes"] == []

    world.answer("memory", "undo", gone["undo"])
    (back,) = world.answer("memory", "list")["notes"]
    assert back["name"] == note["name"]
    assert world.is_clean()


def test_a_job_is_undone_in_one_step_and_that_too_can_be_undone(world: World) -> None:
    """All it wrote goes; the undo of the undo brings it all back."""
    job = _distil(world, TABS, PNPM)
    before = world.notes()

    undone = world.answer("memory", "undo", job[-8:])
    assert world.answer("memory", "list")["notes"] == []
    world.answer("memory", "undo", undone["id"])

    assert world.notes() == before
    assert world.is_clean()


def test_a_lost_history_is_waited_for_until_a_person_says_it_is_gone(world: World) -> None:
    """A session waits at no cost; `restore --begin-anew` lets it go on."""
    _distil(world, TABS)
    before = world.notes()
    (world.home.root / "baselines").rename(world.root / "away")

    refused = world.run(
        "memory", "save", "x", "--type", "project", "--description", "d", "--content", "c"
    )
    assert refused.returncode == 1 and "--begin-anew" in refused.stderr
    assert world.notes() == before
    begun = world.answer("memory", "restore", "--begin-anew")
    saved = world.answer(
        "memory", "save", "x", "--type", "project", "--description", "d", "--content", "c"
    )

    assert begun["begun"] and saved["undo"]
    assert world.answer("memory", "restore", "--begin-anew")["begun"] is False


def test_a_file_that_is_no_readable_note_can_be_deleted_by_name(world: World) -> None:
    """As the doctor says; by its path or its file name."""
    _distil(world, TABS)
    folder = world.store().root / "project"
    folder.mkdir(exist_ok=True)
    for name in ("one", "two"):
        (folder / f"{name}.md").write_text("---\nname: [\n  {broken\n")

    gone = world.answer("memory", "delete", "one")
    world.answer("memory", "delete", "project/two.md")
    missing = world.run("memory", "delete", "three")

    assert list(folder.iterdir()) == []
    assert gone["deleted"]["name"] == "one" and missing.returncode == 1
    world.answer("memory", "undo", gone["undo"])
    assert (folder / "one.md").exists()


def test_undo_of_what_was_changed_since_does_nothing_and_says_so(world: World) -> None:
    """The person's edit is named and stands."""
    job = _distil(world, TABS)
    (path,) = world.notes()
    edited = world.store().root / path
    edited.write_text(edited.read_text() + "\nMine.\n")

    done = world.run("memory", "undo", job)

    assert done.returncode == 1
    assert path in done.stderr
    assert edited.read_text().endswith("Mine.\n")


def test_a_job_that_wrote_nothing_has_nothing_to_undo(home: Home) -> None:
    """It is told from a job that does not exist."""
    ledger = Ledger(home.ledger, home.uuid(), FakeClock()).open()
    made = ledger.enqueue(
        "finalize", "codex", "s", cutoff=1, transcript="/t", cwd="/", trigger="cli"
    ).job
    claimed = ledger.claim("w")
    assert made is not None and claimed is not None
    ledger.complete(claimed, "nothing.durable")

    done = CliRunner().invoke(cli, ["--home", str(home.root), "memory", "undo", made.id])

    assert isinstance(done.exception, UsageError)
    assert "wrote nothing" in done.exception.message


def test_a_list_says_when_each_note_was_last_said_or_changed(world: World) -> None:
    """The day of what was said, else of the file; so does the index that is read in an editor."""
    _distil(world, PNPM)
    folder = world.store().root / "user"
    folder.mkdir(exist_ok=True)
    for name, more in (("old", "valid_from: 2024-03-01T10:00:00Z\n"), ("mine", "")):
        path = folder / f"{name}.md"
        path.write_text(f"---\nname: {name}\ndescription: about {name}\n{more}---\nIt is {name}.\n")

    lines = world.run("memory", "list").stdout.splitlines()
    world.store().refresh_index()

    day = local_date(int((folder / "mine.md").stat().st_ctime * 1000))
    found = [line.split() for line in lines]
    assert found[0] == ["TYPE", "NAME", "AS", "OF", "DESCRIPTION"]
    assert "2026-01-05" in found[3]
    assert found[1:3] == [
        ["user", "mine", day, "about", "mine"],
        ["user", "old", "2024-03-01", "about", "old"],
    ]
    index = (world.store().root / "MEMORY.md").read_text()
    assert "— about old (2024-03-01)\n" in index and "— about mine\n" in index
