"""One choice in the place of another: only where no other reading is left."""

from __future__ import annotations

import json
from typing import Any

import pytest

from memoryd.memory.facts import SliceMessage
from memoryd.memory.prompt import build
from memoryd.memory.providers.base import ShownNote
from memoryd.memory.providers.rules import RulesProvider

REPLACED = (
    (
        "From now on use bun, not pnpm",
        "The project uses pnpm for packages, never npm.\n\n"
        "Said as: We use pnpm for packages, never npm.",
    ),
    ("Always use bun instead of pnpm.", "Use pnpm instead of npm."),
    ("We moved from pnpm to bun.", "The project uses pnpm for packages."),
    ("We've switched from Jenkins to Buildkite for CI.", "The project uses Jenkins for CI."),
    ("Use spaces instead of tabs in this project.", "From now on, use tabs, not spaces."),
)
APART = (
    ("From now on use bun, not pnpm", "Never use pnpm."),
    ("From now on use bun, not pnpm", "Use pnpm.\nRun it with -w."),
    ("From now on use bun, not npm", "Use pnpm, not npm."),
    ("From now on use bun for tests, not pnpm", "The project uses pnpm for packages."),
    ("From now on use spaces, not tabs", "Use tabs in Makefiles."),
    ("From now on use bun, not pnpm", "Use pnpm for web and yarn for the api."),
    ("From now on use bun for packages", "The project uses pnpm for packages."),
)


@pytest.mark.parametrize(("said", "body"), REPLACED)
def test_what_was_chosen_before_is_contradicted(said: str, body: str) -> None:
    """By the name of the note, so that it goes to the archive."""
    assert _relation(said, _note(body)) == {"kind": "contradicts", "name": "before"}


@pytest.mark.parametrize(("said", "body"), APART)
def test_what_says_more_or_something_else_stays(said: str, body: str) -> None:
    """Another purpose, an exception, several things, the same choice already denied."""
    assert _relation(said, _note(body))["kind"] == "new"


def test_of_two_notes_neither_is_contradicted() -> None:
    """Which one is meant cannot be told."""
    notes = (_note("Use pnpm for packages."), _note("Use pnpm for scripts.", "other"))

    assert _relation("From now on use bun, not pnpm", *notes)["kind"] == "new"


def _note(body: str, name: str = "before") -> ShownNote:
    return ShownNote("p", f"project/{name}.md", "project", name, body.splitlines()[0], body)


def _relation(said: str, *notes: ShownNote) -> Any:
    message = SliceMessage("m1", 1, "id-m1", "user", said, 1, "p")
    (fact,) = json.loads(RulesProvider().complete(build([message], notes)).text)["facts"]
    return fact["relation"]
