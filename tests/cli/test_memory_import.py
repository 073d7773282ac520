"""Importing, restoring and asking the doctor, as a person types it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from memoryd.cli.main import cli
from memoryd.jobs.workplace import open_ledger
from memoryd.memory.clock import SystemClock
from memoryd.memory.config import Config
from memoryd.memory.errors import ConfigError, MemorydError, UsageError
from memoryd.memory.home import Home
from memoryd.memory.own_calls import folder, prepared

TOKEN = "ghp_" + "aB3dE6gH9jK2mN5pQ8sT1vW4xY7zA0cD3fG6"

Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """``memoryd WORDS`` in the project, with a home of its own."""
    (tmp_path / "code").mkdir()
    monkeypatch.chdir(tmp_path / "code")
    monkeypatch.setenv("MEMORYD_HOME", str(tmp_path / "home"))
    return lambda *words: CliRunner().invoke(cli, words)


def answer(done: Result) -> Any:
    """What was printed as JSON."""
    if isinstance(done.exception, MemorydError):
        raise done.exception
    return json.loads(done.output)


def put(root: Path, path: str, text: str) -> None:
    """Write a file."""
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


@pytest.fixture
def freecode(tmp_path: Path) -> Path:
    """FreeCode's memory of the project, with counters; the projects' folder."""
    projects = tmp_path / "person" / ".freecode" / "projects"
    key = "__".join(part.replace("-", "_h_") for part in (tmp_path / "code").parts[1:])
    put(projects, f"{key}/memory/user/tabs.md", "---\nname: tabs\n---\nUse tabs.\n")
    usage = {"version": 1, "entries": {"user/tabs": {"useCount": 2, "injectedCount": 3}}}
    put(projects, f"{key}/memory/.graph/usage.json", json.dumps(usage))
    return projects


def test_an_import_is_shown_first_and_written_on_request(
    run: Run, tmp_path: Path, freecode: Path
) -> None:
    """Then it is there, once, and can be undone."""
    shown = answer(run("memory", "import", "--json"))
    assert shown["counts"] == {"create": 1} and not shown["applied"] and shown["undo"] is None
    assert not (tmp_path / "home").exists()
    assert "add --apply" in run("memory", "import").output

    done = answer(run("memory", "import", "--apply", "--json"))
    assert done["applied"] and list(done["commits"]) == [done["notes"][0]["project"]]
    (listed,) = answer(run("memory", "list", "--json"))["notes"]
    assert listed["name"] == "tabs" and listed["source"].startswith("import freecode:")

    again = answer(run("memory", "import", "--apply", "--json"))
    assert again["counts"] == {"imported": 1} and again["undo"] is None
    answer(run("memory", "undo", done["undo"], "--json"))
    assert answer(run("memory", "list", "--json"))["notes"] == []
    assert answer(run("memory", "import", "--json"))["counts"] == {"forgotten": 1}


def test_counters_go_into_the_ledger_once(run: Run, tmp_path: Path, freecode: Path) -> None:
    """What was counted since is not overwritten."""
    answer(run("memory", "import", "--apply", "--json"))
    ledger = open_ledger(Home(tmp_path / "home"), Config(), SystemClock())
    read = "select note, shown, used, last_used_at from usage"
    assert ledger.db.rows(read) == [("user/tabs", 3, 2, 0)]

    ledger.db.change("update usage set used = 9")
    answer(run("memory", "import", "--apply", "--json"))

    assert ledger.db.rows(read) == [("user/tabs", 3, 9, 0)]
    ledger.close()


def test_a_memory_whose_project_nobody_knows_needs_to_be_told(
    run: Run, tmp_path: Path, freecode: Path
) -> None:
    """It is listed; with --project it is imported, one source at a time."""
    put(freecode, "zz__gone/memory/user/a.md", "Wrap at 100.")

    (unplaced,) = answer(run("memory", "import", "--json"))["left_out"]
    assert (unplaced["kind"], unplaced["key"]) == ("freecode", "zz__gone")
    assert f"memory import {unplaced['path']} --project DIR" in run("memory", "import").output
    with pytest.raises(UsageError, match="one source"):
        answer(run("memory", "import", "--project", ".", "--json"))

    told = ("memory", "import", unplaced["path"], "--project", str(tmp_path / "code"), "--json")
    assert answer(run(*told))["counts"] == {"create": 1}


def test_a_folder_goes_into_the_project_one_is_in(run: Run, tmp_path: Path) -> None:
    """What is left out is listed with the reason, a secret without its words."""
    put(tmp_path, "notes/a.md", "Use tabs.")
    put(tmp_path, "notes/b.md", f"The token is {TOKEN}.")

    words = ("memory", "import", str(tmp_path / "notes"))
    listing = run(*words).output

    assert str(tmp_path / "code") in listing and "project/a.md" in listing
    assert "1 new, 1 with a secret" in listing
    assert TOKEN not in listing + run(*words, "--json").output


def test_an_excluded_project_is_left_out(run: Run, tmp_path: Path, freecode: Path) -> None:
    """By the configuration, by its own file, and where either cannot be read."""
    project = tmp_path / "code"
    (project / ".memoryd.toml").write_text("[privacy]\nexclude = ['code']\n")
    found = answer(run("memory", "import", "--apply", "--json"))
    assert (found["counts"], found["commits"]) == ({}, {})
    assert found["left_out"][0]["reason"] == "[privacy] exclude keeps it out"

    (project / ".memoryd.toml").write_text("[")
    assert "is not TOML" in run("memory", "import").output

    (project / ".memoryd.toml").unlink()
    (tmp_path / "home" / "config.toml").write_text(f"[privacy]\nexclude = ['{project}']\n")
    assert "exclude keeps it out" in run("memory", "import", "--project", str(project)).output
    (tmp_path / "home" / "config.toml").write_text("[")
    with pytest.raises(ConfigError):
        answer(run("memory", "import", "--json"))


def test_what_an_agent_noted_of_our_own_questions_is_left_out(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Claude Code as the provider's command keeps a memory of what it was asked."""
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    place = prepared(folder(Home(tmp_path / "home")))
    encoded = "".join(letter if letter.isalnum() else "-" for letter in str(place))
    there = f"claude/projects/{encoded}"
    put(tmp_path, f"{there}/s1.jsonl", json.dumps({"cwd": str(place)}) + "\n")
    put(tmp_path, f"{there}/memory/x.md", "---\nname: x\ntype: user\n---\nLikes tea.\n")

    found = answer(run("memory", "import", "--json"))

    assert found["counts"] == {}
    assert "questions of memoryd's" in found["left_out"][0]["reason"]


