"""Whatever a provider answers corrupts nothing, and the ledger says what was refused and why."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from world import NOTHING, SECRET, World, answer, fact

from memoryd.memory.testing import FakeClock

SAID = "Always run the linter before you commit."
#: Some 7,600 characters; two such messages do not fit one chunk.
FILLER = "lorem ipsum dolor sit amet " * 280


@pytest.mark.parametrize(
    "nonsense",
    [
        "",
        "I could not find anything worth remembering.",
        "\x00\x07{{{[[[",
        '{"facts": "none"}',
        '{"memories": []}',
        "[" * 5000,
        '{"facts": [{"statement": "cut in the mid',
        "9" * 5000,
    ],
)
def test_nonsense_is_asked_again_once_and_then_a_failure(
    tmp_path: Path, clock: FakeClock, nonsense: str
) -> None:
    """Two calls an attempt; nothing is written, the cursor stays, the reason is in the row."""
    world = World(tmp_path, clock, [nonsense])
    said = world.transcript().user(SAID)

    job = world.finalize(said)

    assert (job.shown_status, job.failures, job.error_code) == ("retrying", 1, "answer.unusable")
    assert len(world.model.requests) == 2
    assert "could not be used" in world.model.requests[1].prompt
    assert (world.cursor(said), world.commits(), world.candidates(job)) == (0, [], [])


def test_after_its_failures_the_job_is_given_up_and_the_words_are_not(
    tmp_path: Path, clock: FakeClock
) -> None:
    """Five attempts of two calls; ``retry`` later reads the same words with a better model."""
    world = World(tmp_path, clock, ["no"] * 10 + [answer(fact(SAID))])
    job = world.finalize(world.transcript().user(SAID))
    world.work_to_rest()
    assert (world.job(job).status, len(world.model.requests)) == ("failed", 10)

    assert world.ledger.retry(world.job(job))
    world.work()

    assert world.job(job).outcome_code == "notes.written"
    assert world.bodies() == [SAID]


def test_retry_skip_gives_up_the_slice_and_goes_on(tmp_path: Path, clock: FakeClock) -> None:
    """What no model can read is passed over when a person says so."""
    world = World(tmp_path, clock, ["no"] * 10 + [NOTHING])
    said = world.transcript().user(SAID)
    job = world.finalize(said)
    world.work_to_rest()

    assert world.ledger.retry(world.job(job), skip=True)
    world.work()

    assert (world.job(job).outcome_code, world.cursor(said)) == ("nothing.new", 1)
    assert len(world.model.requests) == 10


def test_one_corrective_retry_a_slice(tmp_path: Path, clock: FakeClock) -> None:
    """It helps once; a second bad chunk of the same slice ends the slice there, with a failure."""
    world = World(tmp_path, clock, ["prose", answer(fact(SAID)), "prose", NOTHING])
    said = world.transcript().user(SAID).user(FILLER).user(FILLER)

    job = world.finalize(said)

    assert len(world.model.requests) == 3
    assert (job.failures, job.error_code) == (1, "answer.unusable")
    assert world.bodies() == [SAID]
    assert world.cursor(said) == 2

    world.work_to_rest()
    assert (world.job(job).status, world.cursor(said)) == ("completed", 3)
    assert len(world.commits()) == 1


@pytest.mark.parametrize(
    "wrapped",
    [
        "```json\n{}\n```",
        "Sure! Here is what I found:\n\n{}\n\nLet me know if you need more.",
        "<think>{{}} hm</think>\n{}",
    ],
)
def test_prose_and_fences_around_the_answer_are_put_up_with(
    tmp_path: Path, clock: FakeClock, wrapped: str
) -> None:
    """No retry is spent on them."""
    world = World(tmp_path, clock, [wrapped.replace("{}", answer(fact(SAID)), 1)])

    job = world.finalize(world.transcript().user(SAID))

    assert (job.outcome_code, len(world.model.requests)) == ("notes.written", 1)
    assert world.bodies() == [SAID]


def test_of_half_an_object_the_whole_facts_are_kept(tmp_path: Path, clock: FakeClock) -> None:
    """The answer ran out of tokens; ``show`` says that an item was cut."""
    whole = answer(fact(SAID), fact("Deploys go through staging first."))
    world = World(tmp_path, clock, [whole[: whole.rindex("Deploys") + 40]])

    job = world.finalize(world.transcript().user(SAID))

    assert world.bodies() == [SAID]
    kept = {(one.decision, one.reason): one for one in world.candidates(job)}
    assert set(kept) == {("apply", "policy.passed"), ("ignore", "item.malformed")}
    assert "cut" in kept["ignore", "item.malformed"].detail


def test_an_invented_span_is_refused(tmp_path: Path, clock: FakeClock) -> None:
    """The ledger says which statement, and why."""
    world = World(tmp_path, clock, [answer(fact("Loves tabs.", "I love tabs more than spaces"))])

    job = world.finalize(world.transcript().user(SAID))

    (kept,) = world.candidates(job)
    assert (kept.statement, kept.decision, kept.reason, kept.state) == (
        "Loves tabs.",
        "ignore",
        "evidence.not-found",
        "ignored",
    )
    assert kept.detail == "the quoted words were never said"
    assert (world.bodies(), world.commits(), job.outcome_code) == ([], [], "nothing.durable")


def test_the_assistants_words_prove_nothing_about_the_person(
    tmp_path: Path, clock: FakeClock
) -> None:
    """About the project they may."""
    said = "The staging server lives in Frankfurt."
    facts = answer(
        fact("Likes Frankfurt.", said, category="personal"), fact(said, category="project")
    )
    world = World(tmp_path, clock, [facts])

    job = world.finalize(world.transcript().user("Where is staging?").assistant(said))

    assert world.reasons(job) == ["evidence.wrong-message", "policy.passed"]
    assert world.bodies() == [said]


def test_a_tools_output_proves_nothing(tmp_path: Path, clock: FakeClock) -> None:
    """It is not even shown."""
    world = World(tmp_path, clock, [answer(fact("The port is 8042 exactly.", category="project"))])

    said = world.transcript().user(SAID).tool_result("The port is 8042 exactly.")
    job = world.finalize(said)

    assert world.reasons(job) == ["evidence.not-found"]
    assert "8042" not in world.prompts()


def test_a_secret_in_an_answer_is_never_kept(tmp_path: Path, clock: FakeClock) -> None:
    """Neither in a note nor in the ledger; the reason is."""
    bad = fact(f"The key is {SECRET}", SAID)
    hidden = fact("Uses the linter.", SAID, sensitivity="secret")
    world = World(tmp_path, clock, [answer(bad, hidden)])

    job = world.finalize(world.transcript().user(SAID))

    assert world.reasons(job) == ["scanner.secret", "scanner.secret"]
    assert (world.bodies(), world.commits()) == ([], [])
    assert "Uses the linter" not in str(world.candidates(job))
    world.place.close()
    assert not [path for path, data in world.bytes_of_home() if SECRET.encode() in data]


def test_of_forty_facts_the_surest_three_are_written(tmp_path: Path, clock: FakeClock) -> None:
    """The rest waits for a person, and says so."""
    statements = [f"Rule number {number} holds always here." for number in range(40)]
    facts = [
        fact(text, confidence=0.99 if at in {7, 17, 27} else 0.8)
        for at, text in enumerate(statements)
    ]
    world = World(tmp_path, clock, [answer(*facts)])

    job = world.finalize(world.transcript().user("\n".join(statements)))

    assert Counter((one.reason, one.state) for one in world.candidates(job)) == {
        ("policy.passed", "applied"): 3,
        ("cap", "pending"): 37,
    }
    assert world.bodies() == [statements[17], statements[27], statements[7]]
    assert len(world.commits()) == 1


def test_twelve_saves_a_slice(tmp_path: Path, clock: FakeClock) -> None:
    """Five chunks of three; the last three wait for a person."""
    texts = [[f"Rule {one} of part {part} holds." for one in range(3)] for part in range(5)]
    world = World(tmp_path, clock, [answer(*map(fact, three)) for three in texts])
    said = world.transcript()
    for three in texts:
        said.user("\n".join(three) + "\n" + FILLER)

    job = world.finalize(said)

    assert Counter(world.reasons(job)) == {"policy.passed": 12, "cap": 3}
    assert (len(world.bodies()), len(world.commits())) == (12, 1)


def test_one_bad_item_does_not_spoil_the_others(tmp_path: Path, clock: FakeClock) -> None:
    """Wrong types, missing keys, endless text, hostile names: each refused with its reason."""
    bad: list[object] = [
        7,
        None,
        {},
        {**fact(SAID), "category": "gossip"},
        {**fact(SAID), "confidence": "very"},
        {**fact("x" * 600), "evidence": [{"message": "m1", "span": SAID}]},
        {**fact("No evidence here."), "evidence": []},
    ]
    note = {"type": "feedback", "name": "../../../etc/x", "description": "d", "content": SAID}
    world = World(tmp_path, clock, [json.dumps({"facts": [*bad, {**fact(SAID), "note": note}]})])

    job = world.finalize(world.transcript().user(SAID))

    assert Counter(world.reasons(job)) == {
        "item.malformed": 5,
        "statement.too-long": 1,
        "evidence.missing": 1,
        "policy.passed": 1,
    }
    assert all(one.detail for one in world.candidates(job))
    assert world.bodies() == [SAID]
    written = [path for path in world.store().paths()]
    assert written == ["feedback/etc-x.md"]


def test_a_statement_said_twice_is_one_note(tmp_path: Path, clock: FakeClock) -> None:
    """In two chunks of one slice: one is written, the other a duplicate."""
    world = World(tmp_path, clock, [answer(fact(SAID))])

    job = world.finalize(world.transcript().user(SAID + FILLER).user(SAID + FILLER))

    assert sorted(world.reasons(job)) == ["duplicate", "policy.passed"]
    assert world.bodies() == [SAID]
