"""Saving, renaming and reviewing notes, as a person or agent types it."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from processes import MEMORYD, World

from memoryd.jobs import candidates
from memoryd.jobs.workplace import open_ledger
from memoryd.memory.clock import SystemClock
from memoryd.memory.config import Config
from memoryd.memory.facts import EvidenceSpan, NoteDraft, Relation
from memoryd.memory.plan import SliceRange
from memoryd.memory.policy import Candidate
from memoryd.memory.projects import Resolver
from memoryd.memory.proposals import FactProposal, to_json

DOCS = (Path(__file__).parent.parent.parent / "docs" / "memory.md").read_text()
TABS = ("use-tabs", "--type", "feedback", "--description", "Indents with tabs")
IDS = ("0b54ff56-0000-4000-8000-00000000aaaa", "0b54ff56-0000-4000-8000-00000000bbbb")


def save(world: World, *more: str) -> Any:
    """Save a note about tabs."""
    return world.answer("memory", "save", *TABS, "--content", "Use tabs, never spaces.", *more)


def documented(command: str) -> set[str]:
    """The keys that docs/memory.md gives to a command, those of its lists too."""
    (row,) = [line for line in DOCS.splitlines() if line.startswith("|") and f"`{command}`" in line]
    return set(re.findall(r"`(\w+)`", row.split("|")[2]))


def keys_of(values: Any) -> set[str]:
    """Every key of what was printed, however deep."""
    if isinstance(values, list):
        return set().union(*map(keys_of, values))
    if isinstance(values, dict):
        return set(values).union(*map(keys_of, values.values()))
    return set()


def propose(world: World) -> None:
    """Two candidates in review, as a session leaves them."""
    world.home.prepare()
    ledger = open_ledger(world.home, Config(), SystemClock())
    store = Resolver(world.home).resolve(str(world.project)).key
    draft = NoteDraft("project", "package-manager", "Packages", "Packages come from pnpm.")
    said = (("We use pnpm", draft), ("We never use yarn", None))
    made = [
        Candidate(
            id=identifier,
            statement=statement,
            category="project",
            explicitness="inferred",
            sensitivity="none",
            confidence=0.9,
            evidence=(EvidenceSpan("m1", 1, statement),),
            decision="review",
            reason="explicitness",
            detail="it was implied, not said",
            risk="low",
            store=store,
            draft=to_json(FactProposal(statement, "project", note, Relation("new"), None)),
        )
        for identifier, (statement, note) in zip(IDS, said, strict=True)
    ]
    with ledger.db.writing():
        candidates.keep(ledger.db, "job", SliceRange("claude-code", "s", 1, 2), made, 1)
    ledger.close()


def test_a_note_is_saved_listed_updated_and_taken_back(world: World) -> None:
    """In a project that memoryd has never seen, and with the keys that are documented."""
    saved = save(world, "--tags", "a, b")
    (listed,) = world.answer("memory", "list", "--type", "feedback")["notes"]

    assert (saved["outcome"], listed["name"]) == ("created", "use-tabs")
    assert set(saved) | {"description"} == documented("memory save")
    assert Path(saved["path"]).read_text().endswith("Use tabs, never spaces.\n")
    assert (world.home.projects / saved["project"] / "project.json").exists()
    updated = world.answer("memory", "save", *TABS[:3], "--description", "Indents by tab")
    assert (updated["outcome"], updated["previous_description"]) == ("updated", "Indents with tabs")
    world.answer("memory", "undo", updated["undo"])
    assert world.answer("memory", "show", "use-tabs")["description"] == "Indents with tabs"
    assert world.answer("memory", "list", "--type", "user")["notes"] == []


def test_the_body_may_come_from_standard_input(world: World) -> None:
    """As a command's output."""
    done = subprocess.run(
        [*MEMORYD, "memory", "save", *TABS, "--content", "-", "--json"],
        input=b"One line.\nAnd another.\n",
        env=world.environ,
        cwd=world.project,
        capture_output=True,
        check=True,
    )

    assert Path(json.loads(done.stdout)["path"]).read_text().endswith("One line.\nAnd another.\n")


