"""``memoryd sessions search`` and ``recall`` as a person and an agent run them."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

sys.path.append(str(Path(__file__).parent.parent / "sessions"))

from said_before import DAY_MS, Past

from memoryd.cli.main import cli
from memoryd.memory.errors import MemorydError
from memoryd.memory.home import Home
from memoryd.memory.projects import Resolver

DOCS = (Path(__file__).parents[2] / "docs" / "sessions.md").read_text("utf-8")


@pytest.fixture
def past(home: Home) -> Past:
    """The home's session history."""
    return Past(home.session_history)


def run(home: Home, *arguments: str) -> str:
    """What the command prints; a failure fails the test."""
    done = CliRunner().invoke(
        cli, ["--home", str(home.root), "sessions", *arguments], catch_exceptions=False
    )
    assert done.exit_code == 0, done.output
    return done.output


def as_json(home: Home, command: str, *arguments: str) -> dict[str, Any]:
    """The same as an object."""
    values: dict[str, Any] = json.loads(run(home, command, "--json", *arguments))
    return values


def refused(home: Home, *arguments: str) -> MemorydError:
    """The error the command ends with."""
    with pytest.raises(MemorydError) as caught:
        run(home, *arguments)
    return caught.value


def test_hits_are_shown_by_session_with_who_said_them_when(home: Home, past: Past) -> None:
    """Labelled as history that nobody checked."""
    past.say("use pnpm", "pnpm it is", session="s-one", at_ms=DAY_MS, project="%2F-srv-shop")
    past.say("no pnpm at all in here", session="s-two", agent="cursor", at_ms=2 * DAY_MS)

    lines = run(home, "search", "pnpm").splitlines()

    assert lines[0] == "codex s-one  %2F-srv-shop"
    assert sorted(lines[1:3]) == [
        "  1970-01-02 00:00:00  user: pnpm it is",
        "  1970-01-02 00:00:00  user: use pnpm",
    ]
    assert lines[4:6] == [
        "cursor s-two  shop",
        "  1970-01-03 00:00:00  user: no pnpm at all in here",
    ]
    assert "untrusted" in lines[-1]


def test_the_json_has_the_documented_keys(home: Home, past: Past) -> None:
    """And no others."""
    past.say("use pnpm", at_ms=5)

    search = as_json(home, "search", "pnpm")
    recall = as_json(home, "recall", "what did we decide?")

    rows = dict(re.findall(r"^\| `(sessions \w+)` \| (.+) \|$", DOCS, re.MULTILINE))
    told, hit = rows["sessions search"].split("`hits`:")
    assert set(re.findall(r"`(\w+)`", told)) | {"hits"} == set(search)
    assert set(re.findall(r"`(\w+)`", hit)) == set(search["hits"][0])
    assert set(re.findall(r"`(\w+)`", rows["sessions recall"])) == set(recall)


def test_words_may_be_given_apart_and_the_options_narrow(home: Home, past: Past) -> None:
    """As a shell splits them."""
    past.say("pnpm and a lease", session="s1", at_ms=DAY_MS)
    past.say("a lease by pnpm", session="s2", at_ms=9 * DAY_MS, role="assistant", project="other")

    def sessions(*more: str) -> list[str]:
        return [hit["session"] for hit in as_json(home, "search", "lease", "pnpm", *more)["hits"]]

    assert sessions("--since", "1970-01-05") == ["s2"]
    assert sessions("--until", "1970-01-05T12:00") == ["s1"]
    assert sessions("--role", "assistant") == ["s2"]
    assert sessions("--session", "s1") == ["s1"]
    assert sessions("--agent", "cursor") == []
    assert len(sessions("--limit", "1")) == 1
    assert sessions("--since", "3d") == []


def test_a_project_is_named_by_a_directory_or_its_key(
    home: Home, past: Past, tmp_path: Path
) -> None:
    """As everywhere."""
    key = Resolver(home).resolve(str(tmp_path)).key
    (home.projects / key).mkdir(parents=True)
    past.say("pnpm", project=key)
    past.say("pnpm too", project="other", session="s2")

    by_place = as_json(home, "search", "pnpm", "--project", str(tmp_path))
    by_key = as_json(home, "search", "pnpm", "--project", key)

    assert [hit["project"] for hit in by_place["hits"]] == [key]
    assert by_key == by_place


