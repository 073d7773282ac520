"""What is ours is told by its place and by its enclosing lines, and a person's words by neither."""

from __future__ import annotations

import stat
import sys
import time
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))

from consolidation_builders import gathered, store_with

from memoryd.memory.consolidation_prompt import request as consolidation
from memoryd.memory.facts import SliceMessage
from memoryd.memory.home import Home
from memoryd.memory.own_calls import (
    CLOSE,
    FOLDER,
    OPEN,
    VARIABLE,
    continued,
    enclosed,
    environment,
    folder,
    is_own_place,
    is_own_question,
    is_own_transcript,
    prepared,
    without_own_prompts,
)
from memoryd.memory.prompt import SYSTEM, build, corrective
from memoryd.memory.providers.base import Request

SAID = SliceMessage("m1", 1, "id-1", "user", "I prefer tabs", 1, "p")
ASKED = build([SAID], ())


def as_told(asked: Request) -> str:
    """What a program reads, and its agent writes down as what a person said."""
    return f"{asked.system}\n\n{asked.prompt}\n"


@pytest.fixture(params=["extract", "corrective", "consolidate"])
def asked(request: pytest.FixtureRequest, home: Home) -> Request:
    """Every question of ours."""
    if request.param == "consolidate":
        return consolidation(gathered(store_with(home, {"user/x": "I prefer tabs"})))
    return ASKED if request.param == "extract" else corrective(ASKED, ["wrong"])


@pytest.mark.parametrize(
    "form",
    ["{}", "Answer this:\n{}", "<stdin>\n{}\n</stdin>", "{}\n\nBe brief."],
    ids=["as it is", "behind words of the command", "as codex wraps it", "before more words"],
)
def test_every_prompt_is_known_in_the_forms_agents_keep_it(asked: Request, form: str) -> None:
    """Trimmed or not, with what a command line adds; nothing of ours is left of it."""
    for told in (as_told(asked), as_told(asked).strip(), as_told(asked).replace("\n", "\r\n")):
        kept = form.format(told)

        left = without_own_prompts(kept)
        assert "one JSON object" not in left and "I prefer tabs" not in left


def test_only_the_prompt_is_taken_out_of_a_persons_message() -> None:
    """Twice too, and the words between stay."""
    told = as_told(ASKED)

    left = without_own_prompts(f"Look:\n{told}\nand\n{told}what is this?")

    assert left.split() == ["Look:", "and", "what", "is", "this?"]


@pytest.mark.parametrize(
    "said",
    [
        "You read a piece of a conversation between a person and their coding agent",
        f"what does `{OPEN}` mean?",
        f"{OPEN}\nstands in a file of mine, why?",
        f"{CLOSE}\n{SYSTEM.partition(chr(10))[2]}",
        f"  {OPEN}\n{'x' * 3000}\n",
        f"{OPEN} and so on\n{'x' * 3000}\n",
    ],
)
def test_a_sentence_of_ours_that_a_person_quotes_stays(said: str) -> None:
    """No prompt stands there."""
    assert without_own_prompts(said) == said


@pytest.mark.parametrize(
    ("form", "own"),
    [
        ("{}", True),
        ("Answer:\n{}\n", True),
        ("<stdin>\n{}\n</stdin>", True),
        ("{}\n\n{}", True),
        ("I saw this in my log:\n{}\nRemember that I like tea.", False),
        ("{}\nwhy?\n{}", False),
        ("no prompt", False),
    ],
)
def test_only_a_prompt_with_no_words_behind_it_is_a_question_of_ours(form: str, own: bool) -> None:
    """A command puts its words before it; who goes on behind it is a person."""
    told = as_told(ASKED).strip()

    assert is_own_question(form.replace("{}", told)) is own


@pytest.mark.parametrize(
    ("folder_name", "own"),
    [
        (f"-home-me--memoryd-run-{FOLDER}", True),
        (f"home-me-memoryd-run-{FOLDER}", True),
        (f"-home-me-code-rerun-{FOLDER}", False),
        (f"-home-me-run-{FOLDER}-notes", False),
    ],
)
def test_a_transcripts_folder_tells_whose_it_is(folder_name: str, own: bool) -> None:
    """As Claude Code and Cursor name it for the directory; a person's that only ends alike not."""
    assert is_own_transcript(Path("/h/.claude/projects", folder_name, "s.jsonl")) is own


def test_a_prompt_that_was_cut_is_one_up_to_the_end() -> None:
    """As long as the rules alone are."""
    cut = f"Look:\n{SYSTEM}"

    assert without_own_prompts(cut) == "Look:\n"


def test_a_prompt_is_enclosed_once_and_goes_on_within() -> None:
    """Whoever encloses again changes nothing."""
    once = enclosed("What?")

    assert once == enclosed(once) == f"{OPEN}\nWhat?\n{CLOSE}"
    assert continued(once, "\n\nAgain.\n") == f"{OPEN}\nWhat?\nAgain.\n{CLOSE}"


@pytest.mark.parametrize("line", [OPEN, CLOSE])
def test_many_lines_of_ours_are_looked_at_in_one_pass(line: str) -> None:
    """No message makes it slow."""
    hostile = f"{line}\n" * 50_000
    began = time.process_time()

    without_own_prompts(hostile)
    is_own_question(hostile)

    assert time.process_time() - began < 2


@pytest.mark.parametrize(
    ("cwd", "own"),
    [
        (f"/h/run/{FOLDER}", True),
        (f"/h/run/{FOLDER}/deep/er", True),
        (f"/other/home/run/./{FOLDER}/", True),
        (f"/h/{FOLDER}", False),
        (f"/h/run/{FOLDER}-notes", False),
        (f"/h/run/{FOLDER}/../x", False),
        ("/h/run", False),
        ("", False),
        ("\0", False),
    ],
)
def test_our_place_is_known_by_its_name_in_any_home(cwd: str, own: bool) -> None:
    """A second home's sweep sees the sessions of the first."""
    assert is_own_place(cwd) is own


def test_the_folder_is_a_private_one_of_the_home(tmp_path: Path) -> None:
    """And known for ours."""
    place = prepared(folder(Home(tmp_path / "home")))

    assert is_own_place(str(place))
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    assert prepared(place) == place


def test_the_environment_keeps_what_a_person_set(tmp_path: Path) -> None:
    """And adds ours."""
    home = Home(tmp_path / "home")
    found = environment({"A": "b", "GIT_CEILING_DIRECTORIES": "/x"}, folder(home))

    assert found["MEMORYD_HOME"] == str(home.root)
    assert (found["A"], found[VARIABLE], found["MEMORYD_DISABLE"]) == ("b", "1", "1")
    assert found["GIT_CEILING_DIRECTORIES"] == f"{home.root / 'run'}:/x"
