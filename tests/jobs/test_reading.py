"""Reading slices: what a provider may answer, how far one reading goes, what stops it midway."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from world import DAY, NOTHING, SECRET, World, answer, fact

from memoryd.jobs.reading import SLICE_CHUNKS
from memoryd.memory.baseline import Baseline
from memoryd.memory.config import Config, ProviderSettings
from memoryd.memory.errors import BadAnswer
from memoryd.memory.prompt import CHUNK_CHARACTERS
from memoryd.memory.providers.base import Request
from memoryd.memory.testing import FakeClock

SAID = "Always run the linter before you commit."
#: Some 7,600 characters with a marker; two such messages do not fit one chunk.
FILLER = "lorem ipsum dolor sit amet " * 280


# -- what a provider may answer ------------------------------------------------------------------


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


# -- how far a reading goes ----------------------------------------------------------------------


def shown(world: World) -> Counter[str]:
    """How often each word marker was shown to the model."""
    return Counter(re.findall(r"w\d{7}", world.prompts()))


def test_three_mebibytes_are_read_once_within_a_small_daily_budget(
    tmp_path: Path, clock: FakeClock
) -> None:
    """Over several days; every word exactly once, one call a chunk of at most 12,000 characters."""
    asked_on: Counter[int] = Counter()

    def nothing(request: Request) -> str:
        asked_on[clock.now_ms() // (DAY * 1000)] += 1
        return NOTHING

    budget = replace(ProviderSettings(), daily_calls=100)
    world = World(tmp_path, clock, [nothing], config=Config(provider=budget))
    said = world.transcript()
    number = 0
    while said.size < 3 << 20:
        length = 3000 if number % 2 else 431  # some messages are longer than a chunk
        text = " ".join(f"w{number + at:07}" for at in range(length))
        (said.user if said.lines % 2 else said.assistant)(text)
        number += length
    begun = clock.now_ms()

    job = world.finalize(said)
    assert job.wait_reason == "budget.spent"
    world.work_to_rest()

    job = world.job(job)
    assert (job.status, job.outcome_code, job.failures) == ("completed", "nothing.durable", 0)
    assert world.cursor(said) == world.place.history.last_seq(said.agent, said.session)
    assert shown(world) == {f"w{at:07}": 1 for at in range(number)}
    assert max(asked_on.values()) == 100
    assert 2 <= (clock.now_ms() - begun) / DAY / 1000 <= 8
    for request in world.model.requests:
        block = request.prompt.partition("<transcript>\n")[2].partition("\n</transcript>")[0]
        assert len(block) <= CHUNK_CHARACTERS


def test_a_slice_is_at_most_eight_chunks(tmp_path: Path, clock: FakeClock) -> None:
    """Twenty chunks are three slices, each with a commit of its own."""
    texts = [f"Rule number {number} holds always." for number in range(20)]
    world = World(tmp_path, clock, [answer(fact(text)) for text in texts])
    said = world.transcript()
    for text in texts:
        said.user(text + FILLER)

    job = world.finalize(said)

    assert SLICE_CHUNKS == 8
    made = [
        one.values("Memoryd-Slice")[0].split(" ")[1]
        for one in reversed(Baseline(world.store()).log())
        if one.values("Memoryd-Slice")
    ]
    assert made == ["1..8", "9..16", "17..20"]
    assert len(world.model.requests) == 20
    assert len(world.bodies()) == 20
    (attempt,) = world.ledger.records.attempts(job)
    assert (attempt.calls, attempt.ending) == (20, "completed")


def test_a_budget_that_ends_inside_a_slice_keeps_what_was_read(
    tmp_path: Path, clock: FakeClock
) -> None:
    """The slice ends there, is written at once, and goes on there the next day."""
    texts = [f"Rule number {number} holds always." for number in range(5)]
    budget = replace(ProviderSettings(), daily_calls=3)
    world = World(tmp_path, clock, [answer(fact(t)) for t in texts], config=Config(provider=budget))
    said = world.transcript()
    for text in texts:
        said.user(text + FILLER)

    job = world.finalize(said)
    assert (job.wait_reason, world.cursor(said)) == ("budget.spent", 3)
    assert world.bodies() == texts[:3]
    assert {kept.state for kept in world.candidates(job)} == {"applied"}

    world.work_to_rest()
    assert world.job(job).outcome_code == "notes.written"
    assert world.bodies() == texts
    assert len(world.model.requests) == 5
    assert len(world.commits()) == 2


def test_a_failure_inside_a_slice_keeps_what_was_read(tmp_path: Path, clock: FakeClock) -> None:
    """The retry begins with the chunk that failed."""
    rule = "Rule number one holds always."
    world = World(tmp_path, clock, [answer(fact(rule)), BadAnswer("it was empty"), NOTHING])
    said = world.transcript().user(rule + FILLER).user(FILLER)

    job = world.finalize(said)
    assert (job.failures, world.cursor(said), world.bodies()) == (1, 1, [rule])

    world.work_to_rest()
    assert (world.job(job).outcome_code, world.cursor(said)) == ("notes.written", 2)
    assert len(world.model.requests) == 3


def test_the_notes_nearest_to_a_chunk_are_shown_with_it(tmp_path: Path, clock: FakeClock) -> None:
    """So that the answer can be that it is known already."""
    known = fact(SAID, relation={"kind": "same", "name": "always-run-the-linter-before-you-commit"})
    world = World(tmp_path, clock, [answer(fact(SAID)), answer(known)])
    world.finalize(world.transcript("s1").user(SAID))

    job = world.finalize(world.transcript("s2").user("About the linter: " + SAID))

    assert "[always-run-the-linter-before-you-commit] feedback" in world.model.requests[1].prompt
    assert (world.reasons(job), len(world.commits())) == (["same"], 1)


def test_what_was_said_in_no_known_directory_still_has_a_home(
    tmp_path: Path, clock: FakeClock
) -> None:
    """The project is that of the directory the agent was started in, as the hook saw it."""
    world = World(tmp_path, clock, [answer(fact(SAID))])
    said = world.transcript().user(SAID, cwd=None)

    job = world.finalize(said, cwd=str(world.project))

    assert job.outcome_code == "notes.written", job.error_detail
    assert world.bodies() == [SAID]


def test_each_fact_goes_to_the_project_it_was_said_in(tmp_path: Path, clock: FakeClock) -> None:
    """One session in two projects: two stores, one commit each, one slice."""
    other = tmp_path / "other"
    other.mkdir()
    second = "We deploy on Fridays only, never else."
    world = World(tmp_path, clock, [answer(fact(SAID), fact(second))])

    world.finalize(world.transcript().user(SAID).user(second, cwd=str(other)))

    assert (world.bodies(), world.bodies(other)) == ([SAID], [second])
    assert (len(world.commits()), len(world.commits(other))) == (1, 1)
