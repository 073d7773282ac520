"""What FreeCode's extraction promised, as this product keeps or changes it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from world import NOTHING, SECRET, World, answer, fact

from memoryd.jobs.job import Job
from memoryd.memory.baseline import Baseline
from memoryd.memory.errors import ProviderUnavailable
from memoryd.memory.notes import new_note, parse
from memoryd.memory.testing import FakeClock

WORDS = [
    f"Always check the {name} before you deploy."
    for name in ("disk", "clock", "queue", "cache", "log")
]


def said(world: World, *texts: str, session: str = "s1") -> Job:
    """A session in which a person says ``texts``, worked to its end; its job."""
    transcript = world.transcript(session)
    for text in texts:
        transcript.user(text).assistant("Fine.")
    return world.finalize(transcript)


def written(world: World, path: str, body: str, **more: object) -> str:
    """A note of ours that is there already; its path comes back."""
    store = world.store()
    Baseline(store).ensure()
    name = Path(path).stem
    values = {"created": "2026-01-01", "valid_from": "2026-01-01", **more}
    data = new_note(name=name, description=body, type="feedback", body=body, **values)
    (store.root / path).parent.mkdir(parents=True, exist_ok=True)
    (store.root / path).write_bytes(data)
    Baseline(store).commit([path], "Before")
    return path


def test_three_of_five_are_saved_and_two_wait(tmp_path: Path, clock: FakeClock) -> None:
    """The reference drops what is over its cap; here it waits for a person."""
    world = World(tmp_path, clock, [answer(*(fact(text) for text in WORDS))])

    job = said(world, *WORDS)

    assert len(world.bodies()) == 3
    decided = Counter((one.decision, one.reason) for one in world.candidates(job))
    assert decided == {("apply", "policy.passed"): 3, ("review", "cap"): 2}


def test_a_provider_that_is_away_is_waited_for(tmp_path: Path, clock: FakeClock) -> None:
    """The reference counts nothing and forgets the words; here they wait, and are read later."""
    away = ProviderUnavailable("no connection", hint="later")
    world = World(tmp_path, clock, [away, answer(fact(WORDS[0]))])

    job = said(world, WORDS[0])
    assert (world.job(job).shown_status, world.bodies()) == ("waiting", [])

    world.work_to_rest()
    assert world.bodies() == [WORDS[0]]


def test_prose_is_asked_again_once_and_then_a_recorded_failure(
    tmp_path: Path, clock: FakeClock
) -> None:
    """The reference saves nothing and says nothing; here the row says why, and tries later."""
    world = World(tmp_path, clock, ["I found nothing of note.", "Really.", answer(fact(WORDS[0]))])

    job = said(world, WORDS[0])
    row = world.job(job)
    assert (row.failures, row.error_code, world.bodies()) == (1, "answer.unusable", [])

    world.work_to_rest()
    assert world.bodies() == [WORDS[0]]


def test_a_blank_transcript_takes_no_call(tmp_path: Path, clock: FakeClock) -> None:
    """White space is nothing said."""
    world = World(tmp_path, clock)

    job = said(world, "  \n ")

    assert world.model.requests == []
    assert world.job(job).outcome_code == "nothing.said"


def test_a_secret_is_skipped_and_its_sibling_saved(tmp_path: Path, clock: FakeClock) -> None:
    """The candidate is kept without its words."""
    leaked = fact(f"The key is {SECRET}.", "The key is", category="project")
    world = World(tmp_path, clock, [answer(leaked, fact(WORDS[0]))])

    job = said(world, f"The key is {SECRET}. {WORDS[0]}")

    assert world.bodies() == [WORDS[0]]
    assert world.reasons(job) == ["scanner.secret", "policy.passed"]
    assert all(SECRET.encode() not in data for path, data in world.bytes_of_home())


def test_fenced_json_is_read(tmp_path: Path, clock: FakeClock) -> None:
    """With its language or without."""
    world = World(tmp_path, clock, [f"```json\n{answer(fact(WORDS[0]))}\n```"])

    said(world, WORDS[0])

    assert world.bodies() == [WORDS[0]]


@pytest.mark.parametrize(
    "broken",
    [{"statement": None}, {"category": "mood"}, {"explicitness": None}, {"confidence": "high"}],
)
def test_an_item_with_a_missing_or_unknown_field_is_skipped(
    tmp_path: Path, clock: FakeClock, broken: dict[str, object]
) -> None:
    """Its sibling is saved, and the row says what was refused."""
    world = World(tmp_path, clock, [answer(fact(WORDS[1]) | broken, fact(WORDS[0]))])

    job = said(world, *WORDS[:2])

    assert world.bodies() == [WORDS[0]]
    assert sorted(world.reasons(job)) == ["item.malformed", "policy.passed"]


@pytest.mark.parametrize("kind", ["episode", "mood", None, 7])
def test_a_note_of_a_type_no_model_may_write_is_made_of_the_statement(
    tmp_path: Path, clock: FakeClock, kind: object
) -> None:
    """The reference drops the item; here the fact stands and only the drafted note goes."""
    note = {"type": kind, "name": "n", "description": "d", "content": "Something else."}
    world = World(tmp_path, clock, [answer(fact(WORDS[0], note=note))])

    said(world, WORDS[0])

    assert world.bodies() == [WORDS[0]]
    assert [note.type for note in world.store().notes()] == ["feedback"]


def test_what_is_known_does_not_use_up_the_cap(tmp_path: Path, clock: FakeClock) -> None:
    """Three others are saved beside it."""
    world = World(tmp_path, clock, [answer(*(fact(text) for text in WORDS[:4]))])
    written(world, "feedback/disk.md", WORDS[0])

    job = said(world, *WORDS[:4])

    assert len(world.bodies()) == 4
    assert sorted(world.reasons(job)) == ["policy.passed"] * 3 + ["same"]


def test_a_proposal_with_a_taken_name_overwrites_nothing(tmp_path: Path, clock: FakeClock) -> None:
    """The reference replaces the old body; here the new fact gets a name of its own."""
    note = {"type": "feedback", "name": "disk", "description": "d", "content": WORDS[1]}
    world = World(tmp_path, clock, [answer(fact(WORDS[1], note=note))])
    written(world, "feedback/disk.md", "The disk is encrypted.")

    said(world, WORDS[1])

    assert world.bodies() == [WORDS[1], "The disk is encrypted."]


def test_an_update_keeps_tags_and_links(tmp_path: Path, clock: FakeClock) -> None:
    """What the answer does not speak of stays."""
    relation = {"kind": "updates", "name": "disk"}
    world = World(tmp_path, clock, [answer(fact(WORDS[0], relation=relation))])
    path = written(world, "feedback/disk.md", "Encrypted.", tags=["ops"], supersedes=["tape"])

    said(world, WORDS[0])

    note = parse(world.store().read(path) or b"", path)
    assert note.body == f"Encrypted.\n{WORDS[0]}"
    assert (note.tags, note.supersedes) == (("ops",), ("tape",))


def test_the_start_of_a_long_session_is_read(tmp_path: Path, clock: FakeClock) -> None:
    """The reference keeps the last 12,000 characters; here every chunk is asked about."""
    world = World(tmp_path, clock, [answer(fact(WORDS[0])), NOTHING])

    said(world, WORDS[0], "The build prints a long line here. " * 300, "And on. " * 900)

    assert len(world.model.requests) > 1
    assert world.bodies() == [WORDS[0]]


def test_what_was_written_is_told_by_name_and_once(tmp_path: Path, clock: FakeClock) -> None:
    """In the job's row, its candidates and the history; what comes later tells nothing again."""
    world = World(tmp_path, clock, [answer(*(fact(text) for text in WORDS[:2])), NOTHING])
    transcript = world.transcript().user(WORDS[0]).user(WORDS[1]).assistant("Fine.")

    job = world.finalize(transcript)
    later = world.finalize(transcript.user("Thanks, that was all."))

    names = {note.path for note in world.store().notes()}
    assert (world.job(job).outcome_code, len(names)) == ("notes.written", 2)
    told = [(one.state, one.path) for one in world.candidates(job)]
    assert sorted(told) == sorted(("applied", path) for path in names)
    assert (later.outcome_code, world.candidates(later)) == ("nothing.durable", [])
    assert len(world.commits()) == 1


