"""The commands on jobs, as a person types them."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from processes import PNPM, TABS, World

from memoryd.cli.common import look_into_queue, open_queue
from memoryd.cli.main import cli
from memoryd.jobs import intake
from memoryd.jobs.ledger import Ledger
from memoryd.memory.config import Config
from memoryd.memory.errors import HomeError
from memoryd.memory.home import Home
from memoryd.memory.locks import FileLock


def test_enqueue_waits_for_the_outcome_without_a_daemon(world: World) -> None:
    """The command works the job itself, and a second one finds it done."""
    transcript = world.claude(TABS)
    words = ("enqueue", "finalize", "--agent", "claude-code", "--transcript", str(transcript))

    first = world.answer(*words, "--wait")
    second = world.answer(*words, "--wait")

    assert first["created"] and first["job"]["outcome_code"] == "notes.written"
    assert not second["created"] and second["job"]["id"] == first["job"]["id"]
    assert len(world.notes()) == 1


@pytest.mark.slow
def test_enqueue_waits_for_the_outcome_with_a_daemon(world: World) -> None:
    """The daemon works the job; the command is told when it is done."""
    world.claude(PNPM, session="s-2")
    with world.daemon():
        done = world.answer(
            "enqueue", "finalize", "--agent", "claude-code", "--session", "s-2", "--wait"
        )
        status = world.answer("status")

    assert done["job"]["outcome_code"] == "notes.written"
    assert status["daemon"]["ready"] is True


def test_list_and_show_tell_a_job_and_its_candidates(world: World) -> None:
    """In text and in JSON, by any unique ending of the id."""
    world.hook(world.claude(TABS))
    world.run("run", "--once")
    (listed,) = world.answer("list")["jobs"]

    shown = world.answer("show", listed["id"][-5:])
    text = world.run("show", listed["id"]).stdout

    assert listed["status"] == "completed"
    assert [candidate["decision"] for candidate in shown["candidates"]] == ["apply"]
    assert "explicit, harmless and proven" in text and "I prefer tabs over spaces" in text
    assert "finalize: a hook of its agent told of it" in text
    assert "notes written" in text and "notes written" in world.run("list").stdout
    assert "policy.passed" not in text and "notes.written" not in text
    assert "attempts  1, failures 0 of 5" in text


def test_a_pending_job_can_be_cancelled_retried_and_pruned(world: World) -> None:
    """Each command answers with what the job is now; a second time it says why not."""
    world.hook(world.claude(TABS))
    (job,) = world.answer("list")["jobs"]

    assert world.answer("cancel", job["id"])["job"]["status"] == "cancelled"
    again = world.run("cancel", job["id"])
    assert (again.returncode, again.stderr.count("\n")) == (1, 2)
    assert "is cancelled" in again.stderr
    assert world.answer("retry", job["id"])["job"]["status"] == "pending"
    assert "it is worked by itself, next" in world.run("retry", job["id"]).stderr
    world.answer("cancel", job["id"])
    for more, count in ((["--dry-run"], 1), (["--older-than", "1h"], 0), ([], 1)):
        went = world.answer("prune", "--status", "cancelled", *more)
        assert (went["pruned"], went["by_status"].get("cancelled", 0)) == (count, count)
        assert went["dry_run"] == ("--dry-run" in more)
    assert world.answer("list") == {"jobs": []}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("show", "0000"), "no job has an id that ends with '0000'"),
        (("show", ""), "no job has an id that ends with ''"),
        (("show", "%"), "no job has an id that ends with '%'"),
        (("enqueue", "finalize", "--agent", "nobody", "--session", "x"), "no agent is called"),
        (("enqueue", "finalize", "--agent", "codex", "--session", "x"), "no transcript of session"),
        (("enqueue", "finalize", "--agent", "codex", "--transcript", "/no"), "no transcript /no"),
        (("memory", "show", "nothing"), "no note of this project is called 'nothing'"),
        (("memory", "delete", "nothing"), "no note of this project is called 'nothing'"),
        (("memory", "undo", "0000"), "0000"),
    ],
)
def test_what_does_not_exist_is_one_clear_line_and_a_hint(
    world: World, words: tuple[str, ...], told: str
) -> None:
    """Exit code 1, nothing on standard output, no traceback."""
    world.home.prepare()
    done = world.run(*words)

    lines = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (1, "")
    assert lines[0].startswith("memoryd: ") and told in lines[0]
    assert len(lines) == 2 and lines[1].startswith("  ")


def test_an_ending_that_fits_two_jobs_is_refused(world: World) -> None:
    """The person is asked for more of it; no job is guessed."""
    for number in range(40):
        world.envelope(world.claude(TABS, session=f"s-{number}"), f"s-{number}")
    endings = [job["id"][-1] for job in world.answer("list", "--limit", "100")["jobs"]]
    twice = next(letter for letter in endings if endings.count(letter) > 1)

    done = world.run("show", twice)

    assert done.returncode == 1
    assert "more than one job" in done.stderr


def test_what_models_and_files_say_never_drives_the_terminal(world: World) -> None:
    """Control characters are shown as what they are not, wherever they came from."""
    facts = {
        "facts": [
            {
                "statement": "Run \x1b[2Jthe linter\x07 first.",
                "category": "preference",
                "evidence": [{"message": None, "span": "run the linter first"}],
                "explicitness": "explicit",
                "sensitivity": "none",
                "confidence": 0.9,
            }
        ]
    }
    world.hook(world.claude(TABS, session="s-0"), "s-0")  # the rules make the store
    world.run("run", "--once")
    script = world.root / "model.py"
    script.write_text(f"print({json.dumps(facts)!r})")
    command = json.dumps([sys.executable, str(script)])
    world.configure(f'[provider]\nname = "command"\ncommand = {command}\n')
    world.hook(world.claude("Please run the linter first."))
    world.run("run", "--once")
    job = world.answer("list")["jobs"][0]
    note = world.store().root / "user" / "by-hand.md"
    note.parent.mkdir(parents=True, exist_ok=True)
    note.write_text("---\nname: by-hand\ndescription: A \x1b[31mred\x07 one\n---\nIt \x1b[2Jis.\n")

    shown = world.run("show", job["id"]).stdout
    listed = world.run("memory", "list").stdout
    read = world.run("memory", "show", "by-hand").stdout

    assert "the linter" in shown and "red" in listed and "is." in read
    assert not any("\x1b" in text or "\x07" in text for text in (shown, listed, read))


def test_a_session_under_a_kill_switch_is_refused_with_the_reason(world: World) -> None:
    """Its envelope excludes it for good."""
    world.hook(world.claude(TABS), MEMORYD_DISABLE="1")

    done = world.run("enqueue", "finalize", "--agent", "claude-code", "--session", "s-1")

    assert done.returncode == 1
    assert "never distilled (session.excluded)" in done.stderr


def test_a_damaged_ledger_is_named_with_what_to_do(world: World) -> None:
    """Nothing is overwritten."""
    world.home.prepare()
    world.home.ledger.write_bytes(b"no database at all" * 100)

    done = world.run("list")

    assert done.returncode == 1
    assert "`memoryd doctor --fix`" in done.stderr and "Traceback" not in done.stderr
    assert world.home.ledger.read_bytes().startswith(b"no database at all")


def test_a_file_in_the_place_of_the_home_is_named(world: World) -> None:
    """One line, with another way out."""
    world.home.root.write_text("here")

    done = world.run("status")

    assert done.returncode == 1
    assert "is a file" in done.stderr and "--home" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_home_may_stand_before_or_after_the_command(world: World) -> None:
    """Both win over the environment."""
    other = str(world.root / "other")
    Home(Path(other)).prepare()

    before = json.loads(world.run("--home", other, "status", "--json").stdout)
    after = world.answer("status", "--home", other)

    assert before["home"] == after["home"] == other


@pytest.mark.parametrize(
    "words",
    [
        ("status",),
        ("list",),
        ("sessions", "list"),
        ("sessions", "doctor"),
        ("project", "list"),
        ("memory", "list"),
        ("memory", "list", "--all"),
        ("events",),
        ("backfill", "status"),
    ],
    ids=" ".join,
)
def test_who_only_looks_makes_no_home(home: Home, words: tuple[str, ...]) -> None:
    """A slip of the hand in --home is said, with how a home is made."""
    typo = home.root.parent / "typo"

    with pytest.raises(HomeError, match=f"there is no home at {typo}") as refused:
        CliRunner().invoke(cli, ["--home", str(typo), *words], catch_exceptions=False)

    assert "memoryd setup" in refused.value.hint
    assert not typo.exists()


def test_show_counts_what_a_transcript_held(world: World) -> None:
    """Bad lines and skipped ones too, so that an outcome without notes is understood."""
    transcript = world.claude()
    transcript.write_text('{"type":"user","isMeta":true,"message":{"role":"user"}}\nno json\n')
    world.hook(transcript)
    world.run("run", "--once")
    (job,) = world.answer("list")["jobs"]

    shown = world.answer("show", job["id"])

    assert job["outcome_code"] == "nothing.said"
    assert (shown["transcript"]["messages"], shown["transcript"]["bad_lines"]) == (0, 1)
    assert sum(shown["transcript"]["skipped"].values()) == 1
    assert "1 bad lines" in world.run("show", job["id"]).stdout


@pytest.mark.parametrize("look", [open_queue, look_into_queue])
def test_a_process_that_stands_still_in_the_inbox_keeps_no_command(
    look: Callable[[Home], tuple[Ledger, Config]],
    world: World,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What is asked of the ledger, an enqueue too, needs nothing of what lies there."""
    monkeypatch.setattr(intake, "COMMAND_WAIT_SECONDS", 0.01)
    world.home.prepare()
    world.hook(world.claude(TABS))

    with FileLock(world.home.inbox_lock) as lock:
        assert lock.acquire()
        ledger, _ = look(world.home)
    asked = ledger.records.counts()
    ledger.close()

    assert asked == {}
    assert "without the sessions that wait in the inbox" in capsys.readouterr().err
    assert look(world.home)[0].records.counts() == {"pending": 1}


def test_a_process_that_works_the_home_and_does_not_answer_is_named(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may stand still: nobody is told to start a daemon beside it, or that there is none."""
    transcript = world.claude(TABS)
    for name, value in world.environ.items():
        monkeypatch.setenv(name, value)
    world.home.prepare()
    asked = ["enqueue", "finalize", "--agent", "claude-code", "--transcript", str(transcript)]
    commands = (asked, [*asked, "--wait"], ["run", "--once"], ["status", "--metrics"])

    lock = FileLock(world.home.daemon_lock)
    assert lock.acquire()
    with lock:
        said = [CliRunner().invoke(cli, [*words]) for words in commands]

    for each in said:
        assert "does not answer" in str(each.exception or "") + each.output
        assert "no daemon runs" not in each.output
