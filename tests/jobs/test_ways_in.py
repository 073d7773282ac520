"""A secret on each way in: ids, paths, names, answers, notes; none of them gets further."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
import structlog
from test_intake import bad, drop, left
from world import SECRET, World, answer, fact

from memoryd.jobs.sweep import take_in_envelopes
from memoryd.memory.baseline import Baseline
from memoryd.memory.errors import UsageError
from memoryd.memory.log import configure, logger
from memoryd.memory.notes import new_note
from memoryd.memory.testing import FakeClock

RULE = "Always run the linter before you commit."
TOKEN = "ghp_" + "aB3dE6gH9jK2mN5pQ8sT1vW4xY7zA0cD3fG6"


@pytest.fixture
def world(tmp_path: Path, clock: FakeClock) -> World:
    """A home whose model takes the rule for a fact."""
    return World(tmp_path, clock, [answer(fact(RULE))])


def places(world: World) -> list[Path]:
    """Where in the home a planted secret stands, all that git and SQLite hold laid open."""
    world.ledger.db.rows("pragma wal_checkpoint(truncate)")
    world.place.close()
    planted = (SECRET.encode(), TOKEN.encode())
    return [
        path
        for path, data in world.bytes_of_home()
        if any(one in data or one.decode() in str(path) for one in planted)
    ]


def test_an_envelope_that_names_its_session_by_a_secret_is_refused_without_it(
    world: World,
) -> None:
    """What is set aside for a person to look at says all but the secret; others go on."""
    drop(world, TOKEN)
    drop(world, "s1", at=1)

    taken = take_in_envelopes(world.place)

    assert (taken.created, taken.bad, left(world)) == (1, 1, [])
    (name,) = bad(world)
    kept = json.loads((world.home.inbox / "bad" / name).read_text())
    assert kept["session"] == "[REDACTED:github]"
    assert places(world) == []


def test_no_row_is_made_for_a_session_named_by_a_secret(world: World) -> None:
    """Whoever asks, and for an exclusion too; the refusal does not repeat it."""
    said = world.transcript(TOKEN)

    for ask in (
        lambda: world.enqueue(said),
        lambda: world.ledger.exclude("claude-code", TOKEN, "session.excluded"),
    ):
        with pytest.raises(UsageError) as refused:
            ask()
        assert TOKEN not in f"{refused.value.message} {refused.value.hint}"
    assert places(world) == []


@pytest.mark.parametrize("where", ["name", "description", "content", "relation"])
def test_a_drafted_note_with_a_secret_anywhere_is_written_nowhere(
    tmp_path: Path, clock: FakeClock, where: str
) -> None:
    """Not as a note, a file name, a commit, a candidate or what one would write."""
    note = {"type": "feedback", "name": "n", "description": "d", "content": "c"}
    relation = {"kind": "new", "name": None}
    if where == "relation":
        relation = {"kind": "updates", "name": TOKEN}
    else:
        note[where] = f"with {TOKEN} in it"
    told = fact(RULE, note=note, relation=relation, explicitness="inferred")
    world = World(tmp_path, clock, [answer(told)])

    job = world.finalize(world.transcript().user(RULE))

    assert world.reasons(job) == ["scanner.secret"]
    assert world.bodies() == []
    assert places(world) == []


def test_a_persons_note_with_a_secret_is_shown_to_no_model(world: World) -> None:
    """Left out whole, not only redacted; the others are shown."""
    world.finalize(world.transcript("s0").user("Nothing to keep about the linter."))
    store = world.store()
    for name, body in (("pin", f"the linter pin is {TOKEN}"), ("lint", "the linter is ruff")):
        data = new_note(name=name, description=f"About {name}", type="user", body=body)
        store.replace(f"user/{name}.md", data, found=None)
    world.model._script = [answer(fact(RULE))]

    world.finalize(world.transcript("s1").user(RULE))

    shown = world.model.requests[-1].prompt
    assert "[lint]" in shown
    assert "[pin]" not in shown and "About pin" not in shown
    assert all(note.name != "pin" for note in world.model.requests[-1].notes)


def test_the_index_leaves_out_a_note_whose_line_would_hold_a_secret(world: World) -> None:
    """A person may keep it in their own file; it is not copied."""
    store = world.store()
    for name, about in (("pin", f"the token {TOKEN}"), ("lint", "the linter")):
        data = new_note(name=name, description=about, type="user", body="b")
        store.replace(f"user/{name}.md", data, found=None)

    store.write_index()

    index = (store.root / "MEMORY.md").read_text()
    assert "(user/lint.md)" in index
    assert "pin" not in index and TOKEN not in index


def test_a_commits_subject_is_redacted(world: World) -> None:
    """Whatever a file was called."""
    store = world.store()
    data = new_note(name="a", description="d", type="user", body="b")
    store.replace("user/a.md", data, found=None)

    Baseline(store).commit(["user/a.md"], f"Remember {TOKEN}")

    assert [made.subject for made in Baseline(store).log(1)] == ["Remember [REDACTED:github]"]


def test_a_log_line_holds_no_secret_whatever_it_is_given() -> None:
    """Paths, ids and reasons come from outside; so do lists of them."""
    written = io.StringIO()
    configure(written)
    try:
        logger().warning("store.unusable", store=f"/home/{TOKEN}/x", more=[{"reason": TOKEN}])
    finally:
        structlog.reset_defaults()

    assert TOKEN not in written.getvalue()
    assert "/home/[REDACTED:github]/x" in written.getvalue()
