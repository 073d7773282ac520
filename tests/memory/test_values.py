"""What says the same, what says the opposite, and what only looks like it."""

from __future__ import annotations

import pytest

from memoryd.memory.facts import Answer, Evidence, Fact, Relation
from memoryd.memory.known import note_name, shown_only
from memoryd.memory.providers.base import ShownNote
from memoryd.memory.values import opposes, sense_key

SAME = [
    ("Prefer tabs.", "prefers tab"),
    ("The user prefers tabs", "I prefer tabs!"),
    ("Use the staging host.", "use our staging hosts"),
    ("Run `make test`.", "run make test"),
    ("استخدم الوضع الصارم دائماً.", "استخدم الوضع الصارم دائما"),
    ("タブを使う。", "タブを使う"),
    ("Always run `make lint` before you commit.", "Always run make lint before committing."),
    ("Run the tests after you merge.", "Run tests after merging"),
    ("Tag it when you release", "Tag it when released"),
    ("Update docs before passing it on", "Update docs before you pass it on"),
]
OTHER = [
    ("use tabs", "never use tabs"),
    ("tabs over spaces", "spaces over tabs"),
    ("Deploys happen on Monday.", "Deploys happen on Friday."),
    ("Use port 8080.", "Use port 80."),
    ("Logs are in src/app.", "Logs are in src.app."),
    ("Use version 1.2", "Use version 12"),
    ("The file is src/App.tsx", "The file is src/app.tsx"),
    ("Always run tests", "run tests"),
    ("Run lint before committing.", "Run lint after committing."),
    ("Run lint before committing.", "Never run lint before you commit."),
    ("Run lint when enabled", "Run lint when disabled"),
    ("Stop when 11 fail", "Stop when 1 fail"),
    ("Ask while you test", "Ask while not testing"),
    ("Ask before filling it", "Ask before filing it"),
]
OPPOSITE = [
    ("Always use tabs.", "Never use tabs."),
    ("Use mocks in tests", "Don't use mocks in tests"),
    ("do not commit generated files", "commit generated files"),
    ("Run lint before you commit", "Do not run lint before committing"),
]
NO_OPPOSITE = [
    ("Never use tabs.", "Never use tabs."),
    ("Never use tabs.", "Always use spaces."),
    ("no", "yes"),
    ("Never do it.", "do not do it"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_these_say_the_same(one: str, other: str) -> None:
    """Case, articles, plurals, who speaks and punctuation do not count."""
    assert sense_key(one) == sense_key(other)


@pytest.mark.parametrize(("one", "other"), OTHER)
def test_these_do_not_say_the_same(one: str, other: str) -> None:
    """A negation, the order, any other word, a digit or a letter of a path does."""
    assert sense_key(one) != sense_key(other)


@pytest.mark.parametrize(("one", "other"), OPPOSITE)
def test_these_are_opposites(one: str, other: str) -> None:
    """The same words, asked and forbidden, whichever comes first."""
    assert opposes(one, other)
    assert opposes(other, one)


@pytest.mark.parametrize(("one", "other"), NO_OPPOSITE)
def test_these_are_no_opposites(one: str, other: str) -> None:
    """Two that forbid, other words, or hardly any words."""
    assert not opposes(one, other)


def test_a_text_without_words_has_a_key_of_its_own() -> None:
    """Signs alone are compared as they are."""
    assert sense_key("!?") == sense_key("!?")
    assert sense_key("->") != sense_key("=>")


@pytest.mark.parametrize("name", ["tabs", "feedback/tabs.md", "tabs.md"])
def test_the_same_as_a_note_that_was_shown_stays_the_same(name: str) -> None:
    """However the model writes its name."""
    assert note_name(name) == "tabs"
    assert _relation(name) == Relation("same", name)


def test_the_same_as_a_note_nobody_showed_is_new() -> None:
    """A model that makes up a note must not make the fact vanish."""
    assert _relation("other") == Relation("new")


def _relation(name: str) -> Relation:
    shown = ShownNote("p", "feedback/tabs.md", "feedback", "tabs", "Tabs", "Tabs")
    evidence = (Evidence(None, "I prefer tabs"),)
    fact = Fact("x", "preference", evidence, "explicit", "none", 0.9, None, Relation("same", name))
    (answer,) = shown_only([Answer((fact,), (), whole=True)], [shown])
    return answer.facts[0].relation