def test_nothing_to_import_is_said(run: Run) -> None:
    """With what to do instead."""
    with pytest.raises(UsageError, match="no memory to import"):
        answer(run("memory", "import", "--json"))


def _vanish(run: Run, tmp_path: Path) -> Path:
    """A store of three notes whose files are gone; its directory."""
    for name in "abc":
        put(tmp_path, f"notes/{name}.md", f"Statement {name} of three.")
    done = answer(run("memory", "import", str(tmp_path / "notes"), "--apply", "--json"))
    store = tmp_path / "home" / "projects" / done["notes"][0]["project"] / "memory"
    for path in (store / "project").iterdir():
        path.unlink()
    return store


def test_notes_that_vanished_are_put_back(run: Run, tmp_path: Path) -> None:
    """The doctor names them, and the command."""
    store = _vanish(run, tmp_path)
    sick = run("doctor", "--json")
    assert sick.exit_code == 1
    assert "store.held" in {each["code"] for each in answer(sick)["findings"]}

    restored = answer(run("memory", "restore", "--json"))

    assert restored["restored"] == ["project/a.md", "project/b.md", "project/c.md"]
    assert (store / "project/a.md").read_text().endswith("Statement a of three.")
    well = run("doctor")
    assert well.exit_code == 0 and "PROBLEM" not in well.output
    assert run("memory", "restore").output == "no note is missing\n"


def test_notes_that_vanished_can_be_let_go(run: Run, tmp_path: Path) -> None:
    """At once, with tombstones: an import does not bring them back."""
    _vanish(run, tmp_path)

    gone = answer(run("memory", "restore", "--let-go", "--json"))

    assert gone["forgotten"] == ["project/a.md", "project/b.md", "project/c.md"]
    assert run("doctor").exit_code == 0
    again = answer(run("memory", "import", str(tmp_path / "notes"), "--apply", "--json"))
    assert again["counts"] == {"forgotten": 3}


def test_a_project_without_a_memory_has_nothing_to_restore(run: Run, tmp_path: Path) -> None:
    """And gets none by asking."""
    Home(tmp_path / "home").prepare()

    with pytest.raises(UsageError, match="no memory"):
        answer(run("memory", "restore", "--json"))
    assert list(Home(tmp_path / "home").projects.iterdir()) == []