def test_a_session_is_named_by_how_its_id_begins(home: Home, past: Past) -> None:
    """Where that is clear."""
    past.say("pnpm", session="aa11")
    past.say("pnpm", session="aa22")

    (hit,) = as_json(home, "search", "pnpm", "--session", "aa1")["hits"]

    assert hit["session"] == "aa11"
    assert "several sessions" in refused(home, "search", "pnpm", "--session", "aa").message
    assert "no session is called" in refused(home, "search", "pnpm", "--session", "bb").message


@pytest.mark.parametrize("time", ["yesterday", "2026-13-01", "999999w", "1e400", "", "5x"])
def test_what_is_no_time_is_refused_with_one_that_is(home: Home, past: Past, time: str) -> None:
    """A week count before the epoch is just the beginning."""
    past.say("pnpm", at_ms=DAY_MS)

    if time == "999999w":
        assert len(as_json(home, "search", "pnpm", "--since", time)["hits"]) == 1
    else:
        assert "2026-01-05" in refused(home, "search", "pnpm", "--since", time).hint


def test_nothing_found_and_nothing_to_look_for_are_no_errors(home: Home, past: Past) -> None:
    """Said in a line."""
    past.say("use pnpm")

    assert run(home, "search", "yarn").startswith("nothing found\n")
    assert run(home, "search", "?!") == "there is no word in that to look for\n"
    assert run(home, "search", "pnpm", "yarn").startswith("No message has all the words")


def test_before_any_session_was_read_that_is_said(home: Home) -> None:
    """With what to do."""
    error = refused(home, "search", "pnpm")

    assert (error.code, error.message) == ("usage", "no session was read yet")


def test_what_was_said_cannot_drive_the_terminal(home: Home, past: Past) -> None:
    """Neither in text nor in JSON."""
    past.say("pnpm \x1b[31m red \u202e back", session="s\x1b1")

    assert "\x1b" not in run(home, "search", "pnpm") + run(home, "search", "pnpm", "--json")


def test_recall_prints_the_block_or_says_why_none(
    home: Home, past: Past, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What an agent would get in that directory."""
    key = Resolver(home).resolve(str(tmp_path)).key
    asked = ("recall", "what did we decide about pnpm?", "--cwd", str(tmp_path))
    assert "no session was read yet" in run(home, *asked)
    past.say("we use pnpm", project=key)

    assert "[hit 1] user: we use pnpm" in run(home, *asked)
    assert as_json(home, *asked)["sessions"] == ["s1"]
    assert "no earlier session" in run(home, *asked, "--session", "s1")
    assert "does not ask back" in run(home, "recall", "use pnpm", "--cwd", str(tmp_path))

    monkeypatch.setenv("MEMORYD_DISABLE_RECALL", "1")
    assert "switched off" in run(home, *asked)


def test_every_reason_is_documented() -> None:
    """Whatever `sessions recall` can answer."""
    from typing import get_args

    from memoryd.sessions.recall import Reason

    assert [reason for reason in get_args(Reason) if f"| `{reason}` |" not in DOCS] == []


def test_the_twenty_searches_of_the_documents_find_what_they_say(home: Home, past: Past) -> None:
    """Here among a few messages, in bench/search.py among a million."""
    table = DOCS.partition("| you type |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| `(.+?)` \| (.+?) \| .*? \|$", table, re.MULTILINE)
    past.say(*(found for _, found in rows))

    assert len(rows) == 20
    for query, found in rows:
        excerpts = [hit["excerpt"] for hit in as_json(home, "search", "--", query)["hits"]]
        assert found in excerpts, query


def test_nothing_found_says_what_may_help(home: Home, past: Past) -> None:
    """An ending, what was not read yet; and why a short beginning stands for nothing."""
    past.say("the timeout of the worker")

    none = run(home, "search", "tim")
    short = run(home, "search", "ti*")

    assert none.startswith("nothing found\n") and "`time*`" in none and "backfill status" in none
    assert "ti* was looked for without its *: that needs three letters" in short
    assert "looked for without" not in run(home, "search", "tim*")
    assert "memoryd sessions search -- -x" in run(home, "search", "--help")


def test_recall_of_nothing_warns_of_no_messages(home: Home, past: Past, tmp_path: Path) -> None:
    """There are none that have most of the words: they are not shown."""
    key = Resolver(home).resolve(str(tmp_path)).key
    past.say("the heron of the importer", project=key)
    prompt = "what did we decide about the zebra giraffe lemur ocelot importer?"

    said = run(home, "recall", "--cwd", str(tmp_path), prompt)

    assert said == "nothing is recalled: no earlier session of this project says anything of it\n"
