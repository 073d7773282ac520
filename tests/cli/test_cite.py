"""``memoryd cite`` and ``memoryd graph usage``, as an agent and a person type them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from memoryd.cli.main import cli
from memoryd.jobs.workplace import open_ledger
from memoryd.memory.clock import SystemClock
from memoryd.memory.config import Config
from memoryd.memory.home import Home
from memoryd.memory.projects import Resolver

ANSWER = "Tabs it is.\n\n<memory-used>user/tabs, user/other</memory-used>\n"


def memoryd(home: Home, *words: str, said: str | bytes = "") -> Result:
    """Run a command in this process."""
    return CliRunner().invoke(cli, ["--home", str(home.root), *words], input=said)


def cite(home: Home, *words: str, said: str | bytes = ANSWER) -> Result:
    """Cite in the session in which the notes were shown."""
    return memoryd(home, "cite", "--agent", "mine", "--session", "s1", *words, said=said)


@pytest.fixture
def key(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The project one is in; two of its notes were shown in a session, one of them twice."""
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    found = Resolver(home).resolve(str(project)).key
    ledger = open_ledger(home, Config(), SystemClock())
    tabs, unused = (found, "user/tabs"), (found, "project/db")
    ledger.usage.record_injection("mine", "s1", "m1", [tabs, unused])
    ledger.usage.record_injection("mine", "s1", "m2", [tabs])
    ledger.close()
    return found


def test_an_answer_is_printed_without_its_tag_and_credited(home: Home, key: str) -> None:
    """Once; only what was shown."""
    assert cite(home).stdout == "Tabs it is."

    again = json.loads(cite(home, "--json").stdout)
    assert again == {"text": "Tabs it is.", "cited": ["user/tabs", "user/other"], "credited": []}


def test_an_answer_without_a_tag_comes_through_byte_for_byte(home: Home) -> None:
    """Whatever it holds: another program reads on."""
    said = b"\x1b[1mbold\x1b[0m \xff\xfe \r\n  \xe2\x82\xac <memory"

    done = cite(home, said=said)

    assert (done.exit_code, done.stdout_bytes) == (0, said)


def test_bytes_that_are_no_text_are_replaced_in_json(home: Home) -> None:
    """JSON holds text."""
    assert json.loads(cite(home, "--json", said=b"a\xffb").stdout)["text"] == "a\ufffdb"


def test_usage_lists_the_most_shown_first(home: Home, key: str) -> None:
    """Cited and shown, and the day of the last citation."""
    cite(home)

    lines = memoryd(home, "graph", "usage").stdout.splitlines()

    assert lines[0].split() == ["used/shown", "last", "used", "memory"]
    assert lines[1].split()[::2] == ["1/2", "user/tabs"]
    assert len(lines[1].split()[1]) == len("2026-01-05")
    assert lines[2].split() == ["0/1", "never", "project/db"]


def test_usage_of_everything_names_the_project(home: Home, key: str) -> None:
    """By hand in text, and as values."""
    (first, second) = json.loads(memoryd(home, "graph", "usage", "--all", "--json").stdout)["usage"]

    assert first["project"] == second["project"] == key
    assert (first["note"], first["shown"], first["used"], first["last_used_at"]) == (
        "user/tabs",
        2,
        0,
        0,
    )
    assert key in memoryd(home, "graph", "usage", "--all").stdout


def test_where_nothing_was_shown_usage_says_so(home: Home) -> None:
    """Rather than an empty table."""
    done = memoryd(home, "graph", "usage")

    assert (done.exit_code, done.stdout.startswith("no usage yet")) == (0, True)


def test_a_note_that_is_deleted_is_counted_no_longer(home: Home, key: str) -> None:
    """Its sibling is."""
    note = home.projects / key / "memory" / "user" / "tabs.md"
    note.parent.mkdir(parents=True)
    note.write_text("---\nname: tabs\ndescription: Tabs.\ntype: user\n---\nTabs.\n")

    done = memoryd(home, "memory", "delete", "tabs")

    assert done.exit_code == 0, done.output
    listed = json.loads(memoryd(home, "graph", "usage", "--json").stdout)["usage"]
    assert [each["note"] for each in listed] == ["project/db"]