def test_what_is_not_saved_ends_with_1_and_says_why(world: World) -> None:
    """A duplicate, a person's note, a bad type: one clear line each."""
    save(world, "--mine")

    said = ("memory", "save", "other", "--type", "user", "--description", "D")
    twice = world.run(*said, "--content", "use tabs, never spaces")
    assert twice.returncode == 1
    assert "feedback/use-tabs (Indents with tabs) says the same" in twice.stdout
    assert "--anyway" in twice.stdout
    assert world.answer_failed("memory", "save", *TABS, "--content", "X")["outcome"] == "person"
    bad = world.run("memory", "save", "x", "--type", "diary")
    assert (bad.returncode, bad.stdout) == (1, "")
    assert "user, feedback, project, reference" in bad.stderr
    assert len(world.answer("memory", "list")["notes"]) == 1
    assert world.is_clean()


def test_a_note_is_renamed_and_its_links_follow(world: World) -> None:
    """With the documented keys, and back in one step."""
    save(world)
    other = ("--description", "D", "--content", "See [[use-tabs]].")
    world.answer("memory", "save", "other", "--type", "user", *other)

    done = world.answer("memory", "rename", "use-tabs", "indent")

    assert set(done) == documented("memory rename")
    assert done["relinked"] == ["user/other.md"]
    assert world.answer("memory", "show", "other")["body"] == "See [[indent]]."
    world.answer("memory", "undo", done["undo"])
    assert world.answer("memory", "show", "use-tabs")["name"] == "use-tabs"
    assert world.is_clean()


def test_a_renamed_note_keeps_its_use_and_the_words_it_stands_on(world: World) -> None:
    """Forgotten under its new name, it is not learned again from them."""
    propose(world)
    world.answer("memory", "apply", "aaaa")
    ledger = open_ledger(world.home, Config(), SystemClock())
    store = Resolver(world.home).resolve(str(world.project)).key
    ledger.usage.record_injection("claude-code", "s", "m", [(store, "project/package-manager")])

    world.answer("memory", "rename", "package-manager", "packages")

    assert list(ledger.usage.usage_of(store)) == ["project/packages"]
    evidence = ledger.records.evidence(store, "project/packages.md")
    assert evidence == [("m1", "We use pnpm")]
    ledger.close()


def test_what_waits_is_listed_applied_and_rejected(world: World) -> None:
    """By any ending of its id; status counts it; the keys are those documented."""
    propose(world)

    listed = world.answer("memory", "review")
    text = world.run("memory", "review").stdout
    assert keys_of(listed) - {"candidates"} == documented("memory review") - {"candidates"}
    assert "goes to project/package-manager (new)" in text and 'said    "We use pnpm"' in text
    assert world.answer("status")["in_review"] == 2
    assert "2 candidates for your word" in world.run("status").stdout

    applied = world.answer("memory", "apply", "aaaa")
    rejected = world.answer("memory", "reject", "bbbb")
    assert keys_of(applied) | {"error", "hint"} == documented("memory apply")
    assert applied["decided"][0]["path"] == "project/package-manager.md"
    assert (rejected["decided"][0]["state"], rejected["failed"]) == ("rejected", [])
    assert world.answer("memory", "review", "--all")["candidates"] == []
    assert world.is_clean()


def test_all_of_a_project_may_be_decided_at_once(world: World) -> None:
    """And where nothing waits, that is said."""
    propose(world)

    assert len(world.answer("memory", "apply", "--all")["decided"]) == 2
    assert "nothing waits here" in world.run("memory", "reject", "--all").stdout


@pytest.mark.parametrize("words", [(), ("aaaa", "--all"), ("cccc",)])
def test_a_word_on_nothing_or_on_two_things_at_once_is_refused(
    world: World, words: tuple[str, ...]
) -> None:
    """With the command that shows what waits."""
    propose(world)

    done = world.run("memory", "apply", *words)

    assert done.returncode == 1
    assert "`memoryd memory review" in done.stderr
    assert world.answer("status")["in_review"] == 2
