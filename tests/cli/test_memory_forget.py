"""``memoryd memory forget`` as a person types it."""

from __future__ import annotations

import pytest
from processes import PNPM, TABS, World


def _distil(world: World, *said: str, session: str = "s-1") -> None:
    transcript = world.claude(*said, session=session)
    words = ("enqueue", "finalize", "--agent", "claude-code", "--transcript", str(transcript))
    world.answer(*words, "--wait")


@pytest.mark.slow
def test_what_matches_is_shown_first_and_forgotten_on_yes(world: World) -> None:
    """Then it is not learned again from another session; undo brings it back."""
    _distil(world, TABS, PNPM)

    shown = world.answer("memory", "forget", "--matching", "pnpm")
    assert (shown["done"], len(shown["forgotten"])) == (False, 1)
    assert len(world.answer("memory", "list")["notes"]) == 2

    done = world.answer("memory", "forget", "--matching", "pnpm", "--yes")
    _distil(world, PNPM, session="s-2")
    (left,) = world.answer("memory", "list")["notes"]
    assert done["done"] and "pnpm" not in left["name"]

    world.answer("memory", "undo", done["undo"])
    assert len(world.answer("memory", "list")["notes"]) == 2
    assert world.is_clean()


@pytest.mark.slow
def test_a_named_note_goes_at_once_and_a_statement_is_never_learned(world: World) -> None:
    """A name needs no `--yes`; words that no note holds need none either."""
    _distil(world, TABS)
    (note,) = world.answer("memory", "list")["notes"]

    world.answer("memory", "forget", note["name"])
    done = world.answer("memory", "forget", "--statement", "anything at all")

    assert world.answer("memory", "list")["notes"] == []
    assert (done["done"], done["forgotten"], done["candidates"]) == (True, [], [])


@pytest.mark.slow
def test_nothing_to_forget_is_said(world: World) -> None:
    """No text, a text of nothing, a name of nobody."""
    _distil(world, TABS)

    assert world.run("memory", "forget").returncode == 2
    assert world.run("memory", "forget", "--matching", " ").returncode == 2
    assert world.run("memory", "forget", "nobody").returncode == 1
    assert not world.answer("memory", "forget", "--matching", "zebra", "--yes")["done"]


@pytest.mark.slow
def test_an_output_holds_no_secret_but_a_persons_own_file_does(world: World) -> None:
    """Their note on their terminal is theirs; its line in a listing is not copied."""
    _distil(world, TABS)
    (note,) = world.answer("memory", "list")["notes"]
    token = "ghp_" + "aB3dE6gH9jK2mN5pQ8sT1vW4xY7zA0cD3fG6"
    path = world.store().root / "user" / "mine.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"---\nname: mine\ndescription: the {token}\n---\nIt is {token}.\n")

    for words in (("memory", "list"), ("memory", "list", "--json"), ("show", token)):
        done = world.run(*words)
        assert token not in done.stdout + done.stderr
    assert token in world.run("memory", "show", "mine").stdout
    assert note["name"] in world.run("memory", "list").stdout