def test_nothing_to_keep_writes_and_says_nothing(tmp_path: Path, clock: FakeClock) -> None:
    """No commit, no candidate; the outcome has a code."""
    world = World(tmp_path, clock, [NOTHING])

    job = said(world, "Fix the typo in line three.")

    assert world.job(job).outcome_code == "nothing.durable"
    assert (world.candidates(job), world.commits()) == ([], [])


def test_a_store_of_few_notes_is_shown_whole(tmp_path: Path, clock: FakeClock) -> None:
    """What contradicts a note seldom repeats its words."""
    world = World(tmp_path, clock, [NOTHING])
    for name in ("a", "b", "c"):
        written(world, f"feedback/{name}.md", f"Unrelated {name * 5}.")

    said(world, "Switch to something quite different.")

    assert [note.name for note in world.model.requests[0].notes] == ["a", "b", "c"]


def test_of_many_notes_the_five_nearest_are_shown(tmp_path: Path, clock: FakeClock) -> None:
    """Those that share rare words with what is said."""
    world = World(tmp_path, clock, [NOTHING])
    for number in range(8):
        about = "deploys to production" if number % 2 else f"nothing{number} of note{number}"
        written(world, f"feedback/n{number}.md", f"About {about} number{number}.")

    said(world, "Our deploys to production are slow.")

    assert {note.name for note in world.model.requests[0].notes} == {"n1", "n3", "n5", "n7"}


def test_an_old_session_never_overrules_a_newer_note(tmp_path: Path, clock: FakeClock) -> None:
    """Read late, its words go to the archive; the note stands as it is."""
    relation = {"kind": "contradicts", "name": "always-check-the-disk-before-you-deploy"}
    old = fact(WORDS[1], relation=relation)
    world = World(tmp_path, clock, [answer(fact(WORDS[0])), answer(old)])
    before = world.transcript("old").user(WORDS[1])
    clock.advance(24 * 3600)
    said(world, WORDS[0], session="new")

    world.finalize(before)

    assert world.bodies() == [WORDS[0]]
    (late,) = [note for note in world.store().notes() if note.archived]
    assert late.superseded_by == relation["name"]


def test_two_chunks_that_add_to_one_note_are_both_kept(tmp_path: Path, clock: FakeClock) -> None:
    """Each was decided on the note as it was shown; neither takes the other's line away."""
    update = {"kind": "updates", "name": "ci"}

    def adding(text: str) -> str:
        note = {
            "type": "feedback",
            "name": "ci",
            "description": "CI",
            "content": f"CI is slow.\n{text}",
        }
        return answer(fact(text, relation=update, note=note))

    world = World(tmp_path, clock, [adding(WORDS[0]), adding(WORDS[1])])
    written(world, "feedback/ci.md", "CI is slow.")

    said(world, WORDS[0] + " And so on." * 1000, WORDS[1] + " And so on." * 200)

    assert len(world.model.requests) == 2
    assert world.bodies() == [f"CI is slow.\n{WORDS[0]}\n{WORDS[1]}"]
